/*
 * The ports: what most of their trace events do not show, the port's name and its owner.
 *
 * Events tell both of a port that is opened or accepted (dt_ports_note_…), and the application asks
 * the VM about the others. The table has a fixed size. A closed port keeps its entry, since a flush
 * comes after that, until a new port needs the place.
 *
 * A port is one word, as its name, an atom, and its owner, a local pid, are.
 */
#ifndef DT_SOURCES_PORTS_H
#define DT_SOURCES_PORTS_H

#include "sources/decode.h"
#include "sources/nif.h"

enum { DT_PORTS_UNKNOWN = 0 }; /* no term is that */

struct dt_port {
    ERL_NIF_TERM name, owner; /* or DT_PORTS_UNKNOWN */
};

/* What is known of the traced port. If something is missing, the application will ask the VM. */
void dt_ports_get(const struct dt_traced *trace, struct dt_port *found);

/* The events that tell something of ports, by the group that they come in. They also say what the
   scheduler does with the port, for dt_ports_take_ready. */
void dt_ports_note_ports(const struct dt_traced *trace);
void dt_ports_note_port_receive(const struct dt_traced *trace);
void dt_ports_note_port_send(const struct dt_traced *trace);
void dt_ports_note_running_ports(const struct dt_traced *trace);

/* Whether the scheduler runs the port for input or output, not for a caller or a timeout. True once
   per run and probe. */
bool dt_ports_take_ready(const struct dt_traced *trace);

/* -- The calls of the application -------------------------------------------------- */

/* Port, Name :: atom(), Owner :: pid() */
dt_nif dt_ports_set;

/* The ports whose events came before they were known: they are returned once. */
dt_nif dt_ports_take_unknown;

/* How many ports that are not closed the table has. */
dt_nif dt_ports_count;

#endif
