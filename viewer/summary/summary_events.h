/*
 * The callbacks of a sink that collect a summary. The sink's data has to be the summary.
 * DT_SUMMARY_COLLECTS lists the callbacks for the sink's table.
 */
#pragma once

#include "summary/summary.h"

struct dt_model;

void dt_summary_node(void *data, struct dt_node *node);
void dt_summary_process(void *data, struct dt_process *process, int64_t time);
void dt_summary_process_named(void *data, struct dt_process *process, int64_t time);
void dt_summary_process_exited(void *data, const struct dt_exit *e);
void dt_summary_process_gone(void *data, struct dt_process *process);
void dt_summary_interval(void *data, const struct dt_interval *i);
void dt_summary_mailbox(void *data, struct dt_process *process, int64_t time);
void dt_summary_call_begin(void *data, struct dt_frame *frame);
void dt_summary_call_end(void *data, struct dt_frame *frame);
void dt_summary_sent(void *data, struct dt_message *m);
void dt_summary_delivered(void *data, struct dt_message *m);
void dt_summary_message_gone(void *data, struct dt_message *m);
void dt_summary_server_call(void *data, const struct dt_server_call *c);
void dt_summary_instant(void *data, const struct dt_instant *i);
void dt_summary_sample(void *data, struct dt_process *process,
                       const struct dt_process_sample *sample, int64_t time);
void dt_summary_span(void *data, const struct dt_span *span);
void dt_summary_counter(void *data, struct dt_node *node, const char *name, const char *unit,
                        int64_t value, int64_t time);
void dt_summary_lost(void *data, const struct dt_lost *lost);

/* Call it after the end of the model. */
void dt_summary_end(struct dt_summary *summary, const struct dt_model *model);

#define DT_SUMMARY_COLLECTS                                                                        \
    .node = dt_summary_node, .node_gone = dt_summary_node, .process = dt_summary_process,          \
    .process_named = dt_summary_process_named, .process_exited = dt_summary_process_exited,        \
    .process_gone = dt_summary_process_gone, .interval = dt_summary_interval,                      \
    .mailbox = dt_summary_mailbox, .call_begin = dt_summary_call_begin,                            \
    .call_end = dt_summary_call_end, .sent = dt_summary_sent, .delivered = dt_summary_delivered,   \
    .message_gone = dt_summary_message_gone, .server_call = dt_summary_server_call,                \
    .span = dt_summary_span, .instant = dt_summary_instant, .counter = dt_summary_counter,         \
    .sample = dt_summary_sample, .lost = dt_summary_lost
