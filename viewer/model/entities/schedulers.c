#include "model/entities/schedulers.h"

#include <string.h>

/* Thread names of the runtime system: 1_scheduler up to OTP 25, erts_sched_1 later. */
static const struct {
    const char *before, *after;
    enum dt_scheduler_kind kind;
} thread_names[] = {
    {"erts_sched_", "", DT_SCHEDULER_NORMAL},
    {"erts_dcpus_", "", DT_SCHEDULER_DIRTY_CPU},
    {"erts_dios_", "", DT_SCHEDULER_DIRTY_IO},
    {"", "_scheduler", DT_SCHEDULER_NORMAL},
    {"", "_dirty_cpu_sched", DT_SCHEDULER_DIRTY_CPU},
    {"", "_dirty_io_sched", DT_SCHEDULER_DIRTY_IO},
};

static const char *const titles[] = {
    [DT_SCHEDULER_NORMAL] = "scheduler",
    [DT_SCHEDULER_DIRTY_CPU] = "dirty CPU scheduler",
    [DT_SCHEDULER_DIRTY_IO] = "dirty I/O scheduler",
};

/* The kernel truncates thread names to 15 bytes: 1_dirty_cpu_sch, 10_dirty_io_sch. */
static bool parse_thread(const char *procname, enum dt_scheduler_kind *kind, uint64_t *number) {
    for (unsigned i = 0; i < G_N_ELEMENTS(thread_names); i++) {
        const char *before = thread_names[i].before, *after = thread_names[i].after;
        char *rest;

        if (!g_str_has_prefix(procname, before))
            continue;
        *number = g_ascii_strtoull(procname + strlen(before), &rest, 10);
        if (*number && *rest == *after && g_str_has_prefix(after, rest)) {
            *kind = thread_names[i].kind;
            return true;
        }
    }
    return false;
}

static void name(struct dt_scheduler *scheduler, const char *procname) {
    uint64_t number;

    if (scheduler->is_cpu)
        scheduler->name = g_strdup_printf("CPU %" PRId64, scheduler->id);
    else if (parse_thread(procname, &scheduler->kind, &number))
        scheduler->name = g_strdup_printf("%s %" PRIu64, titles[scheduler->kind], number);
    else
        scheduler->name = g_strdup_printf("thread %" PRId64, scheduler->id);
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
        s->seen = (struct dt_scheduler){
            .number = node->world->schedulers++, .node = &node->seen, .id = id, .is_cpu = is_cpu};
        name(&s->seen, e->procname);
        g_hash_table_insert(all->by_id, &s->seen.id, s);
        DT_EMIT(node->world, scheduler, &s->seen);
    }
    return all->last = s;
}

static void free_scheduler(void *data) {
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
