#include "viewer/model_parts.h"

const char *const dt_outcome_names[] = {
    [DT_OUTCOME_REPLY] = "reply",
    [DT_OUTCOME_TIMEOUT] = "timeout",
    [DT_OUTCOME_DOWN] = "down",
    [DT_OUTCOME_UNKNOWN] = "unknown",
};
