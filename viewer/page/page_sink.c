/*
 * The sink `html`: the summary, the timeline and the stacks, in the template of the page, page.html
 * beside the plugin's library.
 */
#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): dladdr requires it */
#include <dlfcn.h>
#include <string.h>

#include "page/counters.h"
#include "page/timeline.h"
#include "shared/collectors.h"
#include "shared/file.h"
#include "shared/json.h"
#include "stacks/stacks.h"
#include "summary/summary_events.h"
#include "summary/findings.h"
#include "summary/summary_json.h"

enum { PATH, TITLE, PROCESSES, INTERVALS, MESSAGES, REPORT };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH(NULL),
    [TITLE] = DT_PARAM_STRING("title", "", "the page's title"),
    [PROCESSES] = DT_PARAM_INTEGER(
        "processes", "200", "rows of the timeline: the most interesting processes", 1, 10000),
    [INTERVALS] = DT_PARAM_INTEGER("intervals", "50000",
                                   "intervals of the timeline; more are merged", 100, 10000000),
    [MESSAGES] = DT_PARAM_INTEGER("messages", "20000", "messages of the timeline", 0, 1000000),
    [REPORT] = DT_PARAM_BOOL("report", "no",
                             "also print the report as JSON on standard output, without another "
                             "pass through the recording"),
    {0},
};

struct page {
    struct dt_collectors collectors;
    struct dt_page_timeline *timeline;
    struct dt_summary *summary;
    struct dt_stacks *stacks;
    struct dt_page_counters *counters;
    struct dt_file *file;
    struct dt_file *report; /* NULL if it is not printed */
    char *template;
    char *title;
};

/* -- The template --------------------------------------------------------------------- */

/* The placeholder of the data. build.mjs does not replace it. */
static const char place[] = "@DATA@";

/* babeltrace2 may have loaded the plugin through a link in its own plugin folder. */
static char *beside_the_plugin(const char *name) {
    char *file, *folder, *path;
    Dl_info of;

    if (!dladdr(place, &of) || !of.dli_fname)
        return g_strdup(name);
    file = realpath(of.dli_fname, NULL);
    folder = g_path_get_dirname(file ? file : of.dli_fname);
    path = g_build_filename(folder, name, NULL);
    free(file);
    g_free(folder);
    return path;
}

static char *read_template(GError **error) {
    char *path = beside_the_plugin("page.html"), *text = NULL;

    if (g_file_get_contents(path, &text, NULL, error)) {
        if (!strstr(text, place)) {
            g_set_error(error, DT_ERROR, 0, "%s lacks the placeholder %s", path, place);
            g_clear_pointer(&text, g_free);
        }
    }
    g_free(path);
    return text;
}

static void fill_template(const char *text, const GString *json, struct dt_file *to) {
    const char *at = strstr(text, place);

    dt_file_write(to, text, (size_t)(at - text));
    dt_file_write(to, json->str, json->len);
    at += strlen(place);
    dt_file_write(to, at, strlen(at));
}

/* -- Begin and end ---------------------------------------------------------------------- */

static void free_sink(void *data) {
    struct page *page = data;

    if (!page)
        return;
    dt_file_discard(page->file);
    dt_file_discard(page->report);
    dt_page_timeline_free(page->timeline);
    dt_summary_free(page->summary);
    dt_stacks_free(page->stacks);
    dt_page_counters_free(page->counters);
    g_free(page->template);
    g_free(page->title);
    g_free(page);
}

static struct dt_file *open_report(const char *page, GError **error) {
    if (strcmp(page, "-") != 0)
        return dt_file_open("-", error);
    g_set_error_literal(error, DT_ERROR, 0,
                        "report=yes needs the path of a file: standard output is for the report");
    return NULL;
}

static void *start(const union dt_value *values, GError **error) {
    struct page *page = g_new0(struct page, 1);

    page->template = read_template(error);
    if (!page->template)
        goto failed;
    page->file = dt_file_open(values[PATH].string, error);
    if (!page->file)
        goto failed;
    if (values[REPORT].is) {
        page->report = open_report(values[PATH].string, error);
        if (!page->report)
            goto failed;
    }
    page->title = g_strdup(values[TITLE].string);
    page->summary = dt_summary_new();
    page->stacks = dt_stacks_new(DT_STACKS_CALLS, DT_STACKS_BY_NONE);
    page->counters = dt_page_counters_new();
    page->timeline = dt_page_timeline_new(&page->summary->actors,
                                          (struct dt_page_timeline_limits){
                                              .processes = (unsigned)values[PROCESSES].integer,
                                              .intervals = (unsigned)values[INTERVALS].integer,
                                              .messages = (unsigned)values[MESSAGES].integer,
                                          });
    page->collectors = (struct dt_collectors){{{&dt_page_timeline_collector, page->timeline},
                                               {&dt_summary_collector, page->summary},
                                               {&dt_stacks_collector, page->stacks},
                                               {&dt_page_counters_collector, page->counters}}};
    return page;

failed:
    free_sink(page);
    return NULL;
}

static bool finish(void *data, const struct dt_model *model, GError **error) {
    struct page *page = data;
    struct dt_summary *summary = page->summary;
    g_autoptr(GString) json = g_string_new(NULL);
    g_autoptr(GString) report = NULL;
    gsize begin;

    if (page->timeline->begin > page->timeline->end)
        dt_nothing(DT_NOTHING_RECORDED);
    dt_summary_end(summary, model);
    dt_summary_find(summary);
    dt_json_open(json, NULL, '{');
    dt_json_text(json, "title", page->title);
    dt_json_name(json, "report");
    begin = json->len;
    dt_summary_json(summary, json);
    report = g_string_new_len(json->str + begin, (gssize)(json->len - begin));
    g_string_append_c(report, '\n');
    dt_json_name(json, "flame");
    dt_stacks_json(page->stacks, json);
    dt_json_name(json, "timeline");
    dt_page_timeline_json(page->timeline, json);
    dt_json_name(json, "counters");
    dt_page_counters_json(page->counters, &summary->actors.nodes, page->timeline->begin, json);
    dt_json_close(json, '}');
    fill_template(page->template, json, page->file);
    return dt_file_close(g_steal_pointer(&page->file), error) &&
           (!page->report || dt_file_finish(&page->report, report, error));
}

static const GError *failed(void *data) {
    struct page *page = data;

    return dt_file_failed(page->file);
}

const struct dt_sink dt_sink_page = {
    .description = "one self-contained page: report, timeline, load, flame graph, sequences",
    .params = params,
    .start = start,
    .finish = finish,
    .free = free_sink,
    .failed = failed,
    .collector = &dt_collect_all,
};
