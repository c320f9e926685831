// State that the parts of the page share: the visible time range, and the selected process.

const listeners = { range: [], chosen: [], theme: [] };

export const on = (what, listener) => listeners[what].push(listener);
export const notify = (what) => listeners[what].forEach((listener) => listener());

export const range = { begin: 0, end: 1, whole: 1 };

const SHORTEST = 200; // ns

export function setRange(begin, end) {
    const length = Math.min(Math.max(end - begin, SHORTEST), range.whole);
    const middle = (begin + end) / 2;
    range.begin = Math.min(Math.max(middle - length / 2, 0), range.whole - length);
    range.end = range.begin + length;
    notify("range");
}

export function zoom(factor, at = (range.begin + range.end) / 2) {
    const length = (range.end - range.begin) * factor;
    const share = (at - range.begin) / (range.end - range.begin);
    setRange(at - length * share, at + length * (1 - share));
}

export function pan(share) {
    const by = (range.end - range.begin) * share;
    setRange(range.begin + by, range.end + by);
}

export const chosen = { process: null };

// Selects a process, {number, ...}. Selecting the same process again, or null, clears the selection.
export function choose(process) {
    chosen.process = process && process.number === chosen.process?.number ? null : process;
    notify("chosen");
}

// Shows a time in the timeline.
export function goTo(begin, end = begin) {
    const around = Math.max((end - begin) * 0.5, range.whole / 2000, 1e4);
    setRange(begin - around, end + around);
    document.getElementById("timeline")?.scrollIntoView();
    document.querySelector("#timeline canvas.rows")?.focus({ preventScroll: true });
}
