/*
 * The threads of LTTng's library: one per place where it expects a session daemon.
 */
#ifndef DT_BACKENDS_LTTNG_THREADS_H
#define DT_BACKENDS_LTTNG_THREADS_H

/* How many threads LTTng's library has; -1 if /proc can't be read. */
int dt_lttng_threads(void);

#endif
