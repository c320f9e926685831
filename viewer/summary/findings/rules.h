/*
 * The rules of the findings: their table, and the functions that apply them.
 *
 *     rules.def                                    each rule: limits, why it matters, next step
 *     rules                                        the table, and how a finding is added
 *     *_findings                                   the functions, by subject
 */
#pragma once

#include "summary/findings.h"
#include "summary/findings/limits.h"

enum dt_rule_number {
#define RULE(name, about, severity, looks_at, evidence, limits, why, next, example) DT_RULE_##name,
#include "summary/findings/rules.def"
    DT_RULES
};

/* Adds a finding of a rule. */
void dt_find(struct dt_summary *summary, enum dt_rule_number rule, enum dt_severity severity,
             struct dt_actor *actor, const char *format, ...) G_GNUC_PRINTF(5, 6);

/* Appends what these processes did at the end, as far as the command has read their stacks. */
void dt_put_stacks(const struct dt_summary *summary, GString *text, enum dt_rule_number rule,
                   struct dt_actor *const *actors, unsigned count);

/* A number with its noun, in English: "1 call", "2 calls". Free with g_free. */
char *dt_counted(uint64_t number, const char *noun);

/* Whether `part` is at least `percent` of `all`. */
bool dt_is_share(int64_t part, int64_t all, int64_t percent);

/* The number per second of the recording; 0 if the recording has no length. */
double dt_per_second(const struct dt_summary *summary, uint64_t number);
/* The ns in which processes were traced, and the words by which a finding refers to them. */
int64_t dt_recorded(const struct dt_summary *summary);
const char *dt_recorded_words(const struct dt_summary *summary);
/* Whether the recording is that long, and processes were traced for at least half of that time. */
bool dt_is_long(const struct dt_summary *summary, int64_t ns);

/* Whether the normal schedulers of the node are busy on average, according to the counters. */
bool dt_has_busy_schedulers(const struct dt_summary *summary, const struct dt_seen_node *node);

/* The part of the time in which no CPU quota stopped the node: 1 unless cpu_quota applies. */
double dt_part_not_stopped(const struct dt_summary *summary, const struct dt_seen_node *node);

/* Whether the process belongs to dyntrace. */
bool dt_is_own(const struct dt_actor *actor);

/* Whether it is the row of a crash loop. */
bool dt_is_restarted(const struct dt_lives_row *row);

/* The last value of a counter; 0 without samples. */
int64_t dt_last_of(const struct dt_summary *summary, struct dt_seen_node *node,
                   const char *counter);

/* Whether it formats a large term as text, which explains its time, its memory and its queue. */
bool dt_is_formatting(const struct dt_summary *summary, const struct dt_actor *actor);

/* Whether copies of large messages explain its long runs and its collections. */
bool dt_has_copied(const struct dt_summary *summary, struct dt_actor *actor);

/* Adds the findings of processes that are stuck at the end. Returns their actors, to be freed. */
GHashTable *dt_find_stuck(struct dt_summary *summary);

typedef void dt_find_some(struct dt_summary *summary);
dt_find_some dt_find_in_recording, dt_find_in_exits, dt_find_in_causes, dt_find_in_lives,
    dt_find_in_messages, dt_find_in_queues, dt_find_in_memory, dt_find_in_time, dt_find_in_reports,
    dt_find_in_log, dt_find_in_calls, dt_find_in_schedulers, dt_find_in_ports, dt_find_in_timers,
    dt_find_in_growth;
