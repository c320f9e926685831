// Checks Kubernetes' manifests: check.mjs FOLDER-OF-PACKAGES MANIFEST...
//
// Prints, as JSON, the kinds of the documents of each manifest, and their errors. The validators know types and
// required fields, but accept unknown fields; TypeScript detects those with the types of the same schemas. It reads the
// types once for all documents, because that takes most of the time.
import { readFileSync } from "fs";
import { createRequire } from "module";
import { dirname, join } from "path";

const [packages, ...manifests] = process.argv.slice(2);
const require = createRequire(join(packages, "/"));
const yaml = require("yaml");
const ts = require("typescript");

// The path of a kind in kubernetes-models: v1/Pod, apps/v1/Deployment.
const moduleOf = ({ apiVersion, kind }) => `kubernetes-models/${apiVersion}/${kind}`;

const invalid = (object) => {
    try {
        const { [object.kind]: Model } = require(moduleOf(object));

        new Model(object).validate();
        return [];
    } catch (error) {
        return [error.message];
    }
};

const typed = (object) =>
    `import type {I${object.kind}} from "${moduleOf(object)}";\n` +
    `export const manifest: I${object.kind} = ${JSON.stringify(object)};\n`;

// TypeScript's errors for each text, in their order.
const diagnosed = (texts) => {
    const files = new Map(texts.map((text, number) => [join(dirname(packages), `manifest${number}.ts`), text]));
    const options = {
        strict: true,
        noEmit: true,
        types: [],
        target: ts.ScriptTarget.ESNext,
        module: ts.ModuleKind.ESNext,
        moduleResolution: ts.ModuleResolutionKind.Bundler,
        skipLibCheck: true,
    };
    const host = ts.createCompilerHost(options);
    const { fileExists, getSourceFile } = host;
    host.fileExists = (name) => files.has(name) || fileExists(name);
    host.getSourceFile = (name, ...rest) =>
        files.has(name)
            ? ts.createSourceFile(name, files.get(name), ts.ScriptTarget.ESNext)
            : getSourceFile(name, ...rest);
    const program = ts.createProgram([...files.keys()], options, host);
    return [...files.keys()].map((name) =>
        ts
            .getPreEmitDiagnostics(program, program.getSourceFile(name))
            .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n")),
    );
};

const documents = manifests.map((file) => yaml.parseAllDocuments(readFileSync(file, "utf8")));
const objects = documents.flat().map((document) => document.toJS());
const unknown = diagnosed(objects.map((object) => typed(object ?? {})));

const check = (document) => {
    const object = document.toJS();
    const ofTypes = unknown.shift();
    const wrong = [...document.errors, ...document.warnings].map(({ message }) => message);

    return { kind: object?.kind, wrong: wrong.length ? wrong : [...invalid(object), ...ofTypes] };
};

console.log(JSON.stringify(documents.map((some) => some.map(check))));
