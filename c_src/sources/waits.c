#include "sources/waits.h"

#include "backends/backends.h"
#include "catalogue/atoms.h"
#include "sources/gate.h"

/* The current process of the thread. */
static _Thread_local struct {
    ERL_NIF_TERM process; /* 0, which is not a valid term: unknown */
    bool has_run;         /* after it was scheduled in, according to its events */
    bool is_poll;         /* the event of 'receive' that is being traced */
} own;

void dt_waits_note_running_procs(const struct dt_traced *trace) {
    if (!dt_gate_is_for(trace->state))
        return;
    own.process = trace->tag == atom_in ? trace->tracee : 0;
    own.has_run = false;
}

/* If scheduling is not traced, the thread may switch to other processes unnoticed. */
static bool is_scheduling_traced(void) {
    return dt_gate_allows(DT_process_scheduled) && dt_is_enabled(DT_process_scheduled);
}

void dt_waits_note_receive(const struct dt_traced *trace) {
    if (!dt_gate_is_for(trace->state))
        return;
    own.is_poll = false;
    if (!is_scheduling_traced())
        own.process = 0;
    if (trace->tracee != own.process || trace->term != atom_timeout)
        return;
    own.is_poll = own.has_run;
    own.has_run = true;
}

void dt_waits_note_send(const struct dt_traced *trace) {
    if (dt_gate_is_for(trace->state) && trace->tracee == own.process)
        own.has_run = true;
}

bool dt_waits_is_poll(const struct dt_traced *trace) {
    return dt_gate_is_for(trace->state) && own.is_poll;
}
