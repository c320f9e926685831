/* Prints docs/findings.md, from viewer/summary/findings/rules.def. */
#include <stdio.h>

static const char intro[] =
    "# Findings\n"
    "\n"
    "Generated from `viewer/summary/findings/rules.def` by `make docs`.\n"
    "\n"
    "[The report](report.md) and [the page](page.md) of a recording begin with findings, the most\n"
    "severe first. `dyntrace report` prints them.\n"
    "\n"
    "- `high`: work fails or waits now.\n"
    "- `medium`: something is near its limit, or has failed once.\n"
    "- `low`: worth knowing. A healthy system may have such findings, and also "
    "`short_connections`.\n"
    "\n"
    "A rule reports nothing if the recording lacks the events that it needs. Inferred values are\n"
    "marked.\n"
    "\n"
    "If `dyntrace report` has made the recording, findings about busy, waiting and stuck\n"
    "processes also name [the function](report.md#the-function-of-a-finding).\n";

static const char limits[] =
    "\n## What the rules do not cover\n\n"
    "*A process receives more than it answers.* Only calls of servers have answers, and\n"
    "`slow_server` and `timed_out_calls` cover them. Most messages are casts and signals, which\n"
    "get no answer or several: a healthy queue of RabbitMQ sends more messages than it receives,\n"
    "and a logger sends none. `growing_queue` and `growing_heap` report the effects.\n";

/* The words of units. */
#define NUMBER ""
#define TIMES " times"
#define PERCENT " %"
#define PER_SECOND " per second"
#define KB_PER_SECOND " kB per second"
#define NS " ns"
#define MS " ms"
#define SECONDS " s"
#define MINUTES " minutes"
#define MB " MB"
#define KB " kB"

static const struct rule {
    const char *name, *about, *severity, *looks_at, *evidence, *limits, *why, *next, *example;
} rules[] = {
#define LIMIT(name, number, unit, meaning) "- `" #name "` = " #number unit ": " meaning "\n"
#define RULE(name, about, severity, looks_at, evidence, limits, why, next, example)                \
    {#name, #about, severity, looks_at, evidence, "" limits, why, next, example},
#include "summary/findings/rules.def"
};

int main(void) {
    fputs(intro, stdout);
    puts("\n| finding | severity | looks at |\n|---|---|---|");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        printf("| [%s](#%s) | %s | %s |\n", rules[i].name, rules[i].name, rules[i].severity,
               rules[i].looks_at);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        printf("\n## %s\n%s\n\n    %s\n\nEvidence: %s. Next: %s. Details: the report's table "
               "`%s`.%s\n%s",
               rule->name, rule->why, rule->example, rule->evidence, rule->next, rule->about,
               *rule->limits ? " Limits:" : "", rule->limits);
    }
    fputs(limits, stdout);
    return 0;
}
