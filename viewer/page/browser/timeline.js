// The timeline: a row per process, drawn on a canvas beside a list of buttons.

import { cut, h, plain } from "./dom.js";
import { COLLECTING, EXITING, MERGED, RUNNABLE, RUNNING, STATES, WAITING, lowerBound, nameOf } from "./data.js";
import { count, duration, percent, since } from "./format.js";
import { Input } from "./input.js";
import { MOST_ARROWS, Painter, ROW, RULER, colours } from "./paint.js";
import { Rows, inWords, isPort, ORDERS } from "./rows.js";
import { choose, chosen, on, range, setRange, zoom } from "./shared.js";
import { Tips } from "./tips.js";

// The indexes of marks, spans or exits by process, and by the row of its kind. Without a process, the key is NaN.
function byRow(list, processes) {
    const found = new Map();
    const add = (row, n) => (found.get(row) ?? found.set(row, []).get(row)).push(n);
    list.process.forEach((process, n) => {
        add(process, n);
        const fold = processes[process]?.fold;
        if (fold !== undefined) add(fold, n);
    });
    return found;
}

export class Timeline {
    constructor(data) {
        this.data = data;
        this.of = data.timeline;
        this.nodes = (data.report.recording?.nodes ?? []).map(({ node }) => node);
        this.which = new Rows(this.of);
        this.slack = this.longestFlight();
        this.marksOf = byRow(this.of.marks, this.of.processes);
        this.spansOf = byRow(this.of.spans, this.of.processes);
        this.exitsOf = byRow(this.of.exits, this.of.processes);
        this.element = this.build();
        this.layout();
        on("range", () => this.redraw());
        on("chosen", () => this.layout());
        on("theme", () => {
            this.ink = null;
            this.redraw();
            this.drawLegend();
        });
        new ResizeObserver(() => this.redraw()).observe(this.scroller);
    }

    // Messages are sorted by their first time; the longest flight limits how far back to search.
    longestFlight() {
        const { first, last } = this.of.messages;
        return last.reduce((longest, time, n) => (time - first[n] > longest ? time - first[n] : longest), 0);
    }

    // -- Elements --

    build() {
        const button = (text, name, click) =>
            h("button", { type: "button", "aria-label": name, title: name, click }, text);
        this.filter = h("input", {
            type: "search",
            placeholder: "Filter processes",
            "aria-label": "Filter the processes of the timeline",
            input: () => {
                this.which.words = this.filter.value.toLowerCase();
                this.layout();
            },
        });
        const order = h(
            "select",
            {
                change: () => {
                    this.which.order = order.value;
                    this.layout();
                },
            },
            Object.entries(ORDERS).map(([value, [name]]) => h("option", { value }, name)),
        );
        this.shown = h("span", { class: "range", role: "status" });
        this.canvas = h("canvas", { class: "rows", tabindex: "0", role: "img", "aria-describedby": "timeline-keys" });
        this.stage = h("div", { class: "stage" }, this.canvas);
        this.corner = h("div", { class: "corner" });
        this.labels = h("div", { class: "labels" }, this.corner);
        this.scroller = h("div", { class: "scroller", scroll: () => this.redraw() }, this.labels, this.stage);
        this.tips = new Tips(this);
        new Input(this);
        this.legend = h("div", { class: "legend" });
        this.drawLegend();
        this.alternative = h(
            "details",
            { class: "alternative", toggle: () => this.describe() },
            h("summary", "The visible range as a table"),
        );
        return h(
            "div",
            h(
                "div",
                { class: "controls" },
                this.filter,
                h("label", "Order", order),
                h("span", { class: "space" }),
                this.shown,
                h(
                    "span",
                    { class: "zoom", role: "group", "aria-label": "Zoom" },
                    button("−", "Zoom out", () => zoom(2)),
                    button("+", "Zoom in", () => zoom(0.5)),
                    button("All", "Show the whole recording", () => setRange(0, range.whole)),
                ),
            ),
            h("div", { class: "timeline" }, this.scroller),
            this.legend,
            h(
                "p",
                { class: "note", id: "timeline-keys" },
                "Drag to move. Zoom with Ctrl and the mouse wheel, or with the wheel alone after a click into the ",
                "timeline. Keys: + and − zoom, ← and → move, ↑ and ↓ scroll, Home shows the whole recording. ",
                "Click a process to show only that process and those that it exchanges messages with.",
            ),
            this.alternative,
            this.tips.element,
        );
    }

    drawLegend() {
        const ink = (this.ink ??= colours());
        const entry = (name, draw) => {
            const canvas = h("canvas", { "aria-hidden": "true" });
            const ratio = devicePixelRatio || 1;
            canvas.width = 26 * ratio;
            canvas.height = 14 * ratio;
            const paper = canvas.getContext("2d");
            paper.scale(ratio, ratio);
            draw(new Painter(paper, 26, 24, { begin: 0, end: 26 }, ink));
            return h("span", canvas, name);
        };
        const box = (state) => (painter) => {
            painter.paper.translate(0, -5);
            painter.boxes([0, 5, 26, 14], state);
        };
        this.legend.replaceChildren(
            ...[
                entry("running", box(RUNNING)),
                entry("runnable, inferred", box(RUNNABLE)),
                entry("waiting", (painter) => painter.boxes([0, 6, 26, 2], WAITING)),
                entry("collecting garbage", box(COLLECTING)),
                entry("exiting", box(EXITING)),
                entry("merged: height shows time running", (painter) => {
                    painter.boxes([0, 0, 26, 14], MERGED);
                    painter.boxes([0, 8, 26, 6], RUNNING);
                }),
                this.of.messages.size > 0 && entry("message", (painter) => painter.arrow(2, 22, 11, 3, false, false)),
                this.of.messages.size > 0 && entry("inferred", (painter) => painter.arrow(2, 22, 11, 3, true, false)),
                this.of.spans.size > 0 && entry("span", (painter) => painter.span(0, 26, -10)),
                this.of.lost.size > 0 &&
                    entry("lost events", (painter) => painter.lost({ begin: [2], end: [24], size: 1 })),
                this.of.marks.size > 0 && entry("mark or log line", (painter) => painter.mark(13, 5)),
                this.of.exits.size > 0 && entry("exit", (painter) => painter.exit(13, -5, false)),
                this.of.exits.crash.includes(1) && entry("crash", (painter) => painter.exit(13, -5, true)),
            ].filter(Boolean),
        );
    }

    // -- Rows --

    layout() {
        Object.assign(this, this.which.shown());
        const all = this.of.rows.length,
            { length } = this.counted;
        this.corner.textContent = length === all ? inWords(this.counted) : `${count(length)} of ${count(all)} rows`;
        this.label();
        const high = RULER + Math.max(3, this.rows.length) * ROW;
        this.labels.style.height = high + "px";
        const most = Math.max(240, Math.min(620, innerHeight * 0.66));
        this.scroller.style.maxHeight = most + "px";
        this.stage.style.height = Math.min(high, most) + "px";
        this.redraw();
    }

    // A button per row, and one that unfolds it. The focus is kept.
    label() {
        const { key } = this.labels.contains(document.activeElement) ? document.activeElement.dataset : {};
        this.labels.replaceChildren(
            this.corner,
            ...this.rows.flatMap((row, n) => {
                const buttons = [this.rowButton(row, n)];
                if (row.unfolds?.length > 0) buttons.unshift(this.foldButton(row));
                for (const button of buttons) button.style.top = RULER + n * ROW + "px";
                return buttons;
            }),
        );
        if (key) this.labels.querySelector(`[data-key="${key}"]`)?.focus({ preventScroll: true });
    }

    rowButton(row, n) {
        const name = nameOf(row);
        const details = [
            row.show,
            row.show.includes(row.pid) ? "" : row.pid,
            row.group && "of " + row.group,
            row.node && "on " + row.node,
            row.members && "shows the state of the busiest one at each time",
        ];
        const beside = [
            name === row.pid ? "" : row.pid,
            this.which.isUnfolded(row) && `${count(row.unfolds.length)} of ${count(row.members)}`,
            this.nodes.length > 1 && this.numberOf(row.node),
        ];
        return h(
            "button",
            {
                type: "button",
                "data-key": row.index,
                "aria-pressed": String(chosen.process?.number === row.number),
                class: [
                    isPort(row) && n > 0 && !isPort(this.rows[n - 1]) && "first-port",
                    row.unfolds?.length > 0 && "unfolds",
                    row.fold !== undefined && "unfolded",
                ]
                    .filter(Boolean)
                    .join(" "),
                title: plain(details.filter(Boolean).join(", ")),
                click: () => choose(row),
            },
            h("span", { class: "name" }, cut(name, 120)),
            h("span", { class: "pid" }, beside.filter(Boolean).join(" ")),
        );
    }

    foldButton(row) {
        const isOpen = this.which.isUnfolded(row);
        return h(
            "button",
            {
                type: "button",
                "data-key": "fold-" + row.index,
                class: "fold",
                "aria-expanded": String(isOpen),
                "aria-label": plain(`Rows of the processes of ${row.show}`),
                title: plain(isOpen ? "Fold " + row.show : "Unfold " + row.show),
                click: () => {
                    this.which.turn(row);
                    this.layout();
                },
            },
            isOpen ? "▾" : "▸",
        );
    }

    // The number of a node, as in the head of the page.
    numberOf(node) {
        return this.nodes.indexOf(node) + 1;
    }

    // -- Drawing --

    redraw() {
        this.asked ??= requestAnimationFrame(() => {
            this.asked = null;
            this.draw();
        });
    }

    draw() {
        const began = performance.now();
        const width = this.stage.clientWidth,
            height = this.stage.clientHeight;
        if (width === 0) return;
        const ratio = devicePixelRatio || 1;
        if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
            this.canvas.width = Math.round(width * ratio);
            this.canvas.height = Math.round(height * ratio);
        }
        const paper = this.canvas.getContext("2d", { alpha: false });
        paper.setTransform(ratio, 0, 0, ratio, 0, 0);
        const painter = new Painter(paper, width, height, range, (this.ink ??= colours()));
        const { of } = this;
        const scrolled = this.scroller.scrollTop;
        const first = Math.max(0, Math.floor(scrolled / ROW));
        const last = Math.min(this.rows.length, Math.ceil((scrolled + height - RULER) / ROW) + 1);
        const top = (n) => RULER + n * ROW - scrolled;
        painter.clear();
        painter.grid();
        for (let n = first; n < last; n++) {
            const row = this.rows[n];
            if (row === this.own) {
                paper.fillStyle = this.ink["accent-soft"];
                paper.fillRect(0, top(n), width, ROW);
            }
            const texts = painter.row(row, top(n), this.data.length);
            painter.texts(texts, top(n), row.intervals, of.text);
            for (const span of this.spansOf.get(row.index) ?? [])
                if (of.spans.begin[span] < range.end && of.spans.end[span] > range.begin)
                    painter.span(of.spans.begin[span], of.spans.end[span], top(n));
            for (const exit of this.exitsOf.get(row.index) ?? [])
                painter.exit(of.exits.time[exit], top(n), of.exits.crash[exit] === 1);
            for (const mark of this.marksOf.get(row.index) ?? []) painter.mark(of.marks.time[mark], top(n));
        }
        const arrows = this.arrows(painter, top, first, last);
        painter.ruler();
        painter.lost(of.lost);
        for (const [begin, end] of of.covered) painter.covered(begin, end);
        for (let n = 0; n < of.exits.size; n++) if (of.exits.crash[n] === 1) painter.mirrored(of.exits.time[n], true);
        for (const n of this.marksOf.get(NaN) ?? []) painter.mirrored(of.marks.time[n], false);
        this.describeRange(arrows, performance.now() - began);
    }

    // Draws the messages if there are few enough to distinguish them; returns their number in the range.
    arrows(painter, top, first, last) {
        const { messages } = this.of;
        const found = [];
        let total = 0;
        for (let n = lowerBound(messages.first, range.begin - this.slack); n < messages.size; n++) {
            if (messages.first[n] > range.end) break;
            if (messages.last[n] < range.begin) continue;
            const from = this.lanes.get(messages.from[n]),
                to = this.lanes.get(messages.to[n]);
            if (from === undefined && to === undefined) continue;
            total++;
            const visible = (lane) => lane !== undefined && lane >= first && lane < last;
            if (!visible(from) && !visible(to)) continue;
            if (found.length <= MOST_ARROWS) found.push([n, from, to]);
        }
        this.drawn = found.length <= MOST_ARROWS ? found : [];
        const middle = (lane) => (lane === undefined ? null : top(lane) + ROW / 2);
        const strength = Math.max(0.3, Math.min(0.8, 60 / this.drawn.length));
        for (const [n, from, to] of this.drawn)
            painter.arrow(
                messages.sent[n],
                messages.delivered[n],
                middle(from),
                middle(to),
                messages.matched[n] >= 3,
                messages.dead[n] === 1,
                strength,
            );
        return total;
    }

    // Describes the visible range, in words and as attributes.
    describeRange(arrows, took) {
        const { dataset } = this.canvas;
        dataset.begin = range.begin;
        dataset.end = range.end;
        dataset.rows = this.rows.length;
        dataset.messages = this.drawn.length;
        dataset.frameMs = took.toFixed(2);
        const length = range.end - range.begin;
        const messages =
            arrows === 0
                ? ""
                : this.drawn.length > 0
                  ? `, ${count(arrows)} messages`
                  : `, ${count(arrows)} messages: zoom in to see them`;
        clearTimeout(this.describing);
        this.describing = setTimeout(() => {
            this.shown.textContent = `${since(range.begin, length)} to ${since(range.end, length)}${messages}`;
            this.canvas.setAttribute(
                "aria-label",
                `Timeline of ${inWords(this.counted)}, ` +
                    `${duration(length)} from ${since(range.begin, length)}${messages}. The table below is equivalent.`,
            );
            this.describe();
        }, 60);
    }

    // The textual alternative: the share of each state in the visible range.
    describe() {
        if (!this.alternative.open) return;
        const length = range.end - range.begin;
        const share = (row) => {
            const sums = new Float64Array(STATES.length);
            const { intervals } = row;
            for (let n = lowerBound(intervals.end, range.begin); n < intervals.size; n++) {
                if (intervals.begin[n] > range.end) break;
                const part = Math.min(intervals.end[n], range.end) - Math.max(intervals.begin[n], range.begin);
                if (part <= 0) continue;
                if (intervals.state[n] === MERGED) {
                    sums[RUNNING] += (part * intervals.extra[n]) / 1000;
                    sums[WAITING] += part * (1 - intervals.extra[n] / 1000);
                } else sums[intervals.state[n]] += part;
            }
            return [RUNNING, RUNNABLE, COLLECTING, WAITING, EXITING].map((state) => percent(sums[state], length));
        };
        const rows = this.rows.slice(0, 100);
        this.alternative.replaceChildren(
            this.alternative.firstChild,
            h(
                "div",
                { class: "scroll-x" },
                h(
                    "table",
                    h("caption", { class: "visually-hidden" }, "Share of the visible time per process and state"),
                    h(
                        "thead",
                        h(
                            "tr",
                            h("th", { scope: "col" }, "Process"),
                            ["Running", "Runnable", "Collecting", "Waiting", "Exiting"].map((name) =>
                                h("th", { scope: "col", class: "number" }, name),
                            ),
                        ),
                    ),
                    h(
                        "tbody",
                        rows.map((row) =>
                            h(
                                "tr",
                                h("td", cut(row.show, 120)),
                                share(row).map((text) => h("td", { class: "number" }, text)),
                            ),
                        ),
                    ),
                ),
            ),
            this.rows.length > rows.length &&
                h("p", { class: "note" }, "The first 100 processes. Filter to see others."),
        );
    }
}
