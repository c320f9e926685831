/*
 * Messages in flight. Each is in the list of its receiver, if that is known, and in the node's list
 * by age, whose oldest leave first when there are too many.
 *
 * A message to another recorded node is among those of that node, since its delivery is told there.
 * No tracer tells who of another node has sent what is delivered, so such a message is found by its
 * text. If it has a token, it was delivered then, but is told only when seq_trace_receive says
 * which one it was.
 */
#ifndef DT_VIEWER_MODEL_PARTS_MESSAGES_IN_FLIGHT_H
#define DT_VIEWER_MODEL_PARTS_MESSAGES_IN_FLIGHT_H

#include "model/parts/messages/list.h"

/* To this process. */
struct list *dt_in_flight_to(struct process *process);
/* To names and aliases of a node whose process is unknown. */
struct list *dt_in_flight_unaddressed(const struct node *node);
/* The last one that was added. */
struct message *dt_in_flight_youngest(const struct node *node);

void dt_in_flight_add(struct message *m);
void dt_in_flight_take_out(struct message *m);
/* It has reached the receiver, and seq_trace_receive will tell which one it was. */
void dt_in_flight_arrive(struct message *m, const struct delivery *d);
/* It is in flight no more, and was not delivered as far as is known. */
void dt_in_flight_drop(struct message *m);
void dt_in_flight_drop_all(struct node *node);
/* So that there is room for one more. */
void dt_in_flight_make_room(struct node *node);

/* Deliveries are recorded in this node, so more messages may wait for theirs. */
void dt_in_flight_delivered(struct node *node);

void dt_in_flight_new(struct node *node);
void dt_in_flight_free(struct node *node);

#endif
