#include "perfetto/tracks.h"

#include "perfetto/kind_tracks.h"
#include "shared/texts.h"

enum {
    /* Invented pids, above those of Linux, for VMs whose pid is unknown or taken. */
    INVENTED_PIDS = 1 << 30,
    /* Limits. Beyond them, processes are outside of groups, and reused pids are not numbered. */
    GROUPS = 10000,
    PIDS = 200000,
    /* Further requests have no track. */
    REQUESTS = 1000,
};

static const char *const root_names[DT_ROOTS] = {
    [DT_ROOT_SCHEDULERS] = "schedulers", [DT_ROOT_PROCESSES] = "processes",
    [DT_ROOT_PORTS] = "ports",           [DT_ROOT_FOREIGN] = "other nodes",
    [DT_ROOT_COUNTERS] = "counters",     [DT_ROOT_LOG] = "log",
    [DT_ROOT_MARKS] = "marks",           [DT_ROOT_VM] = "VM events",
    [DT_ROOT_LOST] = "lost events",
};

static const char *const child_names[DT_CHILDREN] = {
    [DT_CHILD_CALLS] = "calls",       [DT_CHILD_SPANS] = "spans",
    [DT_CHILD_MESSAGES] = "messages", [DT_CHILD_SERVER_CALLS] = "server calls",
    [DT_CHILD_EVENTS] = "events",     [DT_CHILD_REQUESTS] = "requests",
    [DT_CHILD_MAILBOX] = "mailbox",
};

/* The sink's data of a node, in its of_sink. */
struct shown_node {
    struct dt_node *node; /* NULL: for events without a node */
    uint64_t track;
    int32_t pid;
    uint64_t roots[DT_ROOTS];
    struct dt_track_lanes lost;
    GHashTable *groups;   /* name -> struct group */
    GHashTable *counters; /* name -> uint64_t */
    GHashTable *lanes;    /* struct dt_scheduler -> struct dt_track_lanes */
};

struct group {
    uint64_t track;
    int64_t run;
};

struct dt_tracks {
    struct dt_packets *packets;
    struct dt_track_kinds *kinds;
    uint64_t last;     /* track */
    GHashTable *pids;  /* pids of nodes that are taken */
    GHashTable *seen;  /* hash of a process's node and pid -> instances */
    GHashTable *shown; /* all live struct dt_shown */
    GPtrArray *nodes;
    struct shown_node *nowhere;
    uint64_t requests_track;
    GHashTable *requests; /* label -> struct dt_track_lanes */
};

static void shown_node_free(void *data) {
    struct shown_node *n = data;

    g_hash_table_destroy(n->groups);
    g_hash_table_destroy(n->counters);
    g_hash_table_destroy(n->lanes);
    dt_track_lanes_free(&n->lost);
    g_free(n);
}

static void lanes_free(void *lanes) {
    dt_track_lanes_free(lanes);
    g_free(lanes);
}

static void shown_free(void *data) {
    struct dt_shown *s = data;

    for (unsigned i = 0; i < DT_CHILDREN; i++)
        dt_track_lanes_free(&s->lanes[i]);
    g_free(s->spawn.parent);
    g_free(s->show);
    g_free(s);
}

struct dt_tracks *dt_tracks_new(struct dt_packets *packets) {
    struct dt_tracks *t = g_new0(struct dt_tracks, 1);

    t->packets = packets;
    t->kinds = dt_track_kinds_new(packets);
    t->pids = g_hash_table_new(NULL, NULL);
    t->seen = g_hash_table_new(NULL, NULL);
    t->shown = g_hash_table_new_full(NULL, NULL, shown_free, NULL);
    t->nodes = g_ptr_array_new_with_free_func(shown_node_free);
    t->requests = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, lanes_free);
    return t;
}

void dt_tracks_free(struct dt_tracks *t) {
    if (!t)
        return;
    dt_track_kinds_free(t->kinds);
    g_hash_table_destroy(t->pids);
    g_hash_table_destroy(t->seen);
    g_hash_table_destroy(t->shown);
    g_ptr_array_free(t->nodes, true);
    g_hash_table_destroy(t->requests);
    g_free(t);
}

/* -- Nodes ----------------------------------------------------------------------------- */

/* Two VMs in containers may have the same pid. */
static int32_t take_pid(struct dt_tracks *t, int64_t pid) {
    if (pid <= 0 || pid >= INVENTED_PIDS || g_hash_table_contains(t->pids, GINT_TO_POINTER(pid)))
        pid = INVENTED_PIDS + (int64_t)t->nodes->len;
    g_hash_table_add(t->pids, GINT_TO_POINTER(pid));
    return (int32_t)pid;
}

static struct shown_node *shown_node(struct dt_tracks *t, struct dt_node *node) {
    struct shown_node *n = node ? node->of_sink : t->nowhere;

    if (n)
        return n;
    n = g_new0(struct shown_node, 1);
    n->node = node;
    n->track = ++t->last;
    n->pid = take_pid(t, node ? node->os_pid : DT_NO_VALUE);
    n->groups = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    n->counters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    n->lanes = g_hash_table_new_full(NULL, NULL, NULL, lanes_free);
    g_ptr_array_add(t->nodes, n);
    if (node)
        node->of_sink = n;
    else
        t->nowhere = n;
    return n;
}

void dt_tracks_node(struct dt_tracks *t, struct dt_node *node) {
    shown_node(t, node);
}

static void write_group(struct dt_tracks *t, const struct shown_node *n, const char *name,
                        const struct group *group) {
    dt_track_write(t->packets, &(struct dt_track){.uuid = group->track,
                                                  .parent = n->roots[DT_ROOT_PROCESSES],
                                                  .name = name,
                                                  .rank = -(group->run / 1000),
                                                  .is_ordered = true,
                                                  .is_alone = true});
}

static void write_node(struct dt_tracks *t, const struct shown_node *n) {
    g_autofree char *about =
        n->node ? g_strdup_printf("OTP %s on %s", *n->node->otp ? n->node->otp : "unknown",
                                  *n->node->hostname ? n->node->hostname : "an unknown host")
                : NULL;

    dt_track_write(t->packets, &(struct dt_track){.uuid = n->track,
                                                  .name = n->node ? n->node->name : "unknown node",
                                                  .description = about,
                                                  .is_process = true,
                                                  .pid = n->pid});
    for (unsigned i = 0; i < DT_ROOTS; i++)
        if (n->roots[i])
            dt_track_write(t->packets, &(struct dt_track){.uuid = n->roots[i],
                                                          .parent = n->track,
                                                          .name = root_names[i],
                                                          .rank = i,
                                                          .is_ordered = true,
                                                          .is_alone = true});
    GHashTableIter groups;
    void *name, *group;
    for (g_hash_table_iter_init(&groups, n->groups);
         g_hash_table_iter_next(&groups, &name, &group);)
        write_group(t, n, name, group);
}

void dt_tracks_node_gone(struct dt_tracks *t, struct dt_node *node) {
    struct shown_node *n = node->of_sink;

    if (!n)
        return;
    dt_track_kinds_end(t->kinds, node);
    write_node(t, n);
    node->of_sink = NULL;
    g_ptr_array_remove(t->nodes, n);
}

void dt_tracks_finish(struct dt_tracks *t) {
    if (t->nowhere)
        write_node(t, t->nowhere);
}

static uint64_t root_of(struct dt_tracks *t, struct shown_node *n, enum dt_root root) {
    if (!n->roots[root])
        n->roots[root] = ++t->last;
    return n->roots[root];
}

uint64_t dt_tracks_root(struct dt_tracks *t, struct dt_node *node, enum dt_root root) {
    return root_of(t, shown_node(t, node), root);
}

/* A lane below `parent`. Perfetto shows lanes with the same name as one track. */
static uint64_t lane(struct dt_tracks *t, struct dt_track_lanes *lanes, int64_t begin, int64_t end,
                     uint64_t parent, const char *name, int64_t rank) {
    struct dt_track_lane *lane = dt_track_lanes_take(lanes, begin, end);

    if (!lane->track) {
        lane->track = ++t->last;
        dt_track_write(
            t->packets,
            &(struct dt_track){.uuid = lane->track, .parent = parent, .name = name, .rank = rank});
    }
    return lane->track;
}

uint64_t dt_tracks_lost(struct dt_tracks *t, struct dt_node *node, int64_t begin, int64_t end) {
    struct shown_node *n = shown_node(t, node);

    return lane(t, &n->lost, begin, end, root_of(t, n, DT_ROOT_LOST), root_names[DT_ROOT_LOST], 0);
}

uint64_t dt_tracks_counter(struct dt_tracks *t, struct dt_node *node, const char *name,
                           const char *unit) {
    struct shown_node *n = shown_node(t, node);
    uint64_t *track = g_hash_table_lookup(n->counters, name);

    if (track)
        return *track;
    track = g_new(uint64_t, 1);
    *track = ++t->last;
    g_hash_table_insert(n->counters, g_strdup(name), track);
    dt_track_write(t->packets, &(struct dt_track){.uuid = *track,
                                                  .parent = root_of(t, n, DT_ROOT_COUNTERS),
                                                  .name = name,
                                                  .is_counter = true,
                                                  .unit = unit});
    return *track;
}

uint64_t dt_tracks_scheduler(struct dt_tracks *t, struct dt_scheduler *scheduler, int64_t begin,
                             int64_t end) {
    struct shown_node *n = shown_node(t, scheduler->node);
    struct dt_track_lanes *lanes = scheduler->of_sink;

    if (!lanes) {
        scheduler->of_sink = lanes = g_new0(struct dt_track_lanes, 1);
        g_hash_table_insert(n->lanes, scheduler, lanes);
    }
    return lane(t, lanes, begin, end, root_of(t, n, DT_ROOT_SCHEDULERS), scheduler->name,
                scheduler->number + 1);
}

uint64_t dt_tracks_request(struct dt_tracks *t, const char *label, int64_t begin, int64_t end) {
    struct dt_track_lanes *lanes = g_hash_table_lookup(t->requests, label);

    if (!lanes && g_hash_table_size(t->requests) >= REQUESTS)
        return 0;
    if (!t->requests_track) {
        t->requests_track = ++t->last;
        dt_track_write(t->packets,
                       &(struct dt_track){.uuid = t->requests_track, .name = "requests"});
    }
    if (!lanes) {
        lanes = g_new0(struct dt_track_lanes, 1);
        g_hash_table_insert(t->requests, g_strdup(label), lanes);
    }
    g_autofree char *name = g_strdup_printf("request %s", label);
    return lane(t, lanes, begin, end, t->requests_track, name, 0);
}

/* -- Processes ------------------------------------------------------------------------- */

/* Among 200,000 processes, a collision occurs in one of a billion recordings. */
static uint64_t hash_of(const struct dt_process *process) {
    return dt_hash_text(dt_hash_number(DT_HASH, process->node->number), process->pid);
}

static unsigned instance_of(struct dt_tracks *t, const struct dt_process *process) {
    if (process->kind == DT_FOREIGN)
        return 1;
    void *key = GSIZE_TO_POINTER(hash_of(process));
    unsigned instance = GPOINTER_TO_UINT(g_hash_table_lookup(t->seen, key)) + 1;
    if (instance > 1 || g_hash_table_size(t->seen) < PIDS)
        g_hash_table_insert(t->seen, key, GUINT_TO_POINTER(instance));
    return instance;
}

struct dt_shown *dt_tracks_shown(struct dt_tracks *t, struct dt_process *process) {
    if (process->of_sink)
        return process->of_sink;
    struct dt_shown *s = g_new0(struct dt_shown, 1);
    s->instance = instance_of(t, process);
    s->last_state = s->last_call = INT64_MIN;
    s->first_call = s->first_known = INT64_MAX;
    s->last_counted = -1;
    g_hash_table_add(t->shown, s);
    process->of_sink = s;
    return s;
}

void dt_tracks_renamed(struct dt_process *process) {
    struct dt_shown *s = process->of_sink;

    if (!s)
        return;
    g_clear_pointer(&s->show, g_free);
    s->name.number = 0;
}

const char *dt_tracks_show(struct dt_tracks *t, struct dt_process *process) {
    struct dt_shown *s = dt_tracks_shown(t, process);

    if (s->instance == 1)
        return process->show;
    if (!s->show)
        s->show = g_strdup_printf("%s #%u", process->show, s->instance);
    return s->show;
}

uint64_t dt_tracks_process(struct dt_tracks *t, struct dt_process *process) {
    struct dt_shown *s = dt_tracks_shown(t, process);

    if (!s->track)
        s->track = ++t->last;
    return s->track;
}

uint64_t dt_tracks_child(struct dt_tracks *t, struct dt_process *process, enum dt_child child) {
    struct dt_shown *s = dt_tracks_shown(t, process);

    if (s->child[child])
        return s->child[child];
    s->child[child] = ++t->last;
    dt_track_write(t->packets, &(struct dt_track){.uuid = s->child[child],
                                                  .parent = dt_tracks_process(t, process),
                                                  .name = child_names[child],
                                                  .rank = child + 1,
                                                  .is_counter = child == DT_CHILD_MAILBOX,
                                                  .unit = "messages"});
    return s->child[child];
}

uint64_t dt_tracks_lane(struct dt_tracks *t, struct dt_process *process, enum dt_child child,
                        int64_t begin, int64_t end) {
    struct dt_shown *s = dt_tracks_shown(t, process);

    return lane(t, &s->lanes[child], begin, end, dt_tracks_process(t, process), child_names[child],
                child + 1);
}

/* The parent track of a process. Adds the run time of the process to it. */
static uint64_t parent_of(struct dt_tracks *t, const struct dt_process *process, int64_t run) {
    static const enum dt_root roots[] = {[DT_PROCESS] = DT_ROOT_PROCESSES,
                                         [DT_PORT] = DT_ROOT_PORTS,
                                         [DT_FOREIGN] = DT_ROOT_FOREIGN};
    struct shown_node *n = shown_node(t, process->node);
    uint64_t root = root_of(t, n, roots[process->kind]);

    if (process->kind != DT_PROCESS || !*process->group)
        return root;
    struct group *group = g_hash_table_lookup(n->groups, process->group);
    if (!group && g_hash_table_size(n->groups) >= GROUPS)
        return root;
    if (!group) {
        group = g_new0(struct group, 1);
        group->track = ++t->last;
        g_hash_table_insert(n->groups, g_strdup(process->group), group);
    }
    group->run += run;
    return group->track;
}

static char *describe(const struct dt_process *process, uint64_t thinned) {
    GString *about = g_string_new(process->pid);

    if (*process->label)
        g_string_append_printf(about, ", label %s", process->label);
    if (*process->initial)
        g_string_append_printf(about, ", started with %s", process->initial);
    if (process->parent)
        g_string_append_printf(about, ", %s %s", process->kind == DT_PORT ? "owned by" : "child of",
                               process->parent->show);
    if (thinned)
        g_string_append_printf(about, "; %" PRIu64 " short intervals are merged", thinned);
    return g_string_free(about, false);
}

void dt_tracks_process_gone(struct dt_tracks *t, struct dt_process *process) {
    struct dt_shown *s = process->of_sink;

    if (!s)
        return;
    if (s->track) {
        g_autofree char *about = describe(process, s->states.thinned);
        const struct dt_track track = {.uuid = s->track,
                                       .parent = parent_of(t, process, s->run),
                                       .name = dt_tracks_show(t, process),
                                       .description = about,
                                       .rank = -(s->run / 1000),
                                       .is_ordered = true,
                                       .is_alone = true};

        dt_track_kinds_write(t->kinds, process, &track, &t->last);
    }
    process->of_sink = NULL;
    g_hash_table_remove(t->shown, s);
}
