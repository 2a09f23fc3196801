// The page: the file, its plan, the training of one run, and what comes of it.

import { call, on } from "./engine.js";
import * as editor from "./editor.js";
import { draw } from "./charts.js";
import { make, size } from "./elements.js";
import * as files from "./files.js";
import { start as startPad } from "./pad.js";
import * as store from "./store.js";
import * as sweep from "./sweep.js";
import { trapped } from "./traps.js";

const $ = (selector) => document.querySelector(selector);
const SAVE_EVERY_MS = 2000;
const SHOW_EVERY_MS = 100;
const CHECK_AFTER_MS = 150;

/** The run that is trained: `phase` is idle, starting, running, paused or finished. */
const state = { phase: "idle", plan: null, name: "experiment.toml", losses: [], epochs: [], run: null, finished: null };

function status(text) {
  $("#status").textContent = text;
}

// The file.

let checks = 0;
async function check() {
  const number = ++checks;
  const checked = await call("check", { text: editor.text(), name: state.name });
  if (number !== checks) return;
  state.plan = checked.plan;
  editor.mark(checked.diagnostics);
  showProblems(checked.diagnostics);
  showRuns();
  showControls();
}

function showProblems(diagnostics) {
  const shown = diagnostics.map((diagnostic) => {
    const box = make("div", {}, make("pre", { textContent: diagnostic.text, tabIndex: 0 }));
    if (diagnostic.line !== null) {
      const go = make("button", { type: "button", textContent: `Go to line ${diagnostic.line}` });
      go.addEventListener("click", () => editor.show(diagnostic));
      box.append(go);
    }
    return box;
  });
  $("#problems").replaceChildren(...(shown.length ? shown : ["None."]));
}

function showRuns() {
  const select = $("#run");
  const before = select.value;
  const runs = state.plan?.runs ?? [];
  select.replaceChildren(...runs.map(({ id }) => make("option", { value: id, textContent: id })));
  if (runs.some(({ id }) => id === before)) select.value = before;
  showRun();
  showSweep();
}

const chosenRun = () => state.plan?.runs.find(({ id }) => id === $("#run").value) ?? null;

function showRun() {
  const run = chosenRun();
  if (!run) {
    $("#summary").textContent = "The file has errors.";
    $("#device").textContent = "";
    $("#compare-box").hidden = true;
    $("#network").replaceChildren();
    return;
  }
  showDevice(run);
  const { data, network } = run;
  const number = (value) => value.toLocaleString("en");
  $("#summary").textContent =
    `${data.name}: ${number(data.train)} train, ${number(data.valid)} valid and ${number(data.test)} test items; ` +
    `${run.epochs} epochs of ${number(run.steps_per_epoch)} updates; ${number(network.parameters)} parameters. ` +
    (state.plan.notices ?? []).join(" ");
  const row = (name, type, shape, inputs, parameters) =>
    make("li", {},
      make("span", { textContent: (name === type || /_\d+$/.test(name) ? name : `${name} (${type})`) + inputs }),
      make("span", { className: "shape", textContent: `[${shape.join(", ")}]${parameters ? ` ${number(parameters)}` : ""}` }));
  let previous = "input";
  const layers = network.layers.map((layer) => {
    const isChain = layer.inputs.length === 1 && layer.inputs[0] === previous;
    previous = layer.name;
    return row(layer.name, layer.type, layer.shape, isChain ? "" : ` from ${layer.inputs.join(", ")}`, layer.parameters);
  });
  $("#network").replaceChildren(make("ol", {}, row("input", "input", network.shape, "", 0), ...layers));
  showTry(run);
}

// Its device.

/** The browser's GPU, or why there is none. */
const asked = call("gpu");

/** The threads that train, once they have started. */
let threads = null;

async function startThreads() {
  threads = await call("threads");
  if (threads.failures) {
    new BroadcastChannel(threads.failures).onmessage = ({ data }) => failed(new Error(trapped(data)));
  }
  if (chosenRun()) showDevice(chosenRun());
}

async function showDevice(run) {
  const found = await asked;
  if (run !== chosenRun()) return;
  const on = !threads ? "" : threads.reason ? `, on one thread: ${threads.reason}` : `, on ${threads.count} threads`;
  const isMissing = "reason" in found;
  const gpu = isMissing ? `wgpu is not available: ${found.reason}.` : `With backend.device = "wgpu" it trains on ${found.name}.`;
  const here = run.device === "wgpu" ? `Trains on wgpu, the GPU: ${found.name}.` : `Trains on ${run.device}, the processor${on}. ${gpu}`;
  $("#device").textContent = run.skipped ? `This run is skipped: ${run.skipped}` : here;
  $("#compare-box").hidden = isMissing;
}

$("#compare").addEventListener("click", async () => {
  const run = chosenRun();
  if (!run) return;
  $("#compare").disabled = true;
  $("#compared").textContent = `Training ${run.id} for some updates on both`;
  try {
    const { updates, flex, wgpu } = await call("compare", { text: editor.text(), name: state.name, run: run.id });
    const [before, after] = flex.map((loss, at) => {
      const difference = Math.abs(loss - wgpu[at]) / Math.max(1, Math.abs(loss));
      return `${loss.toPrecision(7)} on flex and ${wgpu[at].toPrecision(7)} on wgpu, difference ${difference.toExponential(1)}`;
    });
    $("#compared").textContent = `Loss of the first valid batch: ${before}; after ${updates} updates: ${after}.`;
  } catch (error) {
    $("#compared").textContent = error.message;
  }
  $("#compare").disabled = false;
});

// The training.

function showControls() {
  const { phase } = state;
  $("#train").textContent = phase === "paused" ? "Resume" : phase === "finished" ? "Train again" : "Train";
  $("#train").disabled = ["starting", "running"].includes(phase) || (phase !== "paused" && !state.plan);
  $("#pause").disabled = phase !== "running";
  $("#stop").disabled = ["idle", "starting"].includes(phase);
  $("#sweep-train").disabled = (state.plan?.runs.length ?? 0) < 2 || sweep.isRunning();
  for (const button of document.querySelectorAll("[data-format], #losses-file")) button.disabled = ["idle", "starting"].includes(phase);
  $("#report-file").disabled = phase !== "finished" || state.isOpened;
  $("#capsule-file").disabled = phase !== "finished" || state.isOpened;
}

function enter(phase) {
  state.phase = phase;
  showControls();
  document.body.dataset.phase = phase;
}

async function train() {
  try {
    if (state.phase !== "paused") {
      const run = chosenRun();
      const { name } = state;
      const text = editor.text();
      if (run.skipped) return status(`${run.id} is skipped: ${run.skipped}`);
      Object.assign(state, { run, trained: text, trainedName: name, losses: [], epochs: [], finished: null, isOpened: false });
      enter("starting");
      await call("start", { text, name, run: run.id });
      showNumbers();
      $("#confusion").replaceChildren();
      $("#mistakes").replaceChildren();
    }
    enter("running");
    status("Training");
    await call("train");
  } catch (error) {
    failed(error);
  }
}

function failed(error) {
  enter(state.losses.length ? "paused" : "idle");
  status(`Failed: ${error.message}`);
}
on("failed", failed);

let lastShown = 0;
let lastSaved = performance.now();
let isBusy = false;
on("advanced", async ({ losses, step, steps, epoch, is_done }) => {
  for (const loss of losses) state.losses.push(loss);
  if (epoch) state.epochs.push(epoch);
  const now = performance.now();
  if (now - lastShown > SHOW_EVERY_MS || is_done) {
    lastShown = now;
    showNumbers();
    status(`Training: update ${step.toLocaleString("en")} of ${steps.toLocaleString("en")}`);
  }
  if (is_done) return finish().catch(failed);
  if (isBusy || state.phase !== "running") return;
  isBusy = true;
  try {
    if (epoch) await showErrors(await call("errors"));
    if (epoch) await predict();
    if (now - lastSaved > SAVE_EVERY_MS) await save();
  } catch (error) {
    if (state.phase === "running") status(error.message);
  } finally {
    isBusy = false;
  }
});

async function finish() {
  state.finished = await call("finish");
  await showErrors(state.finished.evaluation);
  enter("finished");
  showFinished();
  await predict();
  await save();
}

function showFinished(what = "Finished") {
  const { epoch, test, weights_digest } = state.finished;
  const name = state.run.objective.split("/").pop();
  const best = state.epochs[epoch - 1]?.metrics[state.run.objective];
  const of = Object.entries(test).filter(([, metrics]) => name in metrics);
  const tests = of.map(([split, metrics]) => `, ${split}/${name} ${metrics[name].toFixed(4)}`).join("");
  status(`${what}: best epoch ${epoch}, ${state.run.objective} ${best?.toFixed(4)}${tests}. Digest of the weights: ${weights_digest?.slice(0, 16)}`);
}

async function pause() {
  await call("pause");
  enter("paused");
  status("Paused");
  await save();
}

async function discard() {
  enter("idle");
  await saving.catch(() => {});
  await call("discard");
  await store.remove("run");
  Object.assign(state, { losses: [], epochs: [], run: null, finished: null, isOpened: false });
  showNumbers();
  showErrors(null);
  status("");
}

/** Saves one after the other: an older state never replaces a newer one. */
let saving = Promise.resolve();
function save() {
  saving = saving.then(saveNow, saveNow);
  return saving;
}

async function saveNow() {
  if (["idle", "starting"].includes(state.phase) || state.isOpened) return;
  const checkpoint = await call("checkpoint");
  // The losses that belong to it: later ones have arrived since.
  const { losses, epochs, run, trained, trainedName: name, finished, phase } = state;
  const step = JSON.parse(checkpoint.state);
  const num = step.epochs_done * run.steps_per_epoch + step.steps_in_epoch;
  const problem = await store.save("run", {
    checkpoint, run, text: trained, name, finished, phase,
    losses: Float64Array.from(losses.slice(0, num)), epochs: epochs.slice(0, step.epochs_done),
  });
  lastSaved = performance.now();
  document.body.dataset.saved = String(num);
  if (problem) status(`The state is not saved: ${problem}`);
}

async function restore() {
  const saved = await store.load("run");
  if (!saved) return false;
  state.name = saved.name;
  $("#choice").value = saved.name;
  editor.setText(saved.text);
  try {
    const { text, name, run, checkpoint } = saved;
    await call("start", { text, name, run: run.id, checkpoint });
  } catch (error) {
    status(`The saved training cannot be resumed: ${error.message}`);
    return true;
  }
  const { run, finished, text } = saved;
  Object.assign(state, { run, finished, trained: text, trainedName: saved.name, losses: [...saved.losses], epochs: saved.epochs });
  await check();
  $("#run").value = run.id;
  showRun();
  showNumbers();
  if (saved.phase === "finished") {
    await finish();
  } else {
    enter("paused");
    status(`Paused at update ${state.losses.length.toLocaleString("en")}, as it was saved`);
    await showErrors(await call("errors"));
  }
  return true;
}

// All runs of a sweep.

function showSweep() {
  const { plan } = state;
  const runs = plan?.runs ?? [];
  $("#sweep-box").hidden = runs.length < 2 && !sweep.isRunning();
  $("#sweep-stop").disabled = !sweep.isRunning();
  const first = plan?.is_search ? " They are the first round of the search; `runner run` suggests the others from their results." : "";
  $("#sweep-about").textContent = `${runs.length.toLocaleString("en")} runs of ${new Set(runs.map(({ trial }) => trial)).size.toLocaleString("en")} trials, trained several at a time. They are not saved.${first}`;
}
$("#sweep-train").addEventListener("click", async () => {
  const trained = sweep.train(editor.text(), state.name, state.plan);
  $("#sweep-file").disabled = false;
  $("#sweep-report").disabled = false;
  showSweep();
  showControls();
  await trained.catch((error) => status(error.message));
  showSweep();
  showControls();
});
$("#sweep-stop").addEventListener("click", sweep.stop);
$("#sweep-file").addEventListener("click", () => download("runs.csv", sweep.csv(), "text/csv"));
$("#sweep-report").addEventListener("click", () => downloadReport(sweep.records()));

/** The report of records, or of the training, as a file. */
async function downloadReport(of) {
  try {
    download("report.html", [await call("report", of)], "text/html");
  } catch (error) {
    status(error.message);
  }
}

// Its numbers.

function showNumbers() {
  const { losses, epochs, run } = state;
  const steps = run?.steps ?? 1;
  $("#progress").value = losses.length / steps;
  draw($("#losses"), [{ name: "loss", points: losses.map((loss, at) => [at + 1, loss]) }], steps);
  const objective = run?.objective ?? "";
  const other = objective.replace(/^valid\w*\//, "train/");
  const line = (name) => ({ name: name.split("/")[0], points: epochs.filter(({ metrics }) => name in metrics).map(({ epoch, metrics }) => [epoch, metrics[name]]) });
  $("#objective-title").textContent = objective || "Objective";
  draw($("#objective"), [line(objective), line(other)].filter(({ points }) => points.length), run?.epochs ?? 1);
  const names = Object.keys(epochs.at(-1)?.metrics ?? {});
  const head = make("tr", {}, ...["epoch", ...names].map((name) => make("th", { scope: "col", textContent: name })));
  const rows = epochs.toReversed().slice(0, 50).map(({ epoch, metrics }) =>
    make("tr", {}, make("th", { scope: "row", textContent: epoch }), ...names.map((name) => make("td", { textContent: metrics[name]?.toPrecision(5) ?? "" }))));
  $("#epochs").replaceChildren(...(epochs.length ? [make("thead", {}, head), make("tbody", {}, ...rows)] : []));
}

async function showErrors(errors) {
  const classes = errors?.classes ?? [];
  const corner = make("td", { textContent: "true \\ predicted" });
  const head = make("tr", {}, corner, ...classes.map((name) => make("th", { scope: "col", textContent: name })));
  const rows = (errors?.confusion ?? []).map((counts, row) =>
    make("tr", {}, make("th", { scope: "row", textContent: classes[row] }), ...counts.map((count, column) =>
      make("td", { textContent: count || "", className: row === column ? "right" : count ? "wrong" : "" }))));
  $("#confusion").replaceChildren(...(rows.length ? [make("thead", {}, head), make("tbody", {}, ...rows)] : []));
  const mistakes = (errors?.mistakes ?? []).map(({ target, predicted, loss, where, picture }) => {
    const item = make("li");
    if (picture) item.append(make("img", { src: picture, alt: `item ${where}` }));
    item.append(`${target} predicted as ${predicted}, loss ${loss.toFixed(2)} (${where})`);
    return item;
  });
  $("#mistakes").replaceChildren(...mistakes);
}

// Predictions of what is drawn or typed.

let item = null;
function showTry(run) {
  const { shape } = run.data;
  const isImage = shape.length === 3 && shape[0] === 1 && shape[1] === shape[2] && run.data.name === "digits";
  // The columns of a table are not the numbers that the network gets.
  const isTable = ["csv", "json_lines", "parquet"].includes(run.data.name);
  const isRow = shape.length === 1 && shape[0] <= 32 && !isTable;
  $("#try").hidden = !(isImage || isRow);
  $("#pad-box").hidden = !isImage;
  $("#fields").hidden = !isRow;
  const key = shape.join();
  if ($("#try").dataset.shape === key) return;
  $("#try").dataset.shape = key;
  item = null;
  $("#prediction").replaceChildren();
  if (isImage) startPad($("#pad"), $("#clear"), shape[1], (pixels) => { item = pixels; predict(); });
  if (isRow) {
    const first = run.data.name === "iris" ? [5.1, 3.5, 1.4, 0.2] : shape.map(() => 0);
    const fields = Array.from({ length: shape[0] }, (_, at) => make("input", { type: "number", step: "any", value: first[at] ?? 0 }));
    const read = () => { item = fields.map(({ value }) => Number(value)); predict(); };
    fields.forEach((field) => field.addEventListener("input", read));
    $("#fields").replaceChildren(...fields.map((field, at) => make("label", {}, `Feature ${at + 1} `, field)));
    item = fields.map(({ value }) => Number(value));
  }
}

async function predict() {
  const run = chosenRun();
  if (!item || ["idle", "starting"].includes(state.phase) || !run || run.data.shape.join() !== state.run?.data.shape.join()) return;
  const predicted = await call("predict", { item }).catch((error) => ({ error }));
  if (!predicted) return;
  if (predicted.error) return $("#prediction").replaceChildren(make("li", { textContent: predicted.error.message }));
  const { prediction, names } = predicted;
  const lines = prediction.probabilities
    ? prediction.probabilities.map((probability, at) => [names[at] ?? at, probability]).sort((a, b) => b[1] - a[1]).slice(0, 5).map(([name, probability]) => `${name}: ${(100 * probability).toFixed(1)} %`)
    : (prediction.values ?? []).map((value, at) => `${names[at] ?? at}: ${value.toPrecision(5)}`);
  $("#prediction").replaceChildren(...lines.map((textContent) => make("li", { textContent })));
}

// Files.

function download(name, parts, type = "application/octet-stream") {
  const link = make("a", { href: URL.createObjectURL(new Blob(parts, { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

for (const button of document.querySelectorAll("[data-format]")) {
  button.addEventListener("click", async () => {
    try {
      download(`${state.run.id}-${button.dataset.file}`, [await call("export", { format: button.dataset.format })]);
    } catch (error) {
      status(error.message);
    }
  });
}
$("#capsule-file").addEventListener("click", async () => {
  try {
    const { name, bytes } = await call("capsule");
    download(name, [bytes], "application/zstd");
  } catch (error) {
    status(error.message);
  }
});
$("#report-file").addEventListener("click", () => downloadReport({ text: state.trained, name: state.trainedName }));
$("#losses-file").addEventListener("click", () => {
  const rows = state.losses.map((loss, at) => `${at + 1},${loss}\n`);
  download(`${state.run.id}-losses.csv`, ["step,loss\n", ...rows], "text/csv");
});
$("#text-file").addEventListener("click", () => download(state.name, [editor.text()], "application/toml"));

// The start.

$("#train").addEventListener("click", train);
$("#pause").addEventListener("click", () => pause().catch(failed));
$("#stop").addEventListener("click", discard);
$("#run").addEventListener("change", showRun);
addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden" && state.phase === "running") save().catch(() => {});
});

// Files from this machine: they are read here, and sent nowhere.
const MOST_BYTES = 1 << 20;
async function open(file) {
  if (file.size > MOST_BYTES) return status(`${file.name} has ${file.size.toLocaleString("en")} bytes; an experiment file has at most ${MOST_BYTES.toLocaleString("en")}`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    state.name = file.name;
    editor.setText(text);
    status(`Opened ${file.name}`);
  } catch (error) {
    status(`${file.name} cannot be read as UTF-8 text: ${error.message}`);
  }
}

const MOST_CAPSULE_BYTES = 256 << 20;
/** Shows the run of a capsule in place of a training, which is saved. */
async function openCapsule(file) {
  if (file.size > MOST_CAPSULE_BYTES) return status(`${file.name} of ${size(file.size)} cannot be opened: the page opens capsules of at most ${size(MOST_CAPSULE_BYTES)}`);
  if (state.phase === "starting") return status(`${file.name} is not opened while a training starts`);
  try {
    if (state.phase === "running") await pause();
    const bytes = new Uint8Array(await file.arrayBuffer());
    const { experiment, run, outcome, losses, history, finished } = await call("open", { name: file.name, bytes }, [bytes.buffer]);
    Object.assign(state, { run, finished, losses, epochs: history, isOpened: true });
    showNumbers();
    await showErrors(finished.evaluation);
    enter("finished");
    showFinished(`Opened run ${run.id} of ${experiment} (${outcome})`);
  } catch (error) {
    status(error.message);
  }
}

/** Experiment files and capsules are opened; everything else is data. */
async function take(given) {
  const isExperiment = ({ path }) => /^[^/]+\.toml$/i.test(path);
  const isCapsule = ({ path }) => /\.capsule\.tar\.zst$/i.test(path);
  const data = given.filter((of) => !isExperiment(of) && !isCapsule(of));
  try {
    if (data.length > 0 || given.length === 0) status(await files.add(data));
  } catch (error) {
    status(error.message);
  }
  const experiment = given.find(isExperiment);
  if (experiment) await open(experiment.file);
  const capsule = given.find(isCapsule);
  if (capsule) await openCapsule(capsule.file);
}
for (const input of [$("#file"), $("#data-files"), $("#data-folder")]) {
  input.addEventListener("change", async () => {
    const given = files.chosen(input);
    await take(given);
    // So that the same file can be chosen again after it was changed.
    input.value = "";
  });
}
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", async (event) => {
  event.preventDefault();
  await take(await files.dropped(event.dataTransfer));
});
files.onChange({
  changed: () => check().catch(failed),
  async write(path) {
    try {
      const text = await call("starter", { path });
      state.name = `${path.replace(/\.[^.]*$/, "")}.toml`;
      editor.setText(text);
      status(`Wrote an experiment on ${path}`);
    } catch (error) {
      status(error.message);
    }
  },
});

let timer;
editor.onChange(() => {
  // Until it is checked, the plan is that of another text.
  state.plan = null;
  showControls();
  clearTimeout(timer);
  timer = setTimeout(() => check().catch(failed), CHECK_AFTER_MS);
});

const experiments = await (await fetch("experiments.json")).json();
$("#choice").replaceChildren(...experiments.map(({ name, question }) => make("option", { value: name, textContent: question ? `${name}: ${question}` : name })));
function openExample() {
  const chosen = experiments.find(({ name }) => name === $("#choice").value);
  state.name = chosen.name;
  editor.setText(chosen.text);
}
$("#open").addEventListener("click", openExample);
$("#choice").addEventListener("change", openExample);
enter("idle");
try {
  await files.restore();
  if (!(await restore())) openExample();
  await check();
  $("#version").textContent = await call("version");
  editor.useSchema(await call("schema"));
  document.body.dataset.ready = "true";
  // While the file is read. If this fails, the training says why.
  await startThreads().catch(() => {});
} catch (error) {
  status(error.message);
}
