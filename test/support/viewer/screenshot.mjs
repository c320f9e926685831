// node screenshot.mjs NODE_MODULES PAGE.html OUT.png: see tools/screenshot.

import { close, open, settled } from "./browser.mjs";

const [modules, file, out] = process.argv.slice(2);
if (!out) {
    console.error("usage: tools/screenshot PAGE.html OUT.png");
    process.exit(2);
}
const { WIDTH = 1440, HEIGHT = 1180, SCALE = 2, THEME = "light", SHOW, AT, MESSAGES } = process.env;
const { page, seen } = await open(modules, file, {
    width: Number(WIDTH),
    height: Number(HEIGHT),
    scale: Number(SCALE),
    theme: THEME,
});

// The time range in which that many messages are densest.
async function exchange(number) {
    return page.$eval(
        "#data",
        (data, number) => {
            const { timeline } = JSON.parse(data.textContent);
            const row = (index) => index !== null && timeline.processes[index].row;
            const sent = [];
            for (let n = 0; n < timeline.messages.length; n += 7) {
                const [from, to, time] = timeline.messages.slice(n, n + 3);
                if (row(from) && row(to) && time !== null) sent.push(time);
            }
            let best = null;
            for (let n = 0; n + number <= sent.length; n++) {
                const [begin, end] = [sent[n], sent[n + number - 1]];
                if (!best || end - begin < best[1] - best[0]) best = [begin, end];
            }
            return best && [best[0] - (best[1] - best[0]) * 0.15, best[1] + (best[1] - best[0]) * 0.3];
        },
        number,
    );
}

if (MESSAGES) {
    const range = await exchange(Number(MESSAGES));
    if (range)
        await page.evaluate(([begin, end]) => {
            location.hash = `#t=${begin / 1e9},${end / 1e9}`;
        }, range);
}
if (AT) await page.$eval("#" + AT, (section) => section.scrollIntoView());
if (SHOW) {
    await page.evaluate(
        (name) =>
            [...document.querySelectorAll(".labels button")]
                .find((button) => button.textContent.includes(name))
                ?.click(),
        SHOW,
    );
}
await settled(page);
await page.screenshot({ path: out });
await close();
if (seen.errors.length + seen.requests.length > 0) {
    console.error(JSON.stringify(seen));
    process.exit(1);
}
