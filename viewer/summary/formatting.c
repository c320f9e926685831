#include "summary/formatting.h"

#include <string.h>

#include <glib.h>

#include "shared/model_events.h"

static const char *const formatters[] = {
    "io_lib:", "io_lib_pretty:", "io_lib_format:", "logger_formatter:", "Inspect.", "lager_",
};

/* The formatters call these, and a process that formats may start and stop to run in them. */
static const char *const helpers[] = {
    "erlang:", "lists:", "string:",   "unicode", "binary:",
    "maps:",   "logger", "proc_lib:", "io:",     "Enum.",
};

static bool is_one_of(const char *function, const char *const *prefixes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (g_str_has_prefix(function, prefixes[i]))
            return true;
    return false;
}

/* Most functions differ in the first character, and this is called for each run. */
static bool is_formatter(const char *function) {
    return strchr("ilI", *function) && is_one_of(function, formatters, G_N_ELEMENTS(formatters));
}

static bool is_helper(const char *function) {
    return is_one_of(function, helpers, G_N_ELEMENTS(helpers));
}

static void ran(struct dt_formatting *of, const struct dt_interval *i, uint64_t sent) {
    int64_t ns = i->end - i->begin;

    if (i->state == DT_STATE_RUNNING && !is_helper(i->in))
        of->is_in_formatter = is_formatter(i->in);
    if (of->current.ns && of->sent != sent)
        of->current.ns = 0;
    if (!of->current.ns && of->is_in_formatter) {
        of->current.begin = i->begin;
        of->busy = 0;
        of->sent = sent;
    }
    of->busy += ns;
    if (!of->is_in_formatter)
        return;
    of->current.ns += ns;
    if (of->current.ns > of->longest.ns && of->current.ns >= of->busy / 2)
        of->longest = of->current;
}

void dt_formatting_interval(struct dt_formatting **of, const struct dt_interval *i, uint64_t sent) {
    bool is_running = i->state == DT_STATE_RUNNING;

    if (!*of && !(is_running && is_formatter(i->in)))
        return;
    if (!*of)
        *of = g_new0(struct dt_formatting, 1);
    if (is_running || i->state == DT_STATE_COLLECTING)
        ran(*of, i, sent);
    else if (i->state == DT_STATE_WAITING && !is_formatter(i->out) && !is_helper(i->out))
        (*of)->current.ns = 0;
}
