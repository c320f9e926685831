/* Crashes, by their kinds. */
#include <string.h>

#include "shared/term.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"

/* Crashes of processes with the same initial call, for the same reason. */
struct crash_kind {
    const struct dt_listed *first;
    char *reason; /* folded */
    uint64_t count, taken_down;
    bool differs; /* the reasons are equal only when they are folded */
    bool was_restarted;
};

static void kind_free(gpointer of) {
    struct crash_kind *kind = of;
    g_free(kind->reason);
    g_free(kind);
}

/* Processes that were linked to it and ended with it; its ports always do. */
static uint64_t taken_down(const struct dt_listed *crash) {
    uint64_t n = 0;
    for (guint i = 0; i < crash->linked->len; i++) {
        const struct dt_who *linked = g_ptr_array_index(crash->linked, i);
        n += linked->kind == DT_PROCESS && linked->ended != DT_NO_VALUE &&
             linked->ended >= crash->time &&
             linked->ended - crash->time <= dt_limits.crashes.together;
    }
    return n;
}

static bool was_restarted(struct dt_summary *summary, const struct dt_listed *crash) {
    const struct dt_lives_row *row = dt_lives_of(&summary->lives, &summary->whos, crash->who);
    return row && row->last_start != DT_NO_VALUE && row->last_start >= crash->time;
}

static void add(struct dt_summary *summary, GHashTable *by_key, GPtrArray *kinds,
                const struct dt_listed *crash) {
    g_autofree char *reason = dt_term_fold(crash->text);
    const char *initial = dt_who_show(dt_who_kind(&summary->whos, crash->who));
    g_autofree char *key = g_strdup_printf("%s %s", initial, reason);
    struct crash_kind *kind = g_hash_table_lookup(by_key, key);
    if (!kind) {
        kind = g_new0(struct crash_kind, 1);
        kind->first = crash;
        kind->reason = g_steal_pointer(&reason);
        g_hash_table_insert(by_key, g_steal_pointer(&key), kind);
        g_ptr_array_add(kinds, kind);
    }
    kind->count++;
    kind->taken_down += taken_down(crash);
    kind->differs |= strcmp(kind->first->text, crash->text) != 0;
    kind->was_restarted |= was_restarted(summary, crash);
}

/* What was restarted or took others down first, then by number; equal ones by time. */
static gint worst_first(gconstpointer a, gconstpointer b) {
    const struct crash_kind *x = *(struct crash_kind *const *)a,
                            *y = *(struct crash_kind *const *)b;
    int by = (y->was_restarted || y->taken_down) - (x->was_restarted || x->taken_down);
    return by ? by : dt_compare((int64_t)y->count, (int64_t)x->count);
}

static void tell(struct dt_summary *summary, const struct crash_kind *kind) {
    struct dt_who *who = kind->first->who;
    g_autofree char *shown = dt_who_show_where(&summary->whos, who);
    g_autoptr(GString) text = g_string_new(shown);
    if (kind->count > 1)
        g_string_append_printf(text, " and %" G_GUINT64_FORMAT " more%s", kind->count - 1,
                               *who->initial ? " with the same initial call" : "");
    g_string_append_printf(text, " crashed: %s", kind->differs ? kind->reason : kind->first->text);
    if (kind->taken_down)
        g_string_append_printf(text, "; %" G_GUINT64_FORMAT " linked process%s ended with %s",
                               kind->taken_down, kind->taken_down == 1 ? "" : "es",
                               kind->count > 1 ? "them" : "it");
    dt_find(summary, DT_RULE_crashes, DT_HIGH, who, "%s", text->str);
}

void dt_find_in_exits(struct dt_summary *summary) {
    g_autoptr(GHashTable) by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) kinds = g_ptr_array_new_with_free_func(kind_free);
    for (guint i = 0; i < summary->crashes.rows->len; i++)
        add(summary, by_key, kinds, &g_array_index(summary->crashes.rows, struct dt_listed, i));
    g_ptr_array_sort(kinds, worst_first);
    guint most = (guint)dt_limits.crashes.per_rule;
    for (guint i = 0; i < kinds->len && i < most; i++)
        tell(summary, g_ptr_array_index(kinds, i));
    if (kinds->len > most)
        dt_find(summary, DT_RULE_crashes, DT_MEDIUM, NULL, "%u more kind%s of crashes",
                kinds->len - most, kinds->len - most == 1 ? "" : "s");
}
