/*
 * What a report has collected: for the files report*.c alone.
 *
 * Every table is bounded. Rows of processes that have exited are summed by their initial call when
 * a table is full; then its smallest rows are left out and counted.
 */
#ifndef DT_VIEWER_REPORT_PARTS_H
#define DT_VIEWER_REPORT_PARTS_H

#include "viewer/report.h"
#include "viewer/report_quantiles.h"
#include "viewer/report_who.h"

enum {
    /* Exited processes that are kept: the first ones by each criterion. */
    DT_KEPT_PER_CRITERION = 500,
    /* Rows of lists that have no end: crashes, long waits, long collections, log lines. */
    DT_LISTED = 1000,
    DT_TALKS = 8192,
    DT_SERVER_CALLS = 2048,
    DT_DEAD = 2048,
    /* Functions, spans, counters. */
    DT_NAMED = 8192,
    /* Initial calls by which processes are summed. */
    DT_SUMS = 4096,
    /* Steps of the load over time. */
    DT_STEPS = 300,
    /* Labels of seq_trace, and processes of each that are told apart. */
    DT_REQUESTS = 1000,
    DT_REQUEST_PROCESSES = 1000,
    /* Bytes of a request's shape, and of texts that are shown as examples. */
    DT_SHAPE = 80,
    DT_EXAMPLE = 160,
};

/* What a recording has, and the word for it. */
#define DT_TOLD_KINDS(KIND)                                                                        \
    KIND(SCHEDULING, "scheduling")                                                                 \
    KIND(SENDS, "sends")                                                                           \
    KIND(DELIVERIES, "deliveries")                                                                 \
    KIND(CALLS, "calls")                                                                           \
    KIND(RETURNS, "returns")                                                                       \
    KIND(COLLECTIONS, "collections")                                                               \
    KIND(SPAWNS, "spawns")                                                                         \
    KIND(EXITS, "exits")                                                                           \
    KIND(LINKS, "links")                                                                           \
    KIND(PORTS, "ports")                                                                           \
    KIND(OUTPUT, "output")                                                                         \
    KIND(SERVER_CALLS, "server calls")                                                             \
    KIND(SPANS, "spans")                                                                           \
    KIND(MARKS, "marks")                                                                           \
    KIND(COUNTERS, "counters")                                                                     \
    KIND(LOG, "log")                                                                               \
    KIND(MONITOR, "monitor")

enum dt_told {
#define KIND(name, word) DT_TOLD_##name,
    DT_TOLD_KINDS(KIND)
#undef KIND
        DT_TOLD
};
extern const char *const dt_told_words[DT_TOLD];

static inline bool dt_is_told(uint32_t told, enum dt_told kind) {
    return told & 1U << kind;
}

/* -- Nodes and processes -------------------------------------------------------------- */

/* What a node's load is made of. */
enum dt_load {
    DT_LOAD_RUN,
    DT_LOAD_COLLECTING,
    DT_LOAD_RUNNABLE,
    DT_LOAD_SENT,
    DT_LOAD_CALLS,
    DT_LOADS
};

struct dt_load_kind {
    const char *name;
    enum dt_told told; /* what a recording has to have for it */
    bool is_time;      /* ns in each step; else how many */
};
extern const struct dt_load_kind dt_load_kinds[DT_LOADS];

struct dt_seen_node {
    unsigned number; /* from 1, as tables of several nodes show it */
    char *name, *hostname, *otp;
    int64_t os_pid, first, last;
    uint64_t processes;
    const struct dt_clock *clock; /* NULL if the recording has one */
    uint32_t told;                /* bit n: enum dt_told n */
    int64_t load[DT_LOADS][DT_STEPS];
};

/* NULL of NULL. */
struct dt_seen_node *dt_seen(struct dt_report *report, const struct dt_node *node);
/* "" if it is unknown. */
const char *dt_seen_name(const struct dt_seen_node *node);

struct dt_who *dt_who_sum(struct dt_report *report, struct dt_seen_node *node, const char *show);
guint dt_who_sum_hash(gconstpointer of);
gboolean dt_who_sum_equal(gconstpointer a, gconstpointer b);
/* The sum of those with the same initial call. */
struct dt_who *dt_who_kind(struct dt_report *report, struct dt_who *who);
void dt_who_learn_parent(struct dt_report *report, struct dt_who *who);
void dt_who_gone(struct dt_report *report, struct dt_process *process); /* copies its texts */

/* A process with its numbers is kept or summed. */
struct dt_kept {
    GPtrArray *whos;
    uint64_t left_out;
    int64_t run, collecting;
    uint64_t sent, received;
};
GPtrArray *dt_kept_copy(const struct dt_kept *kept); /* to be sorted; the caller frees it */
void dt_kept_free(struct dt_kept *kept);
void dt_kept_add(struct dt_kept *kept, struct dt_who *who);
void dt_kept_cut(struct dt_kept *kept); /* to the first ones by each criterion */

/* The largest number first. */
typedef int64_t dt_criterion(const struct dt_who *who);
void dt_whos_sort(GPtrArray *whos, dt_criterion *by);

/* -- Tables --------------------------------------------------------------------------- */

/* Of two processes and a text: messages, gen_server calls by the shape of their request, messages
 * to the dead. */
struct dt_pair {
    struct dt_who *from, *to; /* either may be NULL: unknown */
    struct dt_who *only;      /* the only one summed in `from`; NULL: several */
    char *text, *example;
    uint64_t count, inferred, timeouts, downs;
    struct dt_quantiles took, queued, worked;
};

struct dt_pairs {
    GHashTable *rows;
    unsigned most;
    uint64_t left_out; /* `count` of the rows that were left out */
};
void dt_pairs_init(struct dt_pairs *pairs, unsigned most);
void dt_pairs_free(struct dt_pairs *pairs);
struct dt_pair *dt_pairs_row(struct dt_report *report, struct dt_pairs *pairs, struct dt_who *from,
                             struct dt_who *to, const char *text);
GPtrArray *dt_pairs_by_count(const struct dt_pairs *pairs); /* the caller frees it */

/* Of a node (or none) and a name: functions, spans, counters. */
struct dt_named {
    struct dt_seen_node *node;
    char *name, *unit;
    uint64_t count, failed, inferred, measured;
    int64_t total, own;     /* ns */
    int64_t min, max, last; /* of a counter */
    struct dt_quantiles took;
};

struct dt_names {
    GHashTable *rows;
    struct dt_named *others; /* of those that had no room */
};
void dt_names_init(struct dt_names *names);
void dt_names_free(struct dt_names *names);
struct dt_named *dt_names_row(struct dt_names *names, struct dt_seen_node *node, const char *name);
GPtrArray *dt_names_sorted(const struct dt_names *names, GCompareFunc by);

/* A request that seq_trace follows: messages of one label. */
struct dt_request {
    char *label;
    uint64_t messages, between_nodes;
    GHashTable *processes; /* numbers */
    GPtrArray *nodes;      /* struct dt_seen_node, in the order in which it came there */
    int64_t begin, end;
};

struct dt_requests {
    GHashTable *rows;  /* by label */
    uint64_t left_out; /* messages of labels that had no room */
};
void dt_requests_init(struct dt_requests *requests);
void dt_requests_free(struct dt_requests *requests);
void dt_requests_add(struct dt_report *report, const struct dt_message *m);

/* A call that has not ended. */
struct dt_called {
    uint64_t number;
    struct dt_named *row;
};

/* A row of a list: what happened to a process at a time. */
struct dt_listed {
    struct dt_who *who; /* NULL if it is the node's */
    struct dt_seen_node *node;
    int64_t time, ns;
    char *text, *word;
    bool is_major, is_error, inferred;
    uint64_t reclaimed, heap;
    GPtrArray *linked;
};

struct dt_list {
    GArray *rows;
    bool by_ns;    /* the longest are kept, else the first */
    int64_t least; /* shorter ones are left out */
    uint64_t left_out;
};
void dt_list_init(struct dt_list *list, bool by_ns);
void dt_list_free(struct dt_list *list);
/* Takes over `text`, `word`, `linked`; keeps `who`. */
void dt_list_add(struct dt_list *list, struct dt_listed row);
bool dt_list_wants(const struct dt_list *list, int64_t ns);
void dt_list_sort(struct dt_list *list);

/* Those of an array's elements; the caller frees the array. */
GPtrArray *dt_pointers(const GArray *array);

struct dt_seen_lost {
    struct dt_seen_node *node;
    char *stream;
    int64_t begin, end;
    uint64_t count;
};

enum dt_severity { DT_HIGH, DT_MEDIUM, DT_LOW, DT_SEVERITIES };
extern const char *const dt_severity_names[DT_SEVERITIES];

struct dt_finding {
    enum dt_severity severity;
    const char *about;
    struct dt_who *who; /* NULL: the recording's */
    char *text;
};

struct dt_report {
    GPtrArray *nodes;  /* struct dt_seen_node, by number; NULL where unknown */
    GHashTable *alive; /* each struct dt_who that is the of_sink of a process */
    GHashTable *sums;  /* each sum, by its node and its text */

    uint64_t events, skipped;
    int64_t begin, end;
    uint32_t told;
    GArray *lost; /* struct dt_seen_lost */
    uint64_t lost_events, lost_rows;
    bool lost_unknown;

    struct dt_kept processes, ports;
    struct dt_pairs talks, server_calls, dead;
    struct dt_names calls, spans, counters, monitor;
    struct dt_requests requests;
    struct dt_list crashes, waits, collections, log;
    uint64_t exits, processes_seen;
    uint64_t sent, received, dead_messages, log_errors;

    int64_t step; /* ns of a step of the load */
    GArray *findings;

    void *of_sink; /* of sink_report.c, whose data is the report */
};

/* -- The functions that collect --------------------------------------------------------- */

void dt_report_node(void *s, struct dt_node *node);
void dt_report_process(void *s, struct dt_process *process, int64_t time);
void dt_report_process_named(void *s, struct dt_process *process, int64_t time);
void dt_report_process_exited(void *s, const struct dt_exit *e);
void dt_report_process_gone(void *s, struct dt_process *process);
void dt_report_interval(void *s, const struct dt_interval *i);
void dt_report_mailbox(void *s, struct dt_process *process, int64_t time);
void dt_report_call_begin(void *s, struct dt_frame *frame);
void dt_report_call_end(void *s, struct dt_frame *frame);
void dt_report_sent(void *s, struct dt_message *m);
void dt_report_delivered(void *s, struct dt_message *m);
void dt_report_message_gone(void *s, struct dt_message *m);
void dt_report_server_call(void *s, const struct dt_server_call *c);
void dt_report_span(void *s, const struct dt_span *span);
void dt_report_instant(void *s, const struct dt_instant *i);
void dt_report_counter(void *s, struct dt_node *node, const char *name, const char *unit,
                       int64_t value, int64_t time);
void dt_report_lost(void *s, const struct dt_lost *lost);

#define DT_REPORT_COLLECTS                                                                         \
    .node = dt_report_node, .node_gone = dt_report_node, .process = dt_report_process,             \
    .process_named = dt_report_process_named, .process_exited = dt_report_process_exited,          \
    .process_gone = dt_report_process_gone, .interval = dt_report_interval,                        \
    .mailbox = dt_report_mailbox, .call_begin = dt_report_call_begin,                              \
    .call_end = dt_report_call_end, .sent = dt_report_sent, .delivered = dt_report_delivered,      \
    .message_gone = dt_report_message_gone, .server_call = dt_report_server_call,                  \
    .span = dt_report_span, .instant = dt_report_instant, .counter = dt_report_counter,            \
    .lost = dt_report_lost

/* -- From what is collected to what is shown ---------------------------------------------- */

/* Without a node: of none. */
void dt_load_time(struct dt_report *report, struct dt_seen_node *node, enum dt_load load,
                  int64_t begin, int64_t end);
void dt_load_count(struct dt_report *report, struct dt_seen_node *node, enum dt_load load,
                   int64_t time);
unsigned dt_load_steps(const struct dt_report *report);
/* Of a step; the last one ends with the recording. */
int64_t dt_load_ns(const struct dt_report *report, unsigned step);

void dt_report_find(struct dt_report *report);

/* The rows of a table in the order in which they are shown; the caller frees the array. */
typedef GPtrArray *dt_rows(const struct dt_report *report);
dt_rows dt_report_nodes, dt_report_lost_rows, dt_report_findings; /* dt_seen_node, ... */
dt_rows dt_report_processes, dt_report_ports;                     /* dt_who */
dt_rows dt_report_calls, dt_report_spans, dt_report_counters;     /* dt_named */
dt_rows dt_report_server_calls, dt_report_talks, dt_report_dead;  /* dt_pair */
dt_rows dt_report_requests;                                       /* dt_request */
dt_rows dt_report_crashes, dt_report_waits, dt_report_collections, dt_report_log; /* dt_listed */

/* DT_NO_VALUE if the recording does not tell. */
int64_t dt_who_number(const struct dt_who *who, enum dt_told kind, uint64_t number);
int64_t dt_who_ns(const struct dt_who *who, enum dt_told kind, int64_t ns);
int64_t dt_who_mailbox_max(const struct dt_who *who);

bool dt_report_has_nodes(const struct dt_report *report); /* several */

/* As people read them. */
char *dt_show_who(const struct dt_who *who);
/* With its node, if there are several. */
char *dt_show_where(const struct dt_report *report, const struct dt_who *who);
void dt_show_ns(char *to, size_t size, int64_t ns);
/* "+1.20 ms ± 30.0 µs"; "" without a clock. The caller frees it. */
char *dt_show_clock(const struct dt_clock *clock);
void dt_show_bytes(char *to, size_t size, uint64_t bytes);

#endif
