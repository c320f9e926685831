/* Calls of gen_server and similar behaviours, from request to reply. */
#pragma once

#include "model/entities/process.h"

/* The process of an alias that a pending call uses; NULL if unknown. */
struct process *dt_alias(struct node *node, const char *text);

void dt_server_calls_new(struct node *node);
void dt_server_calls_free(struct node *node);
void dt_server_calls_lost(struct node *node, int64_t begin);
void dt_server_calls_end(struct node *node);
void dt_server_calls_exited(struct process *process, const char *reason);
void dt_server_calls_scheduled(struct process *process, bool runs);
void dt_server_calls_timed_out(struct process *process);
void dt_server_calls_sent(struct node *node, struct process *from, struct process *to,
                          const char *text);
void dt_server_calls_delivered(struct node *node, struct process *from, struct process *to,
                               const char *text, bool is_reported);
