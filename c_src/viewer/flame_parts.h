/* What the flame graph's collector shares with its sink. */
#ifndef DT_VIEWER_FLAME_PARTS_H
#define DT_VIEWER_FLAME_PARTS_H

#include "viewer/flame.h"

enum {
    /* Frames of the tree. What has no room is time of the frame "others". */
    DT_FLAME_FRAMES = 50000,
    /* More for nodes and processes, so that those of a full tree still have their names. */
    DT_FLAME_NAMED = 10000,
};

struct dt_flame_frame;

struct dt_flame {
    enum dt_flame_what what;
    enum dt_flame_by by;
    struct dt_flame_frame *root, *others;
    GHashTable *frames;    /* by parent and name */
    GHashTable *names;     /* each name once */
    GHashTable *processes; /* struct dt_process -> struct running */
    void *of_sink;         /* of sink_flame.c, whose data is the flame graph */
};

void dt_flame_call_begin(void *s, struct dt_frame *frame);
void dt_flame_call_end(void *s, struct dt_frame *frame);
void dt_flame_interval(void *s, const struct dt_interval *interval);
void dt_flame_process_gone(void *s, struct dt_process *process);

#define DT_FLAME_COLLECTS                                                                          \
    .call_begin = dt_flame_call_begin, .call_end = dt_flame_call_end,                              \
    .interval = dt_flame_interval, .process_gone = dt_flame_process_gone

#endif
