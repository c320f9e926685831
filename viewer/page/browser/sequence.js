// A sequence diagram: the messages between selected processes, in the timeline's range or during one server call.

import { cut, h, plain, svg } from "./dom.js";
import { OUTCOMES, readable } from "./data.js";
import { count, duration, since } from "./format.js";
import { chosen, on, range } from "./shared.js";

const MOST = 120,
    MOST_PARTICIPANTS = 10,
    LINE = 30,
    HEAD = 44,
    LEFT = 96;

export class Sequence {
    constructor(data) {
        this.of = data.timeline;
        this.participants = [];
        this.bounds = null;
        this.element = this.build();
        this.busiestPair();
        on("range", () => this.later());
        on("chosen", () => {
            if (chosen.process) this.start(chosen.process.number);
        });
        on("theme", () => this.draw());
        this.draw();
    }

    build() {
        const { processes, calls } = this.of;
        this.chips = h("span", { class: "participants" });
        this.add = h("select", {
            "aria-label": "Add a process",
            change: () => {
                this.participants.push(processes[Number(this.add.value)]);
                this.draw();
            },
        });
        const longest = Array.from(calls.began.keys())
            .sort((a, b) => (calls.ended[b] - calls.began[b] || 0) - (calls.ended[a] - calls.began[a] || 0))
            .slice(0, 200);
        this.call = h(
            "select",
            { change: () => this.showCall(this.call.value) },
            h("option", { value: "" }, "the timeline's range"),
            longest.map((n) =>
                h(
                    "option",
                    { value: n },
                    cut(
                        `a call of ${duration(calls.ended[n] - calls.began[n])}: ` +
                            `${this.show(calls.caller[n])} → ${this.show(calls.server[n])}  ` +
                            this.of.text(calls.request[n]),
                        110,
                    ),
                ),
            ),
        );
        this.said = h("p", { class: "note", role: "status" });
        this.place = h("div", { class: "sequence", tabindex: "0", role: "region", "aria-label": "Sequence diagram" });
        return h(
            "div",
            h(
                "div",
                { class: "controls" },
                longest.length > 0 && h("label", "Messages in", this.call),
                h("label", longest.length > 0 ? "Between" : "Messages between", this.add),
            ),
            this.chips,
            this.said,
            this.place,
        );
    }

    show(index) {
        return this.of.processes[index]?.show ?? "?";
    }

    // Initially: the two processes that send each other the most messages, else any two.
    busiestPair() {
        const { messages, processes } = this.of;
        const pairs = new Map();
        for (let n = 0; n < messages.size; n++) {
            const [from, to] = [messages.from[n], messages.to[n]];
            if (Number.isNaN(from) || Number.isNaN(to) || from === to) continue;
            const key = Math.min(from, to) + " " + Math.max(from, to);
            const pair = pairs.get(key) ?? { of: [processes[from], processes[to]], there: 0, back: 0 };
            pairs.set(key, pair);
            if (processes[from] === pair.of[0]) pair.there++;
            else pair.back++;
        }
        const order = [
            ({ of }) => (of.some(({ pid }) => pid.startsWith("#Port")) ? 0 : 1),
            ({ there, back }) => Math.min(there, back),
            ({ there, back }) => there + back,
        ];
        const compare = (a, b) => order.reduce((found, by) => found || by(b) - by(a), 0);
        const [best] = [...pairs.values()].sort(compare);
        if (best) this.participants = best.of;
    }

    // A process and those that it exchanges the most messages with.
    start(number) {
        const { messages, processes, byNumber } = this.of;
        const process = byNumber.get(number);
        if (!process || process.members) return;
        const counts = new Map();
        for (let n = 0; n < messages.size; n++) {
            const other =
                messages.from[n] === process.index
                    ? messages.to[n]
                    : messages.to[n] === process.index
                      ? messages.from[n]
                      : NaN;
            if (processes[other] && other !== process.index) counts.set(other, (counts.get(other) ?? 0) + 1);
        }
        const others = [...counts]
            .sort(([, a], [, b]) => b - a)
            .slice(0, 3)
            .map(([index]) => processes[index]);
        this.participants = [process, ...others];
        this.bounds = null;
        this.call.value = "";
        this.draw();
    }

    showCall(value) {
        const { calls, processes } = this.of;
        if (value === "") this.bounds = null;
        else {
            const n = Number(value);
            this.participants = [...new Set([processes[calls.caller[n]], processes[calls.server[n]]])].filter(Boolean);
            this.bounds = {
                begin: calls.began[n],
                end: Number.isNaN(calls.ended[n]) ? range.whole : calls.ended[n],
                call: n,
            };
        }
        this.draw();
    }

    later() {
        if (this.bounds) return;
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.draw(), 120);
    }

    // The messages between participants that were in flight in the range, sorted by their first time.
    messages() {
        const { messages } = this.of;
        const { begin, end } = this.bounds ?? range;
        const among = new Map(this.participants.map((process, lane) => [process.index, lane]));
        const found = [];
        let total = 0;
        for (let n = 0; n < messages.size; n++) {
            if (messages.first[n] > end) break;
            const from = among.get(messages.from[n]),
                to = among.get(messages.to[n]);
            if (messages.last[n] < begin || from === undefined || to === undefined) continue;
            if (++total <= MOST) found.push({ n, from, to });
        }
        return { found, total };
    }

    draw() {
        const { processes } = this.of;
        const { found, total } = this.messages();
        this.chips.replaceChildren(
            ...this.participants.map((process) =>
                h(
                    "span",
                    { class: "chip" },
                    h("span", cut(process.show, 80)),
                    h(
                        "button",
                        {
                            type: "button",
                            "aria-label": "Remove " + plain(process.show),
                            click: () => {
                                this.participants = this.participants.filter((other) => other !== process);
                                this.draw();
                            },
                        },
                        "✕",
                    ),
                ),
            ),
        );
        this.add.replaceChildren(
            h("option", { value: "" }, "add a process"),
            ...processes
                .filter((process) => !process.members && !this.participants.includes(process))
                .slice(0, 2000)
                .map((process) => h("option", { value: process.index }, cut(process.show, 80))),
        );
        this.add.value = "";
        this.add.disabled = this.participants.length >= MOST_PARTICIPANTS;
        const { calls, text } = this.of;
        const call = this.bounds?.call;
        this.said.textContent =
            (call === undefined
                ? ""
                : `The call took ${duration(calls.ended[call] - calls.began[call])} ` +
                  `and ended with: ${OUTCOMES[calls.outcome[call]]}. `) +
            (total > MOST
                ? `The first ${count(MOST)} of ${count(total)} messages. Zoom into the timeline to see others.`
                : total === 0
                  ? "The page has no messages between these processes in this range."
                  : `${count(total)} messages.`);
        this.place.hidden = found.length === 0;
        if (found.length > 0) this.place.replaceChildren(...this.diagram(found, text));
    }

    diagram(found, text) {
        const lanes = this.participants.length;
        const gap = Math.max(
            190,
            Math.min(lanes < 3 ? 560 : 400, (this.element.clientWidth - LEFT - 40) / lanes || 260),
        );
        const width = LEFT + gap * lanes,
            height = found.length * LINE + 24;
        const x = (lane) => LEFT + gap * (lane + 0.5);
        const { messages } = this.of;
        const first = messages.first[found[0].n];
        // Enough digits to distinguish consecutive messages.
        const step = ((messages.first[found.at(-1).n] - first) / found.length) * 10;
        const rows = found.map(({ n, from, to }, row) => {
            const y = row * LINE + 24;
            const dead = messages.dead[n] === 1,
                inferred = messages.matched[n] >= 3;
            const slow = messages.delivered[n] - messages.sent[n];
            const own = from === to;
            const [x1, x2] = [x(from), x(to)];
            const line = own ? `M${x1} ${y - 5}h26v10h-20` : `M${x1} ${y}H${x2 - Math.sign(x2 - x1) * 7}`;
            const tip = own ? [x1, y + 5, 1] : [x2, y, -Math.sign(x2 - x1)];
            const name = text(messages.text[n]);
            const room = Math.floor((own ? gap * 0.7 : Math.abs(x2 - x1) - 20) / 7);
            return svg(
                "g",
                svg("title", `${plain(name)}\nsent ${since(messages.sent[n], step)}, on its way ` + duration(slow)),
                svg(
                    "text",
                    { class: "time", x: LEFT - 8, y: y + 4, "text-anchor": "end" },
                    since(messages.first[n], step),
                ),
                svg("path", {
                    class: ["arrow", inferred && "inferred", dead && "dead"].filter(Boolean).join(" "),
                    d: line,
                }),
                svg("path", { class: dead ? "tip dead" : "tip", d: `M${tip[0]} ${tip[1]}l${8 * tip[2]} -4.5v9z` }),
                svg(
                    "text",
                    {
                        class: "message",
                        x: own ? x1 + 32 : (x1 + x2) / 2,
                        y: own ? y + 4 : y - 6,
                        "text-anchor": own ? "start" : "middle",
                    },
                    cut(readable(name), Math.max(12, room)),
                ),
            );
        });
        const heads = svg(
            "svg",
            { class: "heads", width, height: HEAD, viewBox: `0 0 ${width} ${HEAD}`, "aria-hidden": "true" },
            this.participants.map((process, lane) =>
                svg(
                    "g",
                    { class: "head" },
                    svg("line", { class: "lifeline", x1: x(lane), x2: x(lane), y1: 38, y2: HEAD }),
                    svg("rect", { x: x(lane) - gap / 2 + 10, y: 10, width: gap - 20, height: 28, rx: 6 }),
                    svg(
                        "text",
                        { x: x(lane), y: 28, "text-anchor": "middle" },
                        cut(process.show, Math.floor((gap - 34) / 7.2)),
                    ),
                ),
            ),
        );
        const names = this.participants.map((one) => plain(one.show)).join(", ");
        const lines = this.participants.map((_, lane) =>
            svg("line", { class: "lifeline", x1: x(lane), x2: x(lane), y1: 0, y2: height - 4 }),
        );
        return [
            heads,
            svg(
                "svg",
                {
                    width,
                    height,
                    viewBox: `0 0 ${width} ${height}`,
                    role: "img",
                    "aria-label": `${found.length} messages between ${names}`,
                },
                lines,
                rows,
            ),
        ];
    }
}
