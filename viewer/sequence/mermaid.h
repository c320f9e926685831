/* A sequence diagram as text of Mermaid. */
#ifndef DT_VIEWER_SEQUENCE_MERMAID_H
#define DT_VIEWER_SEQUENCE_MERMAID_H

#include "sequence/collect.h"

void dt_sequence_mermaid(struct dt_sequence *sequence, GString *to);

#endif
