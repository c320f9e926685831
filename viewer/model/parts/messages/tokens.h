/* The sequential trace tokens of a node's messages. */
#pragma once

#include "model/parts/messages/message.h"

/* Gives the message a token with this label and serial. */
void dt_token_add(struct message *m, const char *label, uint64_t serial);
/* Returns NULL if there is no such token. `from` may be NULL. */
struct token *dt_token_find(const struct node *node, const struct process *from, const char *label,
                            uint64_t serial);

void dt_tokens_new(struct node *node);
void dt_tokens_free(struct node *node);
