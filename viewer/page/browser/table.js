// A table that sorts by its columns and has a filter.
//
// A column: {title, value(row), show(row, value), number, bar, help, className}. The table sorts and filters by
// `value`; `show` returns the content of a cell, text or elements. `number`: right-aligned, highest first. Nulls come
// last.

import { h, plain } from "./dom.js";
import { count } from "./format.js";

const FIRST = 15,
    MORE = 500;

const collator = new Intl.Collator("en", { numeric: true });

function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
}

export class Table {
    constructor({ title, note, columns, rows, sort, concerns, id }) {
        Object.assign(this, { title, columns, all: rows, concerns, limit: FIRST, words: [], only: null });
        this.sort = {
            column:
                sort ??
                Math.max(
                    0,
                    columns.findIndex((column) => column.number),
                ),
        };
        this.sort.down = columns[this.sort.column].number ?? false;
        this.count = h("span", { class: "count", role: "status" });
        this.filter = h("input", {
            type: "search",
            placeholder: "Filter",
            "aria-label": "Filter: " + title,
            input: () => {
                this.words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
                this.limit = FIRST;
                this.draw();
            },
        });
        this.heads = columns.map((column, n) =>
            h(
                "th",
                {
                    scope: "col",
                    class:
                        [column.number && "number", column.className === "time" && "time"].filter(Boolean).join(" ") ||
                        null,
                },
                h(
                    "button",
                    { type: "button", class: "plain", title: column.help, click: () => this.sortBy(n) },
                    column.title,
                ),
            ),
        );
        this.body = h("tbody");
        this.more = h("button", {
            type: "button",
            class: "more",
            click: () => {
                this.limit += MORE;
                this.draw();
            },
        });
        this.element = h(
            "div",
            { class: "table", id },
            h("div", { class: "table-head" }, h("h3", title), this.count, rows.length > 5 && this.filter),
            note && h("p", { class: "note" }, note),
            h(
                "div",
                { class: "scroll-x" },
                h(
                    "table",
                    h("caption", { class: "visually-hidden" }, title),
                    h("thead", h("tr", this.heads)),
                    this.body,
                ),
            ),
            this.more,
        );
        this.highest = columns.map(
            (column) => column.bar && rows.reduce((most, row) => Math.max(most, column.value(row) ?? 0), 0),
        );
        this.draw();
    }

    sortBy(n) {
        this.sort = { column: n, down: this.sort.column === n ? !this.sort.down : (this.columns[n].number ?? false) };
        this.draw();
    }

    // Only rows that concern the process; null: all.
    show(process) {
        this.only = process;
        this.draw();
    }

    matching() {
        const text = (row) =>
            this.columns
                .map((column) => column.filter?.(row) ?? column.value(row) ?? "")
                .join("\n")
                .toLowerCase();
        return this.all.filter(
            (row) =>
                (!this.only || !this.concerns || this.concerns(row, this.only)) &&
                (!this.words.length || ((shown) => this.words.every((word) => shown.includes(word)))(text(row))),
        );
    }

    draw() {
        const { value } = this.columns[this.sort.column];
        const sign = this.sort.down ? -1 : 1;
        const rows = this.matching().map((row) => [value(row) ?? null, row]);
        rows.sort(([a], [b]) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : sign * compare(a, b)));
        this.heads.forEach((head, n) =>
            n === this.sort.column
                ? head.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending")
                : head.removeAttribute("aria-sort"),
        );
        this.body.replaceChildren(...rows.slice(0, this.limit).map(([, row]) => this.row(row)));
        if (rows.length === 0)
            this.body.append(h("tr", h("td", { colspan: this.columns.length, class: "empty" }, "No row matches.")));
        this.count.textContent =
            rows.length < this.all.length ? `${count(rows.length)} of ${count(this.all.length)}` : count(rows.length);
        const left = rows.length - this.limit;
        this.more.hidden = left <= 0;
        this.more.textContent = `Show ${count(Math.min(left, MORE))} more`;
    }

    row(row) {
        return h(
            "tr",
            this.columns.map((column, n) => {
                const value = column.value(row);
                const shown = column.show ? column.show(row, value) : value;
                const cell = h(
                    "td",
                    {
                        class:
                            [column.number && "number", column.bar && "bar", column.className]
                                .filter(Boolean)
                                .join(" ") || null,
                    },
                    typeof shown === "string" ? plain(shown) : shown,
                );
                if (column.bar && this.highest[n])
                    cell.style.setProperty("--share", ((value ?? 0) / this.highest[n]) * 100 + "%");
                return cell;
            }),
        );
    }
}
