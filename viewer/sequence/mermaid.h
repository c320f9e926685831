/* A sequence diagram in the syntax of Mermaid. */
#pragma once

#include "sequence/sequence_events.h"

/* `nothing`: the reason for an empty diagram, or NULL. */
void dt_sequence_mermaid(struct dt_sequence *sequence, const char *nothing, GString *to);
