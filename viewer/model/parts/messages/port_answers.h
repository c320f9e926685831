/*
 * Answers of ports. The VM reports each answer as sent, but delivers only answers to requests that
 * were sent as messages:
 *
 *     Port ! {Owner, {connect, Other}}     {Port,connected} is delivered to the owner
 *     erlang:port_connect(Port, Other)     the same is reported as sent, but not delivered
 *     port_control/3, port_call/3          {Port,{control,Value}}, {Port,{call,Value}}: likewise,
 *                                          if the recording has them
 *     Port ! {Owner, close}                reported as `closed`, delivered as {Port,closed}
 */
#pragma once

#include "model/entities/process.h"

/* Notes the request in a message that was sent to the port. */
void dt_answers_requested(struct process *port, const char *text);
/* Given the reported text of an answer, returns the text that is delivered; NULL if it is not
   delivered. To be called once for each answer. */
const char *dt_answers_text(struct process *port, const char *text);
