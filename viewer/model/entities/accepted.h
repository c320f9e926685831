/* Sockets that listeners accept: the VM fires no port_open for them. */
#ifndef DT_VIEWER_MODEL_ENTITIES_ACCEPTED_H
#define DT_VIEWER_MODEL_ENTITIES_ACCEPTED_H

#include "model/entities/process.h"

/* A message: if a listener tells its acceptor of a socket, that begins, below the listener. */
void dt_accepted(struct node *node, const struct dt_message_send *event);

#endif
