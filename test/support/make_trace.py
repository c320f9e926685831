#!/usr/bin/python3
"""Makes CTF 1.8 traces with known content: make_trace.py FOLDER... Each line of FOLDER.jsonl is a JSON object:

    {"time": 1000, "event": "org_erlang_dyntrace:process_spawn", "fields": {"pid": "<0.9.0>", ...},
     "vpid": 17, "vtid": 18, "procname": "1_scheduler", "cpu": 0, "trace": 0}
    {"time": 2000, "lost": 12, "cpu": 0}        a new packet; events were lost at the end of the previous one
    {"time": 2000, "packet": true, "cpu": 0}    a new packet
    {"declare": "org_erlang_dyntrace:process_spawn", "fields": ["pid"]}    a trace with only these fields
    {"environment": {"hostname": "vm", "vpid": 17}, "trace": 0}            of the trace, as for per-process buffers

Times are in ns since the epoch and increase. Fields have the types of the catalogue; missing fields are "" and 0. An
event or field that is not in the catalogue has the type of its value. A trace has the contexts that any of its lines
has, and one stream per CPU.
"""
import json
import os
import subprocess
import sys

import bt2

C_SRC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../c_src")
CONTEXTS = ("vpid", "vtid", "procname")

# The types that the tracepoints declare.
EXPAND = """
#define PROBE(name, provider, backends, when, differs, fields...) @ provider name fields
#define STR_AS(name, lttng, meaning, example) string lttng
#define STR(name, meaning, example) string name
#define NUMBER(type, name, unit, meaning, example) type name
#include "catalogue/probes.def"
"""


def catalogue():
    """Event name -> {field name: type}."""
    text = subprocess.run([os.environ.get("CC", "cc"), "-E", "-P", "-x", "c", "-I", C_SRC, "-"], input=EXPAND,
                          capture_output=True, text=True, check=True).stdout
    probes = {}
    for part in text.split("@")[1:]:
        provider, name, *fields = part.replace(";", " ").split()
        probes[f"{provider}:{name}"] = dict(zip(fields[1::2], fields[0::2]))
    return probes


def type_of(value):
    return "string" if isinstance(value, str) else "int64"


class Packet:
    def __init__(self, begin):
        self.begin, self.end, self.lost, self.events = begin, begin, 0, []


class Trace:
    def __init__(self):
        self.environment, self.events, self.declared, self.cpus, self.contexts = {}, {}, {}, {}, set()

    def add(self, line):
        if "environment" in line:
            self.environment.update(line["environment"])
            return
        if "declare" in line:
            self.declared[line["declare"]] = line["fields"]
            return
        packets = self.cpus.setdefault(line.get("cpu", 0), [])
        if not packets:
            packets.append(Packet(line["time"]))
        if "lost" in line or "packet" in line:
            packets[-1].end = line["time"]
            packets[-1].lost = line.get("lost", 0)
            # Events counted in the first packet may have been lost before it, so babeltrace2 does not report them as a
            # number.
            if len(packets) == 1:
                packets.insert(0, Packet(packets[0].begin))
            packets.append(Packet(line["time"]))
            return
        self.contexts.update(c for c in CONTEXTS if c in line)
        packets[-1].end = line["time"]
        packets[-1].events.append(line)
        known = self.events.setdefault(line["event"], self.fields_of(line["event"]))
        for name, value in line.get("fields", {}).items():
            known.setdefault(name, type_of(value))

    def fields_of(self, event):
        fields = CATALOGUE.get(event, {})
        only = self.declared.get(event, fields.keys())
        return {name: type for name, type in fields.items() if name in only}


CATALOGUE = catalogue()


class Iterator(bt2._UserMessageIterator):
    def __init__(self, config, port):
        self._messages = self._all(*port.user_data)

    def __next__(self):
        return next(self._messages)

    def _all(self, stream, classes, contexts, packets):
        yield self._create_stream_beginning_message(stream)
        for number, packet in enumerate(packets):
            if packet.lost:
                yield self._create_discarded_events_message(stream, packet.lost, packets[number - 1].end, packet.end)
            here = stream.create_packet()
            here.context_field["cpu_id"] = stream.id
            yield self._create_packet_beginning_message(here, packet.begin)
            for line in packet.events:
                yield self._event(*classes[line["event"]], contexts, here, line)
            yield self._create_packet_end_message(here, packet.end)
        yield self._create_stream_end_message(stream)

    def _event(self, event_class, empty, contexts, packet, line):
        message = self._create_event_message(event_class, packet, line["time"])
        payload, fields = message.event.payload_field, line.get("fields", {})
        for name, none in empty:
            payload[name] = fields.get(name, none)
        for name in contexts:
            message.event.common_context_field[name] = line.get(name, "" if name == "procname" else 0)
        return message


class Source(bt2._UserSourceComponent, message_iterator_class=Iterator):
    def __init__(self, config, params, traces):
        clock = self._create_clock_class(frequency=1000000000, name="monotonic")
        for number, trace in sorted(traces.items()):
            self._add(number, trace, clock)

    def _class_of(self, make, type):
        if type == "string":
            return make.create_string_field_class()
        signed, bits = type.startswith("int"), int(type.lstrip("uint"))
        if signed:
            return make.create_signed_integer_field_class(bits)
        return make.create_unsigned_integer_field_class(bits)

    def _struct(self, make, fields):
        struct = make.create_structure_field_class()
        for name, type in fields.items():
            struct.append_member(name, self._class_of(make, type))
        return struct

    def _add(self, number, trace, clock):
        make = self._create_trace_class()
        contexts = {c: "string" if c == "procname" else "int32" for c in CONTEXTS if c in trace.contexts}
        streams = make.create_stream_class(
            default_clock_class=clock, assigns_automatic_stream_id=False, supports_packets=True,
            packet_context_field_class=self._struct(make, {"cpu_id": "uint32"}),
            event_common_context_field_class=self._struct(make, contexts) if contexts else None,
            packets_have_beginning_default_clock_snapshot=True, packets_have_end_default_clock_snapshot=True,
            supports_discarded_events=True, discarded_events_have_default_clock_snapshots=True)
        classes = {name: (streams.create_event_class(name=name, payload_field_class=self._struct(make, fields)),
                          [(field, "" if type == "string" else 0) for field, type in fields.items()])
                   for name, fields in trace.events.items()}
        environment = {"hostname": "vm", "domain": "ust", "tracer_name": "lttng-ust", **trace.environment}
        here = make(name=f"trace{number}", environment=environment)
        for cpu, packets in sorted(trace.cpus.items()):
            stream = here.create_stream(streams, id=cpu, name=f"channel_{cpu}")
            self._add_output_port(f"{number}-{cpu}", (stream, classes, tuple(contexts), packets))


def main(folder):
    traces = {}
    with open(folder + ".jsonl", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            traces.setdefault(line.get("trace", 0), Trace()).add(line)
    graph = bt2.Graph()
    source = graph.add_component(Source, "source", obj=traces)
    muxer = graph.add_component(bt2.find_plugin("utils").filter_component_classes["muxer"], "muxer")
    # babeltrace2 before 2.1 supports no other version, and has no such parameter.
    version = {} if bt2.__version__.startswith("2.0") else {"ctf-version": "1.8"}
    sink = graph.add_component(bt2.find_plugin("ctf").sink_component_classes["fs"], "sink",
                               params={"path": folder, "quiet": True, **version})
    for name in source.output_ports:
        graph.connect_ports(source.output_ports[name], list(muxer.input_ports.values())[-1])
    graph.connect_ports(muxer.output_ports["out"], sink.input_ports["in"])
    graph.run()


for to in sys.argv[1:]:
    main(to)
