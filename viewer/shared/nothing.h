/* The message of a sink that has nothing to show: the reason, and what to do. */
#ifndef DT_VIEWER_SHARED_NOTHING_H
#define DT_VIEWER_SHARED_NOTHING_H

/* For a recording without any dyntrace event. */
#define DT_NOTHING_RECORDED                                                                        \
    "the recording has no events of dyntrace: record while the node is working, and check with "   \
    "`dyntrace nodes` that it has started the application"

/* Prints to standard error, because the user may never open the output file. */
void dt_nothing(const char *why);

#endif
