// Chromium, driven by puppeteer-core of the folder NODE_MODULES.

import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

export function from(modules, name) {
    return createRequire(join(resolve(modules), "any.js"))(name);
}

// Opens a file; `seen` gets what a page must not do: requests, errors, violations of its policy.
export async function open(modules, file, { width = 1440, height = 1000, scale = 1, theme = "light" } = {}) {
    const browser = await from(modules, "puppeteer-core").launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        headless: true,
        // As root it has no sandbox of its own; the page is ours.
        args: [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--force-color-profile=srgb",
            "--hide-scrollbars",
        ],
    });
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

// Two frames later, and what the page says with a delay is said.
export async function settled(page) {
    await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)))),
    );
}
