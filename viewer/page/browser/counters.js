// The VM's counters as charts of load, most important first. docs/counters.md describes the counters.

// Counters that count from the start of the node. The page shows their growth per second.
export const TOTALS = new Set([
    "reductions",
    "context_switches",
    "gc_count",
    "gc_reclaimed",
    "io_input",
    "io_output",
    "cpu_throttled",
]);

// `series`: [counter, name, colour, dash]. `scale`: the displayed unit, in units of the counter.
const CHARTS = [
    {
        title: "Run queues",
        series: [
            ["run_queue", "normal", "runnable"],
            ["run_queue_dirty_cpu", "dirty CPU", "running", [5, 3]],
            ["run_queue_dirty_io", "dirty I/O", "span", [1, 2]],
        ],
    },
    {
        title: "Utilization of schedulers, %",
        scale: 10,
        series: [
            ["scheduler_utilization", "normal", "running"],
            ["dirty_cpu_utilization", "dirty CPU", "runnable", [5, 3]],
            ["dirty_io_utilization", "dirty I/O", "span", [1, 2]],
        ],
    },
    {
        title: "Memory, MB",
        scale: 1e6,
        series: [
            ["memory_total", "total", "span"],
            ["memory_processes", "processes", "running", [5, 3]],
            ["memory_binary", "binaries", "exiting", [1, 2]],
            ["memory_ets", "ETS", "collecting", [8, 3, 1, 3]],
        ],
    },
    { title: "Reductions per second", series: [["reductions", "reductions", "running"]] },
    {
        title: "Ports, kB per second",
        scale: 1e3,
        series: [
            ["io_input", "input", "span"],
            ["io_output", "output", "exiting", [5, 3]],
        ],
    },
    { title: "Garbage collections per second", series: [["gc_count", "collections", "collecting"]] },
];

// The growth per second from the previous sample to each sample.
function rates(values, times) {
    return values.map((value, n) => {
        const grown = n > 0 && value !== null && values[n - 1] !== null ? value - values[n - 1] : null;
        return grown === null || times[n] <= times[n - 1] ? null : (grown / (times[n] - times[n - 1])) * 1e9;
    });
}

// The charts of one node: {title, series: [{name, stroke, dash, fill, values}], times}. Counters that were always 0
// have none.
export function counterCharts({ times, of }) {
    return CHARTS.map(({ title, scale = 1, series }) => ({
        title,
        times,
        series: series
            .filter(([counter]) => of[counter])
            .map(([counter, name, stroke, dash], n) => ({
                name,
                stroke,
                dash,
                fill: n === 0,
                values: (TOTALS.has(counter) ? rates(of[counter], times) : of[counter]).map((value) =>
                    value === null ? null : value / scale,
                ),
            }))
            .filter(({ values }) => values.some((value) => value > 0)),
    })).filter((chart) => chart.series.length > 0);
}

const ORDER = [...CHARTS.flatMap(({ series }) => series.map(([counter]) => counter)), "context_switches"];

// The position of a counter in the table: those of the charts first, in their order.
export function placeOf(name) {
    const shared = name.replace(/_\d+$/, "");
    const at = ORDER.indexOf(shared);
    return at < 0 ? ORDER.length : at;
}
