// The tooltip of the timeline: describes the item under the pointer.

import { cut, h } from "./dom.js";
import { COLLECTING, MATCHED, MERGED, RUNNABLE, STATES, WAITING, lowerBound } from "./data.js";
import { count, duration, local, percent, since } from "./format.js";
import { ROW, RULER } from "./paint.js";
import { range } from "./shared.js";

const IN_WORDS = {
    unknown: "unknown",
    waiting: "waiting",
    runnable: "runnable (inferred)",
    running: "running",
    collecting: "collecting garbage",
    exiting: "exiting",
    merged: "merged",
};

export class Tips {
    constructor(timeline) {
        this.timeline = timeline;
        this.element = h("div", { class: "tooltip", hidden: true });
    }

    show(event) {
        const box = this.timeline.canvas.getBoundingClientRect();
        const x = event.clientX - box.left,
            y = event.clientY - box.top;
        const found =
            this.markNear(x, y, box.width) ?? this.messageAt(x, y, box.width) ?? this.intervalAt(x, y, box.width);
        if (!found) return this.hide();
        const [title, ...lines] = found;
        this.element.replaceChildren(
            h("b", cut(title, 300)),
            h(
                "dl",
                lines.filter(([, text]) => text).flatMap(([name, text]) => [h("dt", name), h("dd", cut(text, 600))]),
            ),
        );
        this.element.hidden = false;
        const { width, height } = this.element.getBoundingClientRect();
        this.element.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + "px";
        this.element.style.top =
            (event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18) + "px";
    }

    hide() {
        this.element.hidden = true;
    }

    laneAt(y) {
        return y < RULER
            ? undefined
            : this.timeline.rows[Math.floor((y - RULER + this.timeline.scroller.scrollTop) / ROW)];
    }

    when(ns) {
        return `${since(ns, range.end - range.begin)}, ${local(this.timeline.data.begin, ns)}`;
    }

    intervalAt(x, y, width) {
        const row = this.laneAt(y);
        if (!row) return null;
        const { intervals } = row;
        const pixel = (range.end - range.begin) / width,
            at = range.begin + x * pixel;
        let n = lowerBound(intervals.end, at);
        // Of intervals narrower than the pixel, the longest one that is not waiting.
        if (n < intervals.size && intervals.end[n] - intervals.begin[n] < pixel)
            for (let k = n; k < intervals.size && intervals.begin[k] < at + pixel; k++)
                if (
                    intervals.state[k] !== WAITING &&
                    intervals.end[k] - intervals.begin[k] >
                        (intervals.state[n] === WAITING ? 0 : intervals.end[n] - intervals.begin[n])
                )
                    n = k;
        if (n >= intervals.size || intervals.begin[n] > at + pixel) return [row.show, ["State", "unknown"]];
        const state = intervals.state[n],
            length = intervals.end[n] - intervals.begin[n];
        const text = this.timeline.of.text(intervals.text[n]);
        return [
            row.show,
            [
                "State",
                state === MERGED
                    ? `short intervals, merged: running ${percent(intervals.extra[n], 1000)}`
                    : IN_WORDS[STATES[state]] + (state === COLLECTING && intervals.extra[n] === 1 ? " (major)" : ""),
            ],
            ["For", duration(length)],
            [state === WAITING || state === RUNNABLE ? "In" : "Function", text],
            ["From", this.when(intervals.begin[n])],
        ];
    }

    messageAt(x, y, width) {
        const { messages, processes } = this.timeline.of;
        const scale = width / (range.end - range.begin);
        const middle = (lane) => RULER + lane * ROW - this.timeline.scroller.scrollTop + ROW / 2;
        let best = null,
            least = 5;
        for (const [n, from, to] of this.timeline.drawn ?? []) {
            if (from === undefined || to === undefined) continue;
            const x1 = (messages.first[n] - range.begin) * scale,
                x2 = (messages.last[n] - range.begin) * scale;
            const y1 = middle(from),
                y2 = middle(to);
            const along = Math.max(
                0,
                Math.min(1, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / ((x2 - x1) ** 2 + (y2 - y1) ** 2 || 1)),
            );
            const off = Math.hypot(x - x1 - along * (x2 - x1), y - y1 - along * (y2 - y1));
            if (off < least) [best, least] = [n, off];
        }
        if (best === null) return null;
        const name = (index) => processes[index]?.show ?? "unknown";
        return [
            `${name(messages.from[best])} → ${name(messages.to[best])}`,
            ["Message", this.timeline.of.text(messages.text[best])],
            ["Sent", Number.isNaN(messages.sent[best]) ? "not recorded" : this.when(messages.sent[best])],
            [
                "On its way",
                Number.isNaN(messages.delivered[best] - messages.sent[best])
                    ? ""
                    : duration(messages.delivered[best] - messages.sent[best]),
            ],
            ["Matched", messages.dead[best] === 1 ? "to a process that had exited" : MATCHED[messages.matched[best]]],
        ];
    }

    // Exits, marks and spans of the row under the pointer. In the ruler: crashes, marks of the node, lost events.
    markNear(x, y, width) {
        const { exits, marks, lost, processes, text } = this.timeline.of;
        const pixel = (range.end - range.begin) / width,
            at = range.begin + x * pixel;
        const row = this.laneAt(y);
        const near = (time) => Math.abs(time - at) < 5 * pixel;
        const exit = (
            row ? (this.timeline.exitsOf.get(row.index) ?? []) : y < RULER ? Array.from(exits.time.keys()) : []
        ).find((n) => near(exits.time[n]) && (row || exits.crash[n] === 1));
        if (exit !== undefined)
            return [
                processes[exits.process[exit]]?.show ?? "",
                [exits.crash[exit] === 1 ? "Crashed" : "Exited", text(exits.reason[exit])],
                ["At", this.when(exits.time[exit])],
            ];
        const mark = (
            row ? this.timeline.marksOf.get(row.index) : y < RULER ? this.timeline.marksOf.get(NaN) : null
        )?.find((n) => near(marks.time[n]) && (!row || (y - RULER + this.timeline.scroller.scrollTop) % ROW < 8));
        if (mark !== undefined)
            return [
                row?.show ?? "The node",
                [text(marks.kind[mark]), text(marks.text[mark])],
                ["At", this.when(marks.time[mark])],
            ];
        const span =
            row &&
            (y - RULER + this.timeline.scroller.scrollTop) % ROW > ROW - 6 &&
            this.timeline.spansOf
                .get(row.index)
                ?.find((n) => this.timeline.of.spans.begin[n] <= at && this.timeline.of.spans.end[n] >= at);
        if (span || span === 0)
            return [
                row.show,
                ["Span", text(this.timeline.of.spans.name[span])],
                ["Outcome", text(this.timeline.of.spans.outcome[span]) || "open"],
                ["For", duration(this.timeline.of.spans.end[span] - this.timeline.of.spans.begin[span])],
                ["From", this.when(this.timeline.of.spans.begin[span])],
            ];
        if (y < RULER)
            for (let n = 0; n < lost.size; n++)
                if (at > lost.begin[n] - 3 * pixel && at < lost.end[n] + 3 * pixel)
                    return [
                        "Lost events",
                        ["Number", lost.count[n] ? count(lost.count[n]) : "unknown"],
                        ["From", this.when(lost.begin[n])],
                        ["To", this.when(lost.end[n])],
                    ];
        return null;
    }
}
