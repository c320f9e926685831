/* A sequence diagram as text of Mermaid. */
#ifndef DT_VIEWER_SEQUENCE_MERMAID_H
#define DT_VIEWER_SEQUENCE_MERMAID_H

#include "sequence/collect.h"

/* `nothing`: why there are no steps, or NULL. */
void dt_sequence_mermaid(struct dt_sequence *sequence, const char *nothing, GString *to);

#endif
