// The ticks of a time axis: round numbers, with labels whose digits fit the range.

export function ticks(begin, end, width, space = 90) {
    const least = (end - begin) / Math.max(1, width / space);
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least * 0.999);
    const found = [];
    for (let n = Math.ceil(begin / step - 1e-9); n * step <= end; n++) found.push(n * step);
    return { step, at: found };
}

export function label(ns, step) {
    const [unit, name] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : step >= 100 ? [1e3, "µs"] : [1, "ns"];
    const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
    return (ns / unit).toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "\u202f") + " " + name;
}
