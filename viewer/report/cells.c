#include "report/cells.h"

#include "shared/amounts.h"

void dt_cell_ns(struct dt_columns *c, int64_t ns) {
    dt_columns_text(c, dt_show_ns(ns).text);
}

void dt_cell_some_ns(struct dt_columns *c, int64_t ns) {
    dt_cell_ns(c, ns ? ns : DT_NO_VALUE);
}

void dt_cell_bytes(struct dt_columns *c, uint64_t bytes) {
    dt_columns_text(c, dt_show_bytes(bytes).text);
}

void dt_cell_words(struct dt_columns *c, uint64_t words) {
    dt_cell_bytes(c, words * DT_BYTES_PER_WORD);
}

void dt_cell_number(struct dt_columns *c, int64_t number) {
    if (number == DT_NO_VALUE)
        dt_columns_text(c, "");
    else
        dt_columns_printf(c, "%" PRId64, number);
}

void dt_cell_count(struct dt_columns *c, uint64_t number) {
    dt_columns_printf(c, "%" PRIu64, number);
}

void dt_cell_some(struct dt_columns *c, uint64_t number) {
    if (number)
        dt_cell_count(c, number);
    else
        dt_columns_text(c, "");
}

void dt_cell_time(struct dt_columns *c, const struct dt_summary *summary, int64_t time) {
    dt_columns_printf(c, "%.6f", (double)(time - summary->period.begin) / 1e9);
}

void dt_cell_node(struct dt_columns *c, const struct dt_summary *summary,
                  const struct dt_seen_node *node) {
    if (node && dt_seen_nodes_are_several(&summary->actors.nodes))
        dt_columns_printf(c, "%u", node->number);
    else
        dt_columns_text(c, "");
}

void dt_cell_actor(struct dt_columns *c, const struct dt_actor *actor) {
    g_autofree char *shown = dt_actor_show_pid(actor);

    dt_columns_text(c, shown);
}

void dt_cell_other(struct dt_columns *c, const struct dt_actor *actor,
                   const struct dt_actor *of_row) {
    if (!of_row || !actor->node || actor->node == of_row->node) {
        dt_cell_actor(c, actor);
        return;
    }
    g_autofree char *shown = dt_actor_show_pid(actor);
    g_autofree char *text = g_strdup_printf("node %u: %s", actor->node->number, shown);
    dt_columns_text(c, text);
}

void dt_cells_pair(struct dt_columns *c, const struct dt_summary *summary,
                   const struct dt_pair *pair) {
    const struct dt_actor *known = pair->from ? pair->from : pair->to;

    dt_cell_node(c, summary, known ? known->node : NULL);
    dt_cell_actor(c, pair->from);
    if (pair->to)
        dt_cell_other(c, pair->to, known);
    else
        dt_columns_text(c, pair->text ? pair->text : "unknown");
}

void dt_cell_term(struct dt_columns *c, const struct dt_pair *pair, const char *term) {
    g_autofree char *text = dt_pair_term(pair, term);

    dt_columns_text(c, text);
}

void dt_cell_short(struct dt_columns *c, const struct dt_actor *actor) {
    g_autofree char *shown = dt_actor_show_pid(actor);

    dt_columns_text(c, actor && actor->name && *actor->name ? actor->name : shown);
}
