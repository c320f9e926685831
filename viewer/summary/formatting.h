/*
 * Processes that convert a large term to text: a crash report of their state, or a log line. They
 * do so in one go, without sending a message, in the functions of io_lib and in those that it
 * calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct dt_interval;

/* ns on a scheduler, with garbage collections, and when it began. */
struct dt_stretch {
    int64_t ns, begin;
};

struct dt_formatting {
    struct dt_stretch longest, current; /* `ns` in the functions of the formatters */
    int64_t busy;                       /* ns in any function, since the begin of `current` */
    uint64_t sent;                      /* dt_activity.sent at the begin of `current` */
    bool is_in_formatter;               /* or in a function that it calls, as far as known */
};

/* An interval of a process that has sent so many messages until then. Allocates `of` when needed.
 */
void dt_formatting_interval(struct dt_formatting **of, const struct dt_interval *interval,
                            uint64_t sent);
