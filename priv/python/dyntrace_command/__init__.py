"""The host command `dyntrace`: shows what the Erlang nodes of this host do, as tables, recordings and reports.

It runs outside the nodes' containers and needs no Erlang on the host. LTTng records (without privileges for nodes of
the same user), bpftrace counts (as root), and babeltrace2 with this project's plugin renders the recordings.

A module imports only from modules listed above it. `tools/imports` reads this table and checks it:

    failures: error messages, each with its next step
    terminal: text for users, and the screen
    address, columns, contents, events, functions, sinks: tables and texts that several modules and the help texts share
    causes, rate: what can trigger a flight recorder, and how often
    terms: the external term format
    distribution: a connection to a node
    elf, perf_map, process: a library's ELF notes; the map of JIT-compiled code; what the kernel reports about a process
    sandbox: child processes that read what another user controls
    symbols: the functions of a library
    execution: runs programs with limits on time and output
    files: files in folders that other users can change
    trees: folder trees that other users can change
    children: child processes that outlive this command and clean up after it
    file_system: the file system that a process sees
    container, status: a process's own data and files; a node's status. Root trusts none of it
    description: the description of an Erlang VM, found from outside
    survey: finds the Erlang VMs among all processes
    node: the Erlang VMs of this host
    code: the function at an address of a node
    tools: programs and data installed on the host
    builds, places, reach: the library build for a node; its folder in the node; the path to a node's distribution port
    loading: loads the library into an unprepared node, and unloads it
    bpftrace_script: limits a bpftrace script to one process
    bpftrace, link, lttng: one module per tool, and the connection to a relay
    notifications: prints the notifications of LTTng's triggers, as a separate program
    snapshots, triggers: the snapshots of a flight recorder; when it has to write one
    frames: the frames of `dyntrace top`
    sampled, counted: the frames from samples; the frames from events
    layout: where a node's memory names the process that a thread runs
    archive, session, timeline: a snapshot as a tar; an LTTng session; the steps of a request
    mirror: recordings in the form that babeltrace2 reads
    inference, examined, samples: the steps of a request without a token; a recording's counts; samples as paths
    hottest, callstacks: a profile as tables; as a Perfetto trace
    flames: a profile as files
    hosts, recording: snapshots of several hosts; recording one or more nodes
    detached: runs a command without its terminal
    recorder: a flight recorder that writes by itself
    pictures: renders recordings with babeltrace2
    commands: one module per subcommand
    arguments: values on the command line
    subcommands: the table of subcommands, from which the parser is built
    main: from the command line to the exit status

It needs Python 3.6 and only the standard library. That version has no dataclasses, so structures are named tuples, and
it evaluates annotations eagerly, so some are quoted.
"""
VERSION = "0.1.0"
