// The functions of a profile by their own time, and by the time with what they call.

import { cut, h } from "./dom.js";
import { points } from "./flame.js";
import { duration, percent } from "./format.js";
import { functions, merged } from "./profile_tree.js";
import { Table } from "./table.js";

// `was`: the time with what each function called in an earlier profile, by its name, or null.
export function functionTable(root, was) {
    const rows = functions(merged(root));
    if (was) {
        const known = new Set(rows.map(({ name }) => name));
        for (const name of Object.keys(was)) if (!known.has(name)) rows.push({ name, own: 0, value: 0 });
        const earlier = new Map(Object.entries(was));
        for (const row of rows) row.was = earlier.get(row.name) ?? 0;
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
            value: (row) => ((row.value - row.was) / root.value) * 100,
            show: (_, value) => points(value),
            number: true,
            help: "Change of the share of all time since the earlier profile, in percentage points",
        });
    return new Table({ title: "Functions", id: "table-functions", columns, rows, sort: 1 });
}
