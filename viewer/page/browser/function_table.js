// The functions of a profile by their own time, and by the time with what they call.

import { cut, h } from "./dom.js";
import { duration, percent, points } from "./format.js";
import { change, functions } from "./profile_tree.js";
import { Table } from "./table.js";

// `root`: the tree with merged processes. `was`: the time with what each function called in an earlier profile, by its
// name, or null.
export function functionTable(root, was) {
    const rows = functions(root);
    if (was) {
        const earlier = new Map(Object.entries(was));
        for (const row of rows) {
            row.was = earlier.get(row.name) ?? 0;
            earlier.delete(row.name);
        }
        // Those that are gone.
        for (const [name, time] of earlier) rows.push({ name, own: 0, value: 0, was: time });
    }
    const time = (title, field, help) => ({
        title,
        value: (row) => row[field],
        show: (_, value) => `${duration(value)}, ${percent(value, root.value)}`,
        number: true,
        bar: true,
        help,
    });
    const columns = [
        {
            title: "Function",
            value: (row) => row.name,
            show: (_, value) => h("code", cut(value, 2000)),
            className: "wide",
        },
        time("Own", "own", "Time in the function itself"),
        time("Total", "value", "Time in the function and in the functions that it called"),
    ];
    if (was)
        columns.push({
            title: "Change",
            value: (row) => change(row, root),
            show: (_, value) => points(value),
            number: true,
            help: "Share of all time, compared with the earlier profile, in percentage points",
        });
    return new Table({ title: "Functions", id: "table-functions", columns, rows, sort: 1 });
}
