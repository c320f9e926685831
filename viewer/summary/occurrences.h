/* Bounded lists of occurrences: crashes, long waits, long garbage collections, log lines. */
#pragma once

#include "actors/actors.h"

/* Rows of a list, at most. */
enum { DT_LISTED = 1000 };

/* An occurrence in a process at a time. */
struct dt_listed {
    struct dt_actor *actor; /* NULL: it concerns the node */
    struct dt_seen_node *node;
    int64_t time, ns;
    char *text, *word;
    bool is_major, is_error, inferred;
    bool is_stretched; /* a collection that took longer than its words explain */
    uint64_t reclaimed, heap;
    GPtrArray *linked;
};

struct dt_list {
    GArray *rows;
    bool by_ns;    /* keeps the longest rows, else the first */
    int64_t least; /* shorter ones are left out */
    uint64_t left_out;
};
void dt_list_init(struct dt_list *list, bool by_ns);
void dt_list_free(struct dt_list *list);
/* Takes ownership of `text`, `word` and `linked`, and a reference to `actor`. */
void dt_list_add(struct dt_list *list, struct dt_listed row);
bool dt_list_wants(const struct dt_list *list, int64_t ns);
void dt_list_sort(struct dt_list *list);
