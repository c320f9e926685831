/*
 * Answers of ports. The VM tells each one as sent, but delivers only those to requests that were
 * sent as messages:
 *
 *     Port ! {Owner, {connect, Other}}     {Port,connected} comes to the owner's mailbox
 *     erlang:port_connect(Port, Other)     the same is told as sent, and comes to none
 *     port_control/3, port_call/3          {Port,{control,Value}}, {Port,{call,Value}}: the same,
 *                                          where a recording has them
 *     Port ! {Owner, close}                is told as `closed`; {Port,closed} comes
 */
#ifndef DT_VIEWER_MODEL_PARTS_MESSAGES_ANSWERS_H
#define DT_VIEWER_MODEL_PARTS_MESSAGES_ANSWERS_H

#include "model/entities/process.h"

/* A message with this text was sent to the port. */
void dt_answers_asked(struct process *port, const char *text);
/* The text with which what a port is told to send comes to a mailbox; NULL if it comes to none. To
   be asked once for each. */
const char *dt_answers_text(struct process *port, const char *text);

#endif
