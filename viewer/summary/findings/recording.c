/* Findings about the recording itself. */
#include "summary/findings/rules.h"

static void lost(struct dt_summary *summary) {
    if (!summary->lost_rows)
        return;
    if (summary->lost_events)
        dt_find(summary, DT_RULE_lost_events, DT_HIGH, NULL,
                "%s%" G_GUINT64_FORMAT
                " events were lost: counts are too low, and times can be wrong around the gaps",
                summary->lost_unknown ? "more than " : "", summary->lost_events);
    else
        dt_find(summary, DT_RULE_lost_events, DT_HIGH, NULL,
                "events were lost, an unknown number: counts are too low, and times can be wrong "
                "around the gaps");
}

static void skipped(struct dt_summary *summary) {
    if (summary->skipped && !summary->events)
        dt_find(summary, DT_RULE_no_events, DT_HIGH, NULL,
                "no event of a provider that is known: %" G_GUINT64_FORMAT " were skipped",
                summary->skipped);
}

void dt_find_in_recording(struct dt_summary *summary) {
    lost(summary);
    skipped(summary);
}
