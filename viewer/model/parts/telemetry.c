#include "model/parts/telemetry.h"

#include <string.h>

#include "model/entities/processes.h"
#include "model/parts/instants.h"
#include "shared/term.h"
#include "shared/texts.h"

/* -- Kinds ------------------------------------------------------------------------------ */

/* A longer value is data rather than the name of a kind. */
enum { VALUE_MOST = 100 };

static const char *const kind_keys[] = {
#define KIND_KEY(name) #name,
#define KEY(name)
#include "catalogue/telemetry_keys.def"
};

/* The part of the text of a string, binary or atom between its quotes. */
static void unquote(const char **begin, const char **end) {
    if (g_str_has_prefix(*begin, "<<\"")) {
        *begin += strlen("<<\"");
        *end -= strlen("\">>");
    } else if (**begin == '"' || **begin == '\'') {
        (*begin)++;
        (*end)--;
    }
}

/* Whether it names a route, a table, a module: one word of printable characters. */
static bool is_name(const char *begin, const char *end) {
    if (end <= begin || end - begin > VALUE_MOST)
        return false;
    for (const char *c = begin; c < end; c++)
        if ((unsigned char)*c <= ' ' || strchr("\"\\{}[]<>#()", *c))
            return false;
    return true;
}

/* The metadata begins with the key of the kind, if it has one: #{route=><<"/orders/:id">>,...}.
   Returns the key, and appends the value. */
static const char *put_value(GString *kind, const char *metadata) {
    const char *key = NULL;

    if (!dt_skip(&metadata, "#{"))
        return "";
    for (unsigned i = 0; i < G_N_ELEMENTS(kind_keys) && !key; i++)
        if (dt_skip(&metadata, kind_keys[i]))
            key = kind_keys[i];
    if (!key || !dt_skip(&metadata, "=>"))
        return "";
    const char *end = dt_term_end(metadata);
    if (!*end || (g_str_has_prefix(metadata, "nil") && end - metadata == 3))
        return "";
    unquote(&metadata, &end);
    (void)dt_skip(&metadata, "Elixir.");
    if (!is_name(metadata, end))
        return "";
    g_string_append_c(kind, ' ');
    g_string_append_len(kind, metadata, end - metadata);
    return key;
}

/* "error", "exit" or "throw" of the key `kind`; otherwise just "exception". */
static const char *class_of(const char *metadata) {
    static const char *const classes[] = {"error", "exit", "throw"};
    const char *kind = strstr(metadata, "kind=>");

    for (unsigned i = 0; kind && i < G_N_ELEMENTS(classes); i++)
        if (g_str_has_prefix(kind + strlen("kind=>"), classes[i]))
            return classes[i];
    return "exception";
}

#define DURATION_MAX (INT64_C(24) * 3600 * 1000000000)

/* -- Events ------------------------------------------------------------------------------ */

/* Whether the name ends in the suffix, which is removed. */
static bool cut_suffix(GString *name, const char *suffix) {
    bool has = g_str_has_suffix(name->str, suffix);

    if (has)
        g_string_truncate(name, name->len - strlen(suffix));
    return has;
}

/* The start of a span says nothing that its end does not. */
void dt_telemetry_event(struct node *node, const struct dt_recorded *event) {
    const struct dt_telemetry_event *e = &event->fields.telemetry_event;
    struct process *p = dt_process_of(node, e->pid);
    g_autoptr(GString) kind = g_string_new(e->name);
    int64_t now = node->world->now;

    if (!p || cut_suffix(kind, ".start"))
        return;
    /* A time of the system's clock, for example, is not a duration. */
    if (e->duration < 0 || e->duration > DURATION_MAX) {
        dt_instants_event(node, event);
        return;
    }
    bool has_failed = cut_suffix(kind, ".exception");
    (void)cut_suffix(kind, ".stop");
    const char *key = put_value(kind, e->metadata);
    g_autofree char *measurements = g_strdup(dt_world_text(node->world, e->measurements));
    g_autofree char *metadata = g_strdup(dt_world_text(node->world, e->metadata));
    struct dt_telemetry telemetry = {key, measurements, metadata};
    struct dt_span span = {.process = &p->seen,
                           .name = kind->str,
                           .begin = now - MIN(e->duration, MAX(now, 0)),
                           .end = now,
                           .outcome = has_failed ? class_of(e->metadata) : "ok",
                           .telemetry = &telemetry};
    DT_EMIT(node->world, span, &span);
}
