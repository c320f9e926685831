// Draws the timeline's rows and its ruler on a canvas. Only the visible part is visited. Intervals that are narrower
// than a pixel become one column per pixel, as high as their share of the pixel.

import { colour, cut } from "./dom.js";
import { label, ticks } from "./axis.js";
import { COLLECTING, EXITING, MERGED, RUNNABLE, RUNNING, WAITING, lowerBound } from "./data.js";

export const RULER = 40,
    ROW = 24;
const BAR = 14,
    TOP = (ROW - BAR) / 2;
export const MOST_ARROWS = 300;

// The least height of a state in a pixel, unless it occurs within so many pixels before.
const ALONE = 4,
    NEAR = 4;

export function colours() {
    const names =
        "page raised line line-strong text quiet accent accent-soft bad running runnable waiting collecting exiting " +
        "span merged on-state";
    const of = Object.fromEntries(names.split(" ").map((name) => [name, colour(name)]));
    of.state = [null, of.waiting, of.runnable, of.running, of.collecting, of.exiting, of.merged];
    of.hatch = hatch(of.page);
    return of;
}

// Diagonal lines distinguish runnable from running without colour.
function hatch(line) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const paper = tile.getContext("2d");
    paper.strokeStyle = line;
    paper.globalAlpha = 0.65;
    paper.lineWidth = 1.4;
    paper.beginPath();
    for (const x of [-6, 0, 6]) {
        paper.moveTo(x, 6);
        paper.lineTo(x + 6, 0);
    }
    paper.stroke();
    return paper.createPattern(tile, "repeat");
}

export class Painter {
    constructor(paper, width, height, range, ink) {
        Object.assign(this, {
            paper,
            width,
            height,
            ink,
            begin: range.begin,
            scale: width / (range.end - range.begin),
            end: range.end,
        });
        paper.font = "11px " + getComputedStyle(document.body).fontFamily;
        paper.textBaseline = "middle";
    }

    x(ns) {
        return (ns - this.begin) * this.scale;
    }

    clear() {
        this.paper.fillStyle = this.ink.page;
        this.paper.fillRect(0, 0, this.width, this.height);
    }

    grid() {
        const { paper, ink } = this;
        this.ticks = ticks(this.begin, this.end, this.width, 110);
        paper.fillStyle = ink.line;
        for (const at of this.ticks.at) paper.fillRect(Math.round(this.x(at)), RULER, 1, this.height);
    }

    // One row, whose top is at y. The lifeline extends from its begin to its end.
    row(process, y, length) {
        const { paper, ink } = this;
        const { intervals } = process;
        const from = Math.max(0, this.x(process.began ?? 0)),
            to = Math.min(this.width, this.x(process.ended ?? length));
        if (to > from) {
            paper.fillStyle = ink.line;
            paper.fillRect(from, y + ROW / 2, to - from, 1);
        }
        const boxes = [null, [], [], [], [], [], []];
        const columns = new PixelColumns(boxes, y);
        const texts = [];
        for (let n = lowerBound(intervals.end, this.begin, intervals.size); n < intervals.size; n++) {
            const begin = intervals.begin[n];
            if (begin > this.end) break;
            const left = Math.max(this.x(begin), -1),
                right = Math.min(this.x(intervals.end[n]), this.width + 1);
            const state = intervals.state[n];
            if (right - left < 1.5) {
                columns.add(left, right, state, state === MERGED ? intervals.extra[n] / 1000 : 1);
                continue;
            }
            columns.flush();
            if (state === WAITING) boxes[WAITING].push(left, y + ROW / 2 - 1, right - left, 2);
            else if (state === MERGED) {
                const high = (BAR * intervals.extra[n]) / 1000;
                boxes[MERGED].push(left, y + TOP, right - left, BAR);
                if (high > 0) boxes[RUNNING].push(left, y + TOP + BAR - high, right - left, high);
            } else if (state > 0) boxes[state].push(left, y + TOP, Math.max(1, right - left - 0.5), BAR);
            if (state !== WAITING && state !== MERGED && right - left > 50 && intervals.text[n])
                texts.push(n, left, right);
        }
        columns.flush();
        for (const state of [MERGED, WAITING, RUNNABLE, RUNNING, COLLECTING, EXITING]) this.boxes(boxes[state], state);
        return texts;
    }

    boxes(boxes, state) {
        if (boxes.length === 0) return;
        const { paper, ink } = this;
        paper.fillStyle = ink.state[state];
        paper.beginPath();
        for (let n = 0; n < boxes.length; n += 4) paper.rect(boxes[n], boxes[n + 1], boxes[n + 2], boxes[n + 3]);
        paper.fill();
        if (state === RUNNABLE) {
            paper.fillStyle = ink.hatch;
            paper.fill();
        }
        if (state === COLLECTING) {
            paper.fillStyle = ink["on-state"];
            for (let n = 0; n < boxes.length; n += 4)
                if (boxes[n + 2] > 6) paper.fillRect(boxes[n] + 1, boxes[n + 1] + BAR / 2 - 1, boxes[n + 2] - 2, 2);
        }
    }

    // Function names, in intervals that are wide enough.
    texts(found, y, intervals, text) {
        const { paper, ink } = this;
        for (let n = 0; n < found.length; n += 3) {
            const left = Math.max(found[n + 1], 0) + 4,
                room = Math.min(found[n + 2], this.width) - left - 4;
            if (room < 42) continue;
            let name = cut(text(intervals.text[found[n]]), 80);
            if (paper.measureText(name).width > room) name = cut(name, Math.max(1, Math.floor(room / 6.2)));
            const plate = intervals.state[found[n]] === RUNNABLE;
            paper.fillStyle = plate ? ink.runnable : ink["on-state"];
            if (plate) {
                paper.fillRect(left - 2, y + TOP + 1, paper.measureText(name).width + 4, BAR - 2);
                paper.fillStyle = "#14181c";
            }
            paper.fillText(name, left, y + ROW / 2 + 0.5);
        }
    }

    span(begin, end, y) {
        const left = Math.max(this.x(begin), 0),
            right = Math.min(this.x(end), this.width);
        this.paper.fillStyle = this.ink.span;
        this.paper.fillRect(left, y + ROW - 4, Math.max(1, right - left), 2.5);
    }

    // Fully visible at the end of the recording, too.
    exit(time, y, crash) {
        const { paper, ink } = this;
        const at = this.x(time),
            x = at < 0 || at > this.width ? at : Math.min(at, this.width - 5),
            middle = y + ROW / 2;
        paper.strokeStyle = crash ? ink.bad : ink.quiet;
        paper.lineWidth = crash ? 2.2 : 1.4;
        paper.beginPath();
        paper.moveTo(x - 4, middle - 4);
        paper.lineTo(x + 4, middle + 4);
        paper.moveTo(x - 4, middle + 4);
        paper.lineTo(x + 4, middle - 4);
        paper.stroke();
    }

    mark(time, y) {
        const { paper, ink } = this;
        const x = this.x(time);
        paper.fillStyle = ink.text;
        paper.beginPath();
        paper.moveTo(x, y + TOP - 1);
        paper.lineTo(x - 4, y + TOP - 6);
        paper.lineTo(x + 4, y + TOP - 6);
        paper.fill();
    }

    // A message: an arrow from the sender's row to the receiver's, or a short arrow if a row or a time is missing.
    arrow(sent, delivered, from, to, inferred, dead, strength = 0.8) {
        const { paper, ink } = this;
        const known = (value) => !Number.isNaN(value);
        let x1 = known(sent) ? this.x(sent) : this.x(delivered) - 10,
            x2 = known(delivered) ? this.x(delivered) : x1 + 10;
        const down = from === null ? 1 : -1;
        const y1 = from ?? to - 14,
            y2 = to ?? from + 14 * -down;
        paper.strokeStyle = paper.fillStyle = dead ? ink.bad : ink.text;
        paper.globalAlpha = from === null || to === null ? strength / 2 : strength;
        paper.lineWidth = 1;
        paper.setLineDash(inferred ? [4, 3] : []);
        paper.beginPath();
        paper.moveTo(x1, y1);
        paper.lineTo(x2, y2);
        paper.stroke();
        paper.setLineDash([]);
        const angle = Math.atan2(y2 - y1, x2 - x1);
        paper.beginPath();
        paper.moveTo(x2, y2);
        paper.lineTo(x2 - 6 * Math.cos(angle - 0.4), y2 - 6 * Math.sin(angle - 0.4));
        paper.lineTo(x2 - 6 * Math.cos(angle + 0.4), y2 - 6 * Math.sin(angle + 0.4));
        paper.fill();
        paper.globalAlpha = 1;
    }

    ruler() {
        const { paper, ink } = this;
        paper.fillStyle = ink.raised;
        paper.fillRect(0, 0, this.width, RULER);
        paper.fillStyle = ink["line"];
        paper.fillRect(0, RULER - 1, this.width, 1);
        for (const at of this.ticks.at) {
            const x = Math.round(this.x(at));
            paper.fillStyle = ink["line-strong"];
            paper.fillRect(x, RULER - 6, 1, 5);
            paper.fillStyle = ink.quiet;
            const name = label(at, this.ticks.step);
            const half = paper.measureText(name).width / 2;
            paper.fillText(name, Math.min(Math.max(x - half, 4), this.width - 2 * half - 4), RULER - 16);
        }
    }

    // Periods in which events were lost: marked above the ruler, and shaded over all rows.
    lost({ begin, end, size }) {
        const { paper, ink } = this;
        const fill = (top, height, strength) => {
            paper.beginPath();
            for (let n = 0; n < size; n++) {
                const left = Math.max(this.x(begin[n]), -2),
                    right = Math.min(Math.max(this.x(end[n]), this.x(begin[n]) + 2), this.width);
                if (right > left) paper.rect(left, top, right - left, height);
            }
            paper.globalAlpha = strength;
            paper.fill();
            paper.globalAlpha = 1;
        };
        paper.fillStyle = ink.bad;
        fill(0, 5, 1);
        fill(RULER, this.height, 0.16);
    }

    // Periods for which the page has the messages.
    covered(begin, end) {
        const { paper, ink } = this;
        paper.fillStyle = ink.text;
        paper.globalAlpha = 0.35;
        paper.fillRect(this.x(begin), RULER - 3, Math.max(1, this.x(end) - this.x(begin)), 2);
        paper.globalAlpha = 1;
    }

    mirrored(time, crash) {
        const { paper, ink } = this;
        const x = this.x(time);
        if (x < -4 || x > this.width + 4) return;
        paper.fillStyle = crash ? ink.bad : ink.text;
        paper.beginPath();
        paper.moveTo(x, 14);
        paper.lineTo(x - 4, 7);
        paper.lineTo(x + 4, 7);
        paper.fill();
    }
}

// Intervals within one pixel: one bar per state, stacked, as high as its share. A canvas draws what is lower than a
// pixel as a faint pixel.
class PixelColumns {
    constructor(boxes, y) {
        Object.assign(this, { boxes, y, at: null, share: new Float64Array(7), seen: new Float64Array(7).fill(-NEAR) });
    }

    add(left, right, state, busy) {
        const at = Math.floor(left);
        if (at !== this.at) {
            this.flush();
            this.at = at;
        }
        const width = Math.max(right - left, 1e-9);
        if (state === MERGED) {
            this.share[RUNNING] += width * busy;
            this.share[WAITING] += width * (1 - busy);
        } else this.share[state] += width;
        this.right = right;
    }

    flush() {
        if (this.at === null) return;
        const { share, boxes, y, at } = this;
        const whole = share.reduce((sum, part) => sum + part, 0);
        let bottom = y + TOP + BAR;
        for (const state of [RUNNING, RUNNABLE, COLLECTING, EXITING]) {
            if (share[state] === 0) continue;
            // A state that is alone here stays visible, however short.
            const least = at - this.seen[state] < NEAR ? 0 : ALONE;
            const high = Math.max(least, (BAR * share[state]) / Math.max(whole, 0.5));
            this.seen[state] = at;
            boxes[state].push(at, bottom - high, 1, high);
            bottom -= high;
        }
        if (share[WAITING] > 0) boxes[WAITING].push(at, y + ROW / 2 - 1, 1, 2);
        share.fill(0);
        this.at = null;
    }
}
