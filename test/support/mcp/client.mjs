// Calls the tools of `dyntrace mcp` with the protocol's own client, which validates results with the output schemas:
//
//     client.mjs FOLDER-OF-PACKAGES DYNTRACE OS-PID SNAPSHOTS
//
// Prints, as JSON, the names of the tools, and the result or error of each call.
import { createRequire } from "module";
import { join } from "path";

const [packages, dyntrace, node, output] = process.argv.slice(2);
const require = createRequire(join(packages, "/"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

const client = new Client({ name: "test", version: "1" });

const call = async (name, args, options) => {
    try {
        return await client.callTool({ name, arguments: args }, undefined, { timeout: 120000, ...options });
    } catch (error) {
        return { code: error.code ?? error.name };
    }
};

await client.connect(new StdioClientTransport({ command: dyntrace, args: ["mcp"] }));

const { tools } = await client.listTools();
const results = {};

for (const [name, args] of [
    ["nodes", {}],
    ["stacks", { node }],
    ["top", { node, seconds: 1, rows: 5, sort: "memory" }],
    ["profile", { node, seconds: 1 }],
    ["report", { nodes: [node], seconds: 1 }],
    ["request", { node, next: "test_command_shop:buy" }],
    ["snapshot_list", { output }],
])
    results[name] = await call(name, args);

results.compare = await call("compare", { before: output, after: output });
results.failed = await call("stacks", { node: "--help" });
results.invalid = await call("top", { node, seconds: 61 });
results.unknown = await call("load", { node });

// A request that never comes is cancelled; the next call does not wait for its end.
const cancelled = new AbortController();
const waiting = call("request", { node, label: "none", seconds: 300 }, { signal: cancelled.signal });

await client.ping();
setTimeout(() => cancelled.abort(), 1000);
results.cancelled = await waiting;
results.after = await call("nodes", {});

await client.close();
console.log(JSON.stringify({ tools: tools.map(({ name }) => name), results }));
