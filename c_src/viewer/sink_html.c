/* One page with everything: the report, the timeline and the flame graph, in a template. */
#include <inttypes.h>

#include "viewer/flame.h"
#include "viewer/html_template.h"
#include "viewer/html_timeline.h"
#include "viewer/report.h"
#include "viewer/sink.h"

enum { PATH, TITLE, PROCESSES, INTERVALS, MESSAGES };

static const struct dt_param params[] = {
    [PATH] = {"path", DT_PARAM_STRING, NULL, "the page's file"},
    [TITLE] = {"title", DT_PARAM_STRING, "", "the page's title"},
    [PROCESSES] = {"processes", DT_PARAM_INTEGER, "200",
                   "rows of the timeline: the most interesting processes"},
    [INTERVALS] = {"intervals", DT_PARAM_INTEGER, "50000",
                   "intervals of the timeline; more are merged"},
    [MESSAGES] = {"messages", DT_PARAM_INTEGER, "20000", "messages of the timeline"},
    {0},
};

/* The collectors, each with its data, in the order in which they are told. */
enum { TIMELINE, REPORT, FLAME, COLLECTORS };

static const struct dt_sink *const collects[COLLECTORS] = {
    [TIMELINE] = &dt_timeline_collects,
    [REPORT] = &dt_report_collects,
    [FLAME] = &dt_flame_collects,
};

struct page {
    struct dt_file *file;
    char *template;
    char *title;
    void *of[COLLECTORS];
};

static bool in_range(const union dt_value *values, unsigned param, int64_t least, int64_t most,
                     GError **error) {
    int64_t value = values[param].integer;

    if (value >= least && value <= most)
        return true;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "parameter %s: %" PRId64 " is not between %" PRId64 " and %" PRId64,
                params[param].name, value, least, most);
    return false;
}

static void page_free(void *s) {
    struct page *page = s;

    if (!page)
        return;
    if (page->file)
        dt_file_discard(page->file);
    dt_timeline_free(page->of[TIMELINE]);
    dt_report_free(page->of[REPORT]);
    dt_flame_free(page->of[FLAME]);
    g_free(page->template);
    g_free(page->title);
    g_free(page);
}

static void *page_start(const union dt_value *values, GError **error) {
    struct page *page;

    if (!in_range(values, PROCESSES, 1, 10000, error) ||
        !in_range(values, INTERVALS, 100, 10000000, error) ||
        !in_range(values, MESSAGES, 0, 1000000, error))
        return NULL;
    page = g_new0(struct page, 1);
    page->template = dt_template_read(error);
    if (!page->template)
        goto failed;
    page->file = dt_file_open(values[PATH].string, error);
    if (!page->file)
        goto failed;
    page->title = g_strdup(values[TITLE].string);
    page->of[REPORT] = dt_report_new();
    page->of[FLAME] = dt_flame_new(DT_FLAME_CALLS, DT_FLAME_BY_NONE);
    page->of[TIMELINE] =
        dt_timeline_new(page->of[REPORT], (struct dt_timeline_limits){
                                              .processes = (unsigned)values[PROCESSES].integer,
                                              .intervals = (unsigned)values[INTERVALS].integer,
                                              .messages = (unsigned)values[MESSAGES].integer,
                                          });
    return page;

failed:
    page_free(page);
    return NULL;
}

static bool page_finish(void *s, const struct dt_model *model, GError **error) {
    struct page *page = s;
    GString *json = g_string_new("{\"title\":");
    bool done = true;

    for (unsigned n = 0; n < COLLECTORS && done; n++)
        if (collects[n]->finish)
            done = collects[n]->finish(page->of[n], model, error);
    if (done) {
        dt_json_string(json, page->title);
        g_string_append(json, ",\n\"report\":");
        dt_report_json(page->of[REPORT], json);
        g_string_append(json, ",\n\"flame\":");
        dt_flame_json(page->of[FLAME], json);
        g_string_append(json, ",\n\"timeline\":");
        dt_timeline_json(page->of[TIMELINE], json);
        g_string_append_c(json, '}');
        dt_template_fill(page->template, json, page->file);
        done = dt_file_close(page->file, error);
        page->file = NULL;
    }
    g_string_free(json, TRUE);
    return done;
}

static const GError *page_failed(void *s) {
    struct page *page = s;

    return page->file ? dt_file_failed(page->file) : NULL;
}

/* -- What the model tells goes to each collector that wants it --------------------------- */

#define HAND_ON(name, declared, passed)                                                            \
    static void name declared {                                                                    \
        struct page *page = s;                                                                     \
                                                                                                   \
        for (unsigned n = 0; n < COLLECTORS; n++)                                                  \
            if (collects[n]->name) {                                                               \
                s = page->of[n];                                                                   \
                collects[n]->name passed;                                                          \
            }                                                                                      \
    }

HAND_ON(node, (void *s, struct dt_node *node), (s, node))
HAND_ON(node_gone, (void *s, struct dt_node *node), (s, node))
HAND_ON(scheduler, (void *s, struct dt_scheduler *scheduler), (s, scheduler))
HAND_ON(process, (void *s, struct dt_process *process, int64_t time), (s, process, time))
HAND_ON(process_named, (void *s, struct dt_process *process, int64_t time), (s, process, time))
HAND_ON(process_exited, (void *s, const struct dt_exit *exit), (s, exit))
HAND_ON(process_gone, (void *s, struct dt_process *process), (s, process))
HAND_ON(interval, (void *s, const struct dt_interval *interval), (s, interval))
HAND_ON(mailbox, (void *s, struct dt_process *process, int64_t time), (s, process, time))
HAND_ON(call_begin, (void *s, struct dt_frame *frame), (s, frame))
HAND_ON(call_end, (void *s, struct dt_frame *frame), (s, frame))
HAND_ON(arguments, (void *s, struct dt_frame *frame, const char *arguments), (s, frame, arguments))
HAND_ON(sent, (void *s, struct dt_message *message), (s, message))
HAND_ON(delivered, (void *s, struct dt_message *message), (s, message))
HAND_ON(message_gone, (void *s, struct dt_message *message), (s, message))
HAND_ON(server_call, (void *s, const struct dt_server_call *call), (s, call))
HAND_ON(span, (void *s, const struct dt_span *span), (s, span))
HAND_ON(instant, (void *s, const struct dt_instant *instant), (s, instant))
HAND_ON(counter,
        (void *s, struct dt_node *node, const char *name, const char *unit, int64_t value,
         int64_t time),
        (s, node, name, unit, value, time))
HAND_ON(lost, (void *s, const struct dt_lost *lost), (s, lost))

const struct dt_sink dt_sink_html = {
    .name = "html",
    .description = "one self-contained page: report, timeline, load, flame graph, sequences",
    .params = params,
    .start = page_start,
    .finish = page_finish,
    .free = page_free,
    .failed = page_failed,
    .node = node,
    .node_gone = node_gone,
    .scheduler = scheduler,
    .process = process,
    .process_named = process_named,
    .process_exited = process_exited,
    .process_gone = process_gone,
    .interval = interval,
    .mailbox = mailbox,
    .call_begin = call_begin,
    .call_end = call_end,
    .arguments = arguments,
    .sent = sent,
    .delivered = delivered,
    .message_gone = message_gone,
    .server_call = server_call,
    .span = span,
    .instant = instant,
    .counter = counter,
    .lost = lost,
};
