#include "summary/findings/rules.h"

const struct dt_limits dt_limits = {
#define LIMIT(name, number, unit, meaning) .name = (dt_##unit)(number)*DT_UNIT_##unit,
#define RULE(name, about, severity, looks_at, evidence, limits, why, next, example)                \
    .name = {limits},
#include "summary/findings/rules.def"
};

const struct dt_rule dt_rules[DT_RULES] = {
#define RULE(name, about, severity, looks_at, evidence, limits, why, next, example)                \
    [DT_RULE_##name] = {#name, #about, next},
#include "summary/findings/rules.def"
};

bool dt_is_own(const struct dt_actor *actor) {
    static const char prefix[] = "dyntrace_";
    const char *name = actor->process ? actor->process->name : actor->name;
    const char *initial = actor->process ? actor->process->initial : actor->initial;

    return g_str_has_prefix(name, prefix) || g_str_has_prefix(initial, prefix);
}

/* Findings about the processes of dyntrace itself are left out, except crashes. */
static bool is_left_out(enum dt_rule_number rule, const struct dt_actor *actor) {
    return actor && !actor->is_sum && rule != DT_RULE_crashes && rule != DT_RULE_restarts &&
           dt_is_own(actor);
}

void dt_find(struct dt_summary *summary, enum dt_rule_number rule, enum dt_severity severity,
             struct dt_actor *actor, const char *format, ...) {
    if (is_left_out(rule, actor))
        return;
    va_list args;
    va_start(args, format);
    struct dt_finding finding = {.severity = severity,
                                 .rule = &dt_rules[rule],
                                 .actor = dt_actor_keep(actor),
                                 .text = g_strdup_vprintf(format, args)};
    va_end(args);
    g_array_append_val(summary->findings, finding);
}

char *dt_counted(uint64_t number, const char *noun) {
    return g_strdup_printf("%" PRIu64 " %s%s", number, noun, number == 1 ? "" : "s");
}

bool dt_is_share(int64_t part, int64_t all, int64_t percent) {
    return all > 0 && (double)part * 100 >= (double)all * (double)percent;
}

int64_t dt_recorded(const struct dt_summary *summary) {
    return dt_summary_ns(summary) - dt_summary_untraced(summary);
}

const char *dt_recorded_words(const struct dt_summary *summary) {
    return dt_summary_untraced(summary) ? "the time in which processes were traced"
                                        : "the recording";
}

double dt_per_second(const struct dt_summary *summary, uint64_t number) {
    int64_t ns = dt_recorded(summary);

    return ns > 0 ? (double)number * DT_NS_PER_S / (double)ns : 0;
}

int64_t dt_last_of(const struct dt_summary *summary, struct dt_seen_node *node,
                   const char *counter) {
    const struct dt_named *row = dt_names_find(&summary->counters, node, counter);

    return row ? MAX(row->last, 0) : 0;
}
