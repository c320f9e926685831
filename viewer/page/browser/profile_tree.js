// Trees of calls, {name, value, own, children} in ns, as the flame graph shows them. Below the root of a profile are
// processes, and below these the functions; a recording has only functions. A profile that is compared with an earlier
// one has `was` in each node: the earlier `value`, scaled to the same number of samples.

import { count } from "./format.js";

// Stands for frames that a profile leaves out.
const LEFT_OUT = "...";

// Merges the processes of one kind, the text after the pid: a name or an initial function.
export function merged(root) {
    const kinds = grouped(
        root.children ?? [],
        ({ name }) => /^(?:<[\d.]+>|process 0x[0-9a-f]+) (.+)$/s.exec(name)?.[1] ?? name,
    );
    const children = [...kinds].map(([kind, nodes]) =>
        nodes.length === 1 ? nodes[0] : sum(`${kind} (${count(nodes.length)} processes)`, nodes),
    );
    return { ...root, children };
}

function grouped(nodes, key) {
    const found = new Map();
    for (const node of nodes) {
        const of = key(node);
        if (found.has(of)) found.get(of).push(node);
        else found.set(of, [node]);
    }
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
        if (!found.has(name)) found.set(name, { name, own: 0, value: 0 });
        return found.get(name);
    };
    const visit = (node) => {
        const name = node.name.replace(/ \(last saved\)$/, "");
        const isFirst = !open.has(name);
        if (name !== LEFT_OUT) row(name).own += node.own;
        if (isFirst) {
            row(name).value += node.value;
            open.add(name);
        }
        for (const child of node.children ?? []) visit(child);
        if (isFirst) open.delete(name);
    };
    for (const { name, own, children } of root.children ?? []) {
        if (own > 0) {
            row(name).own += own;
            row(name).value += own;
        }
        for (const child of children ?? []) visit(child);
    }
    return [...found.values()];
}

// The change of a node's or a function's share of all time, in percentage points; null if the profile is not compared.
export function change({ value, was }, root) {
    return was === undefined || !root.value ? null : ((value - was) / root.value) * 100;
}

// The time in matching frames and in what they call.
export function timeIn(node, matches) {
    if (node.name && matches(node.name)) return node.value;
    return (node.children ?? []).reduce((before, child) => before + timeIn(child, matches), 0);
}
