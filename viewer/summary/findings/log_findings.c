/* Errors and warnings of the node's log. */
#include <string.h>

#include "shared/arrays.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"

/* Bytes of a log line that a finding shows. */
enum { SHOWN = 160 };

/* Lines whose texts differ only in numbers. */
struct lines {
    const struct dt_listed *first;
    uint64_t count;
    bool is_alarm;
};

/* Without what differs from line to line: numbers, also those of pids, become 0. */
static char *shape_of(const char *text) {
    char *shape = g_strdup(text), *to = shape;

    for (const char *s = text; *s; s++)
        if (!g_ascii_isdigit(*s))
            *to++ = *s;
        else if (to == shape || to[-1] != '0')
            *to++ = '0';
    *to = 0;
    return shape;
}

/* An alarm that is set, not one that is cleared: RabbitMQ adds what is blocked "until this alarm
 * clears". */
static bool is_alarm(const char *text) {
    g_autofree char *lower = g_ascii_strdown(text, -1);

    return strstr(lower, "alarm") && !strstr(lower, "cleared");
}

static int by_count(const void *a, const void *b) {
    const struct lines *x = *(struct lines *const *)a, *y = *(struct lines *const *)b;
    int by = dt_compare((int64_t)y->count, (int64_t)x->count);

    by = by ? by : dt_compare(x->first->time, y->first->time);
    return by ? by : strcmp(x->first->text, y->first->text);
}

static bool is_error(const struct dt_listed *row) {
    return row->is_error;
}

static bool is_warning(const struct dt_listed *row) {
    return strcmp(row->word, "warning") == 0;
}

static GHashTable *lines_by_shape(const struct dt_summary *summary,
                                  bool (*is_wanted)(const struct dt_listed *row)) {
    GHashTable *by_shape = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    for (unsigned i = 0; i < summary->log.rows->len; i++) {
        const struct dt_listed *row = &g_array_index(summary->log.rows, struct dt_listed, i);

        if (!is_wanted(row))
            continue;
        g_autofree char *shape = shape_of(row->text);
        struct lines *lines = g_hash_table_lookup(by_shape, shape);
        if (!lines) {
            lines = g_new0(struct lines, 1);
            lines->first = row;
            lines->is_alarm = is_alarm(row->text);
            g_hash_table_insert(by_shape, g_steal_pointer(&shape), lines);
        }
        lines->count++;
    }
    return by_shape;
}

/* The process that logged the most errors, and how many. */
static struct dt_actor *loudest(const struct dt_summary *summary, uint64_t *lines) {
    g_autoptr(GHashTable) counts = g_hash_table_new(NULL, NULL);
    struct dt_actor *loudest = NULL;

    *lines = 0;
    for (unsigned i = 0; i < summary->log.rows->len; i++) {
        const struct dt_listed *row = &g_array_index(summary->log.rows, struct dt_listed, i);

        if (!row->is_error || !row->actor)
            continue;
        uint64_t count = GPOINTER_TO_SIZE(g_hash_table_lookup(counts, row->actor)) + 1;
        g_hash_table_insert(counts, row->actor, GSIZE_TO_POINTER(count));
        if (count > *lines) {
            *lines = count;
            loudest = row->actor;
        }
    }
    return loudest;
}

/* The errors of the most frequent shape, or the first error. */
static char *example_of(const struct dt_summary *summary) {
    g_autoptr(GHashTable) by_shape = lines_by_shape(summary, is_error);
    g_autoptr(GPtrArray) rows = dt_rows_of(by_shape);

    if (!rows->len)
        return g_strdup("");
    g_ptr_array_sort(rows, by_count);
    const struct lines *most = g_ptr_array_index(rows, 0);
    g_autofree char *text = dt_cut(most->first->text, SHOWN, "...");
    if (most->count == summary->log_errors)
        return g_strdup_printf(": %s", text);
    if (most->count == 1)
        return g_strdup_printf("; the first: %s", text);
    return g_strdup_printf("; %" PRIu64 " times: %s", most->count, text);
}

static void errors(struct dt_summary *summary) {
    if (!summary->log_errors)
        return;
    uint64_t lines;
    struct dt_actor *actor = loudest(summary, &lines);
    g_autofree char *name = dt_actor_show_where(actor);
    g_autoptr(GString) by = g_string_new(NULL);
    if (summary->log_errors == 1 && actor)
        g_string_printf(by, ", by %s", name);
    else if (lines == summary->log_errors)
        g_string_printf(by, ", all by %s", name);
    else if (lines > 1 && !summary->log.left_out)
        g_string_printf(by, ", %" PRIu64 " of them by %s", lines, name);
    g_autofree char *shown = dt_counted(summary->log_errors, "line");
    g_autofree char *example = example_of(summary);
    dt_find(summary, DT_RULE_log_errors, DT_MEDIUM, lines == summary->log_errors ? actor : NULL,
            "the log has %s of level error or above%s%s", shown, by->str, example);
}

static void report(struct dt_summary *summary, const struct lines *warning) {
    struct dt_actor *actor = warning->first->actor;
    g_autofree char *name = dt_actor_show_where(actor);
    g_autofree char *lines = dt_counted(warning->count, "warning");
    g_autofree char *text = dt_cut(warning->first->text, SHOWN, "...");

    dt_find(summary, warning->is_alarm ? DT_RULE_alarms : DT_RULE_warnings,
            warning->is_alarm ? DT_MEDIUM : DT_LOW, actor, "%s logged %s: %s", name, lines, text);
}

static void warnings(struct dt_summary *summary) {
    g_autoptr(GHashTable) by_shape = lines_by_shape(summary, is_warning);
    g_autoptr(GPtrArray) rows = dt_rows_of(by_shape);
    unsigned alarms = 0, others = 0;

    g_ptr_array_sort(rows, by_count);
    for (unsigned i = 0; i < rows->len; i++) {
        const struct lines *warning = g_ptr_array_index(rows, i);

        if (warning->is_alarm ? alarms++ < dt_limits.alarms.per_rule
                              : others++ < dt_limits.warnings.per_rule)
            report(summary, warning);
    }
}

void dt_find_in_log(struct dt_summary *summary) {
    errors(summary);
    warnings(summary);
}
