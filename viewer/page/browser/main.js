// The page: its sections in order. Sections without data are absent.

import { load } from "./data.js";
import { cut, h } from "./dom.js";
import { Flame } from "./flame.js";
import { functionTable } from "./function_table.js";
import { Load } from "./load.js";
import { findings, lacks, masthead } from "./overview.js";
import { reportTables } from "./report.js";
import { Sequence } from "./sequence.js";
import { choose, chosen, on, range, setRange } from "./shared.js";
import { Timeline } from "./timeline.js";

const data = load();
document.title = cut(data.title, 200);
range.whole = Math.max(data.length, 1);
range.end = range.whole;

const tables = reportTables(data);
const sections = [];

// A section with an id, a name for the navigation, and its content. A section without content is left out.
function section(id, name, note, ...content) {
    const there = content.flat().filter(Boolean);
    if (there.length === 0) return;
    // A table with the same name as its section does not repeat the title.
    there
        .flatMap((element) => element.querySelector?.("h3") ?? [])
        .filter((title) => title.textContent === name)
        .forEach((title) => title.remove());
    sections.push({
        id,
        name,
        element: h(
            "section",
            { id, "aria-labelledby": id + "-title" },
            h("h2", { id: id + "-title" }, name),
            note && h("p", { class: "note" }, note),
            there,
        ),
    });
}

const table = (key) => tables[key]?.element;
const { timeline, report, flame } = data;

const places = new Map(Object.keys(tables).map((key) => [key, "table-" + key]));
if (report.load?.nodes) places.set("load", "load");

const remarks = lacks(data);
if (report.recording)
    section(
        "findings",
        "Findings",
        null,
        findings(data, places),
        remarks.length > 0 && h("p", { class: "note" }, remarks.join(" ")),
    );
if (report.load?.nodes) {
    const charts = new Load(data);
    if (!charts.empty) section("load", "Load", "Drag over a chart to show that range in the timeline.", charts.element);
}
if (timeline.rows.length > 0) section("timeline", "Timeline", null, new Timeline(data).element);
section("processes", "Processes", null, table("processes"), table("exits"), table("waits"), table("collections"));
section(
    "messages",
    "Messages",
    null,
    timeline.messages.size > 0 && [h("h3", "Sequence"), new Sequence(data).element],
    table("server_calls"),
    table("talks"),
    table("dead"),
);

const graph = flame?.children?.length > 0 ? new Flame(flame) : null;
section(
    "calls",
    data.profile?.snapshots ? "Processes" : data.profile ? "CPU" : "Calls",
    null,
    graph && [h("h3", "Flame graph"), graph.element],
    graph && data.profile && functionTable(graph.merged, data.was).element,
    table("calls"),
    table("spans"),
    table("telemetry"),
);
section("vm", "VM", null, table("ports"), table("counters"));
section("log", "Log", null, table("log"));

const chip = h("span", { class: "chip", hidden: true });
on("chosen", () => {
    const { process } = chosen;
    chip.hidden = !process;
    if (process)
        chip.replaceChildren(
            h("span", "Only " + cut(process.show || process.name || process.pid, 80)),
            h("button", { type: "button", "aria-label": "Show all processes again", click: () => choose(null) }, "✕"),
        );
    Object.values(tables).forEach((each) => each.show(process));
});

const sampled = data.profile?.snapshots ? "snapshots of all processes" : "samples of threads that used a CPU";
const notices = document.childNodes[1]?.nodeType === Node.COMMENT_NODE ? document.childNodes[1].data.trim() : "";

document.body.append(
    masthead(data),
    sections.length > 0
        ? h(
              "nav",
              { "aria-label": "Sections" },
              h(
                  "div",
                  { class: "inside" },
                  h(
                      "ul",
                      sections.map(({ id, name }) => h("li", h("a", { href: "#" + id }, name))),
                  ),
                  chip,
              ),
          )
        : "",
    h(
        "main",
        sections.map(({ element }) => element),
    ),
    h(
        "footer",
        h(
            "p",
            data.profile
                ? `Made by dyntrace from ${sampled}. Times are derived from sample counts.`
                : "Made by dyntrace from a recording. Times count from the start of the recording; dates in tooltips " +
                      "are local time. “–” means that the recording does not have the value.",
        ),
        notices && h("details", h("summary", "Licences of the software in this page"), h("pre", notices)),
    ),
);

addEventListener("resize", () => setRange(range.begin, range.end));
// page.html#t=1.2,1.5 opens at this range, in seconds.
function fromAddress() {
    const found = /^#t=([\d.]+),([\d.]+)$/.exec(location.hash);
    if (found) setRange(Number(found[1]) * 1e9, Number(found[2]) * 1e9);
}

setRange(0, range.whole);
addEventListener("hashchange", fromAddress);
fromAddress();
document.documentElement.dataset.ready = "true";
