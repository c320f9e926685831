/* The tables of processes, one per sort criterion. */
#include "report/report_text.h"

#include <stdarg.h>

#include "report/cells.h"
#include "report/report_table.h"
#include "shared/amounts.h"

/* For tables that also have a column with the initial call. */
static void cell_named(struct dt_columns *c, const struct dt_actor *actor) {
    const char *other = *actor->name ? actor->name : actor->label;
    g_autofree char *text = g_strdup_printf("%s%s%s", actor->pid, *other ? " " : "", other);

    dt_columns_text(c, text);
}

static int64_t run(const struct dt_actor *actor) {
    return dt_activity_ns(actor, actor->activity->run);
}

static int64_t longest_wait(const struct dt_actor *actor) {
    return dt_activity_ns(actor, actor->activity->longest_wait);
}

static void cells_process(struct dt_columns *c, const struct dt_summary *summary,
                          const struct dt_actor *actor) {
    dt_cell_node(c, summary, actor->node);
    cell_named(c, actor);
    dt_columns_text(c, actor->initial);
}

static void cell_runnable(struct dt_columns *c, const struct dt_actor *actor) {
    dt_cell_ns(c, dt_activity_ns(actor, actor->activity->runnable));
}

static void cells_collecting(struct dt_columns *c, const struct dt_actor *actor) {
    dt_cell_ns(c, dt_activity_collecting(actor));
    dt_cell_number(
        c, dt_activity_number(actor, DT_RECORDED_COLLECTIONS, actor->activity->collections));
}

static void cells_messages(struct dt_columns *c, const struct dt_actor *actor) {
    dt_cell_number(c, dt_activity_number(actor, DT_RECORDED_SENDS, actor->activity->sent));
    dt_cell_number(c, dt_activity_number(actor, DT_RECORDED_DELIVERIES, actor->activity->received));
    dt_cell_number(c, dt_activity_mailbox_max(actor));
}

static void cells_sampled(struct dt_columns *c, const struct dt_actor *actor) {
    dt_cell_number(c, dt_activity_queue_max(actor));
    if (actor->activity->sampled)
        dt_cell_bytes(c, actor->activity->sampled->max_memory);
    else
        dt_columns_text(c, "");
}

static void that_runs(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_actor *actor = row;

    cells_process(c, summary, actor);
    dt_cell_ns(c, run(actor));
    dt_cell_some_ns(c, actor->activity->dirty_io);
    cell_runnable(c, actor);
    dt_cell_ns(c, dt_activity_collecting(actor));
    cells_messages(c, actor);
    cells_sampled(c, actor);
}

static void that_waits_for_files(struct dt_columns *c, const struct dt_summary *summary,
                                 const void *row) {
    const struct dt_actor *actor = row;

    cells_process(c, summary, actor);
    dt_cell_ns(c, actor->activity->dirty_io);
    dt_cell_ns(c, run(actor));
    dt_cell_some_ns(c, actor->activity->dirty_cpu);
}

static void that_talks(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    cells_process(c, summary, row);
    dt_cell_number(c, dt_top_by_messages(row));
    cells_messages(c, row);
}

static void that_queues(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    cells_process(c, summary, row);
    cells_sampled(c, row);
    cells_messages(c, row);
}

static void that_collects(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    cells_process(c, summary, row);
    cells_collecting(c, row);
    dt_cell_ns(c, run(row));
}

static void that_waits(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    cells_process(c, summary, row);
    dt_cell_ns(c, longest_wait(row));
    cell_runnable(c, row);
    dt_cell_ns(c, run(row));
}

#define PROCESS_COLUMNS(...) DT_COLUMNS_OF("node", "<process", "~initial call", __VA_ARGS__)

/* Tables of processes, each sorted by a different number. */
static const struct {
    dt_criterion *by;
    struct dt_table table;
} orders[] = {
    {run,
     {.title = "Processes by run time",
      .columns = PROCESS_COLUMNS("ran", "dirty I/O", "runnable", "collected", "sent", "received",
                                 "in flight", "queue", "memory"),
      .cells = that_runs}},
    {dt_top_by_dirty_io,
     {.title = "Processes by time on dirty I/O schedulers, mostly waiting for files",
      .columns = PROCESS_COLUMNS("dirty I/O", "ran", "incl. dirty CPU"),
      .cells = that_waits_for_files}},
    {dt_top_by_messages,
     {.title = "Processes by messages that they sent and that reached them",
      .columns = PROCESS_COLUMNS("messages", "sent", "received", "in flight"),
      .cells = that_talks}},
    {dt_top_by_queue,
     {.title = "Processes by longest message queue, from samples",
      .columns = PROCESS_COLUMNS("queue", "memory", "sent", "received", "in flight"),
      .cells = that_queues}},
    {dt_activity_collecting,
     {.title = "Processes by time in garbage collection",
      .columns = PROCESS_COLUMNS("collected", "GCs", "ran"),
      .cells = that_collects}},
    {longest_wait,
     {.title = "Processes by longest wait for a scheduler (inferred)",
      .columns = PROCESS_COLUMNS("longest", "runnable", "ran"),
      .cells = that_waits}},
};

/* The processes whose number is greater than 0. */
static GPtrArray *sorted(const struct dt_top_n *kept, dt_criterion *by) {
    GPtrArray *actors = dt_top_sorted(kept, by);
    unsigned n = 0;

    while (n < actors->len && by(g_ptr_array_index(actors, n)) > 0)
        n++;
    g_ptr_array_set_size(actors, (int)n);
    return actors;
}

__attribute__((format(printf, 4, 5))) static void add(GString *to, const struct dt_summary *summary,
                                                      enum dt_recorded_kind kind,
                                                      const char *format, ...) {
    va_list args;

    if (!dt_is_recorded(summary->recorded, kind))
        return;
    g_string_append(to, to->len ? ", " : "; together they ");
    va_start(args, format);
    g_string_append_vprintf(to, format, args);
    va_end(args);
}

static void others(GString *to, const struct dt_summary *summary) {
    const struct dt_top_n *kept = &summary->processes;

    if (!kept->left_out)
        return;
    g_autoptr(GString) sums = g_string_new(NULL);
    add(sums, summary, DT_RECORDED_SCHEDULING, "ran %s", dt_show_ns(kept->run).text);
    add(sums, summary, DT_RECORDED_COLLECTIONS, "collected %s", dt_show_ns(kept->collecting).text);
    add(sums, summary, DT_RECORDED_SENDS, "sent %" PRIu64 " messages", kept->sent);
    add(sums, summary, DT_RECORDED_DELIVERIES, "received %" PRIu64 " messages", kept->received);
    g_string_append_printf(to, "\nOther processes, low in all tables: %" PRIu64 "%s.\n",
                           kept->left_out, sums->str);
}

void dt_report_processes(GString *to, const struct dt_summary *summary, struct dt_text_size size) {
    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autoptr(GPtrArray) rows = sorted(&summary->processes, orders[i].by);

        dt_table_put_rows(to, summary, size, &orders[i].table, rows);
    }
    others(to, summary);
}
