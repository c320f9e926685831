// The timeline: a row per process, drawn on a canvas beside a list of buttons.

import { colour, cut, h, plain } from "./dom.js";
import { COLLECTING, EXITING, MATCHED, MERGED, RUNNABLE, RUNNING, STATES, WAITING, lowerBound } from "./data.js";
import { count, duration, local, percent, since } from "./format.js";
import { MOST_ARROWS, Painter, ROW, RULER, colours } from "./paint.js";
import { choose, chosen, on, pan, range, setRange, zoom } from "./shared.js";

const ORDERS = {
    activity: ["busiest first", (a, b) => a.index - b.index],
    name: ["by name", (a, b) => a.show.localeCompare(b.show, "en", { numeric: true })],
    begin: ["by first event", (a, b) => (a.intervals.begin[0] ?? 0) - (b.intervals.begin[0] ?? 0)],
    group: ["by group", (a, b) => (a.group ?? "").localeCompare(b.group ?? "") || a.index - b.index],
};

const IN_WORDS = {
    unknown: "unknown", waiting: "waiting", runnable: "runnable (inferred)", running: "running",
    collecting: "collecting garbage", exiting: "exiting", merged: "merged",
};

export class Timeline {
    constructor(data) {
        this.data = data;
        this.of = data.timeline;
        this.lanes = new Map();
        this.order = "activity";
        this.words = "";
        this.slack = this.longestFlight();
        this.marksOf = Map.groupBy(Array.from({ length: this.of.marks.size }, (_, n) => n),
            (n) => this.of.marks.process[n]);
        this.spansOf = Map.groupBy(Array.from({ length: this.of.spans.size }, (_, n) => n),
            (n) => this.of.spans.process[n]);
        this.exitsOf = Map.groupBy(Array.from({ length: this.of.exits.size }, (_, n) => n),
            (n) => this.of.exits.process[n]);
        this.element = this.build();
        this.layout();
        on("range", () => this.redraw());
        on("chosen", () => this.layout());
        on("theme", () => { this.ink = null; this.redraw(); this.drawLegend(); });
        new ResizeObserver(() => this.redraw()).observe(this.scroller);
    }

    // Messages are in the order of their first time; the longest flight says how far back to look.
    longestFlight() {
        const { messages } = this.of;
        this.start = new Float64Array(messages.size);
        let longest = 0;
        for (let n = 0; n < messages.size; n++) {
            const sent = messages.sent[n], delivered = messages.delivered[n];
            this.start[n] = Number.isNaN(sent) ? delivered : sent;
            if (delivered - sent > longest) longest = delivered - sent;
        }
        return longest;
    }

    // -- Elements --

    build() {
        const button = (text, name, click) => h("button", { type: "button", "aria-label": name, title: name, click }, text);
        this.filter = h("input", {
            type: "search", placeholder: "Filter processes", "aria-label": "Filter the processes of the timeline",
            input: () => { this.words = this.filter.value.toLowerCase(); this.layout(); },
        });
        const order = h("select", { change: () => { this.order = order.value; this.layout(); } },
            Object.entries(ORDERS).map(([value, [name]]) => h("option", { value }, name)));
        this.shown = h("span", { class: "range", role: "status" });
        this.canvas = h("canvas", {
            class: "rows", tabindex: "0", role: "img", "aria-describedby": "timeline-keys",
            keydown: (event) => this.key(event), pointerdown: (event) => this.press(event),
            pointermove: (event) => this.move(event), pointerup: (event) => this.release(event),
            pointercancel: () => { this.drag = null; this.pointers.clear(); }, pointerleave: () => this.hideTip(),
            dblclick: (event) => zoom(0.25, this.timeAt(event)),
        });
        this.pointers = new Map();
        this.stage = h("div", { class: "stage" }, this.canvas);
        this.corner = h("div", { class: "corner" });
        this.labels = h("div", { class: "labels" }, this.corner);
        this.scroller = h("div", { class: "scroller", scroll: () => this.redraw() }, this.labels, this.stage);
        this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
        this.tip = h("div", { class: "tooltip", hidden: true });
        this.legend = h("div", { class: "legend" });
        this.drawLegend();
        this.alternative = h("details", { class: "alternative", toggle: () => this.describe() },
            h("summary", {}, "The shown range as a table"));
        return h("div", {},
            h("div", { class: "controls" }, this.filter, h("label", {}, "Order", order),
                h("span", { class: "space" }), this.shown,
                h("span", { class: "zoom", role: "group", "aria-label": "Zoom" },
                    button("−", "Zoom out", () => zoom(2)), button("+", "Zoom in", () => zoom(0.5)),
                    button("All", "Show the whole recording", () => setRange(0, range.whole)))),
            h("div", { class: "timeline" }, this.scroller),
            this.legend,
            h("p", { class: "note", id: "timeline-keys" }, "Drag to move. Ctrl and the wheel zoom; after a click into the ",
                "timeline the wheel alone does. Keys: + and − zoom, ← and → move, ↑ and ↓ scroll, Home shows everything. ",
                "A click on a process shows only it and those it talks to."),
            this.alternative, this.tip);
    }

    drawLegend() {
        const ink = this.ink ??= colours();
        const entry = (name, draw) => {
            const canvas = h("canvas", { "aria-hidden": "true" });
            const ratio = devicePixelRatio || 1;
            canvas.width = 26 * ratio;
            canvas.height = 14 * ratio;
            const paper = canvas.getContext("2d");
            paper.scale(ratio, ratio);
            draw(new Painter(paper, 26, 24, { begin: 0, end: 26 }, ink));
            return h("span", {}, canvas, name);
        };
        const box = (state) => (painter) => {
            painter.paper.translate(0, -5);
            painter.boxes([0, 5, 26, 14], state);
        };
        this.legend.replaceChildren(...[
            entry("running", box(RUNNING)), entry("runnable, inferred", box(RUNNABLE)),
            entry("waiting", (painter) => painter.boxes([0, 6, 26, 2], WAITING)),
            entry("collecting garbage", box(COLLECTING)), entry("exiting", box(EXITING)),
            entry("merged: as high as it ran", (painter) => {
                painter.boxes([0, 0, 26, 14], MERGED);
                painter.boxes([0, 8, 26, 6], RUNNING);
            }),
            this.of.messages.size > 0 && entry("message", (painter) => painter.arrow(2, 22, 11, 3, false, false)),
            this.of.messages.size > 0 && entry("inferred", (painter) => painter.arrow(2, 22, 11, 3, true, false)),
            this.of.spans.size > 0 && entry("span", (painter) => painter.span(0, 26, -10)),
            this.of.exits.size > 0 && entry("exit", (painter) => painter.exit(13, -5, false)),
            this.of.exits.size > 0 && entry("crash", (painter) => painter.exit(13, -5, true))].filter(Boolean));
    }

    // Which rows there are.
    layout() {
        const { process } = chosen;
        const close = process && this.partners(process.number);
        this.rows = this.of.rows
            .filter((row) => !close || close.has(row.number))
            .filter((row) => !this.words
                || `${row.show} ${row.pid} ${row.group ?? ""} ${row.node ?? ""}`.toLowerCase().includes(this.words))
            .sort(ORDERS[this.order][1]);
        if (process) this.rows.sort((a, b) => (b.number === process.number) - (a.number === process.number));
        this.lanes = new Map(this.rows.map((row, n) => [row.index, n]));
        const several = new Set(this.of.rows.map((row) => row.node)).size > 1;
        this.corner.textContent = this.rows.length === this.of.rows.length
            ? count(this.rows.length) + (this.of.rows.some((row) => row.kind === "port") ? " processes and ports" : " processes") : `${count(this.rows.length)} of ${count(this.of.rows.length)}`;
        this.labels.replaceChildren(this.corner, ...this.rows.map((row, n) => {
            const name = row.show.replace(" " + row.pid, "") || row.pid;
            const button = h("button", {
                type: "button", "aria-pressed": String(process?.number === row.number),
                title: plain([row.show, row.show.includes(row.pid) ? "" : row.pid, row.group && "of " + row.group, row.node]
                    .filter(Boolean).join(", ")),
                click: () => choose(row),
            }, h("span", { class: "name" }, cut(name, 120)),
                h("span", { class: "pid" }, [name === row.pid ? "" : row.pid, several && row.node].filter(Boolean).join(" ")));
            button.style.top = RULER + n * ROW + "px";
            return button;
        }));
        const high = RULER + Math.max(3, this.rows.length) * ROW;
        this.labels.style.height = high + "px";
        const most = Math.max(240, Math.min(620, innerHeight * 0.66));
        this.scroller.style.maxHeight = most + "px";
        this.stage.style.height = Math.min(high, most) + "px";
        this.redraw();
    }

    partners(number) {
        const { messages, processes, byNumber } = this.of;
        const index = byNumber.get(number)?.index;
        const close = new Set([number]);
        for (let n = 0; n < messages.size; n++) {
            if (messages.from[n] === index && processes[messages.to[n]]) close.add(processes[messages.to[n]].number);
            if (messages.to[n] === index && processes[messages.from[n]]) close.add(processes[messages.from[n]].number);
        }
        return close;
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
        const width = this.stage.clientWidth, height = this.stage.clientHeight;
        if (width === 0) return;
        const ratio = devicePixelRatio || 1;
        if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
            this.canvas.width = Math.round(width * ratio);
            this.canvas.height = Math.round(height * ratio);
        }
        const paper = this.canvas.getContext("2d", { alpha: false });
        paper.setTransform(ratio, 0, 0, ratio, 0, 0);
        const painter = new Painter(paper, width, height, range, this.ink ??= colours());
        const { of } = this;
        const scrolled = this.scroller.scrollTop;
        const first = Math.max(0, Math.floor(scrolled / ROW));
        const last = Math.min(this.rows.length, Math.ceil((scrolled + height - RULER) / ROW) + 1);
        const top = (n) => RULER + n * ROW - scrolled;
        painter.clear();
        painter.grid();
        for (let n = first; n < last; n++) {
            const row = this.rows[n];
            if (row.number === chosen.process?.number) {
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
        for (let n = 0; n < of.lost.size; n++) painter.lost(of.lost.begin[n], of.lost.end[n]);
        painter.ruler();
        for (let n = 0; n < of.lost.size; n++) painter.lost(of.lost.begin[n], of.lost.end[n]);
        for (const [begin, end] of of.covered) painter.covered(begin, end);
        for (let n = 0; n < of.exits.size; n++) if (of.exits.crash[n] === 1) painter.mirrored(of.exits.time[n], true);
        for (const n of this.marksOf.get(NaN) ?? []) painter.mirrored(of.marks.time[n], false);
        this.tell(arrows, performance.now() - began);
    }

    // Draws the messages if they are few enough to be told apart; returns how many there are in the range.
    arrows(painter, top, first, last) {
        const { messages } = this.of;
        const found = [];
        let total = 0;
        for (let n = lowerBound(this.start, range.begin - this.slack); n < messages.size; n++) {
            if (this.start[n] > range.end) break;
            const until = Number.isNaN(messages.delivered[n]) ? messages.sent[n] : messages.delivered[n];
            if (until < range.begin) continue;
            const from = this.lanes.get(messages.from[n]), to = this.lanes.get(messages.to[n]);
            if (from === undefined && to === undefined) continue;
            total++;
            const visible = (lane) => lane !== undefined && lane >= first && lane < last;
            if (!visible(from) && !visible(to)) continue;
            if (found.length <= MOST_ARROWS) found.push([n, from, to]);
        }
        this.drawn = found.length <= MOST_ARROWS ? found : [];
        const middle = (lane) => lane === undefined ? null : top(lane) + ROW / 2;
        for (const [n, from, to] of this.drawn)
            painter.arrow(messages.sent[n], messages.delivered[n], middle(from), middle(to), messages.matched[n] === 3,
                messages.dead[n] === 1);
        return total;
    }

    // What is shown: in words, and as attributes.
    tell(arrows, took) {
        const { dataset } = this.canvas;
        dataset.begin = range.begin;
        dataset.end = range.end;
        dataset.rows = this.rows.length;
        dataset.messages = this.drawn.length;
        dataset.frameMs = took.toFixed(2);
        const length = range.end - range.begin;
        const messages = arrows === 0 ? "" : this.drawn.length > 0 ? `, ${count(arrows)} messages`
            : `, ${count(arrows)} messages: zoom in to see them`;
        clearTimeout(this.telling);
        this.telling = setTimeout(() => {
            this.shown.textContent = `${since(range.begin, length)} to ${since(range.end, length)}${messages}`;
            this.canvas.setAttribute("aria-label", `Timeline of ${count(this.rows.length)} processes, `
                + `${duration(length)} from ${since(range.begin, length)}${messages}. A table below has the same.`);
            this.describe();
        }, 60);
    }

    // The textual alternative: the share of each state in the shown range.
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
                    sums[RUNNING] += part * intervals.extra[n] / 1000;
                    sums[WAITING] += part * (1 - intervals.extra[n] / 1000);
                } else sums[intervals.state[n]] += part;
            }
            return [RUNNING, RUNNABLE, COLLECTING, WAITING, EXITING].map((state) => percent(sums[state], length));
        };
        const rows = this.rows.slice(0, 100);
        this.alternative.replaceChildren(this.alternative.firstChild, h("div", { class: "scroll-x" }, h("table", {},
            h("caption", { class: "visually-hidden" }, "Share of the shown time per process and state"),
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Process"),
                ["Running", "Runnable", "Collecting", "Waiting", "Exiting"].map((name) =>
                    h("th", { scope: "col", class: "number" }, name)))),
            h("tbody", {}, rows.map((row) => h("tr", {}, h("td", {}, cut(row.show, 120)),
                share(row).map((text) => h("td", { class: "number" }, text))))))),
            this.rows.length > rows.length && h("p", { class: "note" }, "The first 100 processes. Filter to see others."));
    }

    // -- Input --

    timeAt(event) {
        const box = this.canvas.getBoundingClientRect();
        return range.begin + (event.clientX - box.left) / box.width * (range.end - range.begin);
    }

    wheel(event) {
        const active = document.activeElement === this.canvas && this.stage.contains(event.target);
        if (event.ctrlKey || event.metaKey || (active && !event.shiftKey && Math.abs(event.deltaY) > Math.abs(event.deltaX))) {
            event.preventDefault();
            zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * (event.ctrlKey ? 0.006 : 0.004)), this.timeAt(event));
        } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
            event.preventDefault();
            pan((event.deltaX || event.deltaY) / this.stage.clientWidth);
        }
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const actions = {
            "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
            ArrowLeft: () => pan(event.shiftKey ? -0.5 : -0.1), ArrowRight: () => pan(event.shiftKey ? 0.5 : 0.1),
            ArrowUp: () => this.scroller.scrollBy(0, -ROW * 2), ArrowDown: () => this.scroller.scrollBy(0, ROW * 2),
            PageUp: () => this.scroller.scrollBy(0, -this.stage.clientHeight),
            PageDown: () => this.scroller.scrollBy(0, this.stage.clientHeight),
            Home: () => setRange(0, range.whole), 0: () => setRange(0, range.whole), Escape: () => choose(null),
        };
        if (!actions[event.key]) return;
        event.preventDefault();
        actions[event.key]();
    }

    press(event) {
        if (event.button !== 0) return;
        this.canvas.setPointerCapture(event.pointerId);
        this.pointers.set(event.pointerId, event);
        this.drag = { x: event.clientX, y: event.clientY, begin: range.begin, end: range.end, top: this.scroller.scrollTop,
            moved: false };
    }

    move(event) {
        if (!this.pointers.has(event.pointerId)) return this.showTip(event);
        const before = this.pointers.get(event.pointerId);
        this.pointers.set(event.pointerId, event);
        if (this.pointers.size === 2) {
            const [other] = [...this.pointers.values()].filter((pointer) => pointer.pointerId !== event.pointerId);
            const apart = (one) => Math.max(20, Math.abs(one.clientX - other.clientX));
            zoom(apart(before) / apart(event), this.timeAt(other));
            this.drag = null;
        } else if (this.drag) {
            const by = event.clientX - this.drag.x;
            if (Math.abs(by) + Math.abs(event.clientY - this.drag.y) > 3) this.drag.moved = true;
            if (!this.drag.moved) return;
            this.hideTip();
            const ns = by / this.stage.clientWidth * (this.drag.end - this.drag.begin);
            setRange(this.drag.begin - ns, this.drag.end - ns);
            if (event.pointerType === "mouse") this.scroller.scrollTop = this.drag.top - (event.clientY - this.drag.y);
        }
    }

    release(event) {
        this.pointers.delete(event.pointerId);
        this.drag = null;
    }

    showTip(event) {
        const box = this.canvas.getBoundingClientRect();
        const x = event.clientX - box.left, y = event.clientY - box.top;
        const found = this.markNear(x, y, box.width) ?? this.messageAt(x, y, box.width) ?? this.intervalAt(x, y, box.width);
        if (!found) return this.hideTip();
        const [title, ...lines] = found;
        this.tip.replaceChildren(h("b", {}, cut(title, 300)), h("dl", {}, lines.filter(([, text]) => text)
            .flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, cut(text, 600))])));
        this.tip.hidden = false;
        const { width, height } = this.tip.getBoundingClientRect();
        this.tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + "px";
        this.tip.style.top = (event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18) + "px";
    }

    hideTip() {
        this.tip.hidden = true;
    }

    laneAt(y) {
        return y < RULER ? undefined : this.rows[Math.floor((y - RULER + this.scroller.scrollTop) / ROW)];
    }

    when(ns) {
        return `${since(ns, range.end - range.begin)}, ${local(this.data.begin, ns)}`;
    }

    intervalAt(x, y, width) {
        const row = this.laneAt(y);
        if (!row) return null;
        const { intervals } = row;
        const pixel = (range.end - range.begin) / width, at = range.begin + x * pixel;
        let n = lowerBound(intervals.end, at);
        // Of intervals narrower than the pixel, the longest that is more than waiting.
        if (n < intervals.size && intervals.end[n] - intervals.begin[n] < pixel)
            for (let k = n; k < intervals.size && intervals.begin[k] < at + pixel; k++)
                if (intervals.state[k] !== WAITING && intervals.end[k] - intervals.begin[k]
                    > (intervals.state[n] === WAITING ? 0 : intervals.end[n] - intervals.begin[n])) n = k;
        if (n >= intervals.size || intervals.begin[n] > at + pixel) return [row.show, ["State", "unknown"]];
        const state = intervals.state[n], length = intervals.end[n] - intervals.begin[n];
        const text = this.of.text(intervals.text[n]);
        return [row.show,
            ["State", state === MERGED ? `short intervals, merged: running ${percent(intervals.extra[n], 1000)}`
                : IN_WORDS[STATES[state]] + (state === COLLECTING && intervals.extra[n] === 1 ? " (major)" : "")],
            ["For", duration(length)],
            [state === WAITING || state === RUNNABLE ? "In" : "Function", text],
            ["From", this.when(intervals.begin[n])]];
    }

    messageAt(x, y, width) {
        const { messages, processes } = this.of;
        const scale = width / (range.end - range.begin);
        const middle = (lane) => RULER + lane * ROW - this.scroller.scrollTop + ROW / 2;
        let best = null, least = 5;
        for (const [n, from, to] of this.drawn ?? []) {
            if (from === undefined || to === undefined) continue;
            const x1 = ((Number.isNaN(messages.sent[n]) ? messages.delivered[n] : messages.sent[n]) - range.begin) * scale;
            const x2 = ((Number.isNaN(messages.delivered[n]) ? messages.sent[n] : messages.delivered[n]) - range.begin) * scale;
            const y1 = middle(from), y2 = middle(to);
            const along = Math.max(0, Math.min(1, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1))
                / ((x2 - x1) ** 2 + (y2 - y1) ** 2 || 1)));
            const off = Math.hypot(x - x1 - along * (x2 - x1), y - y1 - along * (y2 - y1));
            if (off < least) [best, least] = [n, off];
        }
        if (best === null) return null;
        const name = (index) => processes[index]?.show ?? "unknown";
        return [`${name(messages.from[best])} → ${name(messages.to[best])}`,
            ["Message", this.of.text(messages.text[best])],
            ["Sent", Number.isNaN(messages.sent[best]) ? "not recorded" : this.when(messages.sent[best])],
            ["On its way", Number.isNaN(messages.delivered[best] - messages.sent[best]) ? ""
                : duration(messages.delivered[best] - messages.sent[best])],
            ["Matched", messages.dead[best] === 1 ? "to a process that had exited" : MATCHED[messages.matched[best]]]];
    }

    // Exits, marks and spans of the row under the pointer; in the ruler crashes, marks of the node, lost events.
    markNear(x, y, width) {
        const { exits, marks, lost, processes, text } = this.of;
        const pixel = (range.end - range.begin) / width, at = range.begin + x * pixel;
        const row = this.laneAt(y);
        const near = (time) => Math.abs(time - at) < 5 * pixel;
        const exit = (row ? this.exitsOf.get(row.index) ?? [] : y < RULER ? Array.from(exits.time.keys()) : [])
            .find((n) => near(exits.time[n]) && (row || exits.crash[n] === 1));
        if (exit !== undefined)
            return [processes[exits.process[exit]]?.show ?? "", [exits.crash[exit] === 1 ? "Crashed" : "Exited",
                text(exits.reason[exit])], ["At", this.when(exits.time[exit])]];
        const mark = (row ? this.marksOf.get(row.index) : y < RULER ? this.marksOf.get(NaN) : null)
            ?.find((n) => near(marks.time[n]) && (!row || (y - RULER + this.scroller.scrollTop) % ROW < 8));
        if (mark !== undefined)
            return [row?.show ?? "The node", [text(marks.kind[mark]), text(marks.text[mark])],
                ["At", this.when(marks.time[mark])]];
        const span = row && (y - RULER + this.scroller.scrollTop) % ROW > ROW - 6
            && this.spansOf.get(row.index)?.find((n) => this.of.spans.begin[n] <= at && this.of.spans.end[n] >= at);
        if (span || span === 0)
            return [row.show, ["Span", text(this.of.spans.name[span])], ["Outcome", text(this.of.spans.outcome[span]) || "open"],
                ["For", duration(this.of.spans.end[span] - this.of.spans.begin[span])],
                ["From", this.when(this.of.spans.begin[span])]];
        if (y < RULER)
            for (let n = 0; n < lost.size; n++)
                if (at > lost.begin[n] - 3 * pixel && at < lost.end[n] + 3 * pixel)
                    return ["Lost events", ["Number", lost.count[n] ? count(lost.count[n]) : "unknown"],
                        ["From", this.when(lost.begin[n])], ["To", this.when(lost.end[n])]];
        return null;
    }
}
