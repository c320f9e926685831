/*
 * The babeltrace2 plugin, with a component class sink.dyntrace.<name> for each sink.
 *
 *     messages -> reader -> model -> sink
 *
 * A recording with several clocks is read twice:
 *
 *     messages -> reader -> estimate
 *     messages -> order -> reader -> model -> sink
 */
#include <babeltrace2/babeltrace.h>

#include "model/model.h"
#include "offsets/estimate.h"
#include "reading/clocks.h"
#include "reading/order.h"
#include "reading/reader.h"
#include "shared/params.h"
#include "shared/sink.h"

#define SINK(folder, name) extern const struct dt_sink dt_sink_##folder;
#include "sinks.def"

struct component {
    const struct dt_sink *sink;
    const char *name; /* of the sink, to display */
    void *of_sink;
    const bt_value *params; /* has the strings that the sink may keep */
    struct dt_model *model;
    struct dt_reader *reader;
    struct dt_clocks *clocks;
    struct dt_estimate *estimate;  /* during the first of two passes */
    struct dt_order *order;        /* during the second of two passes */
    bool is_begun;                 /* the first event has been read */
    bool corrects;                 /* the parameter `clocks` */
    bool shows_contents;           /* the parameter `contents` */
    struct dt_command_notes notes; /* the parameters `ended` and `stacks` */
    bt_message_iterator *messages;
};

/* Parameters of all sinks. */
enum { CLOCKS, CONTENTS, ENDED, STACKS };
enum { CORRECTED, RECORDED };
enum { SHAPE, FULL };

static const struct dt_param common[] = {
    [CLOCKS] =
        DT_PARAM_WORD("clocks", "corrected",
                      "times of several hosts: corrected by the messages between nodes, or as "
                      "recorded",
                      "corrected", "recorded"),
    [CONTENTS] =
        DT_PARAM_WORD("contents", "shape",
                      "exit reasons and log lines: with only the shape of binaries, strings "
                      "and long numbers, or in full",
                      "shape", "full"),
    [ENDED] = DT_PARAM_STRING("ended", "", "nodes that ended, and how: a finding per line"),
    [STACKS] = DT_PARAM_STRING("stacks", "",
                               "what processes did at the end, by their stacks: the contents of "
                               "stacks.tsv"),
    {0},
};

#define FAIL(self, ...)                                                                            \
    BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT(                                           \
        bt_self_component_sink_as_self_component(self), __VA_ARGS__)

static struct component *component_of(bt_self_component_sink *self) {
    return bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
}

static void free_component(struct component *c) {
    if (!c)
        return;
    bt_message_iterator_put_ref(c->messages);
    dt_order_free(c->order);
    dt_reader_free(c->reader);
    dt_estimate_free(c->estimate);
    dt_model_free(c->model);
    if (c->of_sink && c->sink->free)
        c->sink->free(c->of_sink);
    dt_clocks_free(c->clocks);
    bt_value_put_ref(c->params);
    g_free(c);
}

static const struct dt_reads to_estimate = {.event = dt_estimate_event};

/* -- Start -------------------------------------------------------------------------- */

static bool start_sink(struct component *c, GError **error) {
    union dt_value *values = dt_params_read(common, c->sink->params, c->params, error);

    if (!values)
        return false;
    c->corrects = values[CLOCKS].word == CORRECTED;
    c->shows_contents = values[CONTENTS].word == FULL;
    c->notes = (struct dt_command_notes){values[ENDED].string, values[STACKS].string};
    g_free(values);
    values = dt_params_read(c->sink->params, common, c->params, error);
    if (!values)
        return false;
    c->of_sink = c->sink->start ? c->sink->start(values, error) : NULL;
    g_free(values);
    return !c->sink->start || c->of_sink;
}

static bt_component_class_initialize_method_status initialize(bt_self_component_sink *self,
                                                              const bt_value *params,
                                                              const struct dt_sink *sink,
                                                              const char *name) {
    struct component *c = g_new0(struct component, 1);
    GError *error = NULL;

    c->sink = sink;
    c->name = name;
    c->params = params;
    bt_value_get_ref(params);
    if (!start_sink(c, &error)) {
        FAIL(self, "sink.dyntrace.%s: %s", name, error ? error->message : "can't start");
        g_clear_error(&error);
        free_component(c);
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
    }
    c->model = dt_model_new(sink->collector ? sink->collector : sink, c->of_sink, c->shows_contents,
                            c->notes);
    c->clocks = dt_clocks_new();
    c->reader = dt_reader_new(&dt_model_reads, c->model, c->clocks);
    bt_self_component_set_data(bt_self_component_sink_as_self_component(self), c);
    if (bt_self_component_sink_add_input_port(self, "in", NULL, NULL) !=
        BT_SELF_COMPONENT_ADD_PORT_STATUS_OK) {
        free_component(c);
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
    }
    return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static bt_component_class_sink_graph_is_configured_method_status
connect(bt_self_component_sink *self) {
    bt_self_component_port_input *port =
        bt_self_component_sink_borrow_input_port_by_name(self, "in");

    if (bt_message_iterator_create_from_sink_component(self, port, &component_of(self)->messages) !=
        BT_MESSAGE_ITERATOR_CREATE_FROM_SINK_COMPONENT_STATUS_OK) {
        FAIL(self, "sink.dyntrace.%s: the trace can't be read", component_of(self)->name);
        return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_ERROR;
    }
    return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;
}

static bt_component_class_get_supported_mip_versions_method_status
get_mip_versions(bt_self_component_class_sink *self, const bt_value *params, void *data,
                 bt_logging_level level, bt_integer_range_set_unsigned *versions) {
    (void)self, (void)params, (void)data, (void)level;
    /* Version 1 is for CTF 2. The parts that the reader uses are the same in both. */
    return bt_integer_range_set_unsigned_add_range(versions, 0, 1) ==
                   BT_INTEGER_RANGE_SET_ADD_RANGE_STATUS_OK
               ? BT_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD_STATUS_OK
               : BT_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD_STATUS_MEMORY_ERROR;
}

/* -- Messages ----------------------------------------------------------------------- */

static bool has_failed(bt_self_component_sink *self, const struct component *c) {
    const GError *error = c->sink->failed ? c->sink->failed(c->of_sink) : NULL;

    if (error)
        FAIL(self, "sink.dyntrace.%s: %s", c->name, error->message);
    return error;
}

/* The command `dyntrace` displays lines that begin with "dyntrace: ", and the next step. */
static const char nameless[] =
    "dyntrace: the recording has no names of processes: the node sent none during the recording\n"
    "  next: record for a few seconds longer; if names are still missing, make sure that the "
    "option `probes` of the node includes process_identity\n";

static bool finish(bt_self_component_sink *self, const struct component *c) {
    GError *error = NULL;

    dt_model_end(c->model);
    if (c->sink->finish && !c->sink->finish(c->of_sink, c->model, &error)) {
        FAIL(self, "sink.dyntrace.%s: %s", c->name, error ? error->message : "can't finish");
        g_clear_error(&error);
        return false;
    }
    if (has_failed(self, c))
        return false;
    if (dt_model_is_nameless(c->model))
        g_printerr("%s", nameless);
    return true;
}

/* All streams begin before the first event, so that all clocks are known by then. */
static void note_clock(struct component *c, const bt_message *m) {
    if (bt_message_get_type(m) == BT_MESSAGE_TYPE_STREAM_BEGINNING)
        dt_clocks_of(c->clocks, bt_message_stream_beginning_borrow_stream_const(m));
}

static bool is_event(const bt_message *m) {
    return bt_message_get_type(m) == BT_MESSAGE_TYPE_EVENT;
}

/* A session that is still being recorded can't be read twice. */
static bool can_read_twice(const struct component *c) {
    bt_bool can = BT_FALSE;

    return bt_message_iterator_can_seek_beginning(c->messages, &can) ==
               BT_MESSAGE_ITERATOR_CAN_SEEK_BEGINNING_STATUS_OK &&
           can;
}

static void begin_estimate(struct component *c) {
    c->estimate = dt_estimate_new();
    dt_reader_free(c->reader);
    c->reader = dt_reader_new(&to_estimate, c->estimate, c->clocks);
}

static void read_message(void *component, const bt_message *m) {
    const struct component *c = component;

    dt_reader_message(c->reader, m);
    bt_message_put_ref(m);
}

/* Ends the first pass, and starts the second pass for the model. */
static bool end_estimate(bt_self_component_sink *self, struct component *c) {
    dt_estimate_end(c->estimate, c->clocks);
    g_clear_pointer(&c->estimate, dt_estimate_free);
    dt_reader_free(c->reader);
    c->reader = dt_reader_new(&dt_model_reads, c->model, c->clocks);
    c->order = dt_order_new(c->clocks, read_message, c);
    if (bt_message_iterator_seek_beginning(c->messages) ==
        BT_MESSAGE_ITERATOR_SEEK_BEGINNING_STATUS_OK)
        return true;
    FAIL(self, "sink.dyntrace.%s: the trace can't be read twice; try clocks=\"recorded\"", c->name);
    return false;
}

static void handle(struct component *c, const bt_message *m) {
    note_clock(c, m);
    if (!c->is_begun && is_event(m)) {
        c->is_begun = true;
        dt_clocks_sort(c->clocks);
        if (c->corrects && dt_clocks_differ(c->clocks) && can_read_twice(c))
            begin_estimate(c);
    }
    if (c->order)
        dt_order_add(c->order, m);
    else
        read_message(c, m);
}

static bt_component_class_sink_consume_method_status consume(bt_self_component_sink *self) {
    struct component *c = component_of(self);
    bt_message_array_const messages;
    uint64_t count;
    bt_message_iterator_next_status status =
        bt_message_iterator_next(c->messages, &messages, &count);

    if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END && c->estimate)
        return end_estimate(self, c) ? BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK
                                     : BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR;
    if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END && c->order)
        dt_order_end(c->order);
    if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END)
        return finish(self, c) ? BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END
                               : BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR;
    /* The statuses of both functions have the same values. */
    if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK)
        return (bt_component_class_sink_consume_method_status)status;
    for (uint64_t i = 0; i < count; i++)
        handle(c, messages[i]);
    return has_failed(self, c) ? BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR
                               : BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
}

static void finalize(bt_self_component_sink *self) {
    free_component(component_of(self));
}

/* -- The component classes ------------------------------------------------------------ */

/* The macros of babeltrace2 need the addresses of these texts at compile time. */
static struct {
    char description[200];
    char help[4000];
} texts[] = {
#define SINK(folder, name) {"", ""},
#include "sinks.def"
};

enum {
#define SINK(folder, name) TEXTS_##folder,
#include "sinks.def"
};

static void describe(const struct dt_sink *sink, unsigned n) {
    char *help = dt_params_help(sink->params, common);

    g_strlcpy(texts[n].description, sink->description, sizeof texts[n].description);
    g_strlcpy(texts[n].help, help, sizeof texts[n].help);
    g_free(help);
}

__attribute__((constructor)) static void describe_all(void) {
#define SINK(folder, name) describe(&dt_sink_##folder, TEXTS_##folder);
#include "sinks.def"
}

#define SINK(folder, name)                                                                         \
    static bt_component_class_initialize_method_status initialize_##folder(                        \
        bt_self_component_sink *self, bt_self_component_sink_configuration *configuration,         \
        const bt_value *params, void *data) {                                                      \
        (void)configuration, (void)data;                                                           \
        return initialize(self, params, &dt_sink_##folder, #name);                                 \
    }
#include "sinks.def"

/* babeltrace2 looks up these symbols. */
#pragma GCC visibility push(default)
BT_PLUGIN_MODULE();
#pragma GCC visibility pop

BT_PLUGIN(dyntrace);
BT_PLUGIN_DESCRIPTION("Pictures of recorded Erlang nodes");
BT_PLUGIN_LICENSE("Apache-2.0");
BT_PLUGIN_VERSION(DT_MAJOR, DT_MINOR, DT_PATCH, NULL);

#define SINK(folder, name)                                                                         \
    BT_PLUGIN_SINK_COMPONENT_CLASS(name, consume);                                                 \
    BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(name, texts[TEXTS_##folder].description);           \
    BT_PLUGIN_SINK_COMPONENT_CLASS_HELP(name, texts[TEXTS_##folder].help);                         \
    BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(name, initialize_##folder);                   \
    BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(name, finalize);                                \
    BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(name, connect);                      \
    BT_PLUGIN_SINK_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(name, get_mip_versions);
#include "sinks.def"
