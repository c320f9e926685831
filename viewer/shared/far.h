/*
 * What the texts of one node mean in another one.
 *
 * Each VM numbers the nodes that it knows, itself as 0, and writes pids, ports and references with
 * these numbers: <0.99.0> of one node is <9234.99.0> in another one.
 */
#ifndef DT_VIEWER_SHARED_FAR_H
#define DT_VIEWER_SHARED_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of a key. A recorded text is cut at 256 bytes, numbers of nodes included, so equal messages
   may be cut at different places: their keys are cut earlier. */
enum { DT_FAR_KEY = 128 + 1 };

/* The text of a message without the numbers of nodes: equal in the nodes of sender and receiver. */
void dt_far_key(const char *text, char to[DT_FAR_KEY]);

/* The number of the node in a pid, a port or a reference; false if the text begins with none. */
bool dt_far_number(const char *text, uint64_t *number);

/* The same identifier as its own node writes it, with 0; to be freed by g_free. NULL if it is none.
 */
char *dt_far_at_home(const char *identifier);

/* {shop,'b@host'}: two texts, to be freed by g_free; false if it is something else. */
bool dt_far_name(const char *text, char **name, char **node);

/* A node's name without the quotes that it has as an atom; to be freed by g_free. */
char *dt_far_node(const char *name);

#endif
