// A browser for several runs of page.mjs: prints its address, and runs until standard input has a line or ends.
//
//     node running.mjs NODE_MODULES

import { start } from "./browser.mjs";

const browser = await start(process.argv[2]);
console.log(browser.wsEndpoint());
await new Promise((done) => process.stdin.once("data", done).once("end", done));
await browser.close();
process.exit();
