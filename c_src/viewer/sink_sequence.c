#include <string.h>

#include "viewer/sequence.h"

enum { PATH, PROCESSES, LABEL, FROM, TO, LIMIT };

static const struct dt_param params[] = {
    [PATH] = {"path", DT_PARAM_STRING, "-", "the file to write; - is standard output"},
    [PROCESSES] =
        {"processes", DT_PARAM_STRING, "",
         "names and pids with ',' between them; of one, all its messages are shown, of several "
         "those between them; empty: of all"},
    [LABEL] = {"label", DT_PARAM_STRING, "", "a label of seq_trace; empty: all messages"},
    [FROM] = {"from", DT_PARAM_STRING, "0", "seconds after the first event"},
    [TO] = {"to", DT_PARAM_STRING, "inf", "seconds after the first event"},
    [LIMIT] = {"limit", DT_PARAM_INTEGER, "200", "messages and exits; later ones are counted"},
    {0},
};

enum { LIMIT_MAX = 100000 };

/* Seconds as ns. */
static bool seconds(const union dt_value *values, unsigned param, int64_t *ns, GError **error) {
    char *end;
    double value = g_ascii_strtod(values[param].string, &end);
    if (*end || end == values[param].string || !(value >= 0)) {
        g_set_error(error, DT_ERROR, 0, "parameter %s: it is a number of seconds, not %s",
                    params[param].name, values[param].string);
        return false;
    }
    *ns = value >= 9e9 ? INT64_MAX : (int64_t)(value * 1e9 + 0.5);
    return true;
}

/* Registered names and pids have no ',' outside of quotes that anybody types. */
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
    int64_t from, to, limit = values[LIMIT].integer;
    if (!seconds(values, FROM, &from, error) || !seconds(values, TO, &to, error))
        return NULL;
    if (limit < 1 || limit > LIMIT_MAX) {
        g_set_error(error, DT_ERROR, 0, "parameter limit: it is 1 to %d", LIMIT_MAX);
        return NULL;
    }
    struct dt_file *file = dt_file_open(values[PATH].string, error);
    if (!file)
        return NULL;
    struct dt_sequence *s = dt_sequence_new();
    s->of_sink = file;
    s->processes = split(values[PROCESSES].string);
    s->label = *values[LABEL].string ? g_strdup(values[LABEL].string) : NULL;
    s->from = from;
    s->to = to;
    s->limit = (unsigned)limit;
    return s;
}

static bool finish(void *of, const struct dt_model *model, GError **error) {
    (void)model;
    struct dt_sequence *s = of;
    g_autoptr(GString) text = g_string_new(NULL);
    dt_sequence_mermaid(s, text);
    struct dt_file *file = g_steal_pointer(&s->of_sink);
    dt_file_write(file, text->str, text->len);
    return dt_file_close(file, error);
}

static void sink_free(void *of) {
    struct dt_sequence *s = of;
    dt_file_discard(s->of_sink);
    dt_sequence_free(s);
}

const struct dt_sink dt_sink_sequence = {
    .name = "sequence",
    .description = "a sequence diagram of messages, for Mermaid",
    .params = params,
    .start = start,
    .finish = finish,
    .free = sink_free,
    DT_SEQUENCE_COLLECTS,
};
