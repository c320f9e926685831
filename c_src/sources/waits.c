#include "sources/waits.h"

#include "backends/backends.h"
#include "catalogue/atoms.h"
#include "sources/gate.h"

/* What the thread runs. */
static _Thread_local struct {
    ERL_NIF_TERM process; /* 0, which no term is: unknown */
    bool has_received;    /* an event of 'receive' has come since it was taken up */
    bool had_received;    /* the same before the event that is being traced */
} own;

void dt_waits_note_running_procs(const struct dt_traced *trace) {
    if (!dt_gate_is_for(trace->state))
        return;
    own.process = trace->tag == atom_in ? trace->tracee : 0;
    own.has_received = false;
}

void dt_waits_note_receive(const struct dt_traced *trace) {
    if (!dt_gate_is_for(trace->state) || trace->tracee != own.process)
        return;
    own.had_received = own.has_received;
    own.has_received = true;
}

/* While process_scheduled does not fire, the process may be one that the thread ran long ago. */
bool dt_waits_is_poll(const struct dt_traced *trace) {
    return trace->term == atom_timeout && trace->tracee == own.process && own.had_received &&
           dt_gate_is_for(trace->state) && dt_gate_allows(DT_process_scheduled) &&
           dt_is_enabled(DT_process_scheduled);
}
