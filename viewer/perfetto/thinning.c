#include "perfetto/thinning.h"

#include <string.h>

static int64_t resolution(const struct dt_thin *thin, int64_t end) {
    return thin->seen > DT_THIN_WHOLE ? (end - thin->first) / DT_THIN_WHOLE : 0;
}

bool dt_thin_note(struct dt_thin *thin, int64_t begin, int64_t end) {
    if (thin->seen++ == 0)
        thin->first = begin;
    return end - begin < resolution(thin, end);
}

bool dt_thin_is_full(const struct dt_thin *thin, int64_t begin, int64_t end) {
    return thin->held && (begin < thin->begin || end - thin->begin >= resolution(thin, end));
}

void dt_thin_add(struct dt_thin *thin, enum dt_state state, int64_t begin, int64_t end) {
    if (thin->held++ == 0)
        thin->begin = thin->end = begin;
    thin->thinned++;
    thin->end = MAX(thin->end, end);
    thin->ns[state] += end - begin;
}

void dt_thin_clear(struct dt_thin *thin) {
    thin->held = 0;
    memset(thin->ns, 0, sizeof thin->ns);
}
