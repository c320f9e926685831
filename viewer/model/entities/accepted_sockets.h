/* Sockets accepted by listeners, for which the VM fires no port_open. */
#pragma once

#include "model/entities/process.h"

/* If a listener passes a new socket to its acceptor in this message, begins that port, with the
   listener as its parent. */
void dt_accepted(struct node *node, const struct dt_message_send *event);
