/*
 * Finds the parents of spans.
 *
 * The model reports spans at their ends, so children come before their parents. A span is therefore
 * held until its parent is known: the next span of its process that contains it. Until then it is
 * the root of a tree. The client span of a call has the server's span as a child, which connects
 * the spans of two processes.
 *
 * A tree is written as a trace when no parent can follow, because its process is gone, or when it
 * is the oldest of too many.
 */
#pragma once

#include "otlp/labeled_requests.h"
#include "otlp/otlp_writer.h"

struct dt_span_trees;
struct dt_span_trees *dt_span_trees_new(struct dt_otlp_writer *writer);
void dt_span_trees_free(struct dt_span_trees *trees);

/* A span: number, process and body as in otlp_writer.h. */
struct dt_held_span;
struct dt_held_span *dt_held_span(struct dt_span_trees *trees, uint64_t number,
                                  const struct dt_process *process, int64_t begin, int64_t end,
                                  GString *body);
/* The request to which it belongs; NULL if unknown. Its root and its descendants then belong to the
   same one. */
void dt_held_span_label(struct dt_held_span *span, struct dt_labeled_request *request);
/* The roots of the span's process that lie between these times become its children. `slack`: ns
   that they may begin earlier. */
void dt_held_span_adopt(struct dt_span_trees *trees, struct dt_held_span *parent,
                        struct dt_process *process, int64_t begin, int64_t end, int64_t slack);
void dt_held_span_add_child(struct dt_held_span *parent, struct dt_held_span *child);
/* It is complete, and a root of its process. */
void dt_held_span_add(struct dt_span_trees *trees, struct dt_process *process,
                      struct dt_held_span *span);

/* Writes the trees of a process that is gone. */
void dt_span_trees_process_gone(struct dt_span_trees *trees, struct dt_process *process);
