/* Crashes, in loops and by kind. Each crash belongs to one finding. */
#include <string.h>

#include "shared/arrays.h"
#include "shared/amounts.h"
#include "shared/term.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"

/* Crashes that one finding reports: those of a loop, or those of processes with the same initial
   call and reason. */
struct crashes {
    const struct dt_lives_row *loop; /* NULL: no loop */
    const struct dt_listed *first;   /* NULL: no crash is listed */
    char *reason;                    /* folded */
    uint64_t count, taken_down;
    uint64_t purged;  /* killed by a purge, and not counted */
    bool differs;     /* the reasons are equal only if folded */
    bool are_several; /* the reasons differ even if folded */
    bool was_restarted;
};

static void crashes_free(void *data) {
    struct crashes *crashes = data;

    g_free(crashes->reason);
    g_free(crashes);
}

/* Linked processes that ended with it. Ports do not count: they always end with their owner. */
static uint64_t taken_down(const struct dt_listed *crash) {
    uint64_t n = 0;

    for (unsigned i = 0; i < crash->linked->len; i++) {
        const struct dt_actor *linked = g_ptr_array_index(crash->linked, i);

        n += linked->kind == DT_PROCESS && linked->ended != DT_NO_VALUE &&
             linked->ended >= crash->time &&
             linked->ended - crash->time <= dt_limits.crashes.together;
    }
    return n;
}

static bool was_restarted(struct dt_summary *summary, const struct dt_listed *crash) {
    const struct dt_lives_row *row = dt_lives_of(&summary->lives, crash->actor);

    return row && row->last_start != DT_NO_VALUE && row->last_start >= crash->time;
}

static void note(struct dt_summary *summary, struct crashes *crashes, const struct dt_listed *crash,
                 const char *reason) {
    if (!crashes->first) {
        crashes->first = crash;
        crashes->reason = g_strdup(reason);
    }
    crashes->count++;
    crashes->taken_down += taken_down(crash);
    crashes->differs |= strcmp(crashes->first->text, crash->text) != 0;
    crashes->are_several |= strcmp(crashes->reason, reason) != 0;
    crashes->was_restarted |= was_restarted(summary, crash);
}

static const char *reason_of(const struct crashes *crashes) {
    return crashes->differs ? crashes->reason : crashes->first->text;
}

/* -- Loops ------------------------------------------------------------------------------ */

bool dt_is_restarted(const struct dt_lives_row *row) {
    uint64_t least = dt_limits.restarts.crashes;

    return row->kind == DT_PROCESS && row->parent && row->crashed >= least &&
           row->restarted >= least &&
           dt_is_share((int64_t)row->crashed, (int64_t)row->started, dt_limits.restarts.share);
}

static int most_crashes_first(const void *a, const void *b) {
    const struct dt_lives_row *x = *(struct dt_lives_row *const *)a;
    const struct dt_lives_row *y = *(struct dt_lives_row *const *)b;
    int by = dt_compare((int64_t)y->crashed, (int64_t)x->crashed);

    by = by ? by : strcmp(x->what, y->what);
    return by ? by : dt_compare((int64_t)x->example->number, (int64_t)y->example->number);
}

static GPtrArray *loops_of(const struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_rows_of(summary->lives.rows);
    GPtrArray *loops = g_ptr_array_new_with_free_func(crashes_free);

    g_ptr_array_sort(rows, most_crashes_first);
    for (unsigned i = 0; i < rows->len && loops->len < dt_limits.restarts.per_rule; i++) {
        const struct dt_lives_row *row = g_ptr_array_index(rows, i);

        if (!dt_is_restarted(row))
            continue;
        struct crashes *loop = g_new0(struct crashes, 1);
        loop->loop = row;
        g_ptr_array_add(loops, loop);
    }
    return loops;
}

/* Also a crash of a process whose start, and thus its parent, is not in the recording. */
static bool is_of(const struct dt_lives_row *row, const struct dt_lives_row *of,
                  const struct dt_listed *crash) {
    return row == of || (!crash->actor->parent && *of->what && crash->node == of->example->node &&
                         strcmp(crash->actor->name, of->what) == 0);
}

static struct crashes *loop_of(struct dt_summary *summary, GPtrArray *loops,
                               const struct dt_listed *crash) {
    const struct dt_lives_row *row = dt_lives_of(&summary->lives, crash->actor);

    for (unsigned i = 0; i < loops->len; i++) {
        struct crashes *loop = g_ptr_array_index(loops, i);

        if (is_of(row, loop->loop, crash))
            return loop;
    }
    return NULL;
}

static void add_loop(struct dt_summary *summary, const struct crashes *loop) {
    const struct dt_lives_row *row = loop->loop;
    g_autofree char *parent = dt_actor_show_where(row->parent);

    if (loop->purged && !loop->count)
        return;
    dt_find(summary, DT_RULE_restarts, DT_HIGH, row->example,
            "%s restarted %" PRIu64 " times in %s by %s%s%s%s",
            *row->what ? row->what : "processes", row->restarted,
            dt_show_ns(dt_recorded(summary)).text, parent, loop->first ? ": " : "",
            loop->first ? reason_of(loop) : "", loop->are_several ? ", and other reasons" : "");
}

/* -- Kinds ------------------------------------------------------------------------------ */

static struct crashes *kind_of(GHashTable *by_key, GPtrArray *kinds, const struct dt_listed *crash,
                               const char *reason) {
    const char *initial = dt_actor_show(dt_actor_kind(crash->actor));
    g_autofree char *key = g_strdup_printf("%s %s", initial, reason);
    struct crashes *kind = g_hash_table_lookup(by_key, key);

    if (!kind) {
        kind = g_new0(struct crashes, 1);
        g_hash_table_insert(by_key, g_steal_pointer(&key), kind);
        g_ptr_array_add(kinds, kind);
    }
    return kind;
}

/* First those that were restarted or took others down, then by number; equal ones by time. */
static int worst_first(const void *a, const void *b) {
    const struct crashes *x = *(struct crashes *const *)a, *y = *(struct crashes *const *)b;
    int by = (y->was_restarted || y->taken_down) - (x->was_restarted || x->taken_down);

    return by ? by : dt_compare((int64_t)y->count, (int64_t)x->count);
}

static void add_kind(struct dt_summary *summary, const struct crashes *kind) {
    struct dt_actor *actor = kind->first->actor;
    g_autofree char *shown = dt_actor_show_where(actor);
    g_autoptr(GString) text = g_string_new(shown);

    if (kind->count > 1)
        g_string_append_printf(text, " and %" PRIu64 " more%s", kind->count - 1,
                               *actor->initial ? " with the same initial call" : "");
    g_string_append_printf(text, " crashed: %s", reason_of(kind));
    if (kind->taken_down)
        g_string_append_printf(text, "; %" PRIu64 " linked process%s ended with %s",
                               kind->taken_down, kind->taken_down == 1 ? "" : "es",
                               kind->count > 1 ? "them" : "it");
    dt_find(summary, DT_RULE_crashes, DT_HIGH, actor, "%s", text->str);
}

static void add_kinds(struct dt_summary *summary, GPtrArray *kinds) {
    uint64_t most = dt_limits.crashes.per_rule;

    g_ptr_array_sort(kinds, worst_first);
    for (unsigned i = 0; i < kinds->len && i < most; i++)
        add_kind(summary, g_ptr_array_index(kinds, i));
    if (kinds->len > most)
        dt_find(summary, DT_RULE_crashes, DT_MEDIUM, NULL, "%" PRIu64 " more kind%s of crashes",
                kinds->len - most, kinds->len - most == 1 ? "" : "s");
}

/* -- Purges ----------------------------------------------------------------------------- */

/* The processes that purges of one module killed. */
struct purged {
    const struct dt_listed *first;
    uint64_t count;
};

static int most_killed_first(const void *a, const void *b) {
    const struct purged *x = *(struct purged *const *)a, *y = *(struct purged *const *)b;
    int by = dt_compare((int64_t)y->count, (int64_t)x->count);

    return by ? by : dt_compare(x->first->time, y->first->time);
}

static void add_purges(struct dt_summary *summary) {
    g_autoptr(GHashTable) by_module = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    const GArray *killed = summary->purges.killed.rows;

    for (unsigned i = 0; i < killed->len; i++) {
        const struct dt_listed *row = &g_array_index(killed, struct dt_listed, i);
        struct purged *purged = g_hash_table_lookup(by_module, row->text);

        if (!purged) {
            purged = g_new0(struct purged, 1);
            purged->first = row;
            g_hash_table_insert(by_module, row->text, purged);
        }
        purged->count++;
    }
    g_autoptr(GPtrArray) rows = dt_rows_of(by_module);
    g_ptr_array_sort(rows, most_killed_first);
    for (unsigned i = 0; i < rows->len && i < dt_limits.purges.per_rule; i++) {
        const struct purged *purged = g_ptr_array_index(rows, i);
        g_autofree char *first = dt_actor_show_where(purged->first->actor);
        g_autofree char *more =
            purged->count > 1 ? g_strdup_printf(" and %" PRIu64 " more", purged->count - 1) : NULL;

        dt_find(summary, DT_RULE_purges, DT_HIGH, purged->first->actor,
                "a purge of the module %s killed %s%s, which ran its old code (inferred)",
                purged->first->text, first, more ? more : "");
    }
}

/* -- Supervisors ------------------------------------------------------------------------ */

/* Whether a process with this name or, without one, of the same kind and parent started later. */
static bool came_back(const GPtrArray *actors, const struct dt_actor *gone) {
    for (unsigned i = 0; i < actors->len; i++) {
        const struct dt_actor *actor = g_ptr_array_index(actors, i);
        bool is_same = *gone->name ? strcmp(actor->name, gone->name) == 0
                                   : gone->parent && actor->parent == gone->parent &&
                                         strcmp(actor->initial, gone->initial) == 0;

        if (is_same && actor->node == gone->node && actor->began != DT_NO_VALUE &&
            actor->began >= gone->ended)
            return true;
    }
    return false;
}

/* The last crash of a child before the supervisor gave up. */
static const struct dt_listed *last_crash(const struct dt_summary *summary,
                                          const struct dt_listed *gave_up) {
    const struct dt_listed *last = NULL;

    for (unsigned i = 0; i < summary->crashes.rows->len; i++) {
        const struct dt_listed *crash = &g_array_index(summary->crashes.rows, struct dt_listed, i);

        if (crash->actor->parent == gave_up->actor && crash->time <= gave_up->time)
            last = crash;
    }
    return last;
}

static bool was_terminated(const struct dt_actor *actor, const struct dt_listed *gave_up) {
    return actor->parent == gave_up->actor && actor->ended != DT_NO_VALUE &&
           actor->ended >= gave_up->time && !actor->activity->has_crashed;
}

/* Whether the recording goes on long enough to show that it was started again. */
static bool is_followed(const struct dt_summary *summary, const struct dt_actor *gone) {
    return gone->ended != DT_NO_VALUE &&
           summary->period.end - gone->ended >= dt_limits.crashes.together;
}

/* "; terminated fs_pay_ledger and 2 more, which are not back". */
static void put_terminated(GString *text, const struct dt_summary *summary, const GPtrArray *actors,
                           const struct dt_listed *gave_up) {
    uint64_t n = 0, back = 0;

    for (unsigned i = 0; i < actors->len; i++) {
        const struct dt_actor *actor = g_ptr_array_index(actors, i);

        if (!was_terminated(actor, gave_up))
            continue;
        back += came_back(actors, actor);
        if (n++ < dt_limits.gave_up.names)
            g_string_append_printf(text, "%s%s", n == 1 ? "; terminated " : ", ",
                                   dt_actor_show(actor));
    }
    if (n > dt_limits.gave_up.names)
        g_string_append_printf(text, " and %" PRIu64 " more", n - dt_limits.gave_up.names);
    if (n && !back && is_followed(summary, gave_up->actor))
        g_string_append(text, n == 1 ? ", which is not back" : ", none of which is back");
}

static void supervisors(struct dt_summary *summary) {
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);

    for (unsigned i = 0; i < summary->gave_up.rows->len && i < dt_limits.gave_up.per_rule; i++) {
        const struct dt_listed *row = &g_array_index(summary->gave_up.rows, struct dt_listed, i);
        const struct dt_listed *crash = last_crash(summary, row);
        g_autofree char *shown = dt_actor_show_where(row->actor);
        g_autoptr(GString) text = g_string_new(shown);
        bool is_back = row->actor->ended != DT_NO_VALUE && came_back(actors, row->actor);

        g_string_append_printf(text, " gave up %s into the recording",
                               dt_show_ns(row->time - summary->period.begin).text);
        if (crash)
            g_string_append_printf(text, ": its child %s crashed too often, last with %s",
                                   dt_actor_show(crash->actor), crash->text);
        put_terminated(text, summary, actors, row);
        if (is_back)
            g_string_append(text, "; it was started again");
        else if (is_followed(summary, row->actor))
            g_string_append(text, "; it was not started again");
        dt_find(summary, DT_RULE_gave_up, is_back ? DT_MEDIUM : DT_HIGH, row->actor, "%s",
                text->str);
    }
}

void dt_find_in_exits(struct dt_summary *summary) {
    g_autoptr(GPtrArray) loops = loops_of(summary);
    g_autoptr(GHashTable) by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) kinds = g_ptr_array_new_with_free_func(crashes_free);

    supervisors(summary);
    for (unsigned i = 0; i < summary->crashes.rows->len; i++) {
        const struct dt_listed *crash = &g_array_index(summary->crashes.rows, struct dt_listed, i);
        g_autofree char *reason = dt_term_fold(crash->text);
        struct crashes *loop = loop_of(summary, loops, crash);

        if (dt_purges_killed(&summary->purges, crash->actor)) {
            if (loop)
                loop->purged++;
            continue;
        }
        note(summary, loop ? loop : kind_of(by_key, kinds, crash, reason), crash, reason);
    }
    add_purges(summary);
    for (unsigned i = 0; i < loops->len; i++)
        add_loop(summary, g_ptr_array_index(loops, i));
    add_kinds(summary, kinds);
}
