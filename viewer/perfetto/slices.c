#include "perfetto/slices.h"

void dt_perfetto_end_slice(struct dt_perfetto *s, uint64_t track, int64_t time) {
    dt_event_begin(s->packets, DT_EVENT_END, track, time, DT_CATEGORY_NONE);
    dt_event_end(s->packets);
}

void dt_perfetto_begin_slice(struct dt_perfetto *s, uint64_t track, int64_t time,
                             enum dt_category category, uint64_t name) {
    dt_event_begin(s->packets, DT_EVENT_BEGIN, track, time, category);
    dt_event_name(s->packets, name);
}
