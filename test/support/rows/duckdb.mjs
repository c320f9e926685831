// DuckDB's program, as far as `dyntrace view` and the tests use it, made of the library from npm:
//
//     duckdb.mjs FOLDER-OF-PACKAGES [OPTION...] -c STATEMENTS...
//
// Prints a JSON array with the result of each -c: the rows of its last statement, each an array of values. Integers
// that a number of JavaScript can't hold are texts.
import { createRequire } from "module";
import { join } from "path";

const [packages, ...options] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(join(packages, "/"))("@duckdb/node-api");

const instance = await DuckDBInstance.create(":memory:");
const connection = await instance.connect();
const value = (of) => {
    if (Array.isArray(of)) return of.map(value);
    if (typeof of !== "bigint") return of;
    return Number.isSafeInteger(Number(of)) ? Number(of) : String(of);
};

const results = [];
for (const [at, option] of options.entries())
    if (option === "-c") results.push(value((await connection.runAndReadAll(options[at + 1])).getRowsJS()));
console.log(JSON.stringify(results));
