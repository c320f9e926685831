// The head of the page: the recording, and its findings.

import { nameOf } from "./data.js";
import { cut, h, plain } from "./dom.js";
import { count, duration, local, UNKNOWN } from "./format.js";
import { choose } from "./shared.js";
import { button as themeButton } from "./theme.js";

const fact = (name, value, note, lost) =>
    h("div", { class: lost && "lost" }, h("dt", name), h("dd", value, note && h("small", " ", note)));

// With several nodes, each has a number; rows of the timeline show only the number.
const nodeInWords = ({ node, otp }, n, { length }) =>
    (length > 1 ? `${n + 1}: ` : "") + plain(node) + (otp ? ` (OTP ${plain(otp)})` : "");

// Of threads that used a CPU, or of all processes.
function profileInWords({ samples, seconds, hertz, cpus, snapshots, processes }) {
    if (snapshots) return `${count(snapshots)} snapshots in ${seconds} s: ${processes} processes on average.`;
    return `${count(samples)} samples in ${seconds} s, at ${hertz} Hz: ${cpus} CPUs were used.`;
}

export function masthead(data) {
    const { recording } = data.report;
    const nodes = recording?.nodes ?? [];
    const when = recording && data.begin !== null ? local(data.begin, 0).slice(0, 19) : null;
    return h(
        "header",
        { class: "masthead" },
        h(
            "div",
            { class: "top" },
            h(
                "div",
                h("h1", plain(data.title)),
                h(
                    "p",
                    { class: "when" },
                    recording
                        ? [...nodes.map(nodeInWords), when].filter(Boolean).join(" · ")
                        : data.profile
                          ? profileInWords(data.profile)
                          : "This page holds no recording.",
                ),
            ),
            themeButton,
        ),
        recording &&
            h(
                "dl",
                { class: "facts" },
                fact("Recorded", duration((recording.seconds ?? NaN) * 1e9)),
                fact(
                    "Events",
                    count(recording.events),
                    recording.skipped > 0 && `${count(recording.skipped)} of other providers skipped`,
                ),
                recording.untraced_ns > Math.min(1e9, (recording.seconds ?? NaN) * 1e7) &&
                    fact(
                        "Traced",
                        duration((recording.seconds ?? NaN) * 1e9 - recording.untraced_ns),
                        "the rest has samples, counters and logs",
                    ),
                recording.lost_events !== 0 &&
                    fact(
                        "Lost",
                        recording.lost_events === null ? "unknown number" : count(recording.lost_events),
                        "events that the tracer dropped",
                        true,
                    ),
                fact(nodes.length === 1 ? "Node" : "Nodes", count(nodes.length)),
                fact(
                    "Processes",
                    nodes.every((node) => node.processes === null)
                        ? UNKNOWN
                        : count(nodes.reduce((sum, node) => sum + (node.processes ?? 0), 0)),
                ),
            ),
    );
}

// The text beside it names the process.
function processLink(process) {
    const click = () => choose(process);
    const said = `Show only ${plain(nameOf(process))}`;
    return h("button", { type: "button", class: "plain link", title: said, "aria-label": said, click }, "process");
}

// What to do next, with `commands` as code. Only the first finding of a rule has it, as in the report's text.
function nextStep({ rule, next }, n, found) {
    if (!next || found.findIndex((other) => other.rule === rule) < n) return false;
    const parts = next.split("`").map((part, at) => (at % 2 ? h("code", plain(part)) : plain(part)));
    return h("span", { class: "next" }, "Next: ", parts);
}

// `places`: the tables and sections of the page, by key of the report.
export function findings(data, places) {
    const found = data.report.findings ?? [];
    if (!data.report.recording.events)
        return h(
            "p",
            { class: "note" },
            "Nothing to show: the recording has no dyntrace events. Record while the node is busy, and check with ",
            h("code", "dyntrace nodes"),
            " that it has started the application.",
        );
    if (found.length === 0) return h("p", { class: "note" }, "Nothing in this recording stands out.");
    return h(
        "ul",
        { class: "findings" },
        found.map(({ severity, text, about, process, ...finding }, n) =>
            h(
                "li",
                h(
                    "span",
                    { class: `severity ${["high", "medium", "low"].includes(severity) ? severity : "low"}` },
                    plain(severity),
                ),
                h("span", { class: "text" }, cut(text, 1000)),
                h(
                    "span",
                    { class: "places" },
                    process && process.number !== null && processLink(process),
                    places.has(about) && h("a", { href: "#" + places.get(about) }, "table"),
                ),
                nextStep(finding, n, found),
            ),
        ),
    );
}

// Sentences about what is missing in the recording and the page.
export function lacks(data) {
    const kinds = data.report.recording?.kinds ?? [];
    const { summary } = data.timeline;
    const all = ["scheduling", "sends", "deliveries", "calls", "returns", "collections", "spawns", "exits"];
    const absent = all.filter((kind) => !kinds.includes(kind));
    const sentences = [];
    if (absent.length > 0 && data.report.recording)
        sentences.push(
            `Events of these kinds were not recorded: ${absent.join(", ")}. The page lacks the data from them.`,
        );
    if (absent.includes("calls") && data.report.recording)
        sentences.push(
            "No functions were traced. To sample them, use “dyntrace profile”; to trace some, use " +
                "“dyntrace:follow(#{functions => ...})” (see docs/configuration.md).",
        );
    if (summary) sentences.push(...summarised(summary));
    return sentences;
}

function summarised(summary) {
    const { processes, rows, rows_most, intervals, intervals_kept, merged, messages, messages_kept } = summary;
    const { folds = 0, folded = 0 } = summary;
    const said = [];
    const shown = rows - folds + folded;
    if (rows === rows_most && shown < processes)
        said.push(
            `The timeline shows the ${count(shown)} most interesting of ${count(processes)} processes and ports.`,
        );
    else if (shown < processes)
        said.push(
            `The timeline shows ${count(shown)} of ${count(processes)} processes and ports; the others did nothing ` +
                "during the recording.",
        );
    if (folds > 0)
        said.push(`Of these, ${count(folded)} short-lived ones share ${count(folds)} rows, by kind ("× 62").`);
    if (merged > 0)
        said.push(
            `Of their ${count(intervals)} intervals, ${count(merged)} short ones are merged with their neighbours, ` +
                "in the rows with the most intervals; the longest are unchanged.",
        );
    else if (intervals_kept < intervals) said.push(`It has ${count(intervals_kept)} of ${count(intervals)} intervals.`);
    if (messages_kept < messages)
        said.push(
            `It has ${count(messages_kept)} of ${count(messages)} messages: all messages in the periods that the ` +
                "ruler underlines, which contain the slowest messages.",
        );
    for (const [kind, name] of Object.entries({ calls: "server calls", spans: "spans", marks: "marks" }))
        if (summary[kind + "_kept"] < summary[kind])
            said.push(`It has ${count(summary[kind + "_kept"])} of ${count(summary[kind])} ${name}.`);
    return said;
}
