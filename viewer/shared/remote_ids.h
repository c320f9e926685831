/*
 * Translates identifiers between nodes.
 *
 * Each VM numbers the nodes that it knows, with 0 for itself, and uses these numbers in the texts
 * of pids, ports and references: <0.99.0> of one node is <9234.99.0> in another node.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Size of a key. The tracer truncates texts to 256 bytes, including the node numbers, so two texts
   of one message may be truncated at different places. Keys are shorter, so that they are equal. */
enum { DT_REMOTE_KEY = 128 + 1 };

/* The text of a message without node numbers: equal in the nodes of sender and receiver. */
void dt_remote_key(const char *text, char to[DT_REMOTE_KEY]);

/* The node number of a pid, port or reference; false if the text does not begin with one. */
bool dt_remote_number(const char *text, uint64_t *number);

/* The identifier in the form of its own node, with node number 0; to be freed by g_free. NULL if
   the text is not an identifier. */
char *dt_remote_at_home(const char *identifier);

/* Splits {shop,'b@host'} into two texts, to be freed by g_free; false for any other text. */
bool dt_remote_name(const char *text, char **name, char **node);

/* The name of a node without the quotes of the atom; to be freed by g_free. */
char *dt_remote_node(const char *name);
