"""The command `dyntrace` of a host: what the Erlang nodes there do, as tables, recordings and pictures.

It runs outside the nodes' containers and needs no Erlang there. LTTng records (no privileges needed for nodes of the
same user), bpftrace counts (as root), babeltrace2 with the plugin of this project makes the pictures.

Each module uses only those of the lines above its own. `tools/imports` reads this table and checks it:

    failures: what can go wrong, each with its next step
    terminal: texts for people, and the screen
    address, columns, contents, events, functions, sinks: tables and texts that several modules and the help texts share
    causes, rate: what may make a flight recorder write, and how often
    terms: Erlang's terms as bytes
    distribution: a connection to a node
    elf, perf_map, process: the notes of a library; the map of Erlang's code; what the kernel says of a process
    sandbox: children of this command, which look at what another user controls
    symbols: the functions of a library
    execution: programs that this command runs, with bounds
    files: files that others can reach
    trees: folders that others can change, with all that is below them
    children: what outlives this command, and how it ends
    file_system: the file system that a process sees
    container, status: what a process and its files have, what a node says of itself: root trusts none of it
    description: what can be said of an Erlang VM
    survey: the Erlang VMs among all processes
    node: the Erlang VMs of this host
    code: what runs at an address of a node
    tools: programs and data that the host has
    builds, places, reach: the library as a node needs it; its folder there; the way to a node's distribution
    loading: the library into a node that nobody has prepared, and out of it
    bpftrace_script: scripts of bpftrace, limited to a process
    bpftrace, link, lttng: one module per tool, and the connection to a relay
    notifications: what LTTng's triggers tell: a program of its own
    snapshots, triggers: what a flight recorder has written; when it has to write
    frames: the frames of `dyntrace top`
    sampled, counted: by samples; by events
    layout: where a node's memory has the process that a thread runs
    archive, session, timeline: a snapshot as a tar; a session of LTTng; the steps of a request
    mirror: recordings as babeltrace2 gets them
    inference, examined, samples: the steps of a request without a token; what a recording has; samples as paths
    hottest, callstacks: a profile as tables, as a trace of Perfetto
    flames: a profile as files
    hosts, recording: snapshots of several hosts; the recording of some nodes
    detached: a command that goes on without its terminal
    recorder: a flight recorder that writes by itself
    pictures: what babeltrace2 makes of recordings
    commands: one module per subcommand
    arguments: values on the command line
    subcommands: their table, which makes the parser
    main: from the command line to the exit status

It needs Python 3.6 and nothing but Python's own modules. That version has no dataclasses, so structures are named
tuples, and it evaluates annotations at once, so some are quoted.
"""
VERSION = "0.1.0"
