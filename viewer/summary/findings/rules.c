#include "summary/findings/rules.h"

#include "summary/process_stacks.h"

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

/* -- What processes did at the end ---------------------------------------------------------- */

#define BUSY                                                                                       \
    { DT_STACK_RAN, DT_STACK_RUNS, DT_STACK_KINDS }
#define WAITING                                                                                    \
    { DT_STACK_WAITS, DT_STACK_RUNS, DT_STACK_KINDS }
#define BOTH                                                                                       \
    { DT_STACK_RAN, DT_STACK_WAITS, DT_STACK_RUNS }

/* The rules whose findings have a clause about a stack; of several kinds, the first that is
   known. */
static const struct {
    enum dt_rule_number rule;
    enum dt_stack_kind kinds[DT_STACK_KINDS];
} stack_kinds[] = {
    {DT_RULE_busy_process, BUSY},
    {DT_RULE_held_scheduler, BUSY},
    {DT_RULE_starved_processes, BUSY},
    {DT_RULE_long_schedules, BUSY},
    {DT_RULE_saturated_server, BOTH},
    {DT_RULE_slow_server, BOTH},
    {DT_RULE_growing_queue, BOTH},
    {DT_RULE_long_queue, BOTH},
    {DT_RULE_in_flight, BOTH},
    {DT_RULE_reported_queues, BOTH},
    {DT_RULE_stuck_process, WAITING},
    {DT_RULE_timed_out_calls, WAITING},
    {DT_RULE_exhausted_schedulers, WAITING},
    {DT_RULE_file_io, BUSY},
};

static char *stack_of(const struct dt_summary *summary, enum dt_rule_number rule,
                      const struct dt_actor *actor, bool *is_at_end) {
    for (size_t i = 0; i < G_N_ELEMENTS(stack_kinds); i++)
        for (unsigned k = 0; stack_kinds[i].rule == rule && k < DT_STACK_KINDS; k++) {
            enum dt_stack_kind kind = stack_kinds[i].kinds[k];
            char *clause =
                kind < DT_STACK_KINDS ? dt_process_clause(summary->stacks, actor, kind) : NULL;
            if (clause) {
                *is_at_end = kind != DT_STACK_RAN;
                return clause;
            }
        }
    return NULL;
}

void dt_put_stacks(const struct dt_summary *summary, GString *text, enum dt_rule_number rule,
                   struct dt_actor *const *actors, unsigned count) {
    bool are_several = dt_seen_nodes_are_several(&summary->actors.nodes), is_first = true;

    for (unsigned i = 0; i < count; i++) {
        bool is_at_end = true;
        g_autofree char *clause = stack_of(summary, rule, actors[i], &is_at_end);
        if (!clause)
            continue;
        g_autofree char *name = are_several ? dt_actor_show_where(actors[i]) : NULL;
        const char *pid = actors[i]->process ? actors[i]->process->pid : actors[i]->pid;
        g_string_append_printf(text, "%s%s %s",
                               !is_first   ? ", "
                               : is_at_end ? "; at the end of the recording, "
                                           : "; near the end of the recording, ",
                               name ? name : pid, clause);
        is_first = false;
    }
}

/* -- Findings ------------------------------------------------------------------------------- */

void dt_find(struct dt_summary *summary, enum dt_rule_number rule, enum dt_severity severity,
             struct dt_actor *actor, const char *format, ...) {
    if (is_left_out(rule, actor))
        return;
    GString *text = g_string_new(NULL);
    va_list args;
    va_start(args, format);
    g_string_append_vprintf(text, format, args);
    va_end(args);
    /* A deadlock names all its processes itself. */
    if (rule != DT_RULE_stuck_process)
        dt_put_stacks(summary, text, rule, &actor, 1);
    struct dt_finding finding = {.severity = severity,
                                 .rule = &dt_rules[rule],
                                 .actor = dt_actor_keep(actor),
                                 .text = g_string_free(text, false)};
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

bool dt_is_long(const struct dt_summary *summary, int64_t ns) {
    return dt_summary_ns(summary) >= ns && dt_recorded(summary) >= ns / 2;
}

const char *dt_recorded_words(const struct dt_summary *summary) {
    return dt_summary_is_partly_traced(summary) ? "the time in which processes were traced"
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
