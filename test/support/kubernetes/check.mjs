// Checks Kubernetes' manifests: check.mjs FOLDER-OF-PACKAGES < MANIFEST
//
// Prints, as JSON, the kind of each document and what is wrong with it. The validators know types and missing fields,
// and let unknown fields pass; TypeScript finds these by the types of the same schemas.
import {readFileSync} from "fs";
import {createRequire} from "module";
import {dirname, join} from "path";

const packages = process.argv[2];
const require = createRequire(join(packages, "/"));
const yaml = require("yaml");
const ts = require("typescript");

// Where kubernetes-models has a kind: v1/Pod, apps/v1/Deployment.
const moduleOf = ({apiVersion, kind}) => `kubernetes-models/${apiVersion}/${kind}`;

const invalid = object => {
  try {
    const {[object.kind]: Model} = require(moduleOf(object));

    new Model(object).validate();
    return [];
  } catch (error) {
    return [error.message];
  }
};

const unknown = object => {
  const file = join(dirname(packages), "manifest.ts");
  const text = `import type {I${object.kind}} from "${moduleOf(object)}";\n` +
    `export const manifest: I${object.kind} = ${JSON.stringify(object)};\n`;
  const options = {strict: true, noEmit: true, types: [], target: ts.ScriptTarget.ESNext,
                   module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, skipLibCheck: true};
  const host = ts.createCompilerHost(options);
  const {fileExists, getSourceFile} = host;
  host.fileExists = name => name === file || fileExists(name);
  host.getSourceFile = (name, ...rest) =>
    name === file ? ts.createSourceFile(name, text, ts.ScriptTarget.ESNext) : getSourceFile(name, ...rest);
  return ts.getPreEmitDiagnostics(ts.createProgram([file], options, host))
    .map(({messageText}) => ts.flattenDiagnosticMessageText(messageText, "\n"));
};

const check = document => {
  const object = document.toJS();
  const wrong = [...document.errors, ...document.warnings].map(({message}) => message);

  return {kind: object?.kind, wrong: wrong.length ? wrong : [...invalid(object), ...unknown(object)]};
};

console.log(JSON.stringify(yaml.parseAllDocuments(readFileSync(0, "utf8")).map(check)));
