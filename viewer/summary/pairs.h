/*
 * A bounded table of pairs of processes: messages, gen_server calls by the shape of their request,
 * messages to the dead.
 *
 * When the table is full, rows of exited processes are summed by their initial call. If that does
 * not suffice, the smallest rows are left out and counted.
 *
 * Sums are made as late as possible: the initial call of a process may become known only after its
 * first messages.
 */
#pragma once

#include "summary/quantiles.h"
#include "summary/slices.h"
#include "actors/actors.h"

/* The row of two processes and a text. */
struct dt_pair {
    struct dt_actor *from, *to; /* either may be NULL: unknown */
    struct dt_actor *only;      /* the only process summed in `from`; NULL: several */
    char *text, *example;
    uint64_t count, inferred, timeouts, downs;
    uint64_t refused; /* lock requests of Mnesia that made the transaction start again */
    uint64_t bytes;   /* of the largest copy */
    struct dt_quantiles took, queued, runnable, worked, deferred;
    struct dt_slices slices; /* of calls */
};

struct dt_pairs {
    GHashTable *rows;
    unsigned most;
    uint64_t left_out; /* `count` of the rows that were left out */
};
/* A term of the row, as the language of its node writes it. To be freed by g_free. */
char *dt_pair_term(const struct dt_pair *pair, const char *term);

void dt_pairs_init(struct dt_pairs *pairs, unsigned most);
void dt_pairs_free(struct dt_pairs *pairs);
/* The result is valid until the next call. */
struct dt_pair *dt_pairs_row(struct dt_pairs *pairs, struct dt_actor *from, struct dt_actor *to,
                             const char *text);
/* Sums the rows of senders without a name by their initial calls, and those of receivers for which
   `is_summed` is true. */
typedef bool dt_is_summed(const struct dt_actor *actor, const void *data);
void dt_pairs_sum(struct dt_pairs *pairs, dt_is_summed *is_summed, const void *data);
/* Adds the rows to those of another table: of all senders, by the receivers' names or, without a
   name, their initial calls. */
void dt_pairs_add_receivers(struct dt_pairs *to, const struct dt_pairs *from);
GPtrArray *dt_pairs_by_count(const struct dt_pairs *pairs); /* the caller frees it */
