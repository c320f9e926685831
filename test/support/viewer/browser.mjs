// Chromium, driven by playwright-core from the folder NODE_MODULES.

import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

export function from(modules, name) {
    return createRequire(join(resolve(modules), "any.js"))(name);
}

// A browser, as a server whose address is wsEndpoint().
export const start = (modules) =>
    from(modules, "playwright-core").chromium.launchServer({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        // Chromium has no sandbox when it runs as root; the page is ours.
        args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
    });

// The browser that all pages share: that of $BROWSER, an address printed by running.mjs, or a new one.
let server, used;
async function use(modules) {
    if (!process.env.BROWSER) server = await start(modules);
    return from(modules, "playwright-core").chromium.connect(process.env.BROWSER ?? server.wsEndpoint());
}

// Disconnects from a shared browser, and closes a new one.
export async function close() {
    await (await used)?.close();
    await server?.close();
}

// Opens a file. `seen` records what a page must not do: send requests, log errors, violate its policy.
export async function open(modules, file, { width = 1440, height = 1000, scale = 1, theme = "light" } = {}) {
    const browser = await (used ??= use(modules));
    const page = await browser.newPage({
        viewport: { width, height },
        deviceScaleFactor: scale,
        colorScheme: theme,
        reducedMotion: "reduce",
    });
    const url = pathToFileURL(resolve(file)).href;
    const seen = { requests: [], errors: [] };
    page.on("request", (request) => {
        if (request.url() !== url) seen.requests.push(request.url().slice(0, 200));
    });
    page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) seen.errors.push(message.text().slice(0, 500));
    });
    page.on("pageerror", (error) => seen.errors.push(String(error.stack ?? error).slice(0, 500)));
    page.on("dialog", (dialog) => {
        seen.errors.push("dialog " + dialog.message());
        dialog.dismiss();
    });
    await page.goto(url);
    await page.waitForSelector("html[data-ready]", { timeout: 30000 });
    await settled(page);
    return { page, seen };
}

// Waits for two frames, and for announcements that the page makes with a delay.
export async function settled(page) {
    await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)))),
    );
}
