// The package in Node, compared with the program: RUNNER is its path, required when RUNNER_REQUIRE_PEERS=1.
//
//   WEB=FOLDER node --test web/tests/package.test.mjs

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { portable, recorded } from "./program.mjs";

const web = resolve(process.env.WEB ?? "target/page");
const { Experiment, ExperimentError, openCapsule, putFile, removeFile, schema, starter, startRun, threads, version } = await import(pathToFileURL(join(web, "package/index.js")));
const experiments = JSON.parse(readFileSync(join(web, "experiments.json"), "utf8"));
const text = (name) => experiments.find((of) => of.name === name).text;
const folder = mkdtempSync(join(tmpdir(), "runner-web-"));

// The experiments on files: text, tables, arrays and pictures.
const shipped = join(import.meta.dirname, "../../experiments");
const onFiles = ["char_lstm", "char_transformer", "houses", "iris_csv", "iris_npy", "pictures"].map((name) => `${name}.toml`);
const all = [...experiments, ...onFiles.map((name) => ({ name, text: readFileSync(join(shipped, name), "utf8") }))];
cpSync(join(shipped, "data"), join(folder, "data"), { recursive: true });

async function putData() {
  for (const path of readdirSync(join(shipped, "data"), { recursive: true })) {
    const whole = join(shipped, "data", path);
    if (statSync(whole).isFile()) await putFile(`data/${path}`, readFileSync(whole));
  }
}

const runner = process.env.RUNNER;
const python = process.env.RUNNER_PYTHON;
const skip = runner ? false : "RUNNER is not set";
if (!runner && process.env.RUNNER_REQUIRE_PEERS === "1") throw new Error("RUNNER is required");

/** The largest accepted difference of a loss, relative to 1 or to the loss. */
const TOLERANCE = 4e-6;
/** Trainings that amplify a difference in the last bit, with what they are accepted with; portable ones are equal. */
const UNSTEADY = {
  "densenet.toml": 0.5,
  "dlinoss.toml": 1e-4,
  "efficientnet_b0.toml": 0.5,
  "inception_time.toml": 2e-3,
  "mobilenet_v2.toml": 1,
  "residual_cnn.toml": 1e-2,
  "segmentation.toml": 2e-2,
};
/** What portable arithmetic does not have: layers of graphs, dropout of channels, stochastic depth, other devices. */
const REFUSED = ["convnext.toml", "devices.toml", "efficientnet_b0.toml", "karate_club.toml", "tcn.toml"];
const difference = (a, b) => Math.abs(a - b) / Math.max(1, Math.abs(b));

async function losses(experiment, options) {
  const all = [];
  const epochs = [];
  const training = await experiment.train((event) => {
    all.push(...event.losses);
    if (event.epoch) epochs.push(event.epoch);
  }, options);
  return { all, epochs, training };
}

test("a browser without SIMD is told", () => {
  const source = `
    WebAssembly.validate = () => false;
    const { version } = await import(${JSON.stringify(pathToFileURL(join(web, "package/index.js")))});
    await version().then(() => process.exit(1), (error) => console.log(error.message));`;
  const told = execFileSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" });
  assert.match(told, /no SIMD here; use Chrome/);
});

test("the version and the schema are those of the program", { skip }, async () => {
  assert.equal(execFileSync(runner, ["--version"], { encoding: "utf8" }).split(/\s+/)[1], await version());
  assert.ok((await schema()).properties.model);
});

test("messages are those of the program, with their places", { skip }, async () => {
  const bad = {
    "typo.toml": '[data]\ntype = "digits"\n[model]\ntype = "mlp"\nhiden = [8]\n',
    "syntax.toml": "[data\n",
    "range.toml": `${text("iris.toml")}\n[scheduler]\ntype = "cosine"\nwarmup_steps = -1\n`,
    "shapes.toml": text("digits.toml").replace("pool_size = 2", "pool_size = 20"),
    "odd.toml": "\u0000é = 1",
  };
  for (const [name, file] of Object.entries(bad)) {
    writeFileSync(join(folder, name), file);
    const checked = spawnSync(runner, ["check", name], { cwd: folder, encoding: "utf8" });
    assert.equal(checked.status, 2, name);
    const found = await new Experiment(file, name).check();
    assert.ok(found.length > 0, name);
    for (const { text, severity } of found) {
      assert.equal(severity, "error");
      assert.ok(checked.stderr.includes(text), `${name}: ${text}\n---\n${checked.stderr}`);
    }
    await assert.rejects(new Experiment(file, name).plan(), ExperimentError);
  }
  const found = await new Experiment(bad["typo.toml"], "typo.toml").check();
  const typo = found.find(({ code }) => code === "unknown-key");
  assert.deepEqual([typo.line, typo.column, typo.marked], [5, 1, "hiden"]);
});

test("files that were not added are refused with a reason", async () => {
  const csv = '[data]\ntype = "csv"\npath = "my.csv"\ntarget = "y"\n[model]\ntype = "mlp"\n[optimizer]\ntype = "adam"\nlearning_rate = 1e-3\n[train]\nepochs = 2\n';
  const [found] = await new Experiment(csv).check();
  assert.match(found.text, /`my.csv` cannot be read here/);
  assert.equal(found.line, 3);
  await putFile("may.csv", new TextEncoder().encode("a,y\n1,2\n"));
  const [missing] = await new Experiment(csv).check();
  assert.match(missing.text, /`my.csv` does not exist[^]*did you mean `may.csv`\?/);
  await removeFile("may.csv");
});

test("data gets a first experiment, which trains", async () => {
  const rows = Array.from({ length: 90 }, (_, at) => `${at % 7},${(at * at) % 11},${["low", "high"][Number(at % 7 > 3)]}\n`);
  await putFile("mine/rows.csv", new TextEncoder().encode(`a,b,level\n${rows.join("")}`));
  const text = await starter("mine/rows.csv");
  assert.match(text, /path = "mine\/rows.csv"/);
  const experiment = new Experiment(text.replace(/^epochs = \d+/m, "epochs = 3"), "rows.toml");
  const { runs } = await experiment.plan();
  assert.equal(runs[0].data.train + runs[0].data.valid + runs[0].data.test, 90);
  const training = await experiment.train();
  assert.ok((await training.finish()).evaluation.confusion.length === 2);
  await training.free();
  // It is read again after it has changed.
  await putFile("mine/rows.csv", new TextEncoder().encode(`a,b,level\n${rows.slice(0, 60).join("")}`));
  const [again] = (await experiment.plan()).runs;
  assert.equal(again.data.train + again.data.valid + again.data.test, 60);
  await removeFile("mine");
  await assert.rejects(experiment.plan(), ExperimentError);
});

test("a resolved run trains elsewhere, and keeps its data", async () => {
  const experiment = new Experiment(text("iris.toml"), "iris.toml");
  const whole = await losses(experiment);
  const training = await startRun(await experiment.resolve());
  const all = [];
  await training.run((event) => all.push(...event.losses));
  assert.deepEqual(all, whole.all);
  await training.free();
  await assert.rejects(experiment.resolve("nothing"), /there is no run `nothing`/);
  await assert.rejects(startRun("{}"), /the run is not of this version of runner/);
  await assert.rejects(new Experiment("[data]").resolve(), ExperimentError);
  // A file that is replaced is that of the next training.
  const rows = (num) => new TextEncoder().encode(`a,b\n${Array.from({ length: num }, (_, at) => `${at % 9},${(at * at) % 7}\n`).join("")}`);
  await putFile("kept.csv", rows(60));
  const short = (await starter("kept.csv")).replace(/^epochs = \d+/m, "epochs = 2");
  const first = await new Experiment(short, "kept.toml").train();
  await first.finish();
  await putFile("kept.csv", rows(40));
  const { name, bytes } = await first.capsule();
  const opened = await openCapsule(name, bytes);
  assert.equal(opened.run.data.train + opened.run.data.valid + opened.run.data.test, 60);
  const [again] = (await new Experiment(short, "kept.toml").plan()).runs;
  assert.equal(again.data.train + again.data.valid + again.data.test, 40);
  await removeFile("kept.csv");
});

test("damaged files are refused as by the program", { skip }, async () => {
  const npy = readFileSync(join(shipped, "data/iris_x.npy"));
  const damaged = {
    "short.npy": npy.subarray(0, 200),
    "empty.npy": new Uint8Array(0),
    "text.npy": new TextEncoder().encode("a,b\n1,2\n"),
    "ragged.csv": new TextEncoder().encode("a,y\n1,2\n1,2,3\n"),
    "empty.csv": new Uint8Array(0),
    "bomb.csv": new TextEncoder().encode(`a,y\n${'"'.repeat(1000)}`),
  };
  for (const [name, bytes] of Object.entries(damaged)) {
    const of = name.endsWith(".npy") ? `type = "npy"\npath = "${name}"\ntarget_path = "data/iris_y.npy"` : `type = "csv"\npath = "${name}"\ntarget = "y"`;
    const file = `[data]\n${of}\n[model]\ntype = "mlp"\n[optimizer]\ntype = "adam"\nlearning_rate = 1e-3\n[train]\nepochs = 2\n`;
    await putFile(name, bytes);
    await putFile("data/iris_y.npy", readFileSync(join(shipped, "data/iris_y.npy")));
    writeFileSync(join(folder, name), bytes);
    writeFileSync(join(folder, "damaged.toml"), file);
    const checked = spawnSync(runner, ["check", "damaged.toml"], { cwd: folder, encoding: "utf8" });
    assert.equal(checked.status, 2, name);
    const found = await new Experiment(file, "damaged.toml").check();
    assert.ok(found.length > 0, name);
    // Its files are at the root.
    for (const { text } of found) assert.ok(checked.stderr.replaceAll(`${folder}/`, "/").includes(text), `${name}: ${text}\n---\n${checked.stderr}`);
    await removeFile(name);
  }
  await removeFile("data");
});

test("plans have the fingerprints and networks of the program", { skip }, async () => {
  await putData();
  for (const { name, text } of all) {
    writeFileSync(join(folder, name), text);
    const { runs, experiment } = await new Experiment(text, name).plan();
    const shown = execFileSync(runner, ["plan", name, "--json"], { cwd: folder, encoding: "utf8" });
    const planned = JSON.parse(shown);
    assert.equal(experiment, planned.experiment, name);
    assert.deepEqual(runs.map((run) => run.id), planned.runs.map((run) => run.id), name);
    assert.deepEqual(runs.map((run) => run.fingerprint), planned.runs.map((run) => run.fingerprint), name);
  }
});

/** A file with one epoch. */
const short = (text) => text.replace(/^epochs = .*/m, "epochs = 1").replace(/^warmup_.*/gm, "");

/** Trains the first run of a file for one epoch in the program and here. */
async function both(name, text) {
  const file = short(text);
  writeFileSync(join(folder, name), file);
  const experiment = new Experiment(file, name);
  const { runs, experiment: called } = await experiment.plan();
  const { id } = runs[0];
  execFileSync(runner, ["run", name, "--only", id, "--quiet"], { cwd: folder, stdio: "pipe" });
  const { all: found, training } = await losses(experiment, { run: id });
  const { weights_digest } = await training.finish();
  await training.free();
  return { ...recorded(folder, called, id), found, weights_digest };
}

/** The trials of a population replace each other: none of them trains alone. */
const alone = all.filter(({ text }) => !/^type = "pbt"/m.test(text));

test("losses are those of the program", { skip }, async (context) => {
  const far = [];
  await putData();
  for (const { name, text } of alone) {
    const { found, expected } = await both(name, text);
    assert.equal(found.length, expected.length, name);
    const differences = found.map((loss, at) => difference(loss, expected[at]));
    const most = Math.max(...differences);
    context.diagnostic(`${name}: the first of ${found.length} losses differs by ${differences[0].toExponential(1)}, all by ${most.toExponential(1)}`);
    // The first loss of an unsteady one has passed through all of its norms.
    const first = name in UNSTEADY ? 1e-5 : TOLERANCE;
    if (differences[0] > first || most > (UNSTEADY[name] ?? TOLERANCE)) far.push(`${name}: ${differences[0]}, ${most}`);
  }
  assert.deepEqual(far, []);
});

test("with portable arithmetic, losses and weights are those of the program to the bit", { skip }, async (context) => {
  const refused = [];
  const differing = [];
  await putData();
  for (const { name, text } of alone) {
    const file = portable(text);
    const [problem] = (await new Experiment(file, name).check()).filter(({ severity }) => severity === "error");
    if (problem) {
      assert.match(problem.message, /portable arithmetic/, name);
      refused.push(name);
      continue;
    }
    const { found, expected, weights_digest, summary } = await both(name, file);
    assert.ok(found.length > 0, name);
    const at = found.findIndex((loss, at) => loss !== expected[at]);
    if (found.length !== expected.length || at >= 0 || weights_digest !== summary.weights_digest) {
      differing.push(`${name}: loss ${at} of ${found.length}, ${weights_digest}, ${summary.weights_digest}`);
      continue;
    }
    context.diagnostic(`${name}: ${found.length} losses and the weights are equal`);
  }
  assert.deepEqual(differing, []);
  assert.deepEqual(refused, REFUSED);
});

test("any number of threads computes the same bits", async (context) => {
  const names = ["digits", "bidirectional_lstm", "transformer_classifier", "residual_cnn", "unet"];
  const files = names.map((name) => [name, short(text(`${name}.toml`))]);
  const trained = (count) => {
    const source = `
      const { Experiment, threads } = await import(${JSON.stringify(pathToFileURL(join(web, "package/index.js")))});
      const found = [(await threads(${count})).count];
      for (const [name, text] of ${JSON.stringify(files)}) {
        const losses = [];
        const training = await new Experiment(text, name + ".toml").train((event) => losses.push(...event.losses));
        const { weights_digest } = await training.finish();
        found.push([name, losses, weights_digest, JSON.parse((await training.record()).about).threads]);
      }
      console.log(JSON.stringify(found));`;
    return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8", maxBuffer: 1 << 26 }));
  };
  const [count, ...one] = trained(1);
  assert.equal(count, 1);
  for (const wanted of [2, 5]) {
    const [count, ...several] = trained(wanted);
    assert.equal(count, wanted);
    for (const [at, [name, losses, digest, threads]] of several.entries()) {
      assert.equal(threads, wanted);
      assert.deepEqual([name, losses, digest], one[at].slice(0, 3));
    }
  }
  context.diagnostic(`${names.join(", ")}: equal on 1, 2 and 5 threads`);
  await assert.rejects(threads(0), /expected a number of threads, found 0/);
});

test("threads that wait keep to their own memory", () => {
  // What a thread loses while it waits (see web/waits.mjs) is 0 afterwards, and was the address of its frame.
  const source = `
    const { threads } = await import(${JSON.stringify(pathToFileURL(join(web, "package/index.js")))});
    await threads(5);
    const { shared_memory } = await import(${JSON.stringify(pathToFileURL(join(web, "package/runner_threads.js")))});
    console.log(new Uint8Array(shared_memory().buffer, 0, 1024).some(Boolean));`;
  for (let start = 0; start < 5; start++) {
    const written = execFileSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8", timeout: 60_000 });
    assert.equal(written.trim(), "false");
  }
});

test("iris and digits reach their accuracy", async () => {
  for (const [name, least] of [["iris.toml", 0.9], ["digits.toml", 0.96]]) {
    const { epochs, training } = await losses(new Experiment(text(name), name));
    const { epoch, test, evaluation, weights_digest } = await training.finish();
    const accuracy = epochs[epoch - 1].metrics["valid/accuracy"];
    assert.ok(accuracy >= least, `${name}: ${accuracy}`);
    assert.ok(test.test === undefined || test.test.accuracy >= least, name);
    assert.equal(evaluation.task, "classification");
    assert.match(weights_digest, /^[0-9a-f]{64}$/);
    await training.free();
  }
});

test("a training resumes to the bit, in the middle of an epoch and at its end", async () => {
  const dropout = text("digits.toml").replace('pool_size = 2', 'pool_size = 2\ndropout = 0.2').replace("epochs = 12", "epochs = 2\nema.decay = 0.9");
  const experiment = new Experiment(dropout);
  const whole = await losses(experiment);
  const digest = (await whole.training.finish()).weights_digest;
  const { steps_per_epoch: steps } = (await experiment.plan()).runs[0];
  for (const stop of [0, 7, steps, steps + 3]) {
    const first = await experiment.start();
    const all = [];
    while (first.step < stop) all.push(...(await first.advance(stop - first.step, 1e9)).losses);
    const checkpoint = structuredClone(await first.checkpoint());
    await first.free();
    const rest = await losses(experiment, { checkpoint });
    assert.deepEqual([...all, ...rest.all], whole.all, `from update ${stop}`);
    assert.equal((await rest.training.finish()).weights_digest, digest);
  }
});

test("checkpoints that are damaged or of another run are refused", async () => {
  const experiment = new Experiment(text("iris.toml"));
  const training = await experiment.start();
  await training.advance(3, 1e9);
  const good = await training.checkpoint();
  const other = new Experiment(text("digits.toml"));
  const changed = (part) => experiment.start(undefined, { ...good, ...part });
  await assert.rejects(other.start(undefined, good), /saved state/);
  await assert.rejects(changed({ state: "{" }), /saved state/);
  await assert.rejects(changed({ model: good.model.slice(0, 40) }), /saved state/);
  await assert.rejects(changed({ model: new Uint8Array(0) }), /saved state/);
  await assert.rejects(changed({ best: good.model }), /saved state/);
});

test("predictions and files are those of the trained network", async () => {
  const training = await new Experiment(text("iris.toml")).train();
  await training.finish();
  const { prediction, names } = await training.predict([5.1, 3.5, 1.4, 0.2]);
  assert.equal(names.length, 3);
  assert.equal(prediction.index, 0);
  assert.ok(prediction.probability > 0.9);
  await assert.rejects(training.predict([1, 2]), /expected 4 numbers, found 2/);
  await assert.rejects(training.export("zip"), /unknown format `zip`/);
  const safetensors = await training.export("safetensors");
  const size = Number(new DataView(safetensors.buffer, safetensors.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(safetensors.subarray(8, 8 + size)));
  assert.deepEqual(header["linear_1.weight"].shape, [16, 4]);
  const json = JSON.parse(new TextDecoder().decode(await training.export("pytorch-json")));
  assert.equal(json.linear_1_weight.length, 16);
  const values = new DataView(safetensors.buffer, safetensors.byteOffset + 8 + size + header["linear_1.weight"].data_offsets[0]);
  assert.equal(Math.fround(json.linear_1_weight[0][1]), values.getFloat32(4, true));
  for (const format of ["onnx", "pytorch", "npz"]) assert.ok((await training.export(format)).length > 400, format);
});

/** A file as the program has reproduced it: its grade, and what it says. */
function reproduced(name) {
  const { status, stdout, stderr } = spawnSync(runner, ["reproduce", name], { cwd: folder, encoding: "utf8" });
  assert.equal(status, 0, `${name}\n${stdout}${stderr}`);
  return stdout + stderr;
}

test("a capsule is reproduced by the program to the bit", { skip }, async (context) => {
  await putData();
  const short = (name, more = "") => portable(all.find((of) => of.name === name).text.replace(/^epochs = .*/m, `epochs = 2${more}`).replace(/^warmup_.*/gm, ""));
  const files = {
    "iris.toml": short("iris.toml"),
    "averaged.toml": short("digits.toml", "\nema.decay = 0.9"),
    "stopped.toml": short("iris.toml").replace("epochs = 2", 'epochs = 60\nearly_stopping = { patience = 1 }'),
    "iris_csv.toml": short("iris_csv.toml"),
    "iris_npy.toml": short("iris_npy.toml"),
    "pictures.toml": short("pictures.toml"),
  };
  for (const [file, text] of Object.entries(files)) {
    const experiment = new Experiment(text, file);
    // It is resumed once.
    const first = await experiment.start();
    await first.advance(3, 1e9);
    const checkpoint = structuredClone(await first.checkpoint());
    await first.free();
    const training = await experiment.train(() => {}, { checkpoint });
    await assert.rejects(training.capsule(), /train it to its end/);
    await training.finish();
    const { name, bytes } = await training.capsule();
    assert.match(name, /^\w+-.*\.capsule\.tar\.zst$/);
    writeFileSync(join(folder, name), bytes);
    const said = reproduced(name);
    assert.match(said, /bitwise/, said);
    assert.doesNotMatch(said, /was edited|not compared/, said);
    context.diagnostic(`${file}: ${bytes.length} bytes, ${training.step} updates`);
    // It is opened here as well.
    const opened = await openCapsule(name, bytes);
    assert.equal(opened.losses.length, training.step);
    assert.deepEqual(opened.history, training.history);
    assert.deepEqual(await opened.export("safetensors"), await training.export("safetensors"));
    opened.free();
    await training.free();
  }
  await removeFile("data");
});

test("capsules of the program are opened, and damaged ones are refused", { skip }, async () => {
  const file = portable(text("iris.toml"));
  writeFileSync(join(folder, "bundled.toml"), file);
  execFileSync(runner, ["run", "bundled.toml", "--quiet"], { cwd: folder, stdio: "pipe" });
  const { runs } = await new Experiment(file, "bundled.toml").plan();
  const place = `results/bundled/runs/${runs[0].id}`;
  execFileSync(runner, ["bundle", place, "--out", "bundled.capsule.tar.zst"], { cwd: folder, stdio: "pipe" });
  const bytes = new Uint8Array(readFileSync(join(folder, "bundled.capsule.tar.zst")));
  const opened = await openCapsule("bundled.capsule.tar.zst", bytes);
  const { expected, summary } = recorded(folder, "bundled", runs[0].id);
  assert.deepEqual(opened.losses, expected);
  assert.deepEqual([opened.outcome, opened.experiment, opened.run.fingerprint], ["completed", "bundled", runs[0].fingerprint]);
  assert.deepEqual([opened.finished.epoch, opened.finished.weights_digest], [summary.best_epoch, summary.weights_digest]);
  assert.equal(opened.finished.evaluation.task, "classification");
  execFileSync(runner, ["export", "weights", place, "--format", "pytorch-json", "--out", "bundled.json"], { cwd: folder, stdio: "pipe" });
  assert.equal(new TextDecoder().decode(await opened.export("pytorch-json")), readFileSync(join(folder, "bundled.json"), "utf8"));
  assert.ok((await opened.export("onnx")).length > 400);
  opened.free();
  // Cuts, flipped bits, and other files.
  const wrong = (of) => openCapsule("x.capsule.tar.zst", of).then(() => assert.fail("it was opened"), (error) => error.message);
  for (const part of [0, 3, 100, Math.floor(bytes.length / 2), bytes.length - 1]) {
    assert.match(await wrong(bytes.subarray(0, part)), /^`x.capsule.tar.zst`: it /, `${part} bytes`);
  }
  assert.match(await wrong(new TextEncoder().encode("a,b\n1,2\n")), /it is not compressed with zstd; use a file that `runner bundle` created/);
  for (let at = 200; at < bytes.length; at += 997) {
    const flipped = Uint8Array.from(bytes);
    flipped[at] ^= 16;
    assert.match(await wrong(flipped), /^`x.capsule.tar.zst`: /, `byte ${at}`);
  }
});

test("a report is that of the program", { skip }, async () => {
  const file = `${portable(text("iris.toml").replace(/^epochs = .*/m, "epochs = 5"))}\n[sweep.grid]\noptimizer.learning_rate = [1e-3, 1e-2]\n`.replace("[experiment]", "[experiment]\nseeds = [1, 2, 3]");
  const experiment = new Experiment(file, "reported.toml");
  const { runs } = await experiment.plan();
  assert.equal(runs.length, 6);
  const records = [];
  for (const { id } of runs) {
    const training = await experiment.train(() => {}, { run: id });
    await assert.rejects(training.record(), /has not ended yet/);
    await training.finish();
    records.push(structuredClone(await training.record()));
    await training.free();
  }
  const page = await experiment.report(records);
  writeFileSync(join(folder, "reported.toml"), file);
  execFileSync(runner, ["run", "reported.toml", "--quiet"], { cwd: folder, stdio: "pipe" });
  const expected = readFileSync(join(folder, "results/reported/report.html"), "utf8");
  // All that follows from the numbers is equal; times and machines are others.
  const time = /<td data-name="s&#x2f;run"[^>]*>[^<]*<\/td>/g;
  const sections = (of) => Object.fromEntries([...of.replaceAll(time, "").matchAll(/<section id="([^"]*)"[^>]*>([^]*?)<\/section>/g)].map(([, id, content]) => [id, content]));
  const [found, wanted] = [sections(page), sections(expected)];
  for (const id of ["answer", "curves", "effect", "verdicts", "seeds", "confusion", "classes", "mistakes", "data"]) {
    assert.ok(wanted[id], id);
    assert.equal(found[id], wanted[id], id);
  }
  // Not all runs have to be there.
  const partial = await experiment.report(records.slice(0, 2));
  assert.match(partial, /not started/);
});

test("updates and evaluations one at a time are those of a training", async () => {
  const experiment = new Experiment(text("iris.toml").replace("1e-2", "1e-3"));
  const whole = await losses(experiment);
  const training = await experiment.start();
  const info = await training.modelInfo();
  assert.deepEqual([info.step, info.classes.length, info.outputs, info.task], [0, 3, [3], "classification"]);
  assert.equal(info.network.parameters, info.network.layers.reduce((sum, { parameters }) => sum + parameters, 0));
  const { valid } = info.data;
  const found = [];
  const epochs = [];
  for (let at = 0; at < info.steps; at++) {
    const { loss, step, epoch } = await training.trainBatch();
    assert.equal(step, at + 1);
    found.push(loss);
    if (epoch) epochs.push(epoch);
  }
  assert.deepEqual(found, whole.all);
  assert.deepEqual(epochs.map(({ metrics }) => metrics), whole.epochs.map(({ metrics }) => metrics));
  assert.ok(training.isDone);
  await assert.rejects(training.trainBatch(), /the training has ended/);
  // The mean over its batches is the metric of the split.
  let right = 0;
  let items = 0;
  for (let at = 0, metrics; (metrics = await training.evalBatch(at)) !== null; at++) {
    const num = Math.min(info.batch_size, valid - items);
    right += metrics.accuracy * num;
    items += num;
  }
  assert.equal(items, valid);
  assert.ok(Math.abs(right / valid - training.history.at(-1).metrics["valid/accuracy"]) < 1e-9);
  assert.equal(await training.evalBatch(1e6), null);
});

test("PyTorch has the outputs and gradients of exported weights", { skip: python ? false : "RUNNER_PYTHON is not set" }, async (context) => {
  // A step of gradient descent with a learning rate of 1 is the gradient.
  const items = (num, from) => Array.from({ length: num }, (_, row) => Array.from({ length: 4 }, (_, column) => Math.fround(Math.sin(7 * row + 3 * column + from))));
  const classes = (of) => of.map(([a, b]) => Number(a + b > 0) + Number(a > 0.5));
  const inputs = items(40, 1);
  const targets = classes(inputs);
  const arrays = {};
  for (const [split, of] of Object.entries({ train: inputs, valid: items(20, 2) })) {
    arrays[`${split}_x.npy`] = npy("<f4", [of.length, 4], Float32Array.from(of.flat()));
    arrays[`${split}_y.npy`] = npy("<i4", [of.length], Int32Array.from(classes(of)));
  }
  for (const [name, bytes] of Object.entries(arrays)) await putFile(name, bytes);
  const experiment = new Experiment(`
[data]
type = "npy"
path = "train_x.npy"
target_path = "train_y.npy"
valid_path = "valid_x.npy"
valid_target_path = "valid_y.npy"
scale = "none"
[model]
type = "mlp"
hidden = [8]
[optimizer]
type = "sgd"
learning_rate = 1.0
[train]
epochs = 1
batch_size = 40
`);
  const training = await experiment.start();
  const exported = async (name) => {
    const path = join(folder, name);
    writeFileSync(path, await training.export("pytorch-json"));
    return path;
  };
  const before = await exported("before.json");
  const shown = [];
  for (const input of inputs) shown.push((await training.predict(input)).prediction.probabilities);
  const { loss } = await training.trainBatch();
  const after = await exported("after.json");
  writeFileSync(join(folder, "gradients.json"), JSON.stringify({ before, after, loss, shown, inputs, targets }));
  const { status, stdout, stderr } = spawnSync(python, [join(import.meta.dirname, "gradients.py"), join(folder, "gradients.json")], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  context.diagnostic(stdout.trim());
  for (const name of Object.keys(arrays)) await removeFile(name);
});

/** An array in NumPy's format. */
function npy(type, shape, values) {
  const head = `{'descr': '${type}', 'fortran_order': False, 'shape': (${shape.join(", ")},), }`;
  const padded = `${head.padEnd(117)}\n`;
  const start = Buffer.concat([Buffer.from([0x93]), Buffer.from("NUMPY"), Buffer.from([1, 0, padded.length, 0]), Buffer.from(padded)]);
  return new Uint8Array(Buffer.concat([start, Buffer.from(values.buffer)]));
}

test("a failure says what to do", async () => {
  const wild = new Experiment(text("iris.toml").replace("1e-2", "1e30"));
  await assert.rejects(wild.train(), /became infinite or NaN in epoch \d+.*lower `optimizer.learning_rate`/);
});

test("an aborted training can be continued", async () => {
  const control = new AbortController();
  const training = await new Experiment(text("digits.toml")).train(() => control.abort(), { signal: control.signal });
  assert.ok(!training.isDone && training.step > 0);
  assert.ok((await training.advance(1)).losses.length === 1);
});
