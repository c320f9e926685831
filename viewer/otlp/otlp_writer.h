/*
 * Writes spans as an ExportTraceServiceRequest of OTLP in JSON:
 *
 *     {"resourceSpans":[
 *     {"resource":{...},"scopeSpans":[{"scope":{...},"spans":[...]}]}
 *     ,{"resource":{...},"scopeSpans":[{"scope":{...},"spans":[...]}]}
 *     ]}
 *
 * Each node is a resource. A line has some of the spans of a node, at most about DT_OTLP_LINE
 * bytes, so that `dyntrace view --otlp` can split the file into requests without parsing it.
 */
#pragma once

#include "shared/file.h"
#include "shared/model_events.h"

/* A line is written when its spans reach this size. */
enum { DT_OTLP_LINE = 64 * 1024 };

/* The values of `kind`. */
enum dt_otlp_kind {
    DT_OTLP_INTERNAL = 1,
    DT_OTLP_SERVER,
    DT_OTLP_CLIENT,
    DT_OTLP_PRODUCER,
    DT_OTLP_CONSUMER
};

struct dt_otlp_writer;
struct dt_otlp_writer *dt_otlp_open(const char *path, GError **error);
/* Notes the node's current identity. Before any span of the node. */
void dt_otlp_node(struct dt_otlp_writer *writer, const struct dt_node *node);
const GError *dt_otlp_failed(const struct dt_otlp_writer *writer);
/* Writes the rest. */
bool dt_otlp_close(struct dt_otlp_writer *writer, GError **error);
void dt_otlp_free(struct dt_otlp_writer *writer);
uint64_t dt_otlp_written(const struct dt_otlp_writer *writer); /* spans */

/* A span: its number, from 1, and those of its parent and of the root of its trace, from which its
   ids are derived; 0: no parent. `body` is of the functions below. */
struct dt_otlp_place {
    uint64_t number, parent, root;
};
void dt_otlp_write(struct dt_otlp_writer *writer, unsigned node, struct dt_otlp_place place,
                   const char *body);

/* -- The body of a span --------------------------------------------------------------------- */

/* Attributes follow. */
void dt_otlp_begin(GString *to, const char *name, enum dt_otlp_kind kind, int64_t begin,
                   int64_t end);
/* Omitted if the text is "". */
void dt_otlp_text(GString *to, const char *key, const char *text);
/* Omitted if it is DT_NO_VALUE. */
void dt_otlp_number(GString *to, const char *key, int64_t number);
void dt_otlp_true(GString *to, const char *key);
/* The attributes of a process. */
void dt_otlp_process(GString *to, const struct dt_process *process);
/* The name of a node, without the quotes of the atom. */
void dt_otlp_node_name(GString *to, const char *key, const struct dt_node *node);
/* Attributes that were appended to another string before. */
void dt_otlp_attributes(GString *to, const char *attributes);
/* With an error, sets the status and the attribute error.type; NULL if there was none. */
void dt_otlp_end(GString *to, const char *error);
