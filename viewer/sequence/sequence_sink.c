/* The sink `sequence`: a sequence diagram for Mermaid. */
#include "sequence/sequence_events.h"

enum { PATH, PROCESSES, LABEL, FROM, TO, LIMIT };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH("-"),
    [PROCESSES] =
        DT_PARAM_STRING("processes", "",
                        "names and pids, separated by ','; one: all its messages; several: "
                        "the messages between them; empty: all messages"),
    [LABEL] = DT_PARAM_STRING("label", "", "a seq_trace label; empty: all messages"),
    [FROM] = DT_PARAM_STRING("from", "0", "seconds after the first event"),
    [TO] = DT_PARAM_STRING("to", "inf", "seconds after the first event"),
    [LIMIT] =
        DT_PARAM_INTEGER("limit", "200", "messages and exits; later ones are counted", 1, 100000),
    {0},
};

/* Converts seconds to ns. */
static bool seconds(const union dt_value *values, unsigned param, int64_t *ns, GError **error) {
    char *end;
    double value = g_ascii_strtod(values[param].string, &end);

    if (*end || end == values[param].string || !(value >= 0)) {
        g_set_error(error, DT_ERROR, 0, "parameter %s must be a number of seconds, not %s",
                    params[param].name, values[param].string);
        return false;
    }
    *ns = value >= 9e9 ? INT64_MAX : (int64_t)(value * 1e9 + 0.5);
    return true;
}

/* In practice, registered names and pids do not contain ','. */
static char **split(const char *names) {
    char **all = g_strsplit(names, ",", -1), **to = all;

    for (char **from = all; *from; from++) {
        g_strstrip(*from);
        if (**from)
            *to++ = *from;
        else
            g_free(*from);
    }
    *to = NULL;
    return all;
}

static void *start(const union dt_value *values, GError **error) {
    int64_t from, to;

    if (!seconds(values, FROM, &from, error) || !seconds(values, TO, &to, error))
        return NULL;
    struct dt_file *file = dt_file_open(values[PATH].string, error);
    if (!file)
        return NULL;
    struct dt_sequence *s = dt_sequence_new();
    s->file = file;
    s->processes = split(values[PROCESSES].string);
    s->label = *values[LABEL].string ? g_strdup(values[LABEL].string) : NULL;
    s->from = from;
    s->to = to;
    s->limit = (unsigned)values[LIMIT].integer;
    return s;
}

/* The reason for an empty diagram, and what to do. */
static const char *nothing(const struct dt_sequence *s) {
    return s->messages == 0
               ? "no messages were recorded: record the group messages while processes send some"
               : "no message matches the parameters: try without some of processes, label, from "
                 "and to";
}

static bool finish(void *data, const struct dt_model *model, GError **error) {
    (void)model;
    struct dt_sequence *s = data;
    g_autoptr(GString) text = g_string_new(NULL);
    if (s->steps->len == 0)
        dt_nothing(nothing(s));
    dt_sequence_mermaid(s, s->steps->len == 0 ? nothing(s) : NULL, text);
    return dt_file_finish(&s->file, text, error);
}

static void free_sink(void *data) {
    struct dt_sequence *s = data;

    dt_file_discard(s->file);
    dt_sequence_free(s);
}

const struct dt_sink dt_sink_sequence = {
    .description = "a sequence diagram of messages, for Mermaid",
    .params = params,
    .start = start,
    .finish = finish,
    .free = free_sink,
    .collector = &dt_sequence_collector,
};
