// The report's tables. docs/report.md describes the rows.

import { placeOf, TOTALS } from "./counters.js";
import { cut, h, plain } from "./dom.js";
import { isChosen, nameOf } from "./data.js";
import { bytes, count, duration, local, since, UNKNOWN } from "./format.js";
import { choose, goTo } from "./shared.js";
import { Table } from "./table.js";

const ref = (process) =>
    process ? `${process.name || process.show || ""} ${process.pid ?? ""} ${process.node ?? ""}` : "";

// A process as a button that selects it; a sum of several processes as text.
function processButton(process) {
    if (!process) return UNKNOWN;
    const { number, pid } = process;
    const name = nameOf(process) || UNKNOWN;
    const content = [cut(name, 200), pid && name !== pid && [" ", h("span", { class: "pid" }, plain(pid))]].flat();
    if (number === null || number === undefined) return h("span", content);
    const click = () => choose(process);
    return h("button", { type: "button", class: "plain link", title: "Show only this process", click }, content);
}

class Columns {
    constructor(data) {
        this.data = data;
        this.zero = data.begin === null ? (data.report.recording?.begin ?? 0) : Number(data.begin);
    }

    process(title, field, more = {}) {
        return {
            title,
            value: (row) => ref(field ? row[field] : row),
            className: "process",
            show: (row) => processButton(field ? row[field] : row),
            ...more,
        };
    }

    text(title, field, more = {}) {
        return {
            title,
            field,
            value: (row) => row[field] ?? "",
            show: (_, value) => cut(value, 2000) || UNKNOWN,
            ...more,
        };
    }

    code(title, field, more = {}) {
        return this.text(title, field, {
            show: (_, value) => h("code", cut(value, 2000) || UNKNOWN),
            className: "wide",
            ...more,
        });
    }

    count(title, field, more = {}) {
        return {
            title,
            field,
            number: true,
            value: (row) => row[field] ?? null,
            show: (_, value) => count(value),
            ...more,
        };
    }

    ns(title, field, more = {}) {
        return this.count(title, field, { show: (_, value) => duration(value), ...more });
    }

    // A time of the report, in ns since the epoch, as a double: exact to a quarter of a microsecond.
    time(title, field, lasts = () => 0, more = {}) {
        const relative = (row) => (row[field] === null || row[field] === undefined ? null : row[field] - this.zero);
        return {
            title,
            number: true,
            className: "time",
            value: relative,
            ...more,
            show: (row, value) =>
                value === null
                    ? UNKNOWN
                    : h(
                          "button",
                          {
                              type: "button",
                              class: "plain link",
                              title: local(this.data.begin, value) + ": show it in the timeline",
                              click: () => goTo(value, value + lasts(row)),
                          },
                          since(value, 1e8),
                      ),
        };
    }
}

const about =
    (...fields) =>
    (row, process) =>
        fields.some((field) => isChosen(process, row[field]));

// The values of optional columns: a column with `only` is shown if any row has such a value.
const known = (value) => value !== null && value !== undefined && value !== "";
const positive = (value) => value > 0;

function tables(data) {
    const c = new Columns(data);
    const { report } = data;
    // With several nodes, the number of the node as in the head of the page.
    const nodes = (report.recording?.nodes ?? []).map(({ node }) => node);
    const node = (...fields) => {
        const name = (row) => row.node ?? fields.map((field) => row[field]?.node).find(Boolean) ?? "";
        return (
            nodes.length > 1 && {
                title: "Node",
                value: (row) => nodes.indexOf(name(row)) + 1 || null,
                filter: name,
                show: (row, value) => h("span", { title: name(row) }, count(value)),
            }
        );
    };
    // A part of the time of calls: the 99th percentile, or the longest of fewer than 100 calls.
    const part = (title, name, more = {}) =>
        c.ns(title, `${name}_max_ns`, {
            value: (row) => row[`${name}_p99_ns`] ?? row[`${name}_max_ns`] ?? null,
            help: "99 %, or the longest of fewer than 100 calls",
            ...more,
        });
    const counters = report.counters ?? [];
    const wasZero = ({ min, max }) => min === 0 && max === 0;
    return {
        processes: {
            title: "Processes",
            sort: "Ran",
            concerns: about("process", "parent"),
            columns: [
                c.process("Process", "process"),
                c.code("Initial call", "initial", { className: "call", only: known }),
                c.code("Label", "label", { className: "call", only: known }),
                c.text("Group", "group", { help: "The nearest ancestor with a name", className: "short", only: known }),
                node("process"),
                c.ns("Ran", "run_ns", { bar: true, help: "Time on a scheduler" }),
                c.ns("Collecting", "collecting_ns", { help: "Time in garbage collections" }),
                c.ns("Runnable", "runnable_ns", { help: "Time spent waiting for a scheduler (inferred)" }),
                c.ns("Longest wait", "longest_wait_ns", { help: "The longest wait for a scheduler (inferred)" }),
                c.count("Sent", "sent", { help: "Messages sent" }),
                c.count("Received", "received", { help: "Messages received" }),
                c.count("In flight", "mailbox_max", { help: "The most messages in flight to the process at once" }),
            ],
        },
        calls: {
            title: "Function calls",
            sort: "Total",
            columns: [
                c.code("Function", "entry"),
                node(),
                c.count("Calls", "count"),
                c.ns("Total", "total_ns", { bar: true }),
                c.ns("Own", "own_ns", { help: "Excluding the functions that it called" }),
                c.ns("Median", "p50_ns"),
                c.ns("99 %", "p99_ns"),
                c.ns("Longest", "max_ns"),
                c.count("Exceptions", "exceptions"),
            ],
        },
        server_calls: {
            title: "Server calls",
            sort: "99 %",
            concerns: about("caller", "server"),
            note:
                "Times from request to reply, and their parts (inferred): in the mailbox; while the server waited " +
                "for a scheduler; its work; deferred, because it went on to something else before it replied.",
            columns: [
                c.process("Caller", "caller"),
                c.process("Server", "server"),
                node("server"),
                c.code("Request", "request"),
                c.count("Calls", "count"),
                c.ns("Median", "p50_ns"),
                c.ns("99 %", "p99_ns", { bar: true }),
                c.ns("Longest", "max_ns"),
                part("Mailbox", "queued"),
                part("Runnable", "runnable", { only: positive }),
                part("Work", "worked"),
                part("Deferred", "deferred", { only: positive }),
                c.count("Timeouts", "timeouts", { only: positive }),
                c.count("Failed", "downs", { help: "The server exited or did not exist", only: positive }),
            ],
        },
        talks: {
            title: "Messages by sender and receiver",
            sort: "Messages",
            concerns: about("from", "to"),
            columns: [
                c.process("From", "from"),
                c.process("To", "to"),
                node("from", "to"),
                c.count("Messages", "messages", { bar: true }),
                c.count("Inferred", "inferred", {
                    help: "Messages whose sender is inferred from their order",
                    only: positive,
                }),
            ],
        },
        dead: {
            title: "Messages to the dead",
            concerns: about("from", "to"),
            columns: [
                c.process("From", "from"),
                {
                    title: "To",
                    value: (row) => row.to_text || ref(row.to),
                    className: "process",
                    show: (row) => (row.to ? processButton(row.to) : h("code", cut(row.to_text ?? "", 200))),
                },
                node("from", "to"),
                c.count("Messages", "messages", { bar: true }),
                c.code("Example", "example"),
            ],
        },
        exits: {
            title: "Crashes",
            sort: "At",
            up: true,
            concerns: (row, process) =>
                about("process")(row, process) || (row.linked ?? []).some((linked) => isChosen(process, linked)),
            columns: [
                c.time("At", "time"),
                c.process("Process", "process"),
                node("process"),
                c.code("Reason", "reason"),
                {
                    title: "Linked",
                    value: (row) => (row.linked ?? []).map(ref).join(" "),
                    className: "process",
                    show: (row) =>
                        row.linked?.length
                            ? row.linked.flatMap((linked, n) => [n > 0 ? ", " : "", processButton(linked)])
                            : UNKNOWN,
                },
            ],
        },
        waits: {
            title: "Longest waits for a scheduler",
            sort: "Waited",
            concerns: about("process"),
            columns: [
                c.time("At", "time", (row) => row.ns ?? 0),
                c.process("Process", "process"),
                node("process"),
                c.ns("Waited", "ns", { bar: true }),
                c.code("In", "function"),
            ],
        },
        collections: {
            title: "Longest garbage collections",
            sort: "Took",
            concerns: about("process"),
            columns: [
                c.time("At", "time", (row) => row.ns ?? 0),
                c.process("Process", "process"),
                node("process"),
                c.ns("Took", "ns", { bar: true }),
                { title: "Kind", value: (row) => (row.is_major ? "major" : "minor") },
                c.count("Reclaimed, words", "reclaimed_words"),
                c.count("Heap, words", "heap_words"),
            ],
        },
        ports: {
            title: "Ports",
            concerns: about("port", "owner"),
            columns: [
                c.process("Port", "port"),
                c.process("Owner", "owner"),
                node("port"),
                c.count("Messages in", "messages_in"),
                c.count("Messages out", "messages_out"),
                c.count("Bytes out", "bytes_out", { show: (_, value) => bytes(value), only: known }),
                c.ns("Ran", "run_ns"),
            ],
        },
        spans: {
            title: "Spans",
            sort: "99 %",
            columns: [
                c.text("Name", "name", { className: "short" }),
                c.count("Spans", "count"),
                c.ns("Median", "p50_ns"),
                c.ns("99 %", "p99_ns", { bar: true }),
                c.ns("Longest", "max_ns"),
                c.count("Failed", "failed"),
            ],
        },
        telemetry: {
            title: "Telemetry",
            sort: "Total",
            columns: [
                c.text("Event", "name", { className: "short" }),
                c.count("Events", "count"),
                c.ns("Total", "total_ns", { bar: true }),
                c.ns("Median", "p50_ns"),
                c.ns("99 %", "p99_ns"),
                c.ns("Longest", "max_ns"),
                c.count("Exceptions", "failed"),
            ],
        },
        counters: {
            title: "Counters of the VM",
            rows: counters.filter((row) => !wasZero(row)),
            sort: "Counter",
            note: counters.some(wasZero) && "Without counters that were always 0.",
            columns: [
                // Sorted by importance, not alphabetically.
                c.text("Counter", "name", {
                    value: ({ name }) => placeOf(name) + name,
                    filter: ({ name }) => name,
                    show: ({ name }) => cut(name, 100),
                    className: "short",
                }),
                node(),
                c.text("Unit", "unit", { className: "short" }),
                counter("Min", ({ name, min }) => (TOTALS.has(name) ? null : min)),
                counter("Max", ({ name, max }) => (TOTALS.has(name) ? null : max)),
                counter("Last", ({ name, last }) => (TOTALS.has(name) ? null : last)),
                counter("Per second", (row) => (TOTALS.has(row.name) ? perSecond(data, row) : null), {
                    help: "How fast the counter grew, if it counts from the start of the node",
                }),
            ],
        },
        log: {
            title: "Log",
            sort: "At",
            up: true,
            concerns: about("process"),
            columns: [
                c.time("At", "time"),
                {
                    title: "Level",
                    value: (row) => row.level ?? "",
                    show: (_, value) =>
                        h("span", { class: /emer|alert|crit|error/.test(value) ? "tag bad" : "tag" }, plain(value)),
                },
                node(),
                c.process("Process", "process"),
                c.text("Text", "text", { className: "wide" }),
            ],
        },
    };
}

const counter = (title, value, more = {}) => ({
    title,
    number: true,
    value,
    show: (row, shown) => (row.unit === "bytes" ? bytes(shown) : count(shown)),
    ...more,
});

// From the first to the last sample.
function perSecond(data, { node, min, max }) {
    const times = data.counters.find((one) => one.node === node)?.times ?? [];
    const seconds = (times.at(-1) - times[0]) / 1e9;
    return seconds > 0 ? (max - min) / seconds : null;
}

// {key: Table} of the tables that have rows.
export function reportTables(data) {
    const leftOut = (key) => {
        const left = data.report.left_out?.[key];
        const number = typeof left === "object" && left !== null ? left.count : left;
        return number > 0 ? `${count(number)} more rows were left out of the report. ` : "";
    };
    return Object.fromEntries(
        Object.entries(tables(data))
            .map(([key, table]) => [key, { rows: data.report[key] ?? [], ...table }])
            .filter(([, { rows }]) => rows.length > 0)
            .map(([key, { columns, sort, up, note, ...table }]) => {
                const isShown = ({ only, field }) => !only || table.rows.some((row) => only(row[field]));
                const shown = columns.filter((column) => column && isShown(column));
                const made = new Table({
                    ...table,
                    id: "table-" + key,
                    columns: shown,
                    note: leftOut(key) + (note ?? ""),
                    sort:
                        sort &&
                        Math.max(
                            0,
                            shown.findIndex(({ title }) => title === sort),
                        ),
                });
                if (up) made.sortBy(made.sort.column);
                return [key, made];
            }),
    );
}
