#include "shared/model_events.h"

const char *const dt_state_names[DT_STATES] = {
    [DT_STATE_UNKNOWN] = "unknown",       [DT_STATE_WAITING] = "waiting",
    [DT_STATE_RUNNABLE] = "runnable",     [DT_STATE_RUNNING] = "running",
    [DT_STATE_COLLECTING] = "collecting", [DT_STATE_EXITING] = "exiting",
};

const char *const dt_scheduler_kind_names[] = {
    [DT_SCHEDULER_NORMAL] = "normal",
    [DT_SCHEDULER_DIRTY_CPU] = "dirty_cpu",
    [DT_SCHEDULER_DIRTY_IO] = "dirty_io",
};

const char *const dt_kind_names[] = {
    [DT_PROCESS] = "process",
    [DT_PORT] = "port",
    [DT_FOREIGN] = "foreign",
};

const char *const dt_left_names[] = {
    [DT_LEFT_RETURN] = "return",       [DT_LEFT_EXCEPTION] = "exception",
    [DT_LEFT_TAIL_CALL] = "tail_call", [DT_LEFT_EXIT] = "exit",
    [DT_LEFT_UNKNOWN] = "unknown",
};

const char *const dt_matched_names[] = {
    [DT_MATCHED_NOT] = "not",     [DT_MATCHED_SENDER] = "sender", [DT_MATCHED_TOKEN] = "token",
    [DT_MATCHED_ORDER] = "order", [DT_MATCHED_EARLY] = "early",   [DT_MATCHED_RAN] = "ran",
};

const char *const dt_outcome_names[] = {
    [DT_OUTCOME_REPLY] = "reply",
    [DT_OUTCOME_TIMEOUT] = "timeout",
    [DT_OUTCOME_DOWN] = "down",
    [DT_OUTCOME_UNKNOWN] = "unknown",
};
