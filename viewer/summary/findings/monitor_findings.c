/* Events of the system monitor, and nodes that disconnect. */
#include <string.h>

#include "shared/amounts.h"
#include "summary/findings/rules.h"

static struct dt_amount up_to_ns(const struct dt_pair *row) {
    return dt_show_ns(dt_quantiles_max(&row->took));
}

static void long_schedule(struct dt_summary *summary, const struct dt_pair *row, const char *name,
                          const char *times) {
    double part = row->from ? dt_part_not_stopped(summary, row->from->node) : 1;
    bool is_long =
        (double)dt_quantiles_max(&row->took) * part >= (double)dt_limits.long_schedules.time;

    if (row->from && dt_has_copied(summary, row->from))
        return;
    dt_find(summary, DT_RULE_long_schedules, is_long ? DT_MEDIUM : DT_LOW, row->from,
            "%s ran without a pause for up to %s, %s%s%s", name, up_to_ns(row).text, times,
            row->example ? "; the longest from " : "", row->example ? row->example : "");
}

static void long_gc(struct dt_summary *summary, const struct dt_pair *row, const char *name,
                    const char *times) {
    if (row->from && (dt_is_formatting(summary, row->from) || dt_has_copied(summary, row->from)))
        return;
    dt_find(summary, DT_RULE_reported_collections, DT_MEDIUM, row->from,
            "%s: the VM reported garbage collections of up to %s, %s", name, up_to_ns(row).text,
            times);
}

static void large_heap(struct dt_summary *summary, const struct dt_pair *row, const char *name,
                       const char *times) {
    if (row->from && dt_is_formatting(summary, row->from))
        return;
    dt_find(summary, DT_RULE_large_heaps, DT_MEDIUM, row->from,
            "%s: the VM reported a heap of up to %s, %s", name,
            dt_show_bytes((uint64_t)dt_quantiles_max(&row->took)).text, times);
}

static void busy_port(struct dt_summary *summary, const struct dt_pair *row, const char *name,
                      const char *times) {
    g_autofree char *port = dt_actor_show_where(row->to);

    dt_find(summary, DT_RULE_busy_ports, DT_MEDIUM, row->from,
            "%s was suspended %s by the busy port %s", name, times, port);
}

static void busy_dist_port(struct dt_summary *summary, const struct dt_pair *row, const char *name,
                           const char *times) {
    g_autofree char *port = dt_actor_show_where(row->to);

    dt_find(summary, DT_RULE_busy_ports, DT_MEDIUM, row->from,
            "%s was suspended %s by a busy connection to another node, %s", name, times, port);
}

static void long_queue(struct dt_summary *summary, const struct dt_pair *row, const char *name,
                       const char *times) {
    if (!row->from || !row->from->activity->sampled)
        dt_find(summary, DT_RULE_reported_queues, DT_MEDIUM, row->from,
                "%s: the VM reported a long message queue, %s", name, times);
}

static const struct {
    enum dt_probe probe;
    const uint64_t *per_rule;
    void (*report)(struct dt_summary *summary, const struct dt_pair *row, const char *name,
                   const char *times);
} reports[] = {
    {DT_vm_long_schedule, &dt_limits.long_schedules.per_rule, long_schedule},
    {DT_vm_long_gc, &dt_limits.reported_collections.per_rule, long_gc},
    {DT_vm_large_heap, &dt_limits.large_heaps.per_rule, large_heap},
    {DT_vm_busy_port, &dt_limits.busy_ports.per_rule, busy_port},
    {DT_vm_busy_dist_port, &dt_limits.busy_ports.per_rule, busy_dist_port},
    {DT_vm_long_message_queue, &dt_limits.reported_queues.per_rule, long_queue},
};

static void reported(struct dt_summary *summary, const GPtrArray *rows, size_t n) {
    unsigned found = 0;

    for (unsigned i = 0; i < rows->len && found < *reports[n].per_rule; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);

        if (strcmp(row->text, dt_probe_names[reports[n].probe]) != 0)
            continue;
        g_autofree char *name = dt_actor_show_where(row->from);
        g_autofree char *times = dt_counted(row->count, "time");
        reports[n].report(summary, row, name, times);
        found++;
    }
}

/* One of the two nodes closed the connection, usually because it was stopped. */
static bool is_closed(const char *reason) {
    static const char *const reasons[] = {"connection_closed", "disconnect",
                                          "net_kernel_terminated", "shutdown"};

    for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return false;
}

static void nodes(struct dt_summary *summary) {
    for (unsigned i = 0; i < summary->nodes_down.rows->len && i < dt_limits.nodes_down.per_rule;
         i++) {
        const struct dt_listed *row = &g_array_index(summary->nodes_down.rows, struct dt_listed, i);
        bool are_several = row->node && dt_seen_nodes_are_several(&summary->actors.nodes);

        dt_find(summary, DT_RULE_nodes_down, is_closed(row->text) ? DT_LOW : DT_MEDIUM, NULL,
                "the connection%s%s to the node %s ended: %s", are_several ? " of " : "",
                are_several ? row->node->name : "", row->word, row->text);
    }
}

void dt_find_in_reports(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&summary->reports);

    for (size_t n = 0; n < G_N_ELEMENTS(reports); n++)
        reported(summary, rows, n);
    nodes(summary);
}
