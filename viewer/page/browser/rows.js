// The rows of the timeline and their order, as the reader filters, unfolds and selects them.
//
// Processes of a kind share a row (page/folds.h). If it is unfolded, its processes that have intervals get rows below
// it. A selected process always has its row.

import { count } from "./format.js";
import { chosen } from "./shared.js";

export const ORDERS = {
    activity: ["busiest first", (a, b) => a.index - b.index],
    name: ["by name", (a, b) => a.show.localeCompare(b.show, "en", { numeric: true })],
    begin: ["by first event", (a, b) => (a.intervals.begin[0] ?? 0) - (b.intervals.begin[0] ?? 0)],
    group: ["by group", (a, b) => (a.group ?? "").localeCompare(b.group ?? "") || a.index - b.index],
};

export const isPort = (row) => row.kind === "port";

// The number of processes and ports in these rows: "62 processes, 3 ports".
export function inWords(rows) {
    const sum = (of) => of.reduce((all, row) => all + (row.members ?? 1), 0);
    const ports = sum(rows.filter(isPort));
    const processes = sum(rows) - ports;
    return count(processes) + " processes" + (ports > 0 ? `, ${count(ports)} ports` : "");
}

export class Rows {
    constructor(timeline) {
        this.of = timeline;
        this.unfolded = new Set(); // indexes of rows of a kind
        this.order = "activity";
        this.words = "";
    }

    isUnfolded({ index }) {
        return this.unfolded.has(index);
    }

    // Toggles a row between unfolded and folded.
    turn({ index }) {
        if (!this.unfolded.delete(index)) this.unfolded.add(index);
    }

    // The row of its kind, if the process has one, else its own row.
    headOf(process) {
        return this.of.processes[process.fold] ?? process;
    }

    hasRow({ row, fold, number }) {
        return row && (fold === undefined || this.unfolded.has(fold) || number === chosen.process?.number);
    }

    // The row that shows a process: its own, or that of its kind.
    rowOf(index) {
        const process = this.of.processes[index];
        return !process || this.hasRow(process) ? process : this.headOf(process);
    }

    // The rows of a process and of those that it exchanges messages with.
    partners(own) {
        const { messages } = this.of;
        const close = new Set();
        const isOwn = (row) => row && (row === own || this.headOf(row) === own);
        const add = (row) => {
            if (!row) return;
            close.add(row);
            if (this.unfolded.has(row.fold)) close.add(this.headOf(row));
        };
        [own, ...(own?.unfolds ?? [])].filter((row) => row && this.hasRow(row)).forEach(add);
        for (let n = 0; own && n < messages.size; n++) {
            const from = this.rowOf(messages.from[n]),
                to = this.rowOf(messages.to[n]);
            if (isOwn(from)) add(to);
            if (isOwn(to)) add(from);
        }
        return close;
    }

    matches({ show, pid, group, node }) {
        return !this.words || `${show} ${pid} ${group ?? ""} ${node ?? ""}`.toLowerCase().includes(this.words);
    }

    // The selected row first, then in the reader's order. Processes of a kind follow its row, sorted by their start.
    compare(a, b, own) {
        const one = this.headOf(a),
            other = this.headOf(b),
            first = own && this.headOf(own);
        if (one === other) return (b === other) - (a === one) || a.began - b.began;
        return (
            (other === first) - (one === first) ||
            isPort(one) - isPort(other) ||
            ORDERS[this.order][1](one, other) ||
            one.index - other.index
        );
    }

    // {rows, own, lanes, counted}: the rows; the row of the selected process; the row number (from 0) of each process,
    // by its index; and a subset of the rows that covers each process once.
    shown() {
        const { process } = chosen;
        const own = process && this.rowOf(this.of.byNumber.get(process.number)?.index);
        const close = process && this.partners(own);
        const rows = this.of.rows
            .flatMap((row) => [row, ...(row.unfolds ?? []).filter((one) => this.hasRow(one))])
            .filter((row) => (!close || close.has(row)) && this.matches(row))
            .sort((a, b) => this.compare(a, b, own));
        const places = new Map(rows.map((row, n) => [row, n]));
        const placeOf = (one) => places.get(this.rowOf(one.index)) ?? places.get(this.headOf(one));
        return {
            rows,
            own,
            lanes: new Map(this.of.processes.map((one) => [one.index, placeOf(one)])),
            counted: rows.filter((row) => this.headOf(row) === row || !places.has(this.headOf(row))),
        };
    }
}
