/* A picture that has nothing to show: it says why, and what to do. */
#ifndef DT_VIEWER_SHARED_NOTHING_H
#define DT_VIEWER_SHARED_NOTHING_H

/* Of a recording without any event that the viewer knows. */
#define DT_NOTHING_RECORDED                                                                        \
    "the recording has no events of dyntrace: record while the node works, and look with "         \
    "`dyntrace nodes` whether it has started the application"

/* Prints it to standard error, since the picture may be a file that nobody opens. */
void dt_nothing(const char *why);

#endif
