#include "model/entities/schedulers.h"

#include <string.h>

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
    struct schedulers *all = node->schedulers;
    struct scheduler *s = all->last;

    if (id == DT_NO_VALUE)
        return NULL;
    if (s && s->seen.id == id)
        return s;
    s = g_hash_table_lookup(all->by_id, &id);
    if (!s) {
        s = g_new0(struct scheduler, 1);
        s->seen = (struct dt_scheduler){.number = node->world->schedulers++,
                                        .node = &node->seen,
                                        .id = id,
                                        .is_cpu = is_cpu,
                                        .name = scheduler_name(e, is_cpu, id)};
        g_hash_table_insert(all->by_id, &s->seen.id, s);
        DT_TELL(node->world, scheduler, &s->seen);
    }
    return all->last = s;
}

static void free_scheduler(gpointer data) {
    g_free((char *)((struct scheduler *)data)->seen.name);
    g_free(data);
}

void dt_schedulers_new(struct node *node) {
    node->schedulers = g_new0(struct schedulers, 1);
    node->schedulers->by_id =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, free_scheduler);
}

void dt_schedulers_free(struct node *node) {
    g_hash_table_destroy(node->schedulers->by_id);
    g_free(node->schedulers);
}
