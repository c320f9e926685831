#include "model/parts/messages/messages.h"

#include <string.h>

#include "model/entities/processes.h"
#include "model/parts/messages/deliveries.h"
#include "model/parts/messages/early_deliveries.h"
#include "model/parts/messages/in_flight.h"
#include "model/parts/messages/sends.h"
#include "model/parts/messages/tokens.h"
#include "shared/texts.h"

/* Sockets accepted by listeners, for which the VM fires no port_open: if a listener passes a new
   socket to its acceptor in this message, the port begins, with the listener as its parent. The
   driver of these listeners: */
static const char driver[] = "tcp_inet";

/* {inet_async,#Port<0.12>,25,{ok,#Port<0.55>}} from #Port<0.12> */
static void accepted(struct node *node, const struct dt_message_send *e) {
    const char *at = e->message;
    char listener[64], port[64];

    if (!dt_skip(&at, "{inet_async,") || !dt_take(&at, "#Port<", listener, sizeof listener) ||
        strcmp(listener, e->from) != 0)
        return;
    at = strchr(at, '{');
    if (!at || !dt_skip(&at, "{ok,") || !dt_take(&at, "#Port<", port, sizeof port) ||
        strcmp(at, "}}") != 0)
        return;
    dt_process_create(node, port,
                      &(struct identity){dt_process_of(node, listener), "", driver, ""});
}

void dt_messages_event(struct node *node, const struct dt_recorded *event) {
    switch (event->probe) {
    case DT_message_send:
        accepted(node, &event->fields.message_send);
        dt_message_send(node, &event->fields.message_send);
        break;
    case DT_message_receive:
        dt_message_receive(node, event);
        break;
    case DT_message_delivery:
        dt_message_delivery(node, event);
        break;
    case DT_seq_trace_send:
        dt_seq_trace_send(node, &event->fields.seq_trace_send);
        break;
    case DT_seq_trace_receive:
        dt_seq_trace_receive(node, &event->fields.seq_trace_receive);
        break;
    default:
        break;
    }
}

void dt_messages_new(struct node *node) {
    dt_in_flight_new(node);
    dt_early_new(node);
    dt_tokens_new(node);
    dt_sends_new(node);
    dt_deliveries_new(node);
}

void dt_messages_free(struct node *node) {
    dt_deliveries_free(node);
    dt_sends_free(node);
    dt_tokens_free(node);
    dt_early_free(node);
    dt_in_flight_free(node);
}

void dt_messages_late(struct node *node, int64_t now) {
    dt_sends_late(node, now);
    dt_early_late(node, now);
}

void dt_messages_end(struct node *node) {
    dt_early_emit(node);
    dt_early_late(node, INT64_MAX);
    dt_in_flight_drop_all(node);
}

/* Messages in flight may have been delivered during the loss. */
void dt_messages_lost(struct node *node, int64_t begin) {
    (void)begin;
    dt_messages_end(node);
}

/* Assumes that a process has received all earlier messages when it starts running, and when it
   stops to wait. A preempted process, which may not have received all of them, looks the same. */
void dt_messages_scheduled(struct process *p, bool runs) {
    (void)runs;
    dt_deliveries_infer(p);
}
