// The data of the page: {title, report, timeline, flame, counters}, any of which may be missing. A profile has
// {title, flame, was, profile} instead, with a flame graph of samples; `was` has the times of functions in an earlier
// profile.
//
// Lists of the timeline are flat arrays of numbers, with a fixed number of fields per element. They become columns
// here, with times in ns from the start of the recording.

import table from "../../../priv/python/dyntrace_command/common/otp_messages.tsv";

export const STATES = ["unknown", "waiting", "runnable", "running", "collecting", "exiting", "merged"];
export const [, WAITING, RUNNABLE, RUNNING, COLLECTING, EXITING, MERGED] = STATES.keys();

export const OUTCOMES = ["reply", "timeout", "down", "unknown"];
export const MATCHED = [
    "not matched",
    "exact, by sender",
    "exact, by token",
    "inferred, by order",
    "inferred, by order; delivered before it was sent: clocks differ",
    "inferred: deliveries are not recorded",
];

export function load() {
    const text = document.getElementById("data").textContent;
    const raw = text.startsWith("@") ? {} : JSON.parse(text);
    const report = raw.report ?? {};
    const timeline = columns(raw.timeline ?? {});
    return {
        title: raw.title || "Recording of an Erlang VM",
        report,
        timeline,
        flame: raw.flame ?? null,
        was: raw.was ?? null,
        profile: raw.profile ?? null,
        counters: raw.counters ?? [],
        begin: timeline.begin,
        length: timeline.length,
    };
}

// Splits a flat array into one typed array per field; null is NaN.
function split(flat, fields) {
    const size = Math.floor((flat?.length ?? 0) / fields.length);
    const of = Object.fromEntries(fields.map((field) => [field, new Float64Array(size)]));
    for (let n = 0, at = 0; n < size; n++) for (const field of fields) of[field][n] = flat[at++] ?? NaN;
    return { size, ...of };
}

function columns(raw) {
    const strings = raw.strings ?? [""];
    // A row of several processes has no number, so it gets a negative one; recordings have none below 0.
    const processes = (raw.processes ?? []).map((process, index) => ({
        number: -1 - index,
        pid: "",
        ...process,
        index,
        show: process.show || process.name || process.pid,
        intervals: intervals(process.intervals),
    }));
    const rows = processes.filter((process) => process.row && process.fold === undefined);
    for (const row of rows) if (row.members) Object.assign(row, { numbers: new Set(), unfolds: [] });
    for (const process of processes.filter(({ fold }) => fold !== undefined)) {
        processes[process.fold].numbers.add(process.number);
        if (process.row) processes[process.fold].unfolds.push(process);
    }
    return {
        begin: raw.begin ? BigInt(raw.begin) : null,
        length: raw.length ?? 0,
        text: (n) => strings[n] ?? "",
        processes,
        rows,
        byNumber: new Map(processes.map((process) => [process.number, process])),
        messages: messages(raw.messages),
        covered: raw.covered ?? [],
        calls: split(raw.calls, [
            "caller",
            "server",
            "began",
            "delivered",
            "taken",
            "ended",
            "outcome",
            "request",
            "reply",
        ]),
        spans: split(raw.spans, ["process", "begin", "end", "name", "outcome"]),
        marks: split(raw.marks, ["process", "time", "kind", "text"]),
        exits: split(raw.exits, ["process", "time", "reason", "crash"]),
        lost: split(raw.lost, ["begin", "end", "count"]),
        summary: raw.summary ?? null,
    };
}

// `first` and `last`: the known ones of the times when it was sent and delivered.
function messages(flat) {
    const of = split(flat, ["from", "to", "sent", "delivered", "matched", "text", "dead"]);
    const { sent, delivered } = of;
    const first = sent.map((time, n) => (Number.isNaN(time) ? delivered[n] : time));
    const last = delivered.map((time, n) => (Number.isNaN(time) ? sent[n] : time));
    return { ...of, first, last };
}

// Intervals are stored in sequence: the gap after the end of the previous one, length, state, text, and `extra`. For a
// merged interval, `extra` is the share of it that the process ran, per mille; for a collection, whether it was major.
function intervals(flat) {
    const of = split(flat, ["begin", "length", "state", "text", "extra"]);
    const end = new Float64Array(of.size);
    let last = 0;
    for (let n = 0; n < of.size; n++) {
        of.begin[n] += last;
        last = end[n] = of.begin[n] + of.length[n];
    }
    return { size: of.size, begin: of.begin, end, state: Uint8Array.from(of.state), text: of.text, extra: of.extra };
}

// The first index whose value is at least `value`; `values` are sorted.
export function lowerBound(values, value, size = values.length) {
    let low = 0,
        high = size;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (values[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

const OTP_MESSAGES = table
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split("\t"))
    .map(([word, pattern]) => [word, new RegExp(pattern)]);

// The content of a message of OTP's behaviours, without its wrapper: "call {get,17}".
export function readable(message) {
    for (const [word, pattern] of OTP_MESSAGES) {
        const found = pattern.exec(message);
        if (found) return `${word} ${found[1] || "..."}`;
    }
    return message;
}

// Whether a process of the report is the selected one, or belongs to the selected row.
export function isChosen(chosen, process) {
    return !!process && (chosen.numbers?.has(process.number) || process.number === chosen.number);
}

// The display name of a process: its name, else its label or initial call, else its pid.
export function nameOf({ name, show, pid }) {
    const shown = name || show || pid || "";
    return pid && shown.endsWith(" " + pid) ? shown.slice(0, -pid.length - 1) : shown;
}
