/*
 * The threads of LTTng's library: one per expected session daemon.
 */
#ifndef DT_BACKENDS_LTTNG_THREADS_H
#define DT_BACKENDS_LTTNG_THREADS_H

/* The number of threads of LTTng's library; -1 if /proc cannot be read. */
int dt_lttng_threads(void);

#endif
