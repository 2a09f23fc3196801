// The page in headless Chromium.
//
//   WEB=FOLDER WEB_TOOLS=FOLDER node web/tests/page.mjs [NAME]
//
// WEB_TOOLS has npm's playwright-core and axe-core. With RUNNER and RUNNER_PYTHON, the program and PyTorch open what the
// page downloads. `.ci/web` sets all of them.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";
import { portable, recorded } from "./program.mjs";

const web = resolve(process.env.WEB ?? "target/page");
const require = createRequire(join(resolve(process.env.WEB_TOOLS), "package.json"));
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");
const runner = process.env.RUNNER;
const python = process.env.RUNNER_PYTHON;
const folder = mkdtempSync(join(tmpdir(), "runner-page-"));

/** What a server sends so that a page may share memory between threads. */
const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };
/** Serves the folder, with more headers. */
async function served(headers) {
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    try {
      const file = join(web, path === "/" ? "index.html" : path);
      const bytes = readFileSync(file);
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream", ...headers });
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return server;
}
const addressOf = (server) => `http://127.0.0.1:${server.address().port}/`;
const server = await served({});
const address = addressOf(server);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ acceptDownloads: true });

/** A page whose errors and requests elsewhere are failures. */
async function opened(size, of = context, at = address) {
  const page = await of.newPage();
  if (size) await page.setViewportSize(size);
  const wrong = [];
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("request", (request) => {
    if (!/^(blob|data):/.test(request.url()) && !request.url().startsWith(at)) wrong.push(`request to ${request.url()}`);
  });
  const started = performance.now();
  await page.goto(at);
  await page.waitForSelector("body[data-ready]");
  page.wrong = wrong;
  page.openedAfter = performance.now() - started;
  return page;
}

/** From now on, the page keeps the times of tasks that take over 50 ms. */
const watchTasks = (page) =>
  page.evaluate(() => {
    window.long = [];
    new PerformanceObserver((list) => window.long.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
  });

const phase = (page, name, timeout = 120_000) => page.waitForSelector(`body[data-phase=${name}]`, { timeout });
const losses = (page) => downloaded(page, "#losses-file").then(({ text }) => text.trim().split("\n").slice(1).map((line) => Number(line.split(",")[1])));

async function downloaded(page, selector) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
  const path = join(folder, download.suggestedFilename());
  await download.saveAs(path);
  return { path, name: download.suggestedFilename(), text: readFileSync(path, "utf8") };
}

async function choose(page, name) {
  await page.selectOption("#choice", name);
  await page.waitForFunction((name) => document.querySelector("#run").options.length > 0 && document.querySelector("#text").value.includes(name), name === "iris.toml" ? '"iris"' : '"digits"');
}

async function train(page, name) {
  await choose(page, name);
  await page.waitForSelector("#train:not([disabled])");
  await page.click("#train");
}

const tests = {
  async "it trains iris and digits to their accuracy"() {
    const page = await opened();
    for (const [name, least] of [["iris.toml", 0.9], ["digits.toml", 0.96]]) {
      await train(page, name);
      await phase(page, "running").catch(() => {});
      await phase(page, "finished");
      const text = await page.textContent("#status");
      const accuracy = Number(text.match(/valid\/accuracy (\d\.\d+)/)[1]);
      assert.ok(accuracy >= least, text);
      console.log(`  ${name}: ${text}`);
      const right = await page.$$eval("#confusion td.right", (cells) => cells.reduce((sum, cell) => sum + Number(cell.textContent), 0));
      assert.ok(right > 20);
    }
    assert.ok(await page.$$eval("#mistakes img", (images) => images.every((image) => image.complete && image.naturalWidth > 0)));
    // Once everything is shown, nothing moves. A vertical stroke is a one.
    await page.waitForSelector("body[data-saved='480']");
    const pad = page.locator("#pad");
    await pad.hover({ position: { x: 112, y: 20 } });
    await page.mouse.down();
    await pad.hover({ position: { x: 112, y: 110 } });
    await pad.hover({ position: { x: 112, y: 200 } });
    await page.mouse.up();
    await page.waitForSelector("#prediction li");
    console.log(`  a vertical stroke: ${await page.textContent("#prediction li")}`);
    assert.match(await page.textContent("#prediction li"), /^1: /);
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "a reload in the middle resumes to the bit"() {
    const page = await opened();
    await page.click("#stop");
    await train(page, "digits.toml");
    await phase(page, "finished");
    const whole = await losses(page);
    const digest = (await page.textContent("#status")).match(/weights: (\w+)/)[1];
    await page.click("#train");
    await page.waitForFunction(() => Number(document.querySelector("#progress").value) > 0.1);
    await page.click("#pause");
    await phase(page, "paused");
    await page.waitForSelector("body[data-saved]");
    const before = (await losses(page)).length;
    assert.ok(before > 0 && before < whole.length, `${before} of ${whole.length}`);
    await page.waitForTimeout(200);
    await page.reload();
    await page.waitForSelector("body[data-ready]");
    await phase(page, "paused");
    assert.deepEqual(await losses(page), whole.slice(0, before));
    await page.click("#train");
    await phase(page, "finished");
    assert.deepEqual(await losses(page), whole);
    assert.match(await page.textContent("#status"), new RegExp(digest));
    console.log(`  ${before} of ${whole.length} updates before the reload`);
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "with portable arithmetic, a whole training has the losses and weights of the program"() {
    const page = await opened();
    await page.click("#stop").catch(() => {});
    for (const name of ["iris.toml", "digits.toml"]) {
      await choose(page, name);
      const file = portable(await page.inputValue("#text"));
      await page.fill("#text", file);
      await page.waitForSelector("#train:not([disabled])");
      await page.click("#train");
      await phase(page, "finished");
      const found = await losses(page);
      assert.ok(found.length > 0);
      if (!runner) continue;
      writeFileSync(join(folder, name), file);
      const { status, stderr } = spawnSync(runner, ["run", name, "--quiet"], { cwd: folder, encoding: "utf8" });
      assert.equal(status, 0, stderr);
      const [{ id }] = JSON.parse(readFileSync(join(folder, "results", name.replace(".toml", ""), "plan.json"), "utf8")).runs;
      const { expected, summary } = recorded(folder, name.replace(".toml", ""), id);
      assert.deepEqual(found, expected, name);
      assert.match(await page.textContent("#status"), new RegExp(summary.weights_digest.slice(0, 16)));
      const capsule = await downloaded(page, "#capsule-file");
      const again = spawnSync(runner, ["reproduce", capsule.name], { cwd: folder, encoding: "utf8" });
      assert.equal(again.status, 0, again.stderr);
      assert.match(again.stdout + again.stderr, /bitwise/);
      console.log(`  ${name}: ${found.length} losses and the weights are equal, and those of its capsule`);
    }
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "wrong files show the text of the command line, at the place"() {
    const page = await opened();
    const file = '[data]\ntype = "digits"\n\n[model]\ntype = "mlp"\nhiden = [8]\n\n[optimizer]\ntype = "adam"\nlearning_rate = 1e-3\n\n[train]\nepochs = 2\n';
    await page.fill("#text", file);
    await page.waitForSelector("#problems pre");
    const shown = await page.textContent("#problems pre");
    assert.match(shown, /did you mean `hidden`\?/);
    if (runner) {
      const name = await page.evaluate(() => document.querySelector("#choice").value);
      writeFileSync(join(folder, name), file);
      const { stderr } = spawnSync(runner, ["check", name], { cwd: folder, encoding: "utf8" });
      assert.ok(stderr.includes(shown), `${shown}\n---\n${stderr}`);
    }
    assert.equal(await page.textContent("#marks mark"), "hiden");
    assert.ok(await page.isDisabled("#train"));
    await page.click("#problems button");
    const selected = await page.$eval("#text", (area) => area.value.slice(area.selectionStart, area.selectionEnd));
    assert.equal(selected, "hiden");
    await page.keyboard.type("hidd");
    await page.waitForSelector("#completions li");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#problems").textContent === "None.");
    assert.match(await page.inputValue("#text"), /^hidden = \[8\]$/m);
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "files from the machine are opened, or refused with a reason"() {
    const page = await opened();
    const give = (name, buffer) => page.setInputFiles("#file", { name, mimeType: "text/plain", buffer });
    const told = (pattern) => page.waitForFunction((source) => new RegExp(source).test(document.querySelector("#status").textContent), pattern.source);
    await give("mine.toml", Buffer.from('[data]\ntype = "iri"\n'));
    await page.waitForFunction(() => document.querySelector("#problems").textContent.includes("mine.toml:2:8"));
    await give("big.toml", Buffer.alloc(2 << 20));
    await told(/big.toml has 2,097,152 bytes/);
    await give("odd.toml", Buffer.from([0xff, 0xfe, 0x00]));
    await told(/odd.toml cannot be read as UTF-8/);
    assert.match(await page.inputValue("#text"), /iri"/);
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "data from the machine is trained on, and is there after a reload"() {
    const page = await opened();
    await page.click("#stop").catch(() => {});
    const status = (pattern) => page.waitForFunction((source) => new RegExp(source).test(document.querySelector("#status").textContent), pattern.source);
    const data = join(import.meta.dirname, "../../experiments/data");
    await page.setInputFiles("#data-files", join(data, "iris.csv"));
    await status(/Added iris.csv/);
    await page.click("text=Write an experiment");
    await page.waitForFunction(() => document.querySelector("#text").value.includes('path = "iris.csv"'));
    await page.waitForSelector("#train:not([disabled])");
    assert.equal(await page.textContent("#problems"), "None.");
    await page.click("#train");
    await phase(page, "finished");
    await status(/Finished/);
    await page.waitForSelector("body[data-saved]");
    await page.setInputFiles("#data-folder", join(data, "shapes"));
    await status(/Added 120 files/);
    await page.locator("#files li", { hasText: "shapes" }).getByText("Write an experiment").click();
    await page.waitForFunction(() => document.querySelector("#text").value.includes('path = "shapes"'));
    await page.waitForSelector("#train:not([disabled])");
    assert.match(await page.textContent("#summary"), /96 train, 24 valid/);
    await page.reload();
    await page.waitForSelector("body[data-ready]");
    await phase(page, "finished");
    assert.match(await page.textContent("#files"), /iris.csv[^]*shapes 120 files/);
    const sparse = join(folder, "large.csv");
    writeFileSync(sparse, "");
    truncateSync(sparse, 600 << 20);
    await page.setInputFiles("#data-files", sparse);
    await status(/large.csv of 600 MiB cannot be added: the page holds at most 512 MiB/);
    for (const button of ["iris.csv", "shapes"]) await page.getByLabel(`Remove ${button}`).click();
    await page.waitForFunction(() => document.querySelector("#files").children.length === 0);
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "a sweep has the results of the program, and can be stopped"() {
    const page = await opened();
    await page.click("#stop").catch(() => {});
    const file = '[experiment]\nseeds = [1, 2]\n[data]\ntype = "iris"\n[model]\ntype = "mlp"\nhidden = [8]\n[optimizer]\ntype = "adam"\nlearning_rate = 1e-2\n[train]\nepochs = 5\n[backend]\narithmetic = "portable"\n[sweep.grid]\noptimizer.learning_rate = [1e-3, 1e-2, 1e-1]\n';
    await page.fill("#text", file);
    await page.waitForSelector("#sweep-train:not([disabled])");
    await page.click("#sweep-train");
    await page.waitForFunction(() => document.querySelector("#sweep caption")?.textContent === "6 of 6 runs are trained, 100 % of all updates");
    await page.waitForSelector("#sweep-train:not([disabled])");
    const { text } = await downloaded(page, "#sweep-file");
    const [head, ...rows] = text.trim().split("\n").map((line) => line.split(","));
    assert.equal(rows.length, 6);
    assert.equal(await page.$$eval("#sweep tr.best", (of) => of.length), 1);
    if (runner) {
      writeFileSync(join(folder, "grid.toml"), file);
      const { status, stderr } = spawnSync(runner, ["run", "grid.toml", "--quiet"], { cwd: folder, encoding: "utf8" });
      assert.equal(status, 0, stderr);
      const column = head.indexOf("valid/accuracy");
      const loss = head.indexOf("valid/loss");
      for (const row of rows) {
        const { summary } = recorded(folder, "grid", row[0]);
        assert.equal(Number(row[column]), summary.metrics["valid/accuracy"], row[0]);
        assert.equal(Number(row[loss]), summary.metrics["valid/loss"], row[0]);
      }
      // So does the report.
      const answer = (of) => of.match(/<p class="answer">([^]*?)<\/p>/)[1];
      const report = await downloaded(page, "#sweep-report");
      assert.equal(answer(report.text), answer(readFileSync(join(folder, "results/grid/report.html"), "utf8")));
    }
    await page.fill("#text", file.replace("epochs = 5", "epochs = 5000"));
    await page.waitForSelector("#sweep-train:not([disabled])");
    await page.click("#sweep-train");
    await page.waitForSelector("#sweep-stop:not([disabled])");
    await page.click("#sweep-stop");
    await page.waitForSelector("#sweep-train:not([disabled])");
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "downloads are opened by other programs"() {
    const page = await opened();
    await train(page, "iris.toml");
    await phase(page, "finished");
    const files = {};
    for (const format of ["safetensors", "pytorch", "pytorch-json", "onnx", "npz"]) files[format] = (await downloaded(page, `[data-format=${format}]`)).path;
    const toml = await downloaded(page, "#text-file");
    const report = await downloaded(page, "#report-file");
    assert.match(report.text, /<p class="answer">[^]*valid\/accuracy/);
    assert.match(report.text, /<section id="confusion"/);
    if (python) {
      writeFileSync(join(folder, "files.json"), JSON.stringify({ files }));
      const { status, stdout, stderr } = spawnSync(python, [join(import.meta.dirname, "open.py"), join(folder, "files.json")], { encoding: "utf8" });
      assert.equal(status, 0, stderr);
      console.log(`  ${stdout.trim()}`);
    }
    if (runner) {
      const { status, stderr } = spawnSync(runner, ["check", toml.name], { cwd: folder, encoding: "utf8" });
      assert.equal(status, 0, stderr);
      // The weights start a training of the program.
      const finetune = `${toml.text}\n[init]\nfrom = ${JSON.stringify(files.safetensors)}\n`;
      writeFileSync(join(folder, "finetune.toml"), finetune);
      const trained = spawnSync(runner, ["run", "finetune.toml", "--set", "train.epochs=1", "--quiet"], { cwd: folder, encoding: "utf8" });
      assert.equal(trained.status, 0, trained.stderr);
    }
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "a capsule of the program is shown, and another file is refused"() {
    if (!runner) return;
    const page = await opened();
    await choose(page, "iris.toml");
    writeFileSync(join(folder, "bundled.toml"), await page.inputValue("#text"));
    const call = (...args) => {
      const { status, stderr } = spawnSync(runner, args, { cwd: folder, encoding: "utf8" });
      assert.equal(status, 0, stderr);
    };
    call("run", "bundled.toml", "--quiet");
    const [{ id }] = JSON.parse(readFileSync(join(folder, "results/bundled/plan.json"), "utf8")).runs;
    call("bundle", `results/bundled/runs/${id}`, "--out", "bundled.capsule.tar.zst");
    await page.setInputFiles("#data-files", join(folder, "bundled.capsule.tar.zst"));
    await page.waitForFunction(() => document.querySelector("#status").textContent.startsWith("Opened run"));
    const { expected, summary } = recorded(folder, "bundled", id);
    assert.deepEqual(await losses(page), expected);
    assert.match(await page.textContent("#status"), new RegExp(summary.weights_digest.slice(0, 16)));
    assert.ok(await page.isDisabled("#capsule-file"));
    assert.equal(await page.$$eval("#confusion td.right", (cells) => cells.length), 3);
    const weights = await downloaded(page, "[data-format=pytorch-json]");
    assert.equal(JSON.parse(weights.text).linear_1_weight.length, 16);
    writeFileSync(join(folder, "odd.capsule.tar.zst"), "a,b\n1,2\n");
    await page.setInputFiles("#data-files", join(folder, "odd.capsule.tar.zst"));
    await page.waitForFunction(() => /`odd.capsule.tar.zst`: it is not a capsule/.test(document.querySelector("#status").textContent));
    // A training replaces it.
    await page.click("#train");
    await page.waitForFunction(() => /^(Training|Finished)/.test(document.querySelector("#status").textContent));
    await phase(page, "finished");
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "it is accessible, at any width"() {
    for (const size of [{ width: 1280, height: 900 }, { width: 390, height: 844 }]) {
      const page = await opened(size);
      await train(page, "digits.toml");
      await page.waitForSelector("#confusion td");
      await phase(page, "finished");
      // As an extension would, past the policy of the page.
      const session = await context.newCDPSession(page);
      await session.send("Page.setBypassCSP", { enabled: true });
      await page.evaluate(readFileSync(axe, "utf8"));
      const { violations } = await page.evaluate(() => window.axe.run(document));
      const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3).join(" ")}`);
      assert.deepEqual(found, [], `${size.width} px`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} px too wide at ${size.width}`);
      await page.close();
    }
  },

  async "the page stays responsive, and begins within 2 s"() {
    const page = await opened();
    await page.click("#stop").catch(() => {});
    await watchTasks(page);
    await choose(page, "digits.toml");
    await page.waitForSelector("#train:not([disabled])");
    const started = performance.now();
    await page.click("#train");
    await page.waitForFunction(() => document.querySelector("#progress").value > 0);
    const first = performance.now() - started;
    await phase(page, "finished");
    const long = await page.evaluate(() => window.long);
    console.log(`  opened after ${page.openedAfter.toFixed(0)} ms, first updates ${first.toFixed(0)} ms after the click; ${long.length} tasks over 50 ms, the longest ${Math.max(0, ...long).toFixed(0)} ms`);
    assert.deepEqual(page.wrong, []);
    await page.close();
  },

  async "a second tab does not write the state of the first"() {
    const [first, second] = [await opened(), await opened()];
    await train(second, "iris.toml");
    await phase(second, "finished");
    await second.waitForFunction(() => document.querySelector("#status").textContent.includes("another tab"));
    await first.close();
    await second.close();
  },

  async "WebGPU trains as the processor does, and a page without it says why"() {
    const on = (device, text) => `${text}\n[backend]\ndevice = "${device}"\n`;
    const page = await opened();
    await choose(page, "iris.toml");
    const whole = await page.inputValue("#text");
    // An emulated GPU takes a third of a second for an update, and draws the page as well: frames are rare.
    const patient = { timeout: 120_000, polling: 100 };
    const iris = whole.replace(/^epochs = .*$/m, "epochs = 10").replace(/^batch_size = .*$/m, "batch_size = 32");
    assert.notEqual(iris, whole);
    await page.fill("#text", on("wgpu", iris));
    await page.waitForFunction(() => document.querySelector("#device").textContent.includes("skipped"));
    assert.match(await page.textContent("#device"), /WebGPU/);
    await page.click("#train");
    await page.waitForFunction(() => /is skipped: .*WebGPU/.test(document.querySelector("#status").textContent));
    assert.deepEqual(page.wrong, []);
    await page.close();

    // The GPU that Chromium emulates.
    const args = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"];
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
    try {
      const page = await opened(undefined, await browser.newContext({ acceptDownloads: true }));
      await choose(page, "iris.toml");
      await page.fill("#text", iris);
      await page.waitForFunction(() => document.querySelector("#summary").textContent.includes("10 epochs"), undefined, patient);
      await page.waitForSelector("#compare-box:not([hidden])");
      await page.click("#compare");
      await page.waitForFunction(() => /after \d+ updates/.test(document.querySelector("#compared").textContent), undefined, patient);
      const compared = await page.textContent("#compared");
      console.log(`  ${compared}`);
      const differences = [...compared.matchAll(/difference (\d\.\de[+-]\d+)/g)].map(([, difference]) => Number(difference));
      assert.ok(differences.length === 2 && differences.every((difference) => difference < 1e-4), compared);

      const trained = {};
      for (const device of ["flex", "wgpu"]) {
        await page.fill("#text", on(device, iris));
        await page.waitForFunction((device) => document.querySelector("#device").textContent.includes(`Trains on ${device},`), device, patient);
        await page.waitForSelector("#train:not([disabled])");
        await page.click("#train");
        await phase(page, "finished");
        trained[device] = await losses(page);
      }
      const { flex, wgpu } = trained;
      assert.equal(flex.length, wgpu.length);
      const apart = Math.max(...flex.map((loss, at) => Math.abs(loss - wgpu[at])));
      console.log(`  largest difference of ${flex.length} losses on both devices: ${apart.toExponential(1)}`);
      assert.ok(apart > 0 && apart < 1e-3, `${apart}`);
      // After a reload, its training goes on where it was.
      await page.reload();
      await page.waitForSelector("body[data-ready]");
      await phase(page, "finished");
      assert.deepEqual(await losses(page), wgpu);
      await page.click("#train");
      await page.waitForFunction(() => Number(document.querySelector("#progress").value) > 0.1, undefined, patient);
      await page.click("#pause");
      await phase(page, "paused");
      await page.waitForFunction((num) => Number(document.body.dataset.saved) < num, wgpu.length, patient);
      await page.reload();
      await page.waitForSelector("body[data-ready]");
      await phase(page, "paused");
      await page.click("#train");
      await phase(page, "finished");
      assert.deepEqual(await losses(page), wgpu);
      if (runner) {
        const capsule = await downloaded(page, "#capsule-file");
        const again = spawnSync(runner, ["reproduce", capsule.name, "--device", "flex"], { cwd: folder, encoding: "utf8" });
        assert.match(again.stdout + again.stderr, /equivalent|statistical|within|close/i, again.stderr);
      }
      assert.deepEqual(page.wrong, []);
    } finally {
      await browser.close();
    }
  },

  async "an isolated page trains on several threads, to the same bits"() {
    const said = (page, text) => page.waitForFunction((text) => document.querySelector("#device").textContent.includes(text), text);
    const one = await opened();
    await said(one, "Trains on flex, the processor, on one thread: the page is not isolated.");
    const trained = { one };
    const server = await served(ISOLATED);
    try {
      const context = await browser.newContext({ acceptDownloads: true });
      await context.addInitScript(() => {
        window.BroadcastChannel = class extends BroadcastChannel {
          constructor(name) {
            super(name);
            window.channel = name;
          }
        };
      });
      const page = await opened(undefined, context, addressOf(server));
      const processors = await page.evaluate(() => navigator.hardwareConcurrency);
      if (processors < 2) return console.log("  there is one processor");
      await said(page, `on ${Math.min(processors, 16)} threads`);
      trained.several = page;
      await watchTasks(page);
      const found = {};
      for (const [name, page] of Object.entries(trained)) {
        await page.click("#stop").catch(() => {});
        await train(page, "digits.toml");
        await phase(page, "finished");
        found[name] = [await losses(page), (await page.textContent("#status")).match(/weights: (\w+)/)[1]];
      }
      assert.deepEqual(found.several, found.one);
      const long = await page.evaluate(() => window.long);
      console.log(`  ${found.one[0].length} losses and the weights are equal on ${processors} threads; ${long.length} tasks over 50 ms`);
      // A training goes on after a reload, with threads of its own.
      await page.click("#train");
      await page.waitForFunction(() => Number(document.querySelector("#progress").value) > 0.1);
      await page.click("#pause");
      await phase(page, "paused");
      await page.waitForSelector("body[data-saved]");
      await page.reload();
      await page.waitForSelector("body[data-ready]");
      await phase(page, "paused");
      await page.click("#train");
      await phase(page, "finished");
      assert.deepEqual(await losses(page), found.one[0]);
      // The one that trains waits for a thread that fails.
      await page.evaluate(() => new BroadcastChannel(window.channel).postMessage("unreachable"));
      await page.waitForFunction(() => /WebAssembly failed \(unreachable\)/.test(document.querySelector("#status").textContent));
      assert.deepEqual(page.wrong, []);
    } finally {
      server.close();
      await one.close();
    }
  },

  async "its policy forbids other addresses, also to the worker"() {
    const page = await opened();
    const elsewhere = address.replace("127.0.0.1", "localhost");
    const refused = await page.evaluate((to) => fetch(to).then(() => false, () => true), elsewhere);
    assert.ok(refused, "the page may fetch");
    const script = await page.evaluate((to) => {
      const source = `fetch(${JSON.stringify(to)}).then(() => postMessage(false), () => postMessage(true))`;
      const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { type: "module" });
      return new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });
    }, elsewhere);
    assert.ok(script, "a worker may fetch");
    await page.close();
  },
};

let failed = 0;
const only = process.argv[2] ?? "";
for (const [name, test] of Object.entries(tests)) {
  if (!name.includes(only)) continue;
  try {
    await test();
    console.log(`ok: ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAILED: ${name}\n${error.stack}`);
    for (const page of context.pages()) {
      const shown = await page.evaluate(() => JSON.stringify([{ ...document.body.dataset }, document.querySelector("#status")?.textContent]));
      console.log(shown, page.wrong ?? []);
      await page.close();
    }
  }
}
await browser.close();
server.close();
process.exitCode = failed ? 1 : 0;
