/* The sink `report`: a summary as text for a terminal, or as JSON. */
#include "report/report_text.h"
#include "shared/file.h"
#include "shared/sink.h"
#include "summary/summary_events.h"
#include "summary/findings.h"
#include "summary/summary_json.h"

enum { PATH, FORMAT, TOP, WIDTH };

enum { TEXT, JSON };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH("-"),
    [FORMAT] = DT_PARAM_WORD("format", "text", "text for a terminal, or JSON for programs", "text",
                             "json"),
    [TOP] = DT_PARAM_INTEGER("top", "20", "rows per table of the text", 1, G_MAXINT),
    [WIDTH] = DT_PARAM_INTEGER("width", "0",
                               "columns of the text's tables; 0: of the terminal, else unlimited",
                               0, G_MAXINT),
    {0},
};

/* The output of the report. */
struct output {
    struct dt_file *file;
    bool is_json;
    struct dt_text_size size;
};

static void *start(const union dt_value *values, GError **error) {
    struct dt_file *file = dt_file_open(values[PATH].string, error);

    if (!file)
        return NULL;
    struct output *output = g_new0(struct output, 1);
    *output = (struct output){
        .file = file,
        .is_json = values[FORMAT].word == JSON,
        .size = {.rows = (unsigned)values[TOP].integer,
                 .width = values[WIDTH].integer ? values[WIDTH].integer : dt_file_width(file)}};
    struct dt_summary *summary = dt_summary_new();
    summary->of_sink = output;
    return summary;
}

static bool finish(void *data, const struct dt_model *model, GError **error) {
    struct dt_summary *summary = data;
    struct output *output = summary->of_sink;
    g_autoptr(GString) text = g_string_new(NULL);

    dt_summary_end(summary, model);
    dt_summary_find(summary);
    if (output->is_json) {
        dt_summary_json(summary, text);
        g_string_append_c(text, '\n');
    } else {
        dt_report_text(summary, output->size, text);
    }
    return dt_file_finish(&output->file, text, error);
}

static void free_sink(void *data) {
    struct dt_summary *summary = data;
    struct output *output = summary->of_sink;

    dt_file_discard(output->file);
    g_free(output);
    dt_summary_free(summary);
}

const struct dt_sink dt_sink_report = {
    .description = "findings and tables of the recording, as text or JSON",
    .params = params,
    .start = start,
    .finish = finish,
    .collector = &dt_summary_collector,
    .free = free_sink,
};
