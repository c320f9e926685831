// Prints how speedscope reads a profile, as JSON: speedscope.js FOLDER-OF-SPEEDSCOPE PROFILE [BROWSER]
// The page of speedscope loads the profile in a headless browser; its table of functions shows the contents.
const { execFileSync } = require("child_process");
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require("fs");
const { tmpdir } = require("os");
const { join } = require("path");

const [folder, profile, browser = "chromium"] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "speedscope-"));

const entities = { lt: "<", gt: ">", quot: '"', amp: "&", nbsp: " " };
const decoded = (html) => html.replace(/&(\w+);/g, (_, name) => entities[name]);
const text = (html) => decoded(html.replace(/<[^>]*>/g, "")).trim();

try {
    const script = join(scratch, "profile.js");
    const bytes = readFileSync(profile).toString("base64");
    writeFileSync(script, `speedscope.loadFileFromBase64("profile.json", "${bytes}")`);
    const page = join(folder, "dist/release/index.html");
    const html = execFileSync(
        browser,
        [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-unsafe-swiftshader",
            "--allow-file-access-from-files",
            `--user-data-dir=${join(scratch, "browser")}`,
            "--virtual-time-budget=10000",
            "--dump-dom",
            `file://${page}#localProfilePath=${script}&view=sandwich`,
        ],
        { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28, timeout: 100000 },
    );
    const rows = [...html.matchAll(/<tr\b[^>]*>(.*?)<\/tr>/gs)]
        .map((row) => [...row[1].matchAll(/<td\b[^>]*>(.*?)<\/td>/gs)].map((cell) => text(cell[1])))
        .filter((cells) => cells.length >= 3);
    console.log(
        JSON.stringify({
            title: text(/<title>(.*?)<\/title>/s.exec(html)[1]),
            functions: rows.map(([total, own, name]) => ({ total, own, name })),
        }),
    );
} finally {
    rmSync(scratch, { recursive: true, force: true });
}
