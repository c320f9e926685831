/*
 * A sequence diagram: the first messages between selected processes, and the exits of these.
 *
 * A message is complete only when the model reports it as gone, in arbitrary order of time. So the
 * `limit` earliest messages are kept, and the others are counted.
 */
#pragma once

#include "shared/file.h"
#include "shared/sink.h"

struct dt_sequence {
    char **processes; /* names and pids; one: all its messages; empty: all processes */
    char *label;      /* a seq_trace label; NULL: all messages */
    int64_t from, to; /* ns after the first event */
    unsigned limit;

    int64_t begin;       /* DT_NO_VALUE before the first event */
    GHashTable *parties; /* struct dt_process -> struct dt_party */
    GHashTable *others;  /* text -> struct dt_party: receivers other than processes */
    GPtrArray *nodes;    /* names, by number */
    GArray *steps;       /* struct dt_step, by time */
    uint64_t messages;   /* all recorded messages */
    uint64_t left_out;
    struct dt_file *file; /* used by sequence_sink.c, whose data is the diagram */
};

/* A process of the diagram. Steps hold references. */
struct dt_party {
    unsigned references;
    unsigned alias; /* from 1, in the order of the diagram; 0: not in the diagram */
    bool was_named; /* it has had a name in `processes` */
    bool is_process;
    unsigned node; /* number of its node, if it is a process */
    char *show, *pid;
};

enum dt_step_kind { DT_STEP_MESSAGE, DT_STEP_EXIT };

struct dt_step {
    enum dt_step_kind kind;
    int64_t time;
    uint64_t number;            /* of the message: orders steps of equal time */
    struct dt_party *from, *to; /* an exit has only `from` */
    char *text;
    bool inferred, is_dead;
    bool is_early; /* delivered before it was sent, according to the nodes' clocks */
};

struct dt_sequence *dt_sequence_new(void);
void dt_sequence_free(struct dt_sequence *sequence);

/* The functions that collect. Their data has to be a struct dt_sequence. */
extern const struct dt_sink dt_sequence_collector;

/* Writes the diagram in the syntax of Mermaid. `nothing`: the reason for an empty diagram, or NULL.
 */
void dt_sequence_mermaid(struct dt_sequence *sequence, const char *nothing, GString *to);
