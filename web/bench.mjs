// The time of a training step, compared with the program.
//
//   WEB=FOLDER RUNNER=PROGRAM node web/bench.mjs [ROUNDS]
//
// Each round trains every file on the page and in the program: as it is, and with what WebAssembly has, which is vectors
// of 128 bits without fused products; one after the other. The latter is portable arithmetic, since fast products are
// those of a crate that always takes the widest vectors. The fastest epoch of each counts. With ONE_THREAD=1, all use one
// thread.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const web = resolve(process.env.WEB ?? "target/page");
const { Experiment, threads } = await import(pathToFileURL(join(web, "package/index.js")));
const rounds = Number(process.argv[2] ?? 3);
const isOne = process.env.ONE_THREAD === "1";
if (isOne) await threads(1);
const folder = mkdtempSync(join(tmpdir(), "runner-bench-"));

const rest = '[optimizer]\ntype = "adam"\nlearning_rate = 1e-3\n[train]\nepochs = 4\nbatch_size = 64\n';
const digits = '[data]\ntype = "digits"\nimage_size = "28x28"\n';
const files = {
  "MLP 784-128-10": `${digits}[model]\ntype = "mlp"\nhidden = [128]\n${rest}`,
  "CNN 8-16": `${digits}[model]\ntype = "cnn"\nchannels = [8, 16]\npool_size = 2\n${rest}`,
  "LSTM 24x24": `[data]\ntype = "sine_windows"\nlength = 24\n[model]\ntype = "lstm"\nhidden_size = 24\n${rest}`,
};

async function page(text) {
  const epochs = [];
  const training = await new Experiment(text).train(({ epoch }) => epoch && epochs.push(epoch.train_secs));
  await training.free();
  return Math.min(...epochs);
}

let number = 0;
function program(text, instructions) {
  const name = `bench${++number}`;
  writeFileSync(join(folder, `${name}.toml`), text);
  const command = [process.env.RUNNER, "run", `${name}.toml`, "--quiet"];
  if (isOne) command.unshift("taskset", "-c", "0");
  execFileSync(command[0], command.slice(1), { cwd: folder, stdio: "pipe", env: { ...process.env, ...instructions } });
  const { runs } = JSON.parse(readFileSync(join(folder, "results", name, "plan.json")));
  const events = readFileSync(join(folder, "results", name, "runs", runs[0].id, "events.jsonl"), "utf8");
  const each = events.trim().split("\n").map((line) => JSON.parse(line));
  return Math.min(...each.filter(({ event }) => event === "epoch_finished").map((of) => of.train_secs));
}

for (const [name, text] of Object.entries(files)) {
  const { runs } = await new Experiment(text).plan();
  const fastest = [Infinity, Infinity, Infinity];
  for (let round = 0; round < rounds; round++) {
    const alike = `${text}[backend]\narithmetic = "portable"\n`;
    const secs = [await page(text), program(text, {}), program(alike, { RUNNER_SIMD: "baseline" })];
    secs.forEach((secs, of) => (fastest[of] = Math.min(fastest[of], (1000 * secs) / runs[0].steps_per_epoch)));
  }
  const [of, whole, narrow] = fastest;
  const columns = [...fastest.map((ms) => `${ms.toFixed(2)} ms`), (of / whole).toFixed(2), (of / narrow).toFixed(2)];
  console.log(`| ${name} | ${columns.join(" | ")} |`);
}
