/*
 * A recorded event: an event of a trace as a struct of the catalogue, with its VM and thread.
 *
 * The reader maps event classes to probes, and members to fields, by name. It can therefore read
 * recordings of other versions, and of OTP's own LTTng provider, as far as they have the same
 * fields.
 */
#pragma once

#include <stdbool.h>
#include <inttypes.h>

#include "catalogue/event.h"

/* A number that the trace does not have. */
#define DT_NO_VALUE INT64_MIN

/* The clock of a host, if the recording has several. Corrected times are those of the clock plus
   `offset`. */
struct dt_clock {
    unsigned number; /* from 0 */
    enum dt_clock_known {
        DT_CLOCK_RECORDED,  /* not shifted: not requested, or no message links it to REFERENCE */
        DT_CLOCK_REFERENCE, /* the other clocks are aligned to this one */
        DT_CLOCK_BOTH_WAYS, /* messages in both directions bound the offset */
        DT_CLOCK_ONE_WAY,   /* messages in one direction bound it on one side */
        DT_CLOCK_APART,     /* aligned to clocks that no message links to the reference */
    } known;
    int64_t offset;      /* ns */
    int64_t uncertainty; /* ns: maximum error of `offset`; DT_NO_VALUE unless BOTH_WAYS */
};
extern const char *const dt_clock_words[];

/* A VM: its host and OS process, from the contexts vpid and hostname or from the environment of the
   trace. If the OS process is unknown, the trace distinguishes VMs. */
struct dt_place {
    const char *hostname; /* "" if unknown */
    int64_t vpid;         /* DT_NO_VALUE if unknown */
    uint64_t trace;       /* number of the trace */
};

struct dt_recorded {
    enum dt_probe probe;
    int64_t time;                 /* ns since the epoch, by the trace's clock, corrected */
    const struct dt_clock *clock; /* NULL if all traces have the same clock */

    /* Strings are valid until the next event. Strings that the trace lacks are "", numbers 0. */
    union dt_event fields;
    uint64_t has; /* bit n: the trace has field number n of the catalogue */

    struct dt_place place; /* its VM */

    /* The scheduler thread: from the context vtid; without it, the CPU is used instead. */
    int64_t vtid, cpu;    /* DT_NO_VALUE if unknown */
    const char *procname; /* the thread's name, "" if unknown */

    bool has_deliveries; /* the trace has an event class for message deliveries */
    bool has_lives;      /* and event classes for spawns and exits */
};

/* Without the provider. */
extern const char *const dt_probe_names[DT_PROBES];
