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

const web = resolve(process.env.WEB ?? "target/web");
const { Experiment, ExperimentError, putFile, removeFile, schema, starter, version } = await import(pathToFileURL(join(web, "package/index.js")));
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
const skip = runner ? false : "RUNNER is not set";
if (!runner && process.env.RUNNER_REQUIRE_PEERS === "1") throw new Error("RUNNER is required");

/** The largest accepted difference of a loss, relative to 1 or to the loss. */
const TOLERANCE = 2e-6;
/** Trainings that amplify a difference in the last bit, with what they are accepted with. */
const UNSTEADY = { "residual_cnn.toml": 1e-4, "segmentation.toml": 2e-2 };
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
  assert.ok(training.finish().evaluation.confusion.length === 2);
  training.free();
  // It is read again after it has changed.
  await putFile("mine/rows.csv", new TextEncoder().encode(`a,b,level\n${rows.slice(0, 60).join("")}`));
  const [again] = (await experiment.plan()).runs;
  assert.equal(again.data.train + again.data.valid + again.data.test, 60);
  await removeFile("mine");
  await assert.rejects(experiment.plan(), ExperimentError);
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

/** Trains the first run of a file for one epoch in the program and here. */
async function both(name, text) {
  const short = text.replace(/^epochs = .*/m, "epochs = 1").replace(/^warmup_.*/gm, "");
  writeFileSync(join(folder, name), short);
  const experiment = new Experiment(short, name);
  const { runs, experiment: called } = await experiment.plan();
  const { id } = runs[0];
  execFileSync(runner, ["run", name, "--only", id, "--quiet"], { cwd: folder, stdio: "pipe" });
  const { all: found, training } = await losses(experiment, { run: id });
  const { weights_digest } = training.finish();
  training.free();
  return { ...recorded(folder, called, id), found, weights_digest };
}

test("losses are those of the program", { skip }, async (context) => {
  for (const { name, text } of all) {
    const { found, expected } = await both(name, text);
    assert.equal(found.length, expected.length, name);
    const differences = found.map((loss, at) => difference(loss, expected[at]));
    const most = Math.max(...differences);
    context.diagnostic(`${name}: the first of ${found.length} losses differs by ${differences[0].toExponential(1)}, all by ${most.toExponential(1)}`);
    assert.ok(differences[0] <= TOLERANCE, `${name}: ${differences[0]}`);
    assert.ok(most <= (UNSTEADY[name] ?? TOLERANCE), `${name}: ${most}`);
  }
});

test("with portable arithmetic, losses and weights are those of the program to the bit", { skip }, async (context) => {
  const refused = [];
  for (const { name, text } of all) {
    const file = portable(text);
    const [problem] = (await new Experiment(file, name).check()).filter(({ severity }) => severity === "error");
    if (problem) {
      assert.match(problem.message, /portable arithmetic needs/, name);
      refused.push(name);
      continue;
    }
    const { found, expected, weights_digest, summary } = await both(name, file);
    assert.ok(found.length > 0, name);
    assert.deepEqual(found, expected, name);
    assert.equal(weights_digest, summary.weights_digest, name);
    context.diagnostic(`${name}: ${found.length} losses and the weights are equal`);
  }
  // It compares devices.
  assert.deepEqual(refused, ["devices.toml"]);
});

test("iris and digits reach their accuracy", async () => {
  for (const [name, least] of [["iris.toml", 0.9], ["digits.toml", 0.96]]) {
    const { epochs, training } = await losses(new Experiment(text(name), name));
    const { epoch, test, evaluation, weights_digest } = training.finish();
    const accuracy = epochs[epoch - 1].metrics["valid/accuracy"];
    assert.ok(accuracy >= least, `${name}: ${accuracy}`);
    assert.ok(test.test === undefined || test.test.accuracy >= least, name);
    assert.equal(evaluation.task, "classification");
    assert.match(weights_digest, /^[0-9a-f]{64}$/);
    training.free();
  }
});

test("a training resumes to the bit, in the middle of an epoch and at its end", async () => {
  const dropout = text("digits.toml").replace('pool_size = 2', 'pool_size = 2\ndropout = 0.2').replace("epochs = 12", "epochs = 2\nema.decay = 0.9");
  const experiment = new Experiment(dropout);
  const whole = await losses(experiment);
  const digest = whole.training.finish().weights_digest;
  const { steps_per_epoch: steps } = (await experiment.plan()).runs[0];
  for (const stop of [0, 7, steps, steps + 3]) {
    const first = await experiment.start();
    const all = [];
    while (first.step < stop) all.push(...first.advance(stop - first.step, 1e9).losses);
    const checkpoint = structuredClone(first.checkpoint());
    first.free();
    const rest = await losses(experiment, { checkpoint });
    assert.deepEqual([...all, ...rest.all], whole.all, `from update ${stop}`);
    assert.equal(rest.training.finish().weights_digest, digest);
  }
});

test("checkpoints that are damaged or of another run are refused", async () => {
  const experiment = new Experiment(text("iris.toml"));
  const training = await experiment.start();
  training.advance(3, 1e9);
  const good = training.checkpoint();
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
  training.finish();
  const { prediction, names } = training.predict([5.1, 3.5, 1.4, 0.2]);
  assert.equal(names.length, 3);
  assert.equal(prediction.index, 0);
  assert.ok(prediction.probability > 0.9);
  assert.throws(() => training.predict([1, 2]), /expected 4 numbers, found 2/);
  assert.throws(() => training.export("zip"), /unknown format `zip`/);
  const safetensors = training.export("safetensors");
  const size = Number(new DataView(safetensors.buffer, safetensors.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(safetensors.subarray(8, 8 + size)));
  assert.deepEqual(header["linear_1.weight"].shape, [16, 4]);
  const json = JSON.parse(new TextDecoder().decode(training.export("pytorch-json")));
  assert.equal(json.linear_1_weight.length, 16);
  const values = new DataView(safetensors.buffer, safetensors.byteOffset + 8 + size + header["linear_1.weight"].data_offsets[0]);
  assert.equal(Math.fround(json.linear_1_weight[0][1]), values.getFloat32(4, true));
  for (const format of ["onnx", "pytorch", "npz"]) assert.ok(training.export(format).length > 400, format);
});

test("a failure says what to do", async () => {
  const wild = new Experiment(text("iris.toml").replace("1e-2", "1e30"));
  await assert.rejects(wild.train(), /became infinite or NaN in epoch \d+.*lower `optimizer.learning_rate`/);
});

test("an aborted training can be continued", async () => {
  const control = new AbortController();
  const training = await new Experiment(text("digits.toml")).train(() => control.abort(), { signal: control.signal });
  assert.ok(!training.isDone && training.step > 0);
  assert.ok(training.advance(1).losses.length === 1);
});
