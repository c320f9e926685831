// Elements. All texts become text nodes: no text of a recording is ever parsed as HTML.

// An element: its tag, then its attributes and listeners as an object, if it has any, then its children.
export function h(tag, ...content) {
    return fill(document.createElement(tag), content);
}

export function svg(tag, ...content) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), content);
}

function fill(element, content) {
    const hasAttributes = content[0] && Object.getPrototypeOf(content[0]) === Object.prototype;
    const [attributes, children] = hasAttributes ? [content[0], content.slice(1)] : [{}, content];
    for (const [name, value] of Object.entries(attributes)) {
        if (value === undefined || value === null || value === false) continue;
        if (typeof value === "function") element.addEventListener(name, value);
        else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return element;
}

export function colour(name) {
    return getComputedStyle(document.documentElement)
        .getPropertyValue("--" + name)
        .trim();
}

// Shows control characters and direction marks as symbols, because they could make a text look like another.
export function plain(text) {
    return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (c) =>
        c < " "
            ? String.fromCharCode(0x2400 + c.charCodeAt(0))
            : c === "\u007f"
              ? "\u2421"
              : "\\x{" + c.charCodeAt(0).toString(16) + "}",
    );
}

export function cut(text, length) {
    const shown = plain(text);
    return shown.length > length ? shown.slice(0, length - 1) + "…" : shown;
}
