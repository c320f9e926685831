#include "summary/literals.h"

#include <string.h>

const char dt_by_purge[] = "purge", dt_by_put[] = "put", dt_by_last[] = "last";

/* From the cause to the search; both wait until all schedulers have made progress. */
enum { CAUSED_NS = 100 * 1000 * 1000, SEARCHES = 1000 };

static const char trapped[] = "erlang:bif_return_trap/2";

/* The present search of a node, and what may cause the one after it. */
struct search {
    struct dt_actor *by; /* the last process that may be the cause; NULL if unknown */
    bool is_put;         /* it was seen in a function of persistent_term */
    int64_t time, purged;
    int64_t began; /* of the current search; DT_NO_VALUE: none */
    const char *cause;
    struct dt_actor *cause_by;
};

static void search_free(void *data) {
    struct search *search = data;

    dt_actor_drop(search->by);
    dt_actor_drop(search->cause_by);
    g_free(search);
}

void dt_literals_init(struct dt_literals *literals) {
    literals->of_nodes = g_hash_table_new_full(NULL, NULL, NULL, search_free);
    dt_pairs_init(&literals->searches, SEARCHES);
}

void dt_literals_free(struct dt_literals *literals) {
    g_hash_table_destroy(literals->of_nodes);
    dt_pairs_free(&literals->searches);
}

static struct search *search_of(struct dt_literals *literals, struct dt_seen_node *node) {
    struct search *search = g_hash_table_lookup(literals->of_nodes, node);

    if (!search) {
        search = g_new0(struct search, 1);
        search->time = search->purged = search->began = DT_NO_VALUE;
        g_hash_table_insert(literals->of_nodes, node, search);
    }
    return search;
}

static bool is_recent(int64_t cause, int64_t now) {
    return cause != DT_NO_VALUE && now - cause <= CAUSED_NS;
}

static bool changes_terms(const char *function) {
    return strcmp(function, "persistent_term:put/2") == 0 ||
           strcmp(function, "persistent_term:erase/1") == 0;
}

static void suspect(struct search *search, struct dt_actor *actor, bool is_put, int64_t time) {
    bool was_put = search->is_put && is_recent(search->time, time), is_same = actor == search->by;

    if (was_put && !is_put && !is_same)
        return;
    search->is_put = is_put || (was_put && is_same);
    search->time = time;
    if (is_same)
        return;
    dt_actor_drop(search->by);
    search->by = dt_actor_keep(actor);
}

static void begin(struct search *search, int64_t time) {
    bool is_known = is_recent(search->time, time);

    search->began = time;
    search->cause = is_known && search->is_put        ? dt_by_put
                    : is_recent(search->purged, time) ? dt_by_purge
                                                      : dt_by_last;
    dt_actor_drop(search->cause_by);
    search->cause_by = is_known ? dt_actor_keep(search->by) : NULL;
}

static void end(struct dt_literals *literals, struct search *search, struct dt_actor *collector,
                int64_t time) {
    struct dt_pair *row;

    if (search->began == DT_NO_VALUE)
        return;
    row = dt_pairs_row(&literals->searches, search->cause_by, collector, search->cause);
    row->count++;
    dt_quantiles_add(&row->took, (uint64_t)(time - search->began));
    search->began = DT_NO_VALUE;
}

static bool is_collector(const struct dt_process *process) {
    return strcmp(process->initial, "erts_literal_area_collector:start/0") == 0;
}

static void ran(struct dt_literals *literals, struct dt_actor *actor, const struct dt_interval *i) {
    bool begins = strcmp(i->in, trapped) == 0;
    bool ends = strcmp(i->in, "erts_literal_area_collector:release_area_switch/0") == 0;

    if ((!begins && !ends) || !is_collector(i->process))
        return;
    struct search *search = search_of(literals, actor->node);
    end(literals, search, actor, i->begin);
    if (begins)
        begin(search, i->begin);
}

void dt_literals_interval(struct dt_literals *literals, struct dt_actor *actor,
                          const struct dt_interval *i) {
    if (i->state == DT_STATE_RUNNING)
        ran(literals, actor, i);
    if (i->state != DT_STATE_WAITING && i->state != DT_STATE_RUNNABLE)
        return;
    bool is_put = changes_terms(i->out);
    if ((is_put || strcmp(i->out, trapped) == 0) && !is_collector(i->process))
        suspect(search_of(literals, actor->node), actor, is_put, i->end);
}

static bool is_purger(const struct dt_process *process) {
    return process && strcmp(process->name, "erts_code_purger") == 0;
}

void dt_literals_sent(struct dt_literals *literals, struct dt_seen_node *node,
                      const struct dt_message *m) {
    if (is_purger(m->to) || is_purger(m->from))
        search_of(literals, node)->purged = m->sent;
}

void dt_literals_called(struct dt_literals *literals, struct dt_actor *actor, const char *function,
                        int64_t time) {
    if (changes_terms(function))
        suspect(search_of(literals, actor->node), actor, true, time);
}
