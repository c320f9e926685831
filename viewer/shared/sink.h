/*
 * A sink: makes one kind of picture from what the model tells.
 *
 * Each sink is one row in sinks.def and has a folder, whose sink.c defines `const struct dt_sink
 * dt_sink_<folder>`. The plugin registers a babeltrace2 component class sink.dyntrace.<name> for
 * each.
 */
#ifndef DT_VIEWER_SHARED_SINK_H
#define DT_VIEWER_SHARED_SINK_H

#include "shared/told.h"

enum dt_param_type {
    DT_PARAM_STRING,
    DT_PARAM_FILE,
    DT_PARAM_WORD,
    DT_PARAM_INTEGER,
    DT_PARAM_BOOL
};

/* A parameter of --params. The table ends with a row without a name; values are in the same order.
 */
struct dt_param {
    const char *name;
    enum dt_param_type type;
    const char *standard;     /* its value when it is not given; NULL: it has to be given */
    const char *meaning;      /* for the class's help */
    const char *const *words; /* of a WORD: those that it may be, up to NULL */
    int64_t least, most;      /* of an INTEGER */
};

/* The file of a sink. */
#define DT_PARAM_PATH(standard)                                                                    \
    { "path", DT_PARAM_FILE, standard, "the file to write; - is standard output", NULL, 0, 0 }

/* A parameter's value, by its type. */
union dt_value {
    const char *string;
    unsigned word; /* its number among the words */
    int64_t integer;
    bool is;
};

struct dt_model;

/* Functions that are NULL are not called. `start` may keep the strings among its values, but not
   the array. `s` is what `start` returned. Everything else belongs to the model and is valid during
   the call, processes, nodes, schedulers and frames until they are told as gone. */
struct dt_sink {
    const char *description;
    const struct dt_param *params;

    /* Returns the sink's data, or NULL with an error that names the parameter. */
    void *(*start)(const union dt_value *values, GError **error);
    /* After the model's end: writes what is left. */
    bool (*finish)(void *s, const struct dt_model *model, GError **error);
    void (*free)(void *s);

#define TELL(name, declared, passed) void(*name) declared;
#include "shared/tells.def"

    /* Functions of a sink that can't go on, because the disk is full, keep their error for this;
     * NULL: it can. */
    const GError *(*failed)(void *s);
};

#endif
