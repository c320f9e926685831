/*
 * Requests with a label of seq_trace: a trace for each, whose root span begins with the first
 * message with the label and ends with the last. A label that is used again after a pause is
 * another request, as in `dyntrace request`.
 */
#pragma once

#include "otlp/otlp_writer.h"

struct dt_labeled_requests;
/* `numbers` counts the spans of the recording. */
struct dt_labeled_requests *dt_labeled_requests_new(struct dt_otlp_writer *writer,
                                                    uint64_t *numbers);
/* Writes the root spans of all requests. */
void dt_labeled_requests_end(struct dt_labeled_requests *requests);
void dt_labeled_requests_free(struct dt_labeled_requests *requests);

/* Notes a message that has a label and a sender, and returns its request. */
struct dt_labeled_request *dt_labeled_requests_message(struct dt_labeled_requests *requests,
                                                       const struct dt_message *message);
/* The request to which a call belongs, by the message that began it; NULL if that had no label. A
   reference for the caller. */
struct dt_labeled_request *dt_labeled_requests_call(struct dt_labeled_requests *requests,
                                                    const struct dt_server_call *call);

/* The number of its root span. */
uint64_t dt_labeled_request_number(const struct dt_labeled_request *request);
/* Extends it by one of its spans. */
void dt_labeled_request_cover(struct dt_labeled_request *request, int64_t begin, int64_t end);
struct dt_labeled_request *dt_labeled_request_ref(struct dt_labeled_request *request);
void dt_labeled_request_unref(struct dt_labeled_request *request); /* may be NULL */
