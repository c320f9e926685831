/* Ports whose queued data does not leave. */
#include "shared/amounts.h"
#include "summary/findings/rules.h"

/* How long no byte has left its queue until the end of the recording; 0 if some has. */
static int64_t blocked_for(const struct dt_summary *summary, const struct dt_port_queue *queue) {
    if (queue->since == DT_NO_VALUE || queue->port->ended != DT_NO_VALUE ||
        summary->period.end - queue->last >= dt_limits.blocked_ports.time)
        return 0;
    return queue->last - queue->since;
}

void dt_find_in_ports(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_port_queues_by_length(&summary->port_queues);
    unsigned found = 0;

    for (unsigned i = 0; i < rows->len && found < dt_limits.blocked_ports.per_rule; i++) {
        const struct dt_port_queue *queue = g_ptr_array_index(rows, i);
        int64_t blocked = blocked_for(summary, queue);

        if (blocked < dt_limits.blocked_ports.time)
            continue;
        g_autofree char *port = dt_actor_show_where(queue->port);
        const struct dt_actor *owner = dt_actor_owner(queue->port);
        g_autofree char *name = owner ? dt_actor_show_where(owner) : NULL;
        dt_find(summary, DT_RULE_blocked_ports,
                queue->queue >= dt_limits.blocked_ports.large ? DT_MEDIUM : DT_LOW, queue->port,
                "%s%s%s has sent nothing for %s, and %s wait in its queue", name ? name : "",
                name ? ": " : "", port, dt_show_ns(blocked).text, dt_show_bytes(queue->queue).text);
        found++;
    }
}
