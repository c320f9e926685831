#include <string.h>

#include "viewer/report_parts.h"
#include "viewer/texts.h"

struct dt_seen_node *dt_seen(struct dt_report *report, const struct dt_node *node) {
    if (!node)
        return NULL;
    if (node->number >= report->nodes->len)
        g_ptr_array_set_size(report->nodes, (int)node->number + 1);
    gpointer *seen = &g_ptr_array_index(report->nodes, node->number);
    if (!*seen) {
        struct dt_seen_node *new = *seen = g_new0(struct dt_seen_node, 1);
        new->number = node->number + 1;
    }
    return *seen;
}

const char *dt_seen_name(const struct dt_seen_node *node) {
    return node && node->name ? node->name : "";
}

struct dt_who *dt_who_keep(struct dt_who *who) {
    if (who)
        who->references++;
    return who;
}

/* A family may be long, so its parents are dropped in turn. */
void dt_who_drop(struct dt_who *who) {
    while (who && --who->references == 0) {
        struct dt_who *parent = who->parent;
        g_free(who->texts);
        if (who->stack)
            g_array_free(who->stack, TRUE);
        g_free(who);
        who = parent;
    }
}

static struct dt_who *new_who(struct dt_seen_node *node) {
    struct dt_who *who = g_new0(struct dt_who, 1);
    who->references = 1;
    who->node = node;
    who->began = who->ended = who->longest_wait_at = DT_NO_VALUE;
    return who;
}

struct dt_who *dt_who_of(struct dt_report *report, struct dt_process *process) {
    if (!process)
        return NULL;
    if (process->of_sink)
        return process->of_sink;
    struct dt_who *who = new_who(dt_seen(report, process->node));
    who->kind = process->kind;
    who->number = process->number;
    who->process = process;
    process->of_sink = who;
    g_hash_table_add(report->alive, who);
    return who;
}

guint dt_who_sum_hash(gconstpointer of) {
    const struct dt_who *sum = of;
    return g_direct_hash(sum->node) ^ g_str_hash(sum->show);
}

gboolean dt_who_sum_equal(gconstpointer a, gconstpointer b) {
    const struct dt_who *x = a, *y = b;
    return x->node == y->node && strcmp(x->show, y->show) == 0;
}

static struct dt_who *find_sum(const struct dt_report *report, struct dt_seen_node *node,
                               const char *show) {
    return g_hash_table_lookup(report->sums, &(struct dt_who){.node = node, .show = show});
}

struct dt_who *dt_who_sum(struct dt_report *report, struct dt_seen_node *node, const char *show) {
    struct dt_who *who = find_sum(report, node, show);
    if (!who && g_hash_table_size(report->sums) >= DT_SUMS) {
        node = NULL;
        show = "others";
        who = find_sum(report, node, show);
    }
    if (who)
        return who;
    who = new_who(node);
    who->is_sum = true;
    who->show = who->texts = g_strdup(show);
    g_hash_table_add(report->sums, who);
    return who;
}

static const char *or_text(const char *a, const char *b) {
    return a && *a ? a : b;
}

struct dt_who *dt_who_kind(struct dt_report *report, struct dt_who *who) {
    if (!who || who->is_sum)
        return who;
    const struct dt_process *p = who->process;
    const char *initial = or_text(p ? p->initial : who->initial, "processes");
    const char *name = or_text(p ? p->name : who->name, "ports");
    switch (who->kind) {
    case DT_PORT:
        return dt_who_sum(report, who->node, name);
    case DT_FOREIGN:
        return dt_who_sum(report, who->node, "processes of other nodes");
    default:
        return dt_who_sum(report, who->node, initial);
    }
}

/* Generations that are searched for a circle; longer families are taken for one. */
enum { GENERATIONS = 1000 };

/* Only a process that has children can be among its own ancestors. */
static bool is_above(const struct dt_who *who, const struct dt_who *parent) {
    unsigned n = 0;
    if (!who->has_children)
        return who == parent;
    for (; parent && n < GENERATIONS && parent != who; n++)
        parent = parent->parent;
    return parent;
}

/* The model forgets a parent that is gone. It also learns another one, so that a recording that
   contradicts itself may tell of parents in a circle, which would keep one another forever. */
void dt_who_learn_parent(struct dt_report *report, struct dt_who *who) {
    if (who->parent)
        return;
    struct dt_who *parent = dt_who_of(report, who->process->parent);
    if (!parent || is_above(who, parent))
        return;
    parent->has_children = true;
    who->parent = dt_who_keep(parent);
}

static void copy_texts(struct dt_who *who, const struct dt_process *process) {
    const char *const from[] = {process->pid,     process->name,  process->show,
                                process->initial, process->label, process->group};
    const char **const to[] = {&who->pid,     &who->name,  &who->show,
                               &who->initial, &who->label, &who->group};
    size_t sizes[G_N_ELEMENTS(from)], all = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(from); i++)
        all += sizes[i] = strlen(from[i]) + 1;
    char *at = who->texts = g_malloc(all);
    for (size_t i = 0; i < G_N_ELEMENTS(from); i++) {
        *to[i] = memcpy(at, from[i], sizes[i]);
        at += sizes[i];
    }
}

void dt_who_gone(struct dt_report *report, struct dt_process *process) {
    struct dt_who *who = process->of_sink;
    if (!who)
        return;
    dt_who_learn_parent(report, who);
    copy_texts(who, process);
    who->began = process->began;
    who->ended = process->ended;
    if (who->stack)
        g_array_free(who->stack, TRUE);
    who->stack = NULL;
    who->process = NULL;
    process->of_sink = NULL;
    g_hash_table_steal(report->alive, who);
    if (who->kind == DT_PROCESS)
        dt_kept_add(&report->processes, who);
    else if (who->kind == DT_PORT)
        dt_kept_add(&report->ports, who);
    dt_who_drop(who);
}

const char *dt_who_node(const struct dt_who *who) {
    return dt_seen_name(who->node);
}

const char *dt_who_show(const struct dt_who *who) {
    if (!who)
        return "unknown";
    if (who->show)
        return who->show;
    return who->process ? who->process->show : "";
}

int64_t dt_who_number(const struct dt_who *who, enum dt_told kind, uint64_t number) {
    bool is_told = who->node && who->is_traced && dt_is_told(who->node->told, kind);
    return is_told ? (int64_t)number : DT_NO_VALUE;
}

int64_t dt_who_ns(const struct dt_who *who, enum dt_told kind, int64_t ns) {
    if (kind == DT_TOLD_SCHEDULING)
        return who->ran ? ns : DT_NO_VALUE;
    return dt_who_number(who, kind, (uint64_t)ns);
}

int64_t dt_who_mailbox_max(const struct dt_who *who) {
    bool has_sends = dt_who_number(who, DT_TOLD_SENDS, 0) != DT_NO_VALUE;
    return has_sends ? dt_who_number(who, DT_TOLD_DELIVERIES, who->mailbox_max) : DT_NO_VALUE;
}

/* -- Those that are kept ---------------------------------------------------------------- */

static int64_t by_run(const struct dt_who *who) {
    return who->run;
}

static int64_t by_messages(const struct dt_who *who) {
    return (int64_t)(who->sent + who->received);
}

static int64_t by_collecting(const struct dt_who *who) {
    return who->collecting;
}

static int64_t by_wait(const struct dt_who *who) {
    return who->longest_wait;
}

static int64_t by_mailbox(const struct dt_who *who) {
    return (int64_t)who->mailbox_max;
}

static int64_t by_bytes(const struct dt_who *who) {
    return (int64_t)who->bytes_out;
}

static dt_criterion *const criteria[] = {by_run,  by_messages, by_collecting,
                                         by_wait, by_mailbox,  by_bytes};

static gint compare(gconstpointer a, gconstpointer b, gpointer data) {
    const struct dt_who *x = *(struct dt_who *const *)a, *y = *(struct dt_who *const *)b;
    dt_criterion *by = *(dt_criterion *const *)data;
    int order = dt_compare(by(y), by(x));
    return order ? order : dt_compare((int64_t)x->number, (int64_t)y->number);
}

void dt_whos_sort(GPtrArray *whos, dt_criterion *by) {
    g_ptr_array_sort_with_data(whos, compare, (gpointer)&by);
}

void dt_kept_cut(struct dt_kept *kept) {
    g_autoptr(GHashTable) best = g_hash_table_new(NULL, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(criteria); i++) {
        dt_whos_sort(kept->whos, criteria[i]);
        for (guint n = 0; n < kept->whos->len && n < DT_KEPT_PER_CRITERION; n++)
            g_hash_table_add(best, g_ptr_array_index(kept->whos, n));
    }
    guint to = 0;
    for (guint n = 0; n < kept->whos->len; n++) {
        struct dt_who *who = g_ptr_array_index(kept->whos, n);
        if (g_hash_table_contains(best, who)) {
            g_ptr_array_index(kept->whos, to++) = who;
            continue;
        }
        kept->left_out++;
        kept->run += who->run;
        kept->collecting += who->collecting;
        kept->sent += who->sent;
        kept->received += who->received;
        /* Else each generation of a family would keep the one before. */
        dt_who_drop(g_steal_pointer(&who->parent));
        dt_who_drop(who);
    }
    g_ptr_array_set_size(kept->whos, (gint)to);
    dt_whos_sort(kept->whos, by_run);
}

/* So many times those that are kept are held until they are sorted. */
enum { ROOM = 4 };

void dt_kept_add(struct dt_kept *kept, struct dt_who *who) {
    g_ptr_array_add(kept->whos, dt_who_keep(who));
    if (kept->whos->len >= (size_t)ROOM * DT_KEPT_PER_CRITERION * G_N_ELEMENTS(criteria))
        dt_kept_cut(kept);
}

void dt_kept_free(struct dt_kept *kept) {
    for (guint i = 0; i < kept->whos->len; i++)
        dt_who_drop(g_ptr_array_index(kept->whos, i));
    g_ptr_array_free(kept->whos, TRUE);
}

GPtrArray *dt_kept_copy(const struct dt_kept *kept) {
    GPtrArray *copy = g_ptr_array_sized_new(kept->whos->len);
    for (guint i = 0; i < kept->whos->len; i++)
        g_ptr_array_add(copy, g_ptr_array_index(kept->whos, i));
    return copy;
}
