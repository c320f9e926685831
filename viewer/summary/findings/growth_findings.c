/* What only grows: numbers that have a limit in the VM, ETS tables, and the memory of the node. */
#include <string.h>

#include "shared/amounts.h"
#include "shared/arrays.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"
#include "summary/sorted_rows.h"

/* Percent: of the growth, for which a culprit has to account; of its processes, which have to
   remain if some are unknown; of a limit. */
enum { HALF = 50, REMAIN = 90, ALMOST_FULL = 98 };

/* A number that must not reach a limit. */
struct limited {
    enum dt_rule_number rule;
    enum dt_kind kind; /* of what is counted; DT_FOREIGN: neither processes nor ports */
    const char *noun, *counter, *limit; /* the names of two counters */
    uint64_t grown;
    int64_t full, soon, within;
};

static const struct dt_series *series_of(const struct dt_summary *summary,
                                         struct dt_seen_node *node, const char *counter) {
    const struct dt_named *row = dt_names_find(&summary->counters, node, counter);

    return row ? row->series : NULL;
}

/* " of shop@host" if there are several nodes. */
static char *of_node(const struct dt_summary *summary, const struct dt_seen_node *node) {
    bool are_several = dt_seen_nodes_are_several(&summary->actors.nodes);

    return g_strconcat(are_several ? " of " : "", are_several ? dt_seen_node_name(node) : "", NULL);
}

/* -- Numbers with a limit --------------------------------------------------------------- */

/* "45 s", "9 minutes", "3 hours". */
static char *show_left(double s) {
    static const struct {
        double s;
        const char *noun;
    } units[] = {{3600, "hour"}, {60, "minute"}};

    for (size_t i = 0; i < G_N_ELEMENTS(units); i++)
        if (s >= 2 * units[i].s)
            return g_strdup_printf("%.0f %ss", s / units[i].s, units[i].noun);
    return g_strdup_printf("%.0f s", s);
}

static bool is_of(const struct dt_lives_row *row, enum dt_kind kind,
                  const struct dt_seen_node *node) {
    return row->kind == kind && row->example->node == node && row->started > row->ended;
}

/* By how much a number that grows at this rate grew while processes were traced. */
static int64_t grown_while_traced(const struct dt_seen_node *node,
                                  const struct dt_series_growth *growth) {
    int64_t traced = node->last - node->first - node->untraced;

    return (int64_t)(growth->per_s * (double)traced / DT_NS_PER_S);
}

/* The kind and parent of which most remain, if these are at least half of the growth. While
   processes were not traced, others may have started, and these may have ended: then only those
   that hardly ever end count. */
static const struct dt_lives_row *most_of(const struct dt_summary *summary, enum dt_kind kind,
                                          const struct dt_seen_node *node,
                                          const struct dt_series_growth *growth) {
    g_autoptr(GPtrArray) rows = dt_rows_of(summary->lives.rows);
    const struct dt_lives_row *most = NULL;
    int64_t grown =
        node->was_untraced ? grown_while_traced(node, growth) : growth->to - growth->from;

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_lives_row *row = g_ptr_array_index(rows, i);

        if (is_of(row, kind, node) &&
            (!most || row->started - row->ended > most->started - most->ended))
            most = row;
    }
    if (!most || (node->was_untraced && !dt_is_share((int64_t)(most->started - most->ended),
                                                     (int64_t)most->started, REMAIN)))
        return NULL;
    return dt_is_share((int64_t)(most->started - most->ended), grown, HALF) ? most : NULL;
}

/* ", which <0.91.0> shop called 2700 times" if that process has called this server, at least half
   as often as it has started a process. */
static char *show_caller(const struct dt_summary *summary, const struct dt_lives_row *most) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&summary->server_calls);

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);

        if (!row->from || row->to != most->parent ||
            !dt_is_share((int64_t)row->count, (int64_t)most->started, HALF))
            continue;
        g_autofree char *caller = dt_actor_show_where(row->from);
        return g_strdup_printf(", which %s called %" PRIu64 " times", caller, row->count);
    }
    return g_strdup("");
}

/* "; most are shop:init/1, started by <0.90.0> shop_sup: 2700 started, 3 ended". The name of a port
   has its peer. */
static char *show_most(const struct dt_summary *summary, const struct dt_lives_row *most,
                       const char *noun) {
    if (!most)
        return g_strdup("");
    g_autofree char *parent = dt_actor_show_where(most->parent);
    g_autofree char *caller = show_caller(summary, most);
    bool is_accepted = most->parent && most->parent->kind == DT_PORT;
    bool is_port = most->kind == DT_PORT;
    g_autofree char *example = is_port ? dt_actor_show_where(most->example) : NULL;
    return g_strdup_printf("; most are %s, %s by %s%s: %" PRIu64 " %s, %" PRIu64 " %s%s%s",
                           *most->what ? most->what : noun,
                           is_accepted ? "accepted"
                           : is_port   ? "opened"
                                       : "started",
                           parent, caller, most->started, is_port ? "opened" : "started",
                           most->ended, is_port ? "closed" : "ended",
                           is_port ? ", for example " : "", is_port ? example : "");
}

/* "; most are sockets of <0.90.0> uploads: 450 more, 900 in all, for example tcp ...". */
static char *show_sockets(const struct dt_socket_owner *row, const struct dt_series_growth *of) {
    g_autofree char *owner = dt_actor_show_where(row->owner);
    return g_strdup_printf(
        "; most are sockets of %s: %" PRId64 " more, %" PRId64 " in all, for example %s", owner,
        dt_series_grown(&row->sockets, of), dt_series_last(&row->sockets), row->example);
}

/* Why a number grows. */
struct culprit {
    struct dt_actor *actor; /* NULL: unknown */
    char *shown;            /* to be freed */
};

/* An open file is a port, a socket of the module `socket`, or a file, which has a process unless it
   is raw. */
static struct culprit culprit_of(const struct dt_summary *summary, struct dt_seen_node *node,
                                 const struct limited *of, const struct dt_series_growth *growth) {
    int64_t grown = growth->to - growth->from;
    const struct dt_lives_row *most =
        of->kind == DT_FOREIGN ? NULL : most_of(summary, of->kind, node, growth);

    if (most || of->rule != DT_RULE_file_limit)
        return (struct culprit){most ? most->parent : NULL, show_most(summary, most, of->noun)};
    const struct dt_socket_owner *row =
        dt_socket_owners_growing(&summary->socket_owners, node, growth, (grown + 1) / 2);
    if (row)
        return (struct culprit){row->owner, show_sockets(row, growth)};
    most = most_of(summary, DT_PROCESS, node, growth);
    g_autofree char *processes = show_most(summary, most, "processes");
    return (struct culprit){most ? most->parent : NULL,
                            g_strconcat(most ? "; processes grew as well" : "", processes, NULL)};
}

/* A node that starts or is upgraded loads modules, which bring their atoms. */
static bool are_of_code(const struct dt_summary *summary, struct dt_seen_node *node,
                        const struct dt_series_growth *atoms) {
    const struct dt_series *code = series_of(summary, node, "memory_code");

    return code &&
           dt_series_grown(code, atoms) / dt_limits.atom_limit.code >= atoms->to - atoms->from;
}

/* How a number grows, and the seconds until it is full. */
struct filling {
    struct dt_series_growth growth;
    int64_t limit;
    double left;
};

static bool is_filling(const struct dt_summary *summary, struct dt_seen_node *node,
                       const struct limited *of, struct filling *filling) {
    const struct dt_series *series = series_of(summary, node, of->counter);
    const struct dt_named *limit = dt_names_find(&summary->counters, node, of->limit);
    struct dt_series_growth *growth = &filling->growth;

    if (!series || !limit || !dt_series_grows(series, summary->period.end, growth) ||
        (uint64_t)(growth->to - growth->from) < of->grown || growth->to > limit->last)
        return false;
    filling->limit = limit->last;
    filling->left = (double)(limit->last - growth->to) / growth->per_s;
    return filling->left * DT_NS_PER_S <= (double)of->within &&
           (of->rule != DT_RULE_atom_limit || !are_of_code(summary, node, growth));
}

static void fills(struct dt_summary *summary, struct dt_seen_node *node, const struct limited *of,
                  const struct filling *filling) {
    const struct dt_series_growth *growth = &filling->growth;
    struct culprit culprit = culprit_of(summary, node, of, growth);
    g_autofree char *shown_node = of_node(summary, node);
    g_autofree char *shown_culprit = culprit.shown;
    g_autofree char *shown_left = show_left(filling->left);
    dt_find(summary, of->rule,
            filling->left * DT_NS_PER_S <= (double)of->soon ? DT_HIGH : DT_MEDIUM, culprit.actor,
            "%s%s: %.0f more per second for %s, %" PRId64 " of at most %" PRId64
            ": at this rate, full in %s%s",
            of->noun, shown_node, growth->per_s, dt_show_ns(growth->end - growth->begin).text,
            growth->to, filling->limit, shown_left, shown_culprit);
}

static void full(struct dt_summary *summary, struct dt_seen_node *node, const struct limited *of) {
    const struct dt_named *number = dt_names_find(&summary->counters, node, of->counter);
    const struct dt_named *limit = dt_names_find(&summary->counters, node, of->limit);

    if (!number || !limit || number->last > limit->last ||
        !dt_is_share(number->last, limit->last, of->full))
        return;
    g_autofree char *shown_node = of_node(summary, node);
    bool is_almost = dt_is_share(number->last, limit->last, ALMOST_FULL);
    dt_find(summary, of->rule, is_almost ? DT_HIGH : DT_MEDIUM, NULL,
            "%s%s: %" PRId64 " of at most %" PRId64, of->noun, shown_node, number->last,
            limit->last);
}

/* Of two numbers that grow for the same reason, the one that is full first is reported. */
static void limited(struct dt_summary *summary, struct dt_seen_node *node, const struct limited *of,
                    const struct limited *related) {
    struct filling filling, other;

    if (!is_filling(summary, node, of, &filling))
        full(summary, node, of);
    else if (!related || !is_filling(summary, node, related, &other) || filling.left <= other.left)
        fills(summary, node, of, &filling);
}

/* -- Tables ----------------------------------------------------------------------------- */

static bool is_growing(const struct dt_summary *summary, const struct dt_ets_table *table,
                       struct dt_series_growth *growth) {
    return dt_series_grows(&table->memory, summary->period.end, growth) &&
           growth->to >= (int64_t)dt_limits.growing_table.memory &&
           growth->per_s >= dt_limits.growing_table.per_s &&
           dt_is_share(growth->to - growth->from, growth->from, dt_limits.growing_table.share);
}

static void tables(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_ets_tables_by_memory(&summary->ets_tables);
    uint64_t left = dt_limits.growing_table.per_rule;

    for (unsigned i = 0; i < rows->len && left > 0; i++) {
        const struct dt_ets_table *table = g_ptr_array_index(rows, i);
        struct dt_series_growth growth;

        if (!is_growing(summary, table, &growth))
            continue;
        left--;
        g_autofree char *owner = dt_actor_show_where(table->owner);
        g_autofree char *objects = dt_counted(table->objects, "object");
        dt_find(summary, DT_RULE_growing_table, DT_MEDIUM, table->owner,
                "%s: its ETS table %s grew by %s per second for %s, to %s (%s)", owner, table->name,
                dt_show_bytes((uint64_t)growth.per_s).text,
                dt_show_ns(growth.end - growth.begin).text, dt_show_bytes((uint64_t)growth.to).text,
                objects);
    }
}

/* -- Memory ----------------------------------------------------------------------------- */

/* A part of the memory, and the findings that explain its growth. Code is loaded by a node that
   starts or is upgraded. */
static const struct part {
    const char *counter, *noun;
    enum dt_rule_number causes[5];
    unsigned causes_count;
} parts[] = {
    {"memory_processes",
     "processes",
     {DT_RULE_growing_queue, DT_RULE_growing_heap, DT_RULE_growing_off_heap, DT_RULE_large_process,
      DT_RULE_process_limit},
     5},
    {"memory_binary", "binaries", {DT_RULE_growing_queue}, 1},
    {"memory_ets", "ETS tables", {DT_RULE_growing_table}, 1},
    {"memory_atom", "atoms", {DT_RULE_atom_limit}, 1},
};

static bool is_explained(const struct dt_summary *summary, const struct dt_seen_node *node,
                         const struct part *part) {
    for (unsigned i = 0; i < summary->findings->len; i++) {
        const struct dt_finding *found = &g_array_index(summary->findings, struct dt_finding, i);

        for (unsigned n = 0; n < part->causes_count; n++)
            if (found->rule == &dt_rules[part->causes[n]] &&
                (!found->actor || found->actor->node == node))
                return true;
    }
    return false;
}

/* The part that accounts for at least half of the growth, or NULL. */
static const struct part *part_of(const struct dt_summary *summary, struct dt_seen_node *node,
                                  const struct dt_series_growth *growth, int64_t *grown) {
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        const struct dt_series *series = series_of(summary, node, parts[i].counter);

        *grown = series ? dt_series_grown(series, growth) : 0;
        if (dt_is_share(*grown, growth->to - growth->from, HALF))
            return &parts[i];
    }
    return NULL;
}

/* The process that refers to at least half of the binaries of the node, or NULL. */
static struct dt_actor *holder_of_binaries(const struct dt_summary *summary,
                                           struct dt_seen_node *node) {
    const struct dt_named *all = dt_names_find(&summary->counters, node, "memory_binary");
    g_autoptr(GPtrArray) actors = dt_top_sorted(&summary->processes, dt_top_by_binaries);

    for (unsigned i = 0; all && i < actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);

        if (actor->node == node && actor->ended == DT_NO_VALUE)
            return dt_is_share(dt_top_by_binaries(actor), all->last, HALF) ? actor : NULL;
    }
    return NULL;
}

/* "; most of it is binaries (28 MB more), of which <0.90.0> uploads refers to 45 MB". */
static char *show_part(const struct part *part, int64_t grown, const struct dt_actor *holder) {
    if (!part)
        return g_strdup("");
    g_autofree char *name = holder ? dt_actor_show_where(holder) : NULL;
    return g_strdup_printf("; most of it is %s (%s more)%s%s%s%s", part->noun,
                           dt_show_bytes((uint64_t)grown).text, holder ? ", of which " : "",
                           holder ? name : "", holder ? " refers to " : "",
                           holder ? dt_show_bytes((uint64_t)dt_top_by_binaries(holder)).text : "");
}

/* " of at most 512 MB: at this rate, full in 45 s" if that is soon enough. */
static char *show_limit(const struct dt_summary *summary, struct dt_seen_node *node,
                        const struct dt_series_growth *growth) {
    const struct dt_named *limit = dt_names_find(&summary->counters, node, "memory_limit");
    double left = limit ? (double)(limit->last - growth->to) / growth->per_s : -1;

    if (left < 0 || left * DT_NS_PER_S > (double)dt_limits.growing_memory.within)
        return g_strdup("");
    g_autofree char *shown_left = show_left(left);
    return g_strdup_printf(" of at most %s: at this rate, full in %s",
                           dt_show_bytes((uint64_t)limit->last).text, shown_left);
}

static void memory(struct dt_summary *summary, struct dt_seen_node *node) {
    const struct dt_series *series = series_of(summary, node, "memory_total");
    struct dt_series_growth growth;
    int64_t in_part;

    if (!series || !dt_series_grows(series, summary->period.end, &growth) ||
        growth.per_s < dt_limits.growing_memory.per_s ||
        growth.to - growth.from < (int64_t)dt_limits.growing_memory.grown ||
        !dt_is_share(growth.to - growth.from, growth.from, dt_limits.growing_memory.share))
        return;
    const struct dt_series *code = series_of(summary, node, "memory_code");
    if (code && dt_is_share(dt_series_grown(code, &growth), growth.to - growth.from, HALF))
        return;
    const struct part *part = part_of(summary, node, &growth, &in_part);
    if (part && is_explained(summary, node, part))
        return;
    bool are_binaries = part && strcmp(part->counter, "memory_binary") == 0;
    struct dt_actor *holder = are_binaries ? holder_of_binaries(summary, node) : NULL;
    g_autofree char *shown_node = of_node(summary, node);
    g_autofree char *shown_part = show_part(part, in_part, holder);
    g_autofree char *shown_limit = show_limit(summary, node, &growth);
    dt_find(summary, DT_RULE_growing_memory, DT_MEDIUM, holder,
            "the memory%s grew by %s per second for %s, to %s%s%s", shown_node,
            dt_show_bytes((uint64_t)growth.per_s).text, dt_show_ns(growth.end - growth.begin).text,
            dt_show_bytes((uint64_t)growth.to).text, shown_limit, shown_part);
}

void dt_find_in_growth(struct dt_summary *summary) {
#define LIMITED(rule, noun, counter, limit, kind)                                                  \
    {                                                                                              \
        DT_RULE_##rule, kind, noun, counter, limit, dt_limits.rule.grown, dt_limits.rule.full,     \
            dt_limits.rule.soon, dt_limits.rule.within                                             \
    }
    /* A socket is a port and an open file. */
    enum { PROCESSES, PORTS, FILES, ATOMS, NUMBERS };
    const struct limited all[] = {
        [PROCESSES] = LIMITED(process_limit, "processes", "processes", "process_limit", DT_PROCESS),
        [PORTS] = LIMITED(port_limit, "ports", "ports", "port_limit", DT_PORT),
        [FILES] = LIMITED(file_limit, "open files", "open_files", "open_files_limit", DT_PORT),
        [ATOMS] = LIMITED(atom_limit, "atoms", "atoms", "atom_limit", DT_FOREIGN),
    };
    const struct limited *related[NUMBERS] = {[PORTS] = &all[FILES], [FILES] = &all[PORTS]};
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);

    tables(summary);
    for (unsigned i = 0; i < nodes->len; i++) {
        for (size_t n = 0; n < NUMBERS; n++)
            limited(summary, g_ptr_array_index(nodes, i), &all[n], related[n]);
        memory(summary, g_ptr_array_index(nodes, i));
    }
}
