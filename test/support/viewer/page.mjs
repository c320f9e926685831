// Opens pages in Chromium and acts like a reader. Prints one JSON object with the observations, by name of the check.
//
//     node page.mjs NODE_MODULES CHECK ARGUMENT...
//
// page_SUITE has the expectations. Checks that take TEMPLATE and FOLDER fill the template with a made-up recording.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { close, from, open, settled } from "./browser.mjs";
import { fill, madeUp } from "./made_up.mjs";

const [modules, check, ...args] = process.argv.slice(2);

function filled(template, folder, options = {}) {
    const file = join(folder, `page-${check}.html`);
    const data = madeUp(options);
    writeFileSync(file, fill(readFileSync(template, "utf8"), data));
    return { file, data };
}

// Runs a check on an opened page, and adds the observations of browser.mjs to the result.
async function on(file, options, run) {
    const { page, seen } = await open(modules, file, options);
    try {
        const result = await run(page);
        return { ...result, ...seen };
    } finally {
        await page.close();
    }
}

const range = (page) =>
    page.$eval("canvas.rows", (canvas) => {
        const { begin, end, rows, messages, frameMs } = canvas.dataset;
        return {
            begin: Number(begin),
            end: Number(end),
            rows: Number(rows),
            messages: Number(messages),
            frame_ms: Number(frameMs),
        };
    });

const cells = (page, table, column) =>
    page.$$eval(`#table-${table} tbody tr`, (rows, n) => rows.map((row) => row.cells[n].textContent), column);

const labels = (page) => page.$$eval(".labels button:not(.fold)", (all) => all.map((label) => label.textContent));

// The number of pixels of the timeline's rows that have the full colour of running processes.
const running = (page) =>
    page.evaluate(() => {
        const rows = document.querySelector("canvas.rows");
        if (!rows) return 0;
        const paper = new OffscreenCanvas(1, 1).getContext("2d");
        paper.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--running").trim();
        paper.fillRect(0, 0, 1, 1);
        const whole = (data) => new Uint32Array(data.buffer);
        const [wanted] = whole(paper.getImageData(0, 0, 1, 1).data);
        const { data } = rows.getContext("2d").getImageData(0, 0, rows.width, rows.height);
        return whole(data).filter((pixel) => pixel === wanted).length;
    });

async function colours(page, options = {}) {
    const { PNG } = from(modules, "pngjs");
    const { data } = PNG.sync.read(Buffer.from(await page.screenshot(options)));
    const found = new Set();
    for (let n = 0; n < data.length; n += 4) found.add((data[n] << 16) | (data[n + 1] << 8) | data[n + 2]);
    return { colours: found.size, first: [data[0], data[1], data[2]] };
}

const checks = {
    // A page as made by the plugin.
    async page(file) {
        return on(file, {}, async (page) => ({
            title: await page.title(),
            heading: await page.$eval("h1", (element) => element.textContent),
            facts: await page.$$eval(".facts > div", (all) =>
                Object.fromEntries(
                    all.map((fact) => [
                        fact.querySelector("dt").textContent,
                        fact.querySelector("dd").firstChild.textContent,
                    ]),
                ),
            ),
            sections: await page.$$eval("main > section", (all) => all.map(({ id }) => id)),
            tables: await page.evaluate(async () => {
                const found = {};
                for (const table of document.querySelectorAll(".table")) {
                    for (let more; (more = table.querySelector("button.more")) && !more.hidden;) more.click();
                    found[table.id.slice(6)] = {
                        heads: [...table.querySelectorAll("th")].map((head) => head.textContent),
                        rows: [...table.querySelectorAll("tbody tr")].map((row) =>
                            [...row.cells].map((cell) => cell.textContent),
                        ),
                    };
                }
                return found;
            }),
            labels: await labels(page),
            charts: await page.$$eval("#load h4", (all) => all.map((title) => title.textContent)),
            when: await page.$eval(".when", (element) => element.textContent),
            sequence: await page.$$eval(".sequence .head text", (all) => all.map((one) => one.textContent)),
            findings: await page.$$eval(".findings .text", (all) => all.map((element) => element.textContent)),
            next: await page.$$eval(".findings .next", (all) => all.map((element) => element.textContent)),
            running: await running(page),
            range: await range(page),
            ...(await colours(page)),
        }));
    },

    // The first row of several processes is unfolded and folded again, by mouse and by keyboard.
    async folds(file) {
        return on(file, {}, async (page) => {
            const steps = {};
            const step = async (name, action) => {
                await action();
                await settled(page);
                steps[name] = {
                    labels: await labels(page),
                    corner: await page.$eval(".corner", (corner) => corner.textContent),
                    expanded: await page.$$eval(".fold", (all) => all.map((one) => one.getAttribute("aria-expanded"))),
                    focus: await page.evaluate(() => document.activeElement.getAttribute("aria-label")),
                    ...(await range(page)),
                    ...(await colours(page)),
                };
            };
            await step("folded", () => page.$eval("#timeline", (element) => element.scrollIntoView()));
            await step("clicked", () => page.click(".fold"));
            const box = await (await page.$("canvas.rows")).boundingBox();
            await page.mouse.move(box.x + 3, box.y + 40 + 24 + 12); // the second row, at its begin
            await settled(page);
            const tip = await page.$eval(".tooltip", (element) => (element.hidden ? "" : element.textContent));
            await step("again", () => page.click(".fold"));
            await page.focus(".fold");
            await step("enter", () => page.keyboard.press("Enter"));
            await step("chosen", async () => {
                await page.keyboard.press("Tab");
                await page.keyboard.press("Tab");
                await page.keyboard.press("Enter");
            });
            const exits = await cells(page, "exits", 1);
            await step("all", () => page.click(".chip button"));
            await page.focus(".fold");
            await step("space", () => page.keyboard.press("Space"));
            return { steps, tip, exits };
        });
    },

    async tables(template, folder) {
        const { file } = filled(template, folder);
        return on(file, {}, async (page) => {
            const sorted = () =>
                page.$eval("#table-talks th[aria-sort]", (head) => [head.textContent, head.getAttribute("aria-sort")]);
            const first = { sort: await sorted(), column: await cells(page, "talks", 2) };
            await page.click("#table-talks th:nth-child(3) button");
            const clicked = { sort: await sorted(), column: await cells(page, "talks", 2) };
            await page.focus("#table-talks th:nth-child(1) button");
            await page.keyboard.press("Enter");
            const pressed = { sort: await sorted(), column: await cells(page, "talks", 0) };
            await page.locator("#table-processes input").pressSequentially("shop_cart");
            const filtered = {
                column: await cells(page, "processes", 0),
                count: await page.$eval("#table-processes .count", (element) => element.textContent),
            };
            await page.click("#table-exits tbody button.link"); // a time
            await settled(page);
            const shown = await range(page);
            await page.click(".labels button:nth-of-type(2)");
            await settled(page);
            const chosen = {
                talks: await cells(page, "talks", 0),
                range: await range(page),
                chip: await page.$eval("nav .chip", (element) => element.textContent),
                pressed: await page.$$eval(".labels button[aria-pressed=true]", (all) =>
                    all.map((one) => one.textContent),
                ),
            };
            await page.keyboard.press("Tab");
            const focus = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
            return { first, clicked, pressed, filtered, shown, chosen, focus };
        });
    },

    async timeline(template, folder) {
        const { file } = filled(template, folder);
        return on(file, {}, async (page) => {
            const steps = { whole: await range(page) };
            const step = async (name, action) => {
                await action();
                await settled(page);
                steps[name] = await range(page);
            };
            await page.$eval("#timeline", (element) => element.scrollIntoView());
            const box = await (await page.$("canvas.rows")).boundingBox();
            const x = box.x + box.width / 4,
                y = box.y + 60;
            await page.mouse.move(x, y);
            await step("wheel_alone", () => page.mouse.wheel(0, -50));
            await page.$eval("#timeline", (element) => element.scrollIntoView());
            await step("ctrl_wheel", async () => {
                await page.keyboard.down("Control");
                for (let n = 0; n < 5; n++) await page.mouse.wheel(0, -50);
                await page.keyboard.up("Control");
            });
            await step("dragged", async () => {
                await page.mouse.down();
                await page.mouse.move(x + 200, y, { steps: 4 });
                await page.mouse.up();
            });
            await page.focus("canvas.rows");
            await step("plus", () => page.keyboard.press("+"));
            await step("right", () => page.keyboard.press("ArrowRight"));
            for (let n = 0; n < 5; n++) await page.keyboard.press("+");
            await step("near", () => page.keyboard.press("-"));
            const label = await page.$eval("canvas.rows", (canvas) => canvas.getAttribute("aria-label"));
            await step("home", () => page.keyboard.press("Home"));
            await page.mouse.move(box.x + 40, box.y + 40 + 12);
            await settled(page);
            const tip = await page.$eval(".tooltip", (element) => (element.hidden ? "" : element.textContent));
            await page.locator('#timeline input[type="search"]').pressSequentially("shop_db");
            await step("filtered", () => settled(page));
            await page.click("#timeline summary");
            await settled(page);
            const alternative = await page.$$eval("#timeline .alternative tbody tr", (rows) =>
                rows.map((row) => [...row.cells].map((cell) => cell.textContent)),
            );
            return { steps, label, tip, alternative };
        });
    },

    async sequence(template, folder) {
        const { file } = filled(template, folder);
        return on(file, {}, async (page) => {
            const said = () => page.$eval("#messages [role=status]", (element) => element.textContent);
            const first = {
                said: await said(),
                heads: await page.$$eval(".sequence .head text", (all) => all.map((one) => one.textContent)),
                arrows: (await page.$$(".sequence .arrow")).length,
            };
            const call = await page.$eval("#messages select option:nth-child(2)", (option) => option.value);
            await page.selectOption("#messages select", call);
            await settled(page);
            return {
                first,
                call: {
                    said: await said(),
                    texts: await page.$$eval(".sequence text.message", (all) => all.map((one) => one.textContent)),
                },
            };
        });
    },

    async flame(template, folder) {
        const { file } = filled(template, folder);
        return on(file, {}, async (page) => {
            const frames = () =>
                page.$$eval(".flame button", (all) =>
                    all.map((one) => [
                        one.getAttribute("aria-label"),
                        Math.round(parseFloat(one.getBoundingClientRect().width)),
                    ]),
                );
            const whole = await frames();
            await page.focus(".flame button");
            await page.keyboard.press("ArrowDown");
            const focused = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
            await page.keyboard.press("Enter");
            return { whole: whole.slice(0, 3), focused, zoomed: (await frames()).slice(0, 3) };
        });
    },

    // A profile of three workers and a shop, compared with an earlier one.
    async profile(template, folder) {
        const node = (name, own, was, ...children) => ({
            name,
            value: children.reduce((sum, child) => sum + child.value, own * 1e9),
            own: own * 1e9,
            was: was * 1e9,
            children,
        });
        const worker = (n) =>
            node(`<0.${n}.0> work:init/1`, 0, 2, node("work:loop/1", 1, 2, node("work:loop/1", 1, 0)));
        const flame = node("", 0, 10, node("<0.9.0> shop", 4, 4), worker(1), worker(2), worker(3));
        const file = join(folder, `page-${check}.html`);
        const profile = { hertz: 99, seconds: 10, samples: 990, cpus: "1.00" };
        const was = { "work:loop/1": 6e9, "work:gone/0": 2e9, "<0.9.0> shop": 4e9 };
        writeFileSync(file, fill(readFileSync(template, "utf8"), { title: "profile", flame, was, profile }));
        return on(file, {}, async (page) => {
            const frames = () =>
                page.$$eval(".flame button", (all) =>
                    all.map((one) => [one.getAttribute("aria-label"), one.style.background.replace(/ /g, "")]),
                );
            const merged = await frames();
            await page.click("text=Single processes");
            const single = await frames();
            await page.fill("#calls .controls input", "loop");
            const found = await page.textContent("#calls .controls .range");
            const rows = await page.$$eval("#table-functions tbody tr", (all) =>
                all.map((row) => [...row.cells].map((cell) => cell.textContent)),
            );
            return { merged, single: single.map(([said]) => said), found, rows };
        });
    },

    // Every text of the recording is hostile.
    async hostile(template, folder) {
        const hostile =
            `</script><script>window.broken=1</script><img src=x onerror="window.broken=2">` +
            "<!--\u2028\u202e\u0007]]>";
        const { file, data } = filled(template, folder, { text: (text) => text + hostile });
        const long = "x".repeat(10000);
        data.report.log.push({ process: null, node: "n", time: null, level: "error", text: hostile + long });
        data.report.processes.push({
            ...data.report.processes[0],
            process: { number: 999, node: "n", pid: "<0.1.0>", name: long, show: long },
        });
        writeFileSync(file, fill(readFileSync(template, "utf8"), data));
        return on(file, {}, async (page) => {
            const log = await page.$$eval("#table-log td:last-child", (all) =>
                all.map((cell) => cell.textContent.slice(0, 200)),
            );
            await page.click(".labels button");
            await settled(page);
            return {
                log,
                broken: await page.evaluate(() => window.broken ?? null),
                scripts: (await page.$$("script")).length,
                images: (await page.$$("img")).length,
                title: await page.$eval("h1", (element) => element.textContent),
                wide: await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
            };
        });
    },

    // Frame times in ms, while the timeline is zoomed and moved.
    async smooth(template, folder, intervals) {
        const { file } = filled(template, folder, { intervals: Number(intervals) });
        return on(file, {}, async (page) => {
            await page.focus("canvas.rows");
            const drawn = [];
            for (const key of "+ + ArrowRight + + + ArrowLeft - - - - - ArrowRight Home".split(" ")) {
                await page.keyboard.press(key);
                await page.evaluate(
                    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
                );
                drawn.push((await range(page)).frame_ms);
            }
            drawn.sort((a, b) => a - b);
            return { drawn, median_ms: drawn[drawn.length >> 1], longest_ms: drawn.at(-1) };
        });
    },

    async themes(template, folder) {
        const { file } = filled(template, folder);
        const look = async (page) => ({
            theme: await page.$eval("html", (element) => element.dataset.theme),
            ...(await colours(page)),
        });
        const light = await on(file, { theme: "light" }, look);
        const dark = await on(file, { theme: "dark" }, async (page) => {
            const before = await look(page);
            await page.click("button.theme");
            await settled(page);
            return { before, after: await look(page) };
        });
        const phone = await on(file, { width: 390, height: 844 }, async (page) => ({
            wide: await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
            ...(await colours(page)),
        }));
        return { light, dark, phone };
    },

    // The template alone, as installed.
    async empty(template) {
        return on(template, {}, async (page) => ({
            text: await page.$eval("main", (element) => element.textContent),
            when: await page.$eval(".when", (element) => element.textContent),
        }));
    },
};

try {
    console.log(JSON.stringify(await checks[check](...args)));
} finally {
    await close();
}
