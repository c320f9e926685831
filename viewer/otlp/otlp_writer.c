#include "otlp/otlp_writer.h"

#include <string.h>

#include "shared/json.h"
#include "shared/texts.h"

/* A node: its resource, and its spans that are not yet written. */
struct resource {
    char *json;
    GString *spans;
};

struct dt_otlp_writer {
    struct dt_file *file;
    GPtrArray *nodes; /* struct resource, by number */
    GString *line;
    uint64_t seed; /* of the recording */
    bool has_seed;
    uint64_t lines, written;
};

/* -- Files --------------------------------------------------------------------------------- */

static void free_resource(void *data) {
    struct resource *resource = data;

    if (!resource)
        return;
    g_free(resource->json);
    g_string_free(resource->spans, true);
    g_free(resource);
}

struct dt_otlp_writer *dt_otlp_open(const char *path, GError **error) {
    struct dt_file *file = dt_file_open(path, error);
    struct dt_otlp_writer *w;

    if (!file)
        return NULL;
    w = g_new0(struct dt_otlp_writer, 1);
    w->file = file;
    w->nodes = g_ptr_array_new_with_free_func(free_resource);
    w->line = g_string_new(NULL);
    dt_file_printf(file, "{\"resourceSpans\":[\n");
    return w;
}

const GError *dt_otlp_failed(const struct dt_otlp_writer *w) {
    return dt_file_failed(w->file);
}

uint64_t dt_otlp_written(const struct dt_otlp_writer *w) {
    return w->written;
}

void dt_otlp_free(struct dt_otlp_writer *w) {
    dt_file_discard(w->file);
    g_ptr_array_free(w->nodes, true);
    g_string_free(w->line, true);
    g_free(w);
}

static void write_line(struct dt_otlp_writer *w, struct resource *resource) {
    GString *line = g_string_assign(w->line, w->lines++ ? "," : "");

    g_string_append_printf(line,
                           "{\"resource\":%s,\"scopeSpans\":[{\"scope\":{\"name\":\"dyntrace\","
                           "\"version\":\"%d.%d.%d\"},\"spans\":[",
                           resource->json, DT_MAJOR, DT_MINOR, DT_PATCH);
    g_string_append_len(line, resource->spans->str, (gssize)resource->spans->len);
    g_string_append(line, "]}]}\n");
    dt_file_write(w->file, line->str, line->len);
    g_string_truncate(resource->spans, 0);
}

bool dt_otlp_close(struct dt_otlp_writer *w, GError **error) {
    for (unsigned i = 0; i < w->nodes->len; i++) {
        struct resource *resource = g_ptr_array_index(w->nodes, i);

        if (resource && resource->spans->len)
            write_line(w, resource);
    }
    dt_file_printf(w->file, "]}\n");
    return dt_file_close(g_steal_pointer(&w->file), error);
}

/* -- Resources ------------------------------------------------------------------------------ */

/* The name of a node without the quotes of the atom. What follows them distinguishes nodes of the
   same name. */
static char *unquoted(const char *name) {
    size_t size = dt_quoted(name);

    return *name == '\'' && size > 2
               ? g_strdup_printf("%.*s%s", (int)size - 2, name + 1, name + size)
               : g_strdup(name);
}

/* "shop" of "shop@host". A node whose name was not recorded has the name that the conventions
   provide for this. */
static char *service_of(const char *name) {
    const char *at = strchr(name, '@');

    return at ? g_strndup(name, (size_t)(at - name)) : g_strdup("unknown_service:beam.smp");
}

static char *resource_json(const struct dt_node *node) {
    GString *to = g_string_new(NULL);
    g_autofree char *name = unquoted(node->name);
    g_autofree char *service = service_of(name);
    g_autofree char *release = *node->otp ? g_strdup_printf("Erlang/OTP %s", node->otp) : NULL;

    dt_json_open(to, NULL, '{');
    dt_json_open(to, "attributes", '[');
    dt_otlp_text(to, "service.name", service);
    dt_otlp_text(to, "service.instance.id", name);
    dt_otlp_text(to, "host.name", node->hostname);
    dt_otlp_number(to, "process.pid", node->os_pid);
    dt_otlp_text(to, "process.runtime.name", "BEAM");
    dt_otlp_text(to, "process.runtime.description", release ? release : "");
    dt_json_close(to, ']');
    dt_json_close(to, '}');
    return g_string_free(to, false);
}

static struct resource *resource_of(struct dt_otlp_writer *w, unsigned number) {
    struct resource *resource;

    if (number >= w->nodes->len)
        g_ptr_array_set_size(w->nodes, (int)number + 1);
    resource = g_ptr_array_index(w->nodes, number);
    if (!resource) {
        resource = g_new0(struct resource, 1);
        resource->spans = g_string_new(NULL);
        g_ptr_array_index(w->nodes, number) = resource;
    }
    return resource;
}

void dt_otlp_node(struct dt_otlp_writer *w, const struct dt_node *node) {
    struct resource *resource = resource_of(w, node->number);

    if (!w->has_seed) {
        w->seed = dt_hash_text(DT_HASH, node->hostname);
        w->seed = dt_hash_number(w->seed, (uint64_t)node->os_pid);
        w->seed = dt_hash_number(w->seed, (uint64_t)node->first);
        w->has_seed = true;
    }
    g_free(resource->json);
    resource->json = resource_json(node);
}

/* -- Ids ------------------------------------------------------------------------------------ */

/* The finalizer of SplitMix64. It is a bijection, so different numbers have different ids. */
static uint64_t mix(uint64_t n) {
    n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
    return n ^ n >> 31;
}

static uint64_t span_id(const struct dt_otlp_writer *w, uint64_t number) {
    return mix(w->seed + number);
}

static void put_ids(GString *to, const struct dt_otlp_writer *w, struct dt_otlp_place place) {
    g_string_append_printf(
        to, "\"traceId\":\"%016" PRIx64 "%016" PRIx64 "\",\"spanId\":\"%016" PRIx64 "\"",
        mix(~w->seed), span_id(w, place.root), span_id(w, place.number));
    if (place.parent)
        g_string_append_printf(to, ",\"parentSpanId\":\"%016" PRIx64 "\"",
                               span_id(w, place.parent));
}

/* -- Spans ---------------------------------------------------------------------------------- */

void dt_otlp_write(struct dt_otlp_writer *w, unsigned node, struct dt_otlp_place place,
                   const char *body) {
    struct resource *resource = resource_of(w, node);
    GString *to = resource->spans;

    g_string_append(to, to->len ? ",{" : "{");
    put_ids(to, w, place);
    g_string_append_printf(to, ",%s}", body);
    w->written++;
    if (to->len >= DT_OTLP_LINE)
        write_line(w, resource);
}

/* 64-bit numbers are strings in OTLP's JSON. */
static void put_number(GString *to, const char *name, int64_t number) {
    dt_json_name(to, name);
    g_string_append_printf(to, "\"%" PRId64 "\"", number);
}

void dt_otlp_begin(GString *to, const char *name, enum dt_otlp_kind kind, int64_t begin,
                   int64_t end) {
    begin = MAX(begin, 0);
    dt_json_text(to, "name", name);
    dt_json_number(to, "kind", kind);
    put_number(to, "startTimeUnixNano", begin);
    put_number(to, "endTimeUnixNano", MAX(begin, end));
    dt_json_open(to, "attributes", '[');
}

static void begin_attribute(GString *to, const char *key) {
    dt_json_open(to, NULL, '{');
    dt_json_text(to, "key", key);
    dt_json_open(to, "value", '{');
}

static void end_attribute(GString *to) {
    dt_json_close(to, '}');
    dt_json_close(to, '}');
}

void dt_otlp_text(GString *to, const char *key, const char *text) {
    if (!*text)
        return;
    begin_attribute(to, key);
    dt_json_text(to, "stringValue", text);
    end_attribute(to);
}

void dt_otlp_number(GString *to, const char *key, int64_t number) {
    if (number == DT_NO_VALUE)
        return;
    begin_attribute(to, key);
    put_number(to, "intValue", number);
    end_attribute(to);
}

void dt_otlp_true(GString *to, const char *key) {
    begin_attribute(to, key);
    dt_json_boolean(to, "boolValue", true);
    end_attribute(to);
}

void dt_otlp_process(GString *to, const struct dt_process *process) {
    dt_otlp_text(to, "erlang.process.pid", process->pid);
    dt_otlp_text(to, "erlang.process.registered_name", process->name);
    dt_otlp_text(to, "erlang.process.label", process->label);
    dt_otlp_text(to, "erlang.process.initial_call", process->initial);
}

void dt_otlp_node_name(GString *to, const char *key, const struct dt_node *node) {
    g_autofree char *name = unquoted(node->name);

    dt_otlp_text(to, key, name);
}

void dt_otlp_attributes(GString *to, const char *attributes) {
    if (!*attributes)
        return;
    dt_json_name(to, NULL);
    g_string_append(to, attributes);
}

void dt_otlp_end(GString *to, const char *error) {
    if (error)
        dt_otlp_text(to, "error.type", error);
    dt_json_close(to, ']');
    if (!error)
        return;
    dt_json_open(to, "status", '{');
    dt_json_number(to, "code", 2);
    dt_json_text(to, "message", error);
    dt_json_close(to, '}');
}
