/* The message of a sink that has nothing to show: the reason, and what to do. */
#pragma once

/* For a recording without any dyntrace event. */
#define DT_NOTHING_RECORDED                                                                        \
    "the recording has no events of dyntrace: record while the node is working, and check with "   \
    "`dyntrace nodes` that it has started the application"

/* Prints to standard error, because the user may never open the output file. */
void dt_nothing(const char *why);
