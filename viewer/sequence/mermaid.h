/* A sequence diagram in the syntax of Mermaid. */
#ifndef DT_VIEWER_SEQUENCE_MERMAID_H
#define DT_VIEWER_SEQUENCE_MERMAID_H

#include "sequence/collect.h"

/* `nothing`: the reason for an empty diagram, or NULL. */
void dt_sequence_mermaid(struct dt_sequence *sequence, const char *nothing, GString *to);

#endif
