"""The host command `dyntrace`: shows what the Erlang nodes of this host do, as tables, recordings and reports.

It runs outside the nodes' containers and needs no Erlang on the host. LTTng records (without privileges for nodes of
the same user), bpftrace counts (as root), and babeltrace2 with this project's plugin renders the recordings.

A package imports only from itself and from packages listed above it. `tools/imports` reads this table and checks it:

    common: texts and tables that several packages and the help texts share: error messages, events, outputs
    host: what this host offers: processes, files, programs, and child processes that read what another user controls
    node: the Erlang VMs of this host as seen from outside, and loading the library into one
    tracers: bpftrace and LTTng
    recording: recordings, snapshots, flight recorders, and rendering them with babeltrace2
    profiling: profiles from samples
    top: the frames of `dyntrace top`
    commands: one module per subcommand
    cli: from the command line to the exit status
    mcp: the subcommands as tools of the Model Context Protocol

It needs Python 3.6 and only the standard library. That version has no dataclasses, so structures are named tuples, and
it evaluates annotations eagerly, so some are quoted.
"""
