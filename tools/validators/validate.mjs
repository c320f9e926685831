// Checks Dockerfiles, and workflows by their schema: validate.mjs FOLDER-OF-PACKAGES FILE...
import { readFileSync } from "fs";
import { createRequire } from "module";
import { basename, join } from "path";

const [packages, ...files] = process.argv.slice(2);
const require = createRequire(join(packages, "/"));
const { validate } = require("dockerfile-utils");
const { validateWorkflow } = require("@action-validator/core");

const faultsOf = (file) => {
    const text = readFileSync(file, "utf8");

    if (basename(file).startsWith("Dockerfile"))
        return validate(text).map(({ range, message }) => `${range.start.line + 1}: ${message}`);
    return validateWorkflow(text).errors.map((error) => ` ${JSON.stringify(error)}`);
};

for (const file of files) {
    for (const fault of faultsOf(file)) {
        console.error(`${file}:${fault}`);
        process.exitCode = 1;
    }
}
