// Chromium, driven by puppeteer-core from the folder NODE_MODULES.

import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

export function from(modules, name) {
    return createRequire(join(resolve(modules), "any.js"))(name);
}

export const launch = (modules) =>
    from(modules, "puppeteer-core").launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        headless: true,
        // Chromium has no sandbox when it runs as root; the page is ours.
        args: [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--force-color-profile=srgb",
            "--hide-scrollbars",
        ],
    });

// The browser that all pages share: that of $BROWSER, an address printed by running.mjs, or a new one.
let used;
const use = (modules) =>
    process.env.BROWSER
        ? from(modules, "puppeteer-core").connect({ browserWSEndpoint: process.env.BROWSER, defaultViewport: null })
        : launch(modules);

// Disconnects from a shared browser, and closes a new one.
export async function close() {
    const browser = await used;
    await (process.env.BROWSER ? browser?.disconnect() : browser?.close());
}

// Opens a file. `seen` records what a page must not do: send requests, log errors, violate its policy.
export async function open(modules, file, { width = 1440, height = 1000, scale = 1, theme = "light" } = {}) {
    const browser = await (used ??= use(modules));
    const page = await browser.newPage();
    const url = pathToFileURL(resolve(file)).href;
    const seen = { requests: [], errors: [] };
    page.on("request", (request) => {
        if (request.url() !== url) seen.requests.push(request.url().slice(0, 200));
    });
    page.on("console", (message) => {
        if (["error", "warn", "warning"].includes(message.type())) seen.errors.push(message.text().slice(0, 500));
    });
    page.on("pageerror", (error) => seen.errors.push(String(error.stack ?? error).slice(0, 500)));
    page.on("dialog", (dialog) => {
        seen.errors.push("dialog " + dialog.message());
        dialog.dismiss();
    });
    await page.setViewport({ width, height, deviceScaleFactor: scale });
    await page.emulateMediaFeatures([
        { name: "prefers-color-scheme", value: theme },
        { name: "prefers-reduced-motion", value: "reduce" },
    ]);
    await page.goto(url);
    await page.waitForSelector("html[data-ready]", { timeout: 30000 });
    await settled(page);
    return { browser, page, seen };
}

// Waits for two frames, and for announcements that the page makes with a delay.
export async function settled(page) {
    await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)))),
    );
}
