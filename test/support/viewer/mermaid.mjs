// Prints how Mermaid reads a sequence diagram, as JSON: mermaid.mjs FOLDER-OF-MERMAID < DIAGRAM
import { readFileSync } from "fs";
import { join } from "path";

const { default: mermaid } = await import(join(process.argv[2], "dist/mermaid.esm.min.mjs"));
const diagram = readFileSync(0, "utf8");
const { diagramType } = await mermaid.parse(diagram);
const { db } = await mermaid.mermaidAPI.getDiagramFromText(diagram);

// While Mermaid parses, it writes entities in this form; it turns them into HTML when it draws.
const decoded = (text) => text.replace(/ﬂ°°(\d+)¶ß/g, (_, code) => String.fromCodePoint(Number(code)));
const lines = Object.fromEntries(Object.entries(db.LINETYPE).map(([name, number]) => [number, name]));

console.log(
    JSON.stringify({
        type: diagramType,
        participants: db.getActorKeys().map((key) => decoded(db.getActor(key).description)),
        steps: db
            .getMessages()
            .map(({ type, from, to, message }) => ({ line: lines[type], from, to, text: decoded(message) })),
    }),
);
