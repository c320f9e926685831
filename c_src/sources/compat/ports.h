/*
 * A table of the names and owners of ports, which most of their trace events lack.
 *
 * The events of opened and accepted ports contain both (dt_ports_note_…); for other ports, the
 * application asks the VM. The table has a fixed size. The entry of a closed port is retained,
 * because a flush follows, until a new port needs it.
 *
 * A port, its name (an atom) and its owner (a local pid) are one word each.
 */
#ifndef DT_SOURCES_COMPAT_PORTS_H
#define DT_SOURCES_COMPAT_PORTS_H

#include "sources/decode.h"
#include "sources/nif.h"

enum { DT_PORTS_UNKNOWN = 0 }; /* not a valid term */

struct dt_port {
    ERL_NIF_TERM name, owner; /* or DT_PORTS_UNKNOWN */
};

/* The known data of the traced port. If something is missing, the application will ask the VM. */
void dt_ports_get(const struct dt_traced *trace, struct dt_port *found);

/* Take the events that contain data of ports, by group. They also record the port that the
   scheduler runs, for dt_ports_take_ready. */
void dt_ports_note_ports(const struct dt_traced *trace);
void dt_ports_note_port_receive(const struct dt_traced *trace);
void dt_ports_note_port_send(const struct dt_traced *trace);
void dt_ports_note_running_ports(const struct dt_traced *trace);

/* Whether the scheduler runs the port for input or output, not for a caller or a timeout. Returns
   true once per run and probe. */
bool dt_ports_take_ready(const struct dt_traced *trace);

/* -- Calls by the application ------------------------------------------------------ */

/* Port, Name :: atom(), Owner :: pid() */
dt_nif dt_ports_set;

/* The ports that had events while they were unknown. Each is returned once. */
dt_nif dt_ports_take_unknown;

/* The number of open ports in the table. */
dt_nif dt_ports_count;

#endif
