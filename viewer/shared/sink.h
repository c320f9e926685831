/*
 * A sink: turns the events of the model into one output format.
 *
 * Each sink has one row in sinks.def and a folder, whose <folder>_sink.c defines `const struct
 * dt_sink dt_sink_<folder>`. The plugin registers a babeltrace2 component class
 * sink.dyntrace.<name> for each.
 */
#pragma once

#include "shared/model_events.h"

enum dt_param_type { DT_STRING, DT_FILE, DT_WORD, DT_INTEGER, DT_BOOL };

/* A parameter of --params. A table ends with a row without a name; the values have the order of the
   table. */
struct dt_param {
    const char *name;
    enum dt_param_type type;
    const char *standard;     /* the default value; NULL if the parameter is required */
    const char *meaning;      /* for the help of the component class */
    const char *const *words; /* of a WORD: the allowed words, terminated by NULL */
    int64_t least, most;      /* of an INTEGER */
};

/* Parameters by type. */
#define DT_PARAM_STRING(name, standard, meaning)                                                   \
    { name, DT_STRING, standard, meaning, NULL, 0, 0 }
#define DT_PARAM_BOOL(name, standard, meaning)                                                     \
    { name, DT_BOOL, standard, meaning, NULL, 0, 0 }
#define DT_PARAM_INTEGER(name, standard, meaning, least, most)                                     \
    { name, DT_INTEGER, standard, meaning, NULL, least, most }
#define DT_PARAM_WORD(name, standard, meaning, ...)                                                \
    { name, DT_WORD, standard, meaning, (const char *const[]){__VA_ARGS__, NULL}, 0, 0 }
/* The output file of a sink. */
#define DT_PARAM_PATH(standard)                                                                    \
    { "path", DT_FILE, standard, "the file to write; - is standard output", NULL, 0, 0 }

/* The value of a parameter, by its type. */
union dt_value {
    const char *string;
    unsigned word; /* index in `words` */
    int64_t integer;
    bool is;
};

/* What a sink prints about a recording without any event of dyntrace. */
#define DT_NOTHING_RECORDED                                                                        \
    "the recording has no events of dyntrace: record while the node is working, and check with "   \
    "`dyntrace nodes` that it has started the application"

/* Reports on standard error that a sink has nothing to show: the reason, and what to do. The user
   may never open the output file. */
static inline void dt_nothing(const char *why) {
    g_printerr("dyntrace: nothing to show: %s\n", why);
}

struct dt_model;

/* Functions that are NULL are not called. `start` may keep the strings among its values, but not
   the array. `data` is the return value of `start`. All other arguments belong to the model:
   processes, nodes, schedulers and frames are valid until the model reports their end, the rest
   only during the call. */
struct dt_sink {
    const char *description;
    const struct dt_param *params;

    /* Returns the sink's data, or NULL with an error that names the parameter. */
    void *(*start)(const union dt_value *values, GError **error);
    /* Writes the remaining output after the end of the model. */
    bool (*finish)(void *data, const struct dt_model *model, GError **error);
    void (*free)(void *data);

    /* The sink whose functions the model calls instead of those below, with the same data; NULL for
       none. */
    const struct dt_sink *collector;

#define MODEL_EVENT(name, declared, passed) void(*name) declared;
#include "shared/model_events.def"

    /* Returns the error of a sink that cannot continue, for example because the disk is full; NULL
     * if there is none. */
    const GError *(*failed)(void *data);
};
