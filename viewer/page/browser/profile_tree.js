// Trees of calls, {name, value, own, children} in ns, as the flame graph shows them: below the root are processes, and
// below these the functions. A profile that is compared with an older one has `was` in each node: the older `value`,
// for the same number of samples.

import { count } from "./format.js";

// Stands for frames that a profile leaves out.
const LEFT_OUT = "...";

// The processes of one kind as one. Their kind is the text after their pids: a name, or the function that they began.
export function merged(root) {
    const kinds = grouped(root.children ?? [], ({ name }) => /^<[\d.]+> (.+)$/s.exec(name)?.[1] ?? name);
    const children = [...kinds].map(([kind, nodes]) =>
        nodes.length === 1 ? nodes[0] : sum(`${kind} (${count(nodes.length)} processes)`, nodes),
    );
    return { ...root, children };
}

function grouped(nodes, key) {
    const found = new Map();
    for (const node of nodes) found.set(key(node), [...(found.get(key(node)) ?? []), node]);
    return found;
}

function sum(name, nodes) {
    const total = (field) => nodes.reduce((before, node) => before + node[field], 0);
    const children = [
        ...grouped(
            nodes.flatMap((node) => node.children ?? []),
            (node) => node.name,
        ),
    ].map(([same, those]) => (those.length === 1 ? those[0] : sum(same, those)));
    const node = { name, value: total("value"), own: total("own"), children };
    return "was" in nodes[0] ? { ...node, was: total("was") } : node;
}

// Each function: its own time, and the time with what it calls, once where it calls itself. A process without a stack
// has only its own time.
export function functions(root) {
    const found = new Map();
    const open = new Set([LEFT_OUT]);
    const row = (name) => {
        if (!found.has(name)) found.set(name, { name, own: 0, value: 0, was: 0 });
        return found.get(name);
    };
    const visit = (node) => {
        const isFirst = !open.has(node.name);
        if (node.name !== LEFT_OUT) row(node.name).own += node.own;
        if (isFirst) {
            row(node.name).value += node.value;
            row(node.name).was += node.was ?? 0;
            open.add(node.name);
        }
        for (const child of node.children ?? []) visit(child);
        if (isFirst) open.delete(node.name);
    };
    for (const { name, own, was, children } of root.children ?? []) {
        if (own > 0) {
            const of = row(name);
            of.own += own;
            of.value += own;
            of.was += (children ?? []).reduce((rest, child) => rest - child.was, was ?? 0);
        }
        for (const child of children ?? []) visit(child);
    }
    return [...found.values()];
}

// The time in matching frames and in what they call.
export function timeIn(node, matches) {
    if (node.name && matches(node.name)) return node.value;
    return (node.children ?? []).reduce((before, child) => before + timeIn(child, matches), 0);
}
