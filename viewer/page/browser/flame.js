// The flame graph: calls by time, callers on top. Each frame is a button; a click makes it the root.

import { cut, h, plain } from "./dom.js";
import { duration, percent, points } from "./format.js";
import { change, merged, timeIn } from "./profile_tree.js";

const ROW = 22,
    NARROWEST = 0.0008,
    MOST = 4000;

// Warm tones by name: a function has the same tone everywhere.
function tone(name) {
    let hash = 0;
    for (let n = 0; n < Math.min(name.length, 60); n++) hash = (hash * 31 + name.charCodeAt(n)) >>> 0;
    return `hsl(${28 + (hash % 24)} ${68 + ((hash >> 8) % 18)}% ${66 + ((hash >> 16) % 12)}%)`;
}

// Red if the share has grown, blue if it has shrunk; full tones from 10 points on.
function toneOfChange(value) {
    const strength = Math.min(1, Math.abs(value) / 10);
    return `hsl(${value > 0 ? 8 : 212} ${Math.round(80 * strength)}% ${Math.round(90 - 24 * strength)}%)`;
}

export class Flame {
    constructor(root) {
        this.single = root;
        this.merged = merged(root);
        const isMerged = this.merged.children.length < (root.children ?? []).length;
        this.root = this.at = this.merged;
        this.words = "";
        this.singly = h(
            "button",
            { type: "button", "aria-pressed": "false", click: () => this.switch() },
            "Single processes",
        );
        this.graph = h("div", {
            class: "flame",
            role: "tree",
            "aria-label": "Flame graph",
            keydown: (event) => this.key(event),
        });
        this.found = h("span", { class: "range", role: "status" });
        this.reset = h("button", { type: "button", click: () => this.show(this.root) }, "All");
        this.element = h(
            "div",
            h(
                "div",
                { class: "controls" },
                h("input", {
                    type: "search",
                    placeholder: "Find a function",
                    "aria-label": "Find a function in the flame graph",
                    input: (event) => {
                        this.words = event.target.value.toLowerCase();
                        this.draw();
                    },
                }),
                this.reset,
                isMerged && this.singly,
                this.found,
            ),
            this.graph,
            h(
                "p",
                { class: "note" },
                "Width: time in the function and the functions that it called. Click a frame or press Enter to make " +
                    "it as wide as the graph; the arrow keys move between frames." +
                    (root.was === undefined
                        ? ""
                        : " Red frames have a larger share than in the earlier profile, blue ones a smaller one."),
            ),
        );
        this.draw();
    }

    // Switches between merged and single processes.
    switch() {
        const isSingle = this.root === this.merged;
        this.singly.setAttribute("aria-pressed", String(isSingle));
        this.root = this.at = isSingle ? this.single : this.merged;
        this.draw();
    }

    show(node) {
        this.at = node;
        this.draw();
        this.graph.querySelector("button")?.focus({ preventScroll: true });
    }

    // Draws each frame that is wide enough. The frames on the path to the selected one are as wide as the graph.
    draw() {
        const path = this.pathTo(this.at);
        const frames = [];
        let deepest = 0,
            matched = 0;
        const matches = (name) => name.toLowerCase().includes(this.words);
        const add = (node, left, width, depth, parent, outside) => {
            if (width < NARROWEST || frames.length >= MOST) return;
            const hit = this.words && matches(node.name);
            const button = this.frame(node, left, width, depth, hit, outside);
            const frame = { node, button, parent, children: [] };
            button.frame = frame;
            parent?.children.push(frame);
            frames.push(button);
            deepest = Math.max(deepest, depth);
            if (hit && !outside) matched++;
            if (depth + 1 < path.length) return add(path[depth + 1], 0, 1, depth + 1, frame, depth + 2 < path.length);
            let x = left;
            for (const child of [...(node.children ?? [])].sort((a, b) => b.value - a.value)) {
                const part = node.value > 0 ? (width * child.value) / node.value : 0;
                add(child, x, part, depth + 1, frame, false);
                x += part;
            }
        };
        add(path[0], 0, 1, 0, null, path.length > 1);
        this.graph.replaceChildren(...frames);
        this.graph.style.height = (deepest + 1) * ROW + 2 + "px";
        if (frames[0]) frames[0].tabIndex = 0;
        this.reset.disabled = this.at === this.root;
        const share = () => percent(timeIn(this.at, matches), this.at.value);
        const shown = `${matched} ${matched === 1 ? "frame" : "frames"} shown`;
        this.found.textContent = this.words ? `${shown}, ${share()} of the time` : "";
    }

    pathTo(node) {
        const search = (from) => {
            if (from === node) return [from];
            for (const child of from.children ?? []) {
                const found = search(child);
                if (found) return [from, ...found];
            }
            return null;
        };
        return search(this.root) ?? [this.root];
    }

    frame(node, left, width, depth, hit, outside) {
        const name = node.name || "all";
        const share = percent(node.value, this.root.value);
        const grown = change(node, this.root);
        const said =
            `${plain(name)}: ${duration(node.value)}, ${share}; own ${duration(node.own)}` +
            (grown === null ? "" : `; ${points(grown)} points`);
        const button = h(
            "button",
            {
                type: "button",
                role: "treeitem",
                tabindex: "-1",
                "aria-level": depth + 1,
                title: said,
                "aria-label": said,
                class:
                    [width < 0.025 && "narrow", (outside || (this.words && !hit)) && "faded"]
                        .filter(Boolean)
                        .join(" ") || null,
                click: () => this.show(node),
            },
            width > 0.025 ? cut(name, 120) : "",
        );
        button.style.left = left * 100 + "%";
        button.style.width = `max(1px, calc(${width * 100}% - 1px))`;
        button.style.top = depth * ROW + 1 + "px";
        button.style.background = grown === null ? tone(name) : toneOfChange(grown);
        return button;
    }

    key(event) {
        const frame = event.target.frame;
        if (!frame) return;
        const beside = (step) => {
            const all = frame.parent?.children ?? [];
            return all[all.indexOf(frame) + step];
        };
        const to = {
            ArrowUp: () => frame.parent,
            ArrowDown: () => frame.children[0],
            ArrowLeft: () => beside(-1),
            ArrowRight: () => beside(1),
        }[event.key]?.();
        if (!event.key.startsWith("Arrow")) return;
        event.preventDefault();
        if (!to) return;
        event.target.tabIndex = -1;
        to.button.tabIndex = 0;
        to.button.focus();
    }
}
