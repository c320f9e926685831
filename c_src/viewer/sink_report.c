#include <string.h>

#include "viewer/report_parts.h"

enum { PATH, FORMAT, TOP };

static const struct dt_param params[] = {
    [PATH] = {"path", DT_PARAM_STRING, "-", "the file to write; - is standard output"},
    [FORMAT] = {"format", DT_PARAM_STRING, "text", "text, or json"},
    [TOP] = {"top", DT_PARAM_INTEGER, "20", "rows per table of the text"},
    {0},
};

/* How the report is written. */
struct output {
    struct dt_file *file;
    bool is_json;
    unsigned top;
};

static void *start(const union dt_value *values, GError **error) {
    const char *format = values[FORMAT].string;
    int64_t top = values[TOP].integer;
    bool is_json = strcmp(format, "json") == 0;
    if (!is_json && strcmp(format, "text") != 0) {
        g_set_error(error, DT_ERROR, 0, "parameter format: it is text or json, not %s", format);
        return NULL;
    }
    if (top < 1 || top > G_MAXINT) {
        g_set_error(error, DT_ERROR, 0, "parameter top: it is 1 or more");
        return NULL;
    }
    struct dt_file *file = dt_file_open(values[PATH].string, error);
    if (!file)
        return NULL;
    struct output *output = g_new0(struct output, 1);
    *output = (struct output){.file = file, .is_json = is_json, .top = (unsigned)top};
    struct dt_report *report = dt_report_new();
    report->of_sink = output;
    return report;
}

static bool finish(void *s, const struct dt_model *model, GError **error) {
    struct dt_report *report = s;
    struct output *output = report->of_sink;
    if (!dt_report_finish(report, model, error))
        return false;
    g_autoptr(GString) text = g_string_new(NULL);
    if (output->is_json)
        dt_report_json(report, text);
    else
        dt_report_text(report, output->top, text);
    if (output->is_json)
        g_string_append_c(text, '\n');
    dt_file_write(output->file, text->str, text->len);
    return dt_file_close(g_steal_pointer(&output->file), error);
}

static void sink_free(void *s) {
    struct dt_report *report = s;
    struct output *output = report->of_sink;
    dt_file_discard(output->file);
    g_free(output);
    dt_report_free(report);
}

const struct dt_sink dt_sink_report = {
    .name = "report",
    .description = "what the recording says, as text or JSON",
    .params = params,
    .start = start,
    .finish = finish,
    DT_REPORT_COLLECTS,
    .free = sink_free,
};
