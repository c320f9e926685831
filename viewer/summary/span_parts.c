#include "summary/span_parts.h"

/* Ended spans of a process, at most. A request may have many queries of one kind. */
enum { MOST = 64 };

#define PART(ended, i) (&g_array_index((ended), struct dt_span_part, (i)))

/* Adds to the part of its kind, from `first` on. */
static void add(GArray *ended, unsigned first, struct dt_span_part part) {
    for (unsigned i = first; i < ended->len; i++)
        if (PART(ended, i)->row == part.row) {
            PART(ended, i)->own += part.own;
            return;
        }
    g_array_append_val(ended, part);
}

/* Merges the first two of the same kind that ended one after the other; without such, drops one. */
static void make_room(GArray *ended) {
    unsigned i = 1;

    while (i < ended->len && PART(ended, i)->row != PART(ended, i - 1)->row)
        i++;
    if (i == ended->len) {
        g_array_remove_index(ended, 0);
        return;
    }
    PART(ended, i - 1)->own += PART(ended, i)->own;
    g_array_remove_index(ended, i);
}

void dt_span_parts_ended(GArray **ended, struct dt_named *row, int64_t begin, int64_t end) {
    struct dt_span_part inside[MOST], span = {row, begin + (end - begin) / 2, end - begin};

    if (!*ended)
        *ended = g_array_new(false, false, sizeof(struct dt_span_part));
    unsigned first = (*ended)->len, n = 0;
    while (first > 0 && PART(*ended, first - 1)->middle >= begin)
        first--;
    for (unsigned i = first; i < (*ended)->len; i++)
        inside[n++] = *PART(*ended, i);
    g_array_set_size(*ended, first);
    for (unsigned i = 0; i < n; i++) {
        span.own -= inside[i].own;
        if (inside[i].row != row)
            dt_named_add_part(row, inside[i].row, inside[i].own);
        inside[i].middle = span.middle;
        add(*ended, first, inside[i]);
    }
    span.own = MAX(span.own, 0);
    add(*ended, first, span);
    if ((*ended)->len >= MOST)
        make_room(*ended);
}
