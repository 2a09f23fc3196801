// How the table of runs of `runner serve` feels in a browser, with the results of `cargo bench --bench commands -- runs
// FOLDER`, which are 10,000 runs.
//
//   WEB_TOOLS=TOOLS node benches/explore.mjs RUNNER FOLDER/many [--rounds 5]
//
// TOOLS has npm's playwright-core (`.ci/web` installs it); Chromium must be there. Times are from an action until the
// table shows its result, medians of the rounds; the first opening is of a server that has read no run yet. While the
// table scrolls from its first to its last run within 5 seconds, the gaps between the frames of the page are recorded, and
// how often the rows in view were not there yet.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { loadavg } from "node:os";
import { join, resolve } from "node:path";

const [runner, results, ...rest] = process.argv.slice(2);
if (!results) throw new Error("usage: node benches/explore.mjs RUNNER RESULTS [--rounds 5]");
const rounds = rest[0] === "--rounds" ? Number(rest[1]) : 5;
const require = createRequire(join(resolve(process.env.WEB_TOOLS ?? "."), "package.json"));
const { chromium } = require("playwright-core");

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

const server = spawn(resolve(runner), ["serve", results, "--port", "0"], { stdio: ["ignore", "pipe", "pipe"] });
const address = await new Promise((found, failed) => {
  let said = "";
  const see = (bytes) => {
    said += bytes;
    const place = said.match(/http:\/\/[^\s/]+/);
    if (place) found(place[0]);
  };
  server.stdout.on("data", see);
  server.stderr.on("data", see);
  server.on("exit", () => failed(new Error(`the server ended: ${said}`)));
});
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });

/** Runs in the page: milliseconds from an action until the text above the table, which has the number of runs, changes. */
const untilChanged = async (act, argument) => {
  const said = document.getElementById("said");
  const started = performance.now();
  said.textContent = "";
  act(argument);
  while (!/ of \d+/.test(said.textContent)) await new Promise(requestAnimationFrame);
  return performance.now() - started;
};
// As text, because the policy of the page forbids it to evaluate any.
const changed = (act, argument) => page.evaluate(`(${untilChanged})(${act}, ${JSON.stringify(argument)})`);

async function opened() {
  const started = performance.now();
  await page.goto(`${address}/-/runs`);
  await page.waitForSelector("html[data-ready] #rows input", { state: "attached" });
  return performance.now() - started;
}

/** Gaps between frames during a scroll over all runs, and the share of frames with a row in view that was not there. */
const scrolled = () => page.evaluate(async () => {
  const box = document.getElementById("box");
  const [gaps, started, seconds] = [[], performance.now(), 5];
  let [last, frames, bare] = [started, 0, 0];
  for (;;) {
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
    const part = (performance.now() - started) / 1000 / seconds;
    frames += 1;
    const area = box.getBoundingClientRect();
    const seen = document.elementFromPoint(area.left + 200, area.top + area.height / 2);
    if (!seen?.closest("#rows tr")?.querySelector("input")) bare += 1;
    if (part > 1) break;
    box.scrollTop = part * (box.scrollHeight - box.clientHeight);
  }
  gaps.sort((a, b) => a - b);
  return { median: gaps[gaps.length >> 1], most: gaps.at(-1), long: gaps.filter((gap) => gap > 50).length, frames, bare: bare / frames };
});

try {
  console.log(`load ${loadavg()[0].toFixed(1)}, ${await browser.version()}`);
  console.log(`first opening                ${(await opened()).toFixed(0)} ms`);
  const times = new Map();
  const add = (name, value) => times.set(name, [...(times.get(name) ?? []), value]);
  const ask = (value) => {
    document.getElementById("filter").value = value;
    document.getElementById("ask").requestSubmit();
  };
  const group = (value) => {
    const box = document.getElementById("group");
    box.value = value;
    box.dispatchEvent(new Event("change"));
  };
  const sort = () => document.querySelectorAll("#heads button")[3].click();
  for (let round = 0; round < rounds; round += 1) {
    add("opening", await opened());
    add("filter", await changed(ask, "valid/accuracy > 0.9"));
    add("no filter", await changed(ask, ""));
    add("sort by a column", await changed(sort));
    const axis = await page.evaluate(() => document.querySelectorAll("#group option")[1].value);
    add("group", await changed(group, axis));
    add("no group", await changed(group, ""));
    const { median: middle, most, long, frames, bare } = await scrolled();
    add("frame, median", middle);
    add("frame, longest", most);
    add("frames over 50 ms", long);
    add("frames", frames);
    add("% of frames without rows", 100 * bare);
  }
  for (const [name, values] of times)
    console.log(`${name.padEnd(28)} ${median(values).toFixed(1)} (${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)})`);
  const text = await page.textContent("#said");
  console.log(`the table says: ${text}`);
} finally {
  await browser.close();
  server.kill("SIGINT");
}
