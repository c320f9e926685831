/*
 * What happened in the timeline beside intervals and messages: calls of servers, spans, marks,
 * exits. Of each kind the weightiest are kept.
 */
#ifndef DT_VIEWER_HTML_KEPT_H
#define DT_VIEWER_HTML_KEPT_H

#include "viewer/html_lane.h"

struct dt_kept_one {
    struct dt_lane *process, *other; /* both are referred to; NULL */
    int64_t begin, end;              /* the same for what happens at one time */
    int64_t delivered, taken;        /* of a call; DT_NO_VALUE */
    int64_t weight;
    unsigned kind; /* of a call dt_outcome, of an exit whether it was a crash */
    char *name, *text;
};

struct dt_kept {
    GArray *of; /* of struct dt_kept_one */
    unsigned most;
    uint64_t seen;
};

void dt_kept_init(struct dt_kept *kept, unsigned most);
void dt_kept_clear(struct dt_kept *kept);
/* Takes references to the processes and copies the texts. */
void dt_kept_add(struct dt_kept *kept, const struct dt_kept_one *one);
/* The kept ones in the order of their begin. */
void dt_kept_sort(struct dt_kept *kept);

/* The begin of a text that is valid UTF-8, for people; to be freed by g_free. */
char *dt_kept_text(const char *text, size_t most);

#endif
