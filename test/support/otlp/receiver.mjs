// Reads spans with OpenTelemetry's own messages, generated from its .proto files:
//
//     receiver.mjs FOLDER-OF-PACKAGES FILE            of a file
//     receiver.mjs FOLDER-OF-PACKAGES PORT            as a collector, on a port of 127.0.0.1
//
// Prints a line of JSON for each request: its spans, with the attributes as an object. It fails if a field or value is
// not one of OTLP, or if the semantic conventions lack an attribute that is not of erlang or dyntrace.
import { strict as assert } from "assert";
import { readFileSync } from "fs";
import { createServer } from "http";
import { createRequire } from "module";
import { join } from "path";

const [packages, source] = process.argv.slice(2);
const require = createRequire(join(packages, "/"));
const root = require(join(packages, "@opentelemetry/otlp-transformer/build/src/generated/root.js"));
const conventions = new Set(Object.values(require("@opentelemetry/semantic-conventions/incubating")));
const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const SIZES = { traceId: 32, spanId: 16, parentSpanId: 16 };

// In OTLP's JSON, ids are hexadecimal, while the mapping of protobuf has base64.
const withIds = (value, from, to) => {
    if (Array.isArray(value)) return value.map((one) => withIds(one, from, to));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
        Object.entries(value).map(([key, of]) => [
            key,
            key in SIZES ? Buffer.from(of, from).toString(to) : withIds(of, from, to),
        ]),
    );
};

// What is left after a conversion to a message, to bytes and back equals the JSON, so each field is known.
const read = (text) => {
    const json = JSON.parse(text);
    const message = Request.fromObject(withIds(json, "hex", "base64"));

    assert.equal(Request.verify(message), null);
    const received = Request.decode(Request.encode(message).finish());
    const decoded = Request.toObject(received, { longs: String, bytes: String });
    assert.deepEqual(withIds(decoded, "base64", "hex"), json);
    return json.resourceSpans.flatMap(({ resource, scopeSpans }) =>
        scopeSpans.flatMap(({ scope, spans }) =>
            spans.map((span) => ({ ...checked(span), scope, resource: attributes(resource) })),
        ),
    );
};

const checked = (span) => {
    for (const [key, size] of Object.entries(SIZES))
        if (key in span) assert.match(span[key], new RegExp(`^(?!0+$)[0-9a-f]{${size}}$`));
    assert(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
    return { ...span, attributes: attributes(span) };
};

const attributes = ({ attributes: list }) =>
    Object.fromEntries(
        list.map(({ key, value }) => {
            assert(/^(erlang|dyntrace)\./.test(key) || conventions.has(key), `unknown attribute ${key}`);
            return [key, Object.values(value)[0]];
        }),
    );

const print = (value) => console.log(JSON.stringify(value));

if (/^\d+$/.test(source)) {
    createServer(async (request, response) => {
        let text = "";

        for await (const piece of request) text += piece;
        try {
            assert.equal(`${request.method} ${request.url}`, "POST /v1/traces");
            assert.equal(request.headers["content-type"], "application/json");
            print(read(text));
            response.end("{}");
        } catch (error) {
            response.writeHead(400).end(JSON.stringify({ code: 3, message: error.message }));
        }
    }).listen(Number(source), "127.0.0.1");
} else {
    print(read(readFileSync(source, "utf8")));
}
