/* Messages of a Perfetto trace as arrows, mailboxes, requests, and gen_server calls. */
#pragma once

#include "perfetto/slices.h"

/* Callbacks of the sink, whose data is a struct dt_perfetto. */
void dt_perfetto_delivered(void *data, struct dt_message *message);
void dt_perfetto_message_gone(void *data, struct dt_message *message);
void dt_perfetto_mailbox(void *data, struct dt_process *process, int64_t time);
void dt_perfetto_server_call(void *data, const struct dt_server_call *call);
