// node screenshot.mjs NODE_MODULES PAGE.html OUT.png: see tools/screenshot.

import { open, settled } from "./browser.mjs";

const [modules, file, out] = process.argv.slice(2);
if (!out) {
    console.error("usage: tools/screenshot PAGE.html OUT.png");
    process.exit(2);
}
const { WIDTH = 1440, HEIGHT = 1180, SCALE = 2, THEME = "light", SHOW } = process.env;
const { browser, page, seen } = await open(modules, file, {
    width: Number(WIDTH),
    height: Number(HEIGHT),
    scale: Number(SCALE),
    theme: THEME,
});
if (SHOW) {
    await page.evaluate(
        (name) =>
            [...document.querySelectorAll(".labels button")]
                .find((button) => button.textContent.includes(name))
                ?.click(),
        SHOW,
    );
    await settled(page);
}
await page.screenshot({ path: out });
await browser.close();
if (seen.errors.length + seen.requests.length > 0) {
    console.error(JSON.stringify(seen));
    process.exit(1);
}
