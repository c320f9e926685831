/* Texts of pids and ports. */
#pragma once

#include "shared/model_events.h"

/* The numbers of an identifier: <0.90.1>, #Port<0.5> or <9234.99.0>. */
struct key {
    uint64_t kind_and_node;
    uint64_t number;
};

bool dt_is_identifier(const char *text);
/* The placeholder pid that the VM uses in place of a process: as the caller of a port that is
   controlled by a driver, and as the receiver of that port's answer. */
bool dt_is_no_receiver(const char *text);

/* Returns false if the text is not an identifier, or is the placeholder pid. */
bool dt_key_of(const char *text, struct key *key, enum dt_kind *kind);
unsigned dt_key_hash(const void *key);
gboolean dt_key_equal(const void *a, const void *b);
