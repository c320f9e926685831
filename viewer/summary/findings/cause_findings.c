/* Causes whose effects look like those of ordinary work: a crash report that is being formatted,
   copies of large messages and objects, searches for old persistent terms. */
#include <string.h>

#include "shared/amounts.h"
#include "shared/arrays.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"
#include "summary/sorted_rows.h"

/* -- Formatting --------------------------------------------------------------------------- */

static int64_t by_formatting(const struct dt_actor *actor) {
    return actor->activity->formatting ? actor->activity->formatting->longest.ns : 0;
}

bool dt_is_formatting(const struct dt_summary *summary, const struct dt_actor *actor) {
    int64_t ns = by_formatting(actor);

    return ns >= dt_limits.formatting.time && actor->node &&
           dt_is_recorded(actor->node->recorded, DT_RECORDED_SENDS) &&
           dt_is_share(ns, dt_recorded(summary), dt_limits.formatting.share);
}

/* Before it formatted, or afterwards: another handler of the log may have come first. */
static bool has_logged_error(const struct dt_summary *summary, const struct dt_actor *actor) {
    for (unsigned i = 0; i < summary->log.rows->len; i++) {
        const struct dt_listed *row = &g_array_index(summary->log.rows, struct dt_listed, i);

        if (row->actor == actor && row->is_error)
            return true;
    }
    return false;
}

static void add_formatting(struct dt_summary *summary, struct dt_actor *actor) {
    const struct dt_sampled *of = actor->activity->sampled;
    uint64_t queue = of ? of->last_queue : 0;
    bool has_crashed = actor->activity->has_crashed,
         has_logged = !has_crashed && has_logged_error(summary, actor);
    g_autofree char *name = dt_actor_show_where(actor);
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_printf(text, "%s formatted a large term as text for %s", name,
                    dt_show_ns(by_formatting(actor)).text);
    if (of)
        g_string_append_printf(text, ", with up to %s of memory",
                               dt_show_bytes(of->max_memory).text);
    if (queue) {
        g_autofree char *messages = dt_counted(queue, "message");
        g_string_append_printf(text, ", while %s waited", messages);
    }
    g_string_append(text, has_crashed  ? ": its crash report, because it has crashed"
                          : has_logged ? ": an error that it logged, such as its crash report"
                                       : ", as for a crash report of its state and messages");
    dt_find(summary, DT_RULE_formatting, has_crashed || has_logged || queue ? DT_HIGH : DT_MEDIUM,
            actor, "%s", text->str);
}

static void formatting(struct dt_summary *summary) {
    g_autoptr(GPtrArray) actors = dt_top_sorted(&summary->processes, by_formatting);

    for (unsigned i = 0; i < actors->len && i < dt_limits.formatting.per_rule; i++)
        if (dt_is_formatting(summary, g_ptr_array_index(actors, i)))
            add_formatting(summary, g_ptr_array_index(actors, i));
}

/* -- Large messages ----------------------------------------------------------------------- */

static bool is_large(const struct dt_pair *row) {
    return row->count > 1 || dt_quantiles_max(&row->took) >= dt_limits.large_messages.single;
}

static bool is_receiver(const struct dt_pair *row, struct dt_actor *actor) {
    return row->to == actor || (row->to->is_sum && row->to == dt_actor_kind(actor));
}

bool dt_has_copied(const struct dt_summary *summary, struct dt_actor *actor) {
    g_autoptr(GPtrArray) rows = dt_rows_of(summary->copies.rows);

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);

        if (is_large(row) && (row->from == actor || is_receiver(row, actor)))
            return true;
    }
    return false;
}

static int longest_first(const void *a, const void *b) {
    const struct dt_pair *x = *(struct dt_pair *const *)a, *y = *(struct dt_pair *const *)b;
    int by = dt_compare((int64_t)y->took.sum, (int64_t)x->took.sum);

    return by ? by : dt_compare((int64_t)x->from->number, (int64_t)y->from->number);
}

static void add_copies(struct dt_summary *summary, const struct dt_pair *row) {
    int64_t longest = dt_quantiles_max(&row->took);
    bool is_spawn = strcmp(row->text, "spawn") == 0;
    g_autofree char *from = dt_actor_show_where(row->from), *to = dt_actor_show_where(row->to),
                    *messages = dt_counted(row->count, "message"),
                    *sent = is_spawn
                                ? g_strdup_printf("started %" PRIu64 " %s with", row->count, to)
                                : g_strdup_printf("sent %s to %s, with", messages, to);

    dt_find(summary, DT_RULE_large_messages,
            longest >= dt_limits.large_messages.very_long ? DT_HIGH : DT_MEDIUM, row->from,
            "%s %s up to %s of data: it copied each for up to %s without a pause, %s in total "
            "(inferred)",
            from, sent, dt_show_bytes(row->bytes).text, dt_show_ns(longest).text,
            dt_show_ns((int64_t)row->took.sum).text);
}

static void large_messages(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_rows_of(summary->copies.rows);
    uint64_t found = 0;

    g_ptr_array_sort(rows, longest_first);
    for (unsigned i = 0; i < rows->len && found < dt_limits.large_messages.per_rule; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);

        if (!is_large(row))
            continue;
        add_copies(summary, row);
        found++;
    }
}

/* -- Large objects ------------------------------------------------------------------------ */

static void large_objects(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_ets_tables_by_memory(&summary->ets_tables);
    uint64_t found = 0;

    for (unsigned i = 0; i < rows->len && found < dt_limits.large_objects.per_rule; i++) {
        const struct dt_ets_table *table = g_ptr_array_index(rows, i);
        const struct dt_activity *owner = table->owner ? table->owner->activity : NULL;
        uint64_t size =
            table->objects ? (uint64_t)dt_series_last(&table->memory) / table->objects : 0;

        if (size < dt_limits.large_objects.size || !owner ||
            owner->long_runs < dt_limits.large_objects.runs)
            continue;
        g_autofree char *name = dt_actor_show_where(table->owner);
        g_autofree char *objects = dt_counted(table->objects, "object");
        dt_find(summary, DT_RULE_large_objects, DT_MEDIUM, table->owner,
                "%s ran for up to %s without a pause, %" PRIu64
                " times for more than %s; its ETS table %s has %s of %s on average, which each "
                "insert and lookup copies",
                name, dt_show_ns(owner->longest_run).text, owner->long_runs,
                dt_show_ns(dt_limits.large_objects.time).text, table->name, objects,
                dt_show_bytes(size).text);
        found++;
    }
}

/* -- Persistent terms --------------------------------------------------------------------- */

/* The searches of a node for old literals that no purge caused. */
struct searches {
    uint64_t count, known;
    int64_t ns, longest;
    GHashTable *by;  /* struct dt_actor -> the number that it caused */
    GHashTable *put; /* those processes that were seen in a function of persistent_term */
};

static void add_searches(struct searches *of, const struct dt_pair *row) {
    if (strcmp(row->text, dt_by_purge) == 0)
        return;
    of->count += row->count;
    of->ns += (int64_t)row->took.sum;
    of->longest = MAX(of->longest, dt_quantiles_max(&row->took));
    if (!row->from)
        return;
    of->known += row->count;
    uint64_t count = GPOINTER_TO_SIZE(g_hash_table_lookup(of->by, row->from)) + row->count;
    g_hash_table_insert(of->by, row->from, GSIZE_TO_POINTER(count));
    if (strcmp(row->text, dt_by_put) == 0)
        g_hash_table_add(of->put, row->from);
}

static struct dt_actor *culprit_of(const struct searches *of) {
    GHashTableIter i;
    void *actor, *count;

    g_hash_table_iter_init(&i, of->by);
    while (g_hash_table_iter_next(&i, &actor, &count))
        if (dt_is_share((int64_t)GPOINTER_TO_SIZE(count), (int64_t)of->known,
                        dt_limits.persistent_terms.by_one))
            return actor;
    return NULL;
}

static void report_searches(struct dt_summary *summary, struct dt_seen_node *node,
                            const struct searches *of) {
    int64_t processes = dt_last_of(summary, node, "processes");
    struct dt_actor *culprit = culprit_of(of);
    bool are_many = processes >= (int64_t)dt_limits.persistent_terms.processes;

    if (of->count < dt_limits.persistent_terms.searches ||
        dt_per_second(summary, of->count) < dt_limits.persistent_terms.per_s ||
        !(are_many ||
          dt_is_share(of->ns, dt_recorded(summary), dt_limits.persistent_terms.share)) ||
        !(dt_is_recorded(node->recorded, DT_RECORDED_SENDS) || g_hash_table_size(of->put)))
        return;
    g_autofree char *name = dt_actor_show_where(culprit);
    g_autofree char *number = processes ? g_strdup_printf("%" PRId64 " ", processes) : NULL;
    dt_find(summary, DT_RULE_persistent_terms, DT_MEDIUM, culprit,
            "%s replaced or erased persistent terms %" PRIu64
            " times%s: each time, all %sprocesses searched their heaps for the old term, which "
            "took up to %s, %s in total",
            culprit                     ? name
            : g_hash_table_size(of->by) ? "several processes"
                                        : "an unknown process",
            of->count, culprit && g_hash_table_contains(of->put, culprit) ? "" : " (inferred)",
            number ? number : "", dt_show_ns(of->longest).text, dt_show_ns(of->ns).text);
}

static void persistent_terms(struct dt_summary *summary, struct dt_seen_node *node) {
    g_autoptr(GPtrArray) rows = dt_rows_of(summary->literals.searches.rows);
    struct searches of = {.by = g_hash_table_new(NULL, NULL), .put = g_hash_table_new(NULL, NULL)};

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);

        if (row->to->node == node)
            add_searches(&of, row);
    }
    report_searches(summary, node, &of);
    g_hash_table_destroy(of.by);
    g_hash_table_destroy(of.put);
}

void dt_find_in_causes(struct dt_summary *summary) {
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);

    for (unsigned i = 0; i < nodes->len; i++)
        persistent_terms(summary, g_ptr_array_index(nodes, i));
    formatting(summary);
    large_messages(summary);
    large_objects(summary);
}
