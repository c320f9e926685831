// Charts of load over time. Dragging over a chart sets the timeline's range.

import uPlot from "uplot";
import { label, ticks } from "./axis.js";
import { counterCharts } from "./counters.js";
import { colour, h, plain, svg } from "./dom.js";
import { count } from "./format.js";
import { on, range, setRange } from "./shared.js";

const HEIGHT = 92;
const FIRST = 2; // charts of counters before those of events
const AXIS = 46; // as in style.css

const CHARTS = [
    {
        title: "Processes, on average",
        series: [
            { field: "run", name: "running", stroke: "running", fill: true },
            { field: "runnable", name: "runnable", stroke: "runnable", dash: [5, 3] },
            { field: "collecting", name: "collecting", stroke: "collecting", dash: [1, 2] },
        ],
    },
    {
        title: "Events per second",
        rate: true,
        series: [
            { field: "sent", name: "messages", stroke: "span", fill: true },
            { field: "calls", name: "calls", stroke: "exiting", dash: [5, 3] },
        ],
    },
];

const digits = (value) =>
    value === null || value === undefined
        ? "–"
        : value < 10
          ? value.toFixed(value < 0.1 && value > 0 ? 3 : 2)
          : value < 1e6
            ? count(value)
            : (value / 1e6).toFixed(value < 1e8 ? 1 : 0) + "M";

export class Load {
    constructor(data) {
        this.data = data;
        const { load, recording } = data.report;
        this.load = load;
        this.zero = load.begin - (data.begin === null ? (recording?.begin ?? load.begin) : Number(data.begin));
        this.plots = [];
        this.charts = load.nodes.flatMap((node) => {
            const where = load.nodes.length > 1 ? plain(node.node) : "";
            const sampled = data.counters.find((one) => one.node === node.node);
            const counters = sampled ? counterCharts(sampled) : [];
            return [...counters.slice(0, FIRST), ...this.ofEvents(node), ...counters.slice(FIRST)].map((chart) => ({
                ...chart,
                where,
            }));
        });
        this.element = h("div", { class: "charts" });
        on("theme", () => this.draw());
        on("range", () => this.mark());
        let width = 0;
        new ResizeObserver(([{ contentRect }]) => {
            if (Math.abs(contentRect.width - width) > 0.5) {
                width = contentRect.width;
                this.draw();
            }
        }).observe(this.element);
    }

    // Charts from the recorded events of a node.
    ofEvents(node) {
        const { step_ns } = this.load;
        return CHARTS.map(({ title, rate, series }) => ({
            title,
            stepped: true,
            series: series
                .filter(({ field }) => Array.isArray(node[field]) && node[field].some((value) => value > 0))
                .map(({ field, ...more }) => ({
                    ...more,
                    values: node[field].map((value) => (value === null || !rate ? value : (value * 1e9) / step_ns)),
                })),
        }))
            .filter(({ series }) => series.length > 0)
            .map((chart) => ({
                ...chart,
                times: chart.series[0].values.map((_, n) => this.zero + (n + 0.5) * step_ns),
            }));
    }

    get empty() {
        return this.charts.length === 0;
    }

    draw() {
        this.plots.forEach((plot) => plot.destroy());
        this.plots = [];
        const sync = uPlot.sync("load");
        this.element.replaceChildren(
            ...this.charts.map((chart, n) => {
                const keys = h("ul", { class: "keys" });
                const place = h("div", { class: "plot", role: "img", "aria-label": this.inWords(chart) });
                const element = h(
                    "div",
                    { class: "chart" },
                    h(
                        "div",
                        { class: "about" },
                        h("h4", chart.title),
                        chart.where && h("p", { class: "note" }, chart.where),
                        keys,
                    ),
                    place,
                );
                queueMicrotask(() => this.plot(chart, place, keys, sync, n === this.charts.length - 1));
                return element;
            }),
        );
    }

    inWords(chart) {
        return (
            `${[chart.title, chart.where].filter(Boolean).join(", ")}, over time. ` +
            chart.series
                .map(({ name, values }) => {
                    const known = values.filter((value) => value !== null);
                    const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
                    return `${name}: mean ${digits(mean)}, max ${digits(Math.max(...known))}`;
                })
                .join("; ")
        );
    }

    plot(chart, place, keys, sync, last) {
        const width = place.clientWidth - AXIS;
        const { times } = chart;
        const values = chart.series.map((series) => series.values);
        const shown = chart.series.map(({ name, stroke, dash }, n) => {
            const value = h("b", `max ${digits(Math.max(...values[n].map((v) => v ?? 0)))}`);
            keys.append(
                h(
                    "li",
                    svg(
                        "svg",
                        { width: 20, height: 8, "aria-hidden": "true" },
                        svg("line", {
                            x1: 0,
                            x2: 20,
                            y1: 4,
                            y2: 4,
                            stroke: colour(stroke),
                            "stroke-width": 2.5,
                            "stroke-dasharray": (dash ?? []).join(" "),
                        }),
                    ),
                    name,
                    value,
                ),
            );
            return { value, most: value.textContent };
        });
        const whole = range.whole;
        const plot = new uPlot(
            {
                width: place.clientWidth,
                height: HEIGHT + (last ? 22 : 0),
                padding: [8, 0, last ? 0 : 4, 0],
                legend: { show: false },
                cursor: {
                    sync: { key: sync.key },
                    drag: { x: true, y: false, setScale: false },
                    y: false,
                    points: { size: 6 },
                },
                scales: {
                    x: { time: false, range: [0, whole] },
                    y: { range: (_, low, high) => [0, Math.max(high * 1.12, 1e-9)] },
                },
                axes: [
                    {
                        show: last,
                        stroke: colour("quiet"),
                        font: "11px " + getComputedStyle(document.body).fontFamily,
                        size: 24,
                        gap: 3,
                        grid: { show: false },
                        ticks: { show: false },
                        align: 1,
                        splits: () => ticks(0, whole, width, 110).at.filter((ns) => ns < whole * 0.97),
                        values: (_, splits) => splits.map((ns) => label(ns, ticks(0, whole, width, 110).step)),
                    },
                    {
                        stroke: colour("quiet"),
                        font: "11px " + getComputedStyle(document.body).fontFamily,
                        side: 3,
                        size: AXIS,
                        gap: 6,
                        grid: { stroke: colour("line"), width: 1 },
                        ticks: { show: false },
                        space: 30,
                        values: (_, splits) =>
                            splits.map((value) =>
                                value >= 1e6
                                    ? value / 1e6 + "M"
                                    : value >= 1e4
                                      ? value / 1e3 + "k"
                                      : String(+value.toFixed(3)),
                            ),
                    },
                ],
                series: [
                    {},
                    ...chart.series.map(({ stroke, fill, dash }) => ({
                        stroke: colour(stroke),
                        width: 1.5,
                        dash,
                        points: { show: times.length < 3 },
                        paths: chart.stepped ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
                        fill: fill ? colour(stroke) + "30" : undefined,
                    })),
                ],
                hooks: {
                    setSelect: [
                        (self) => {
                            if (self.select.width < 3) return;
                            setRange(
                                self.posToVal(self.select.left, "x"),
                                self.posToVal(self.select.left + self.select.width, "x"),
                            );
                            self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
                        },
                    ],
                    setCursor: [
                        (self) =>
                            shown.forEach(({ value, most }, n) => {
                                const { idx } = self.cursor;
                                value.textContent = idx === null || idx === undefined ? most : digits(values[n][idx]);
                            }),
                    ],
                },
            },
            [times, ...values],
            place,
        );
        plot.shown = h("div", { class: "u-shown", hidden: true });
        plot.over.append(plot.shown);
        this.plots.push(plot);
        this.mark();
    }

    // The timeline's range, in each chart.
    mark() {
        for (const plot of this.plots) {
            const { begin, end, whole } = range;
            plot.shown.hidden = end - begin >= whole * 0.999;
            plot.shown.style.left = (begin / whole) * 100 + "%";
            plot.shown.style.width = ((end - begin) / whole) * 100 + "%";
        }
    }
}
