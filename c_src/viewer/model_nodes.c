#include <string.h>

#include "viewer/far.h"
#include "viewer/model_parts.h"
#include "viewer/texts.h"

/* -- Nodes -------------------------------------------------------------------------- */

static guint hash_place(gconstpointer data) {
    const struct place *place = data;

    return g_str_hash(place->hostname) ^
           (guint)(place->vpid == DT_NO_VALUE ? (int64_t)place->trace : place->vpid);
}

static gboolean equal_places(gconstpointer a, gconstpointer b) {
    const struct place *x = a, *y = b;

    return x->vpid == y->vpid && (x->vpid != DT_NO_VALUE || x->trace == y->trace) &&
           strcmp(x->hostname, y->hostname) == 0;
}

static char *provisional_name(const struct node *node) {
    if (node->seen.os_pid == DT_NO_VALUE)
        return *node->hostname ? g_strdup(node->hostname)
                               : g_strdup_printf("node %u", node->seen.number);
    if (!*node->hostname)
        return g_strdup_printf("OS process %" G_GINT64_FORMAT, node->seen.os_pid);
    return g_strdup_printf("%s, OS process %" G_GINT64_FORMAT, node->hostname, node->seen.os_pid);
}

static void free_scheduler(gpointer data) {
    g_free((char *)((struct scheduler *)data)->seen.name);
    g_free(data);
}

static struct node *new_node(struct dt_model *model, const struct dt_recorded *e) {
    struct node *node = g_new0(struct node, 1);

    node->model = model;
    node->hostname = g_strdup(e->hostname);
    node->place = (struct place){node->hostname, e->vpid, e->trace};
    node->calls_lost = INT64_MIN;
    node->otp = g_strdup("");
    node->seen = (struct dt_node){.number = model->nodes->len,
                                  .hostname = node->hostname,
                                  .os_pid = e->vpid,
                                  .otp = node->otp,
                                  .clock = e->clock,
                                  .first = e->time,
                                  .last = e->time};
    node->seen.name = node->name = provisional_name(node);
    node->schedulers = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, free_scheduler);
    node->losses = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_ptr_array_add(model->nodes, node);
    g_hash_table_insert(model->places, &node->place, node);
    dt_peers_new(node);
    dt_processes_new(node);
    dt_messages_new(node);
    dt_server_calls_new(node);
    dt_spans_new(node);
    DT_TELL(model, node, &node->seen);
    return node;
}

struct node *dt_node_of(struct dt_model *model, const struct dt_recorded *e) {
    const struct place place = {e->hostname, e->vpid, e->trace};
    struct node *node = model->last_node;

    if (node && equal_places(&node->place, &place))
        return node;
    node = g_hash_table_lookup(model->places, &place);
    return model->last_node = node ? node : new_node(model, e);
}

/* -- Their names -------------------------------------------------------------------- */

/* Nodes of one name: those that are not distributed all have the name nonode@nohost. */
struct namesakes {
    struct node *first; /* NULL once it has another name */
    unsigned nodes;
};

static bool set_name(struct node *node, bool is_alone) {
    char *name = is_alone || node->seen.os_pid == DT_NO_VALUE
                     ? g_strdup(node->own_name)
                     : g_strdup_printf("%s, OS process %" G_GINT64_FORMAT, node->own_name,
                                       node->seen.os_pid);
    bool is_new = dt_set(&node->name, name);

    g_free(name);
    node->seen.name = node->name;
    return is_new;
}

static void leave_namesakes(struct node *node) {
    struct namesakes *of =
        node->own_name ? g_hash_table_lookup(node->model->namesakes, node->own_name) : NULL;

    if (!of)
        return;
    of->nodes--;
    if (of->first == node)
        of->first = NULL;
}

static void join_namesakes(struct node *node) {
    GHashTable *all = node->model->namesakes;
    struct namesakes *of = g_hash_table_lookup(all, node->own_name);

    if (!of) {
        of = g_new0(struct namesakes, 1);
        g_hash_table_insert(all, g_strdup(node->own_name), of);
    }
    if (of->nodes++ == 0)
        of->first = node;
    set_name(node, of->nodes == 1);
    if (of->nodes == 2 && of->first && set_name(of->first, false))
        DT_TELL(node->model, node, &of->first->seen);
}

void dt_node_named(struct node *node, const char *own_name, const char *otp) {
    bool has_new_otp = *otp && dt_set(&node->otp, otp);
    bool has_new_name = *own_name && g_strcmp0(node->own_name, own_name) != 0;

    node->seen.otp = node->otp;
    if (has_new_name) {
        leave_namesakes(node);
        dt_set(&node->own_name, own_name);
        g_free(node->bare_name);
        node->bare_name = dt_far_node(own_name);
        node->model->names++;
        join_namesakes(node);
    }
    if (has_new_otp || has_new_name)
        DT_TELL(node->model, node, &node->seen);
}

static void free_node(gpointer data) {
    struct node *node = data;

    dt_spans_free(node);
    dt_server_calls_free(node);
    dt_messages_free(node);
    dt_processes_free(node);
    dt_peers_free(node);
    g_hash_table_destroy(node->schedulers);
    g_array_free(node->losses, TRUE);
    g_free(node->name);
    g_free(node->own_name);
    g_free(node->bare_name);
    g_free(node->last_peer);
    g_free(node->hostname);
    g_free(node->otp);
    g_free(node);
}

void dt_nodes_new(struct dt_model *model) {
    model->nodes = g_ptr_array_new_with_free_func(free_node);
    model->places = g_hash_table_new(hash_place, equal_places);
    model->namesakes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

void dt_nodes_free(struct dt_model *model) {
    g_hash_table_destroy(model->places);
    g_hash_table_destroy(model->namesakes);
    g_ptr_array_free(model->nodes, TRUE);
}

/* -- Schedulers --------------------------------------------------------------------- */

/* The names of the runtime's threads: 1_scheduler up to OTP 25, erts_sched_1 later. */
static const struct {
    const char *before, *after, *name;
} thread_names[] = {
    {"erts_sched_", "", "scheduler"},
    {"erts_dcpus_", "", "dirty CPU scheduler"},
    {"erts_dios_", "", "dirty I/O scheduler"},
    {"", "_scheduler", "scheduler"},
    {"", "_dirty_cpu_sched", "dirty CPU scheduler"},
    {"", "_dirty_io_sched", "dirty I/O scheduler"},
};

static char *scheduler_name(const struct dt_recorded *e, bool is_cpu, int64_t id) {
    if (is_cpu)
        return g_strdup_printf("CPU %" G_GINT64_FORMAT, id);
    for (unsigned i = 0; i < G_N_ELEMENTS(thread_names); i++) {
        const char *before = thread_names[i].before, *after = thread_names[i].after;
        char *rest;
        guint64 n;

        if (!g_str_has_prefix(e->procname, before))
            continue;
        n = g_ascii_strtoull(e->procname + strlen(before), &rest, 10);
        /* The kernel cuts a thread's name to 15 bytes: 1_dirty_cpu_sch */
        if (n && *rest == *after && g_str_has_prefix(after, rest))
            return g_strdup_printf("%s %" G_GUINT64_FORMAT, thread_names[i].name, n);
    }
    return g_strdup_printf("thread %" G_GINT64_FORMAT, id);
}

struct scheduler *dt_scheduler_of(struct node *node, const struct dt_recorded *e) {
    bool is_cpu = e->vtid == DT_NO_VALUE;
    int64_t id = is_cpu ? e->cpu : e->vtid;
    struct scheduler *s = node->last_scheduler;

    if (id == DT_NO_VALUE)
        return NULL;
    if (s && s->seen.id == id)
        return s;
    s = g_hash_table_lookup(node->schedulers, &id);
    if (!s) {
        s = g_new0(struct scheduler, 1);
        s->seen = (struct dt_scheduler){.number = node->model->schedulers++,
                                        .node = &node->seen,
                                        .id = id,
                                        .is_cpu = is_cpu,
                                        .name = scheduler_name(e, is_cpu, id)};
        g_hash_table_insert(node->schedulers, &s->seen.id, s);
        DT_TELL(node->model, scheduler, &s->seen);
    }
    return node->last_scheduler = s;
}

/* -- Losses ------------------------------------------------------------------------- */

static void node_lost(struct node *node, int64_t begin) {
    GHashTableIter i;
    gpointer of;

    g_array_append_val(node->losses, begin);
    /* Other processes are settled when they are touched next. */
    g_hash_table_iter_init(&i, node->schedulers);
    while (g_hash_table_iter_next(&i, NULL, &of)) {
        const struct scheduler *s = of;

        if (s->runs)
            dt_state_settle(s->runs);
        if (s->port)
            dt_state_settle(s->port);
    }
    dt_calls_lost(node, begin);
    dt_messages_lost(node);
}

/* Returns the node, or NULL if it is none or several: a trace that VMs share does not tell whose
   events were lost. */
static struct node *nodes_lost(struct dt_model *model, const char *hostname, int64_t vpid,
                               uint64_t trace, int64_t begin) {
    const struct place place = {hostname, vpid, trace};
    struct node *found = NULL;
    unsigned nodes = 0;

    for (unsigned i = 0; i < model->nodes->len; i++) {
        struct node *node = model->nodes->pdata[i];

        if (vpid == DT_NO_VALUE ? node->place.trace != trace : !equal_places(&node->place, &place))
            continue;
        node_lost(node, begin);
        found = node;
        nodes++;
    }
    return nodes == 1 ? found : NULL;
}

void dt_model_losing(struct dt_model *model, const char *hostname, int64_t vpid, uint64_t trace,
                     int64_t begin) {
    nodes_lost(model, hostname, vpid, trace, begin);
}

void dt_model_lost(struct dt_model *model, const char *hostname, int64_t vpid, uint64_t trace,
                   const struct dt_lost *lost) {
    struct node *node = nodes_lost(model, hostname, vpid, trace, lost->begin);
    struct dt_lost told = *lost;

    told.node = node ? &node->seen : NULL;
    DT_TELL(model, lost, &told);
}
