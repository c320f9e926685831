// Numbers and times in readable form. Unknown values are a dash.

export const UNKNOWN = "–";

const missing = (value) => value === null || value === undefined || Number.isNaN(value);

export function count(value) {
    return missing(value)
        ? UNKNOWN
        : Math.round(value)
              .toString()
              .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// Three digits, and the unit that fits.
export function duration(ns) {
    if (missing(ns)) return UNKNOWN;
    const size = Math.abs(ns);
    if (size < 1) return "0";
    const [unit, name] =
        size < 999.5 ? [1, "ns"] : size < 999.5e3 ? [1e3, "µs"] : size < 999.5e6 ? [1e6, "ms"] : [1e9, "s"];
    const digits = unit === 1 || size / unit >= 99.95 ? 0 : size / unit >= 9.995 ? 1 : 2;
    return (ns / unit).toFixed(digits) + "\u00a0" + name;
}

export function percent(part, whole) {
    if (missing(part) || !whole) return UNKNOWN;
    const value = (part / whole) * 100;
    return (value >= 9.95 || value === 0 ? value.toFixed(0) : value.toFixed(1)) + "\u00a0%";
}

// A change in percentage points, with its sign.
export function points(value) {
    // Without the sign of -0.
    const shown = Math.round(value * 10) / 10 || 0;
    return (shown > 0 ? "+" : "") + shown.toFixed(1);
}

export function bytes(value) {
    if (missing(value)) return UNKNOWN;
    const units = ["B", "kB", "MB", "GB", "TB"];
    let at = 0;
    while (value >= 999.5 && at < units.length - 1) [value, at] = [value / 1000, at + 1];
    return value.toFixed(at && value < 99.5 ? 1 : 0) + "\u00a0" + units[at];
}

// A time relative to the start of the recording, with as many digits as a range of that length needs.
export function since(ns, range = 1e9) {
    if (missing(ns)) return UNKNOWN;
    const digits = Math.max(3, Math.min(9, 3 - Math.floor(Math.log10(range / 1e9 + 1e-12))));
    return (ns / 1e9).toFixed(digits) + "\u00a0s";
}

// The local time of `ns` after the start of the recording; `begin` is ns since the epoch as a BigInt.
export function local(begin, ns) {
    if (begin === null || missing(ns)) return UNKNOWN;
    const at = begin + BigInt(Math.round(ns));
    const date = new Date(Number(at / 1000000n));
    const two = (n) => String(n).padStart(2, "0");
    return (
        `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
        `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.` +
        String(at % 1000000000n)
            .padStart(9, "0")
            .slice(0, 6)
    );
}
