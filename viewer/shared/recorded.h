/*
 * A recorded event: an event of a trace as a struct of the catalogue, with what the trace says
 * about where it happened.
 *
 * The reader maps each event class of a trace to a probe of the catalogue by the name, and its
 * fields by their names. So recordings of other versions, and of OTP's own LTTng provider, are read
 * as far as they have the same fields.
 */
#ifndef DT_VIEWER_SHARED_RECORDED_H
#define DT_VIEWER_SHARED_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "catalogue/event.h"

/* Of numbers that a trace does not have. */
#define DT_NO_VALUE INT64_MIN

/* The clock of a host, where the recording has several. Times are those of the clock plus `offset`.
 */
struct dt_clock {
    unsigned number; /* from 0 */
    enum dt_clock_known {
        DT_CLOCK_RECORDED,  /* no message joins it to the reference, or nobody asked: not shifted */
        DT_CLOCK_REFERENCE, /* the others are set by this one */
        DT_CLOCK_BOTH_WAYS, /* messages in both directions bound the offset */
        DT_CLOCK_ONE_WAY,   /* on one side alone */
        DT_CLOCK_APART,     /* set by others that no message joins to the reference */
    } known;
    int64_t offset;      /* ns */
    int64_t uncertainty; /* ns: the true offset is so near; DT_NO_VALUE unless BOTH_WAYS */
};
extern const char *const dt_clock_words[];

struct dt_recorded {
    enum dt_probe probe;
    int64_t time;                 /* ns since the epoch, by the trace's clock, corrected */
    const struct dt_clock *clock; /* NULL where all traces have one */

    /* Strings are valid until the next event; those that the trace lacks are "", numbers 0. */
    union dt_event fields;
    uint64_t has; /* bit n: the trace has the field number n of the catalogue */

    /* The VM: of the contexts vpid and hostname, or the trace's own where it has one process. */
    const char *hostname; /* "" if unknown */
    int64_t vpid;         /* DT_NO_VALUE if unknown */
    uint64_t trace;       /* number of the trace: tells VMs apart whose vpid is unknown */

    /* The thread, a scheduler: of the context vtid, else the CPU stands in for it. */
    int64_t vtid, cpu;    /* DT_NO_VALUE if unknown */
    const char *procname; /* the thread's name, "" if unknown */

    bool has_deliveries; /* the trace has an event class for deliveries of messages */
};

/* Without the provider. */
extern const char *const dt_probe_names[DT_PROBES];

#endif
