// Writes the page's template to standard output: page.html with its script, its style, the licences of the packages in
// both, and a policy that allows this script and this style, by their hashes, and nothing else.
//
//     node build.mjs NODE_MODULES

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const modules = resolve(process.argv[2]);
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(modules, "any.js"))("esbuild");
const read = (...path) => readFileSync(join(...path), "utf8");

const options = {
    bundle: true,
    minify: true,
    write: false,
    charset: "utf8",
    legalComments: "none",
    target: "es2022",
    nodePaths: [modules],
    absWorkingDir: here,
    logLevel: "error",
    loader: { ".tsv": "text" },
};
const output = async (more) => (await esbuild.build({ ...options, ...more })).outputFiles[0].text.trimEnd();
// Inside a script element, these would end it or change how it is parsed.
const script = (await output({ entryPoints: ["main.js"], format: "iife" }))
    .replace(/<\/(script)/gi, "<\\/$1")
    .replace(/<!--/g, "\\x3c!--");
const style = await output({
    stdin: { contents: '@import "uplot/dist/uPlot.min.css"; @import "./style.css";', resolveDir: here, loader: "css" },
});

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = [
    `default-src 'none'`,
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "img-src data:",
    `base-uri 'none'`,
    `form-action 'none'`,
].join("; ");

const notices = ["uplot"]
    .map((name) => {
        const { version, license, homepage } = JSON.parse(read(modules, name, "package.json"));
        return (
            `${name} ${version}, ${license}${homepage ? ", " + homepage.replace(/^https?:\/\//, "") : ""}\n\n` +
            read(modules, name, "LICENSE").trim()
        );
    })
    .join("\n\n")
    .replace(/--/g, "- -");

const parts = {
    NOTICES: `This page is made by dyntrace (Apache-2.0). It contains:\n\n${notices}`,
    POLICY: policy,
    STYLE: style,
    SCRIPT: script,
};
process.stdout.write(read(here, "page.html").replace(/@(NOTICES|POLICY|STYLE|SCRIPT)@/g, (_, name) => parts[name]));
