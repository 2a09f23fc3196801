// Experiments of burn-runner on WebAssembly: the code of the command line, for browsers and Node.

import { isNode, open as openThreads } from "./threads.js";

/** Updates between two events take about this long. */
const SLICE_SECS = 0.03;

/** The smallest module that needs SIMD. */
const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];

/** A WebAssembly module beside this file, with a memory of its own. It is loaded once, when it is needed. */
class Module {
  #name;
  #loading;

  constructor(name) {
    this.#name = name;
  }

  /** Its functions; `source` replaces the file beside this one. */
  load(source) {
    this.#loading ??= this.#load(source);
    // It can be loaded later, when the server answers again.
    this.#loading.catch(() => (this.#loading = undefined));
    return this.#loading;
  }

  async #load(source) {
    if (!WebAssembly.validate(Uint8Array.from(SIMD))) {
      throw new Error("WebAssembly has no SIMD here; use Chrome 91, Firefox 89, Safari 16.4, Node 20 or later");
    }
    const functions = await import(`./${this.#name}.js`);
    if (source === undefined && isNode) {
      const { readFile } = await import("node:fs/promises");
      source = await readFile(new URL(`${this.#name}_bg.wasm`, import.meta.url));
    }
    await functions.default(source === undefined ? undefined : { module_or_path: source });
    return functions;
  }
}

/** Checks and plans; trains on the processor; does so on several threads; trains on WebGPU; makes files of trainings. */
const modules = {
  plan: new Module("runner_plan"),
  train: new Module("runner_train"),
  threads: new Module("runner_threads"),
  gpu: new Module("runner_gpu"),
  files: new Module("runner_files"),
};

/**
 * Loads modules before they are needed. By default they are next to this file.
 * @param {"plan" | "train" | "threads" | "gpu" | "files"} part
 * @param {BufferSource | WebAssembly.Module} [module]
 */
export async function load(part = "plan", module) {
  await modules[part].load(module);
}

/** Files that were added or removed (without bytes) since a module was told, by path and in order. */
class Changes {
  #waiting = new Map();

  add(path, bytes) {
    if (bytes === null) {
      const inside = [...this.#waiting.keys()].filter((of) => of.startsWith(`${path}/`));
      inside.forEach((of) => this.#waiting.delete(of));
    }
    this.#waiting.delete(path);
    this.#waiting.set(path, bytes);
  }

  tell({ put_file, remove_file }) {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [path, bytes] of waiting) {
      if (bytes === null) remove_file(path);
      else put_file(path, bytes);
    }
  }
}
const changes = { plan: new Changes(), train: new Changes() };

/** The threads that train on the processor, once they were asked for. */
let opened;

/**
 * Starts the threads that train on the processor, before the first training. Those that were started stay.
 * @param {number} [wanted] by default one for each processor
 * @returns {Promise<{ count: number, reason?: string, failures?: string }>} why it is one; the name of the channel
 *   (`BroadcastChannel`) with the message of a thread that failed, for which a training waits forever
 */
export async function threads(wanted) {
  if (wanted !== undefined && !(Number.isInteger(wanted) && wanted > 0)) {
    throw new RangeError(`expected a number of threads, found ${wanted}`);
  }
  opened ??= openThreads(modules.threads, wanted);
  return opened;
}

/** A GPU that does not answer within this time counts as none. */
const GPU_ANSWERS_MS = 3000;

/** What is known of the browser's GPU, which is the device `wgpu`. */
let asked;

/**
 * The browser's GPU: its name and whether a driver emulates it, or why there is none and what helps.
 * @returns {Promise<{ name: string, isSoftware: boolean } | { reason: string, remedy: string }>}
 */
export function gpu() {
  asked ??= askForGpu();
  return asked;
}

async function askForGpu() {
  const none = (reason, remedy = "use `flex`, the processor, or train the file with `runner run`") => ({ reason, remedy });
  const api = globalThis.navigator?.gpu;
  if (!api) {
    const secure = globalThis.isSecureContext === false ? "serve the page over https or from localhost" : undefined;
    return none("there is no WebGPU here", secure);
  }
  if (typeof WebAssembly.Suspending !== "function" || typeof WebAssembly.promising !== "function") {
    return none("WebAssembly cannot wait for WebGPU here, since the browser has no JavaScript Promise Integration");
  }
  const late = new Promise((resolve) => setTimeout(resolve, GPU_ANSWERS_MS, "late"));
  try {
    const adapter = await Promise.race([api.requestAdapter({ powerPreference: "high-performance" }), late]);
    if (adapter === "late") return none("WebGPU did not answer");
    if (!adapter) return none("WebGPU has no GPU that it supports here");
    const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info;
    const name = description || [vendor, device || architecture].filter(Boolean).join(" ") || "a GPU that is not named";
    return { name: `WebGPU, ${name}`, isSoftware: Boolean(isFallbackAdapter) };
  } catch (error) {
    return none(`WebGPU failed: ${error.message}`);
  }
}

/** The module that checks and plans, with all files and the devices. */
async function planner() {
  const [functions, found] = await Promise.all([modules.plan.load(), gpu()]);
  changes.plan.tell(functions);
  if (!planned) {
    planned = true;
    if ("reason" in found) functions.missing_gpu(found.reason, found.remedy);
    else functions.found_gpu(found.name, found.isSoftware);
  }
  return functions;
}
let planned = false;

/** The module that has the files of trainings. */
let holder;

/** The module that trains on a device, with all files. Those of a training stay as they are until the next one starts. */
async function trainer(device) {
  const part = device === "wgpu" ? "gpu" : (await threads()).count > 1 ? "threads" : "train";
  const functions = await modules[part].load();
  if (part === "gpu") {
    const found = await gpu();
    if ("reason" in found) throw new Error(`${found.reason}; ${found.remedy}`);
    await named(() => functions.open_gpu(found.name));
  }
  if (holder && holder !== part) {
    const from = await modules[holder].load();
    for (const path of functions.file_paths()) functions.remove_file(path);
    for (const path of from.file_paths()) functions.put_file(path, from.read_file(path));
  }
  holder = part;
  changes.train.tell(functions);
  return functions;
}

/** The JSON schema of experiment files. */
export async function schema() {
  return JSON.parse((await planner()).schema());
}

/** The version of burn-runner. */
export async function version() {
  return (await planner()).version();
}

/**
 * Adds a file that experiment files can name, or replaces it.
 * @param {string} path from the folder of the experiment file
 * @param {Uint8Array} bytes
 * @param {("plan" | "train")[]} [parts] who reads it; a worker that only calls `startRun` needs it to train alone
 */
export async function putFile(path, bytes, parts = ["plan", "train"]) {
  const copy = Uint8Array.from(bytes);
  for (const part of parts) changes[part].add(path, copy);
}

/** Removes a file, or all files of a folder. */
export async function removeFile(path) {
  for (const of of Object.values(changes)) of.add(path, null);
}

/** The text of a first experiment file for a file or folder that was added, with a comment on every line. */
export async function starter(path) {
  const { starter } = await planner();
  return named(() => starter(path));
}

/** An experiment file that is wrong, with all messages about it. */
export class ExperimentError extends Error {
  constructor(diagnostics) {
    super(diagnostics.map((diagnostic) => diagnostic.text).join("\n\n"));
    this.name = "ExperimentError";
    this.diagnostics = diagnostics;
  }
}

/** An experiment file. */
export class Experiment {
  /**
   * @param {string} text the file
   * @param {string} [name] its name in messages; an experiment without a name is called like it
   */
  constructor(text, name = "experiment.toml") {
    this.text = text;
    this.name = name;
  }

  /** All messages about the file; warnings alone do not prevent a training. */
  async check() {
    return JSON.parse((await planner()).check(this.text, this.name));
  }

  /** The runs, with the shapes of their networks. Throws an ExperimentError. */
  async plan() {
    return JSON.parse(await this.#planned("plan"));
  }

  async #planned(what, ...args) {
    const functions = await planner();
    try {
      return functions[what](this.text, this.name, ...args);
    } catch (wrong) {
      if (typeof wrong !== "string") throw wrong;
      throw wrong.startsWith("[") ? new ExperimentError(JSON.parse(wrong)) : new Error(wrong);
    }
  }

  /**
   * A run with everything resolved: a text that `startRun` trains, also in another worker.
   * @param {string} [run] its id; by default the first run
   */
  async resolve(run) {
    return this.#planned("run_json", run ?? (await this.plan()).runs[0].id);
  }

  /**
   * A run before its first update, or as a checkpoint left it.
   * @param {string} [run] its id; by default the first run
   */
  async start(run, checkpoint) {
    return startRun(await this.resolve(run), checkpoint);
  }

  /**
   * The report of trainings of its runs, as `runner report` writes it: an HTML page.
   * @param {{ about: string, files: [string, Uint8Array][] }[]} records from `Training.record`
   */
  async report(records) {
    const plan = await this.#planned("plan_json");
    const made = await modules.files.load();
    return named(() => {
      const report = new made.Report(plan);
      for (const { about, files } of records) {
        for (const [name, bytes] of files) report.add(name, bytes);
        report.add_run(about, ...now());
      }
      return report.html();
    });
  }

  /**
   * Trains a run to its end; `onEvent` is called after each slice of updates and each epoch.
   * @returns {Promise<Training>} which predicts and exports
   */
  async train(onEvent = () => {}, { run, checkpoint, signal } = {}) {
    const training = await this.start(run, checkpoint);
    await training.run(onEvent, signal);
    return training;
  }
}

/** The last call of a training. */
let last = Promise.resolve();

/** Calls a training when all calls before have returned: on a GPU, WebAssembly waits for results in one call at a time. */
function next(call) {
  const called = last.then(() => named(call));
  last = called.catch(() => {});
  return called;
}

/** The device of a run; none if it is not a run, which the module says. */
function deviceOf(run) {
  try {
    return JSON.parse(run).device;
  } catch {
    return undefined;
  }
}

/**
 * A run before its first update, or as a checkpoint left it.
 * @param {string} run from `Experiment.resolve`
 */
export async function startRun(run, checkpoint) {
  const functions = await trainer(deviceOf(run));
  const { Session, Checkpoint } = functions;
  const session = await next(async () => {
    const session = await Session.start(run);
    if (!checkpoint) return session;
    const { model, optimizer, scheduler, best, losses, digests, state } = checkpoint;
    return session.resume(new Checkpoint(model, optimizer, scheduler, best, losses, digests, state));
  });
  return new Training(session, functions);
}

/**
 * The loss of a run on both devices: of the first valid batch before training and after some updates.
 * @param {string} run from `Experiment.resolve`
 * @returns {Promise<{ updates: number, flex: number[], wgpu: number[] }>}
 */
export async function compareDevices(run, updates = 10) {
  const plan = JSON.parse(run);
  const losses = {};
  let done = 0;
  for (const device of ["flex", "wgpu"]) {
    const training = await startRun(JSON.stringify({ ...plan, device }));
    try {
      losses[device] = [(await training.evalBatch()).loss];
      while (training.step < updates && !training.isDone) await training.advance(updates - training.step, Infinity);
      losses[device].push((await training.evalBatch()).loss);
      done = training.step;
    } finally {
      await training.free();
    }
  }
  return { updates: done, ...losses };
}

/** A run in training, or after it. */
export class Training {
  #session;
  #functions;

  /** Updates so far. */
  step;
  /** Whether the training has ended. */
  isDone;
  /** The finished epochs. */
  history;

  constructor(session, functions) {
    this.#session = session;
    this.#functions = functions;
    this.history = JSON.parse(session.history());
    this.#look();
  }

  #look() {
    this.step = this.#session.step;
    this.isDone = this.#session.is_done;
  }

  async #advance(updates, secs) {
    const event = JSON.parse(await this.#session.advance(Math.min(updates, 2 ** 31), secs));
    if (event.epoch) this.history = JSON.parse(this.#session.history());
    this.#look();
    return event;
  }

  /** At most `updates` updates, no further than the end of an epoch. Throws the failure of the run. */
  advance(updates = Infinity, secs = SLICE_SECS) {
    return next(() => this.#advance(updates, secs));
  }

  /** Trains until the end, or until `signal` aborts it; other tasks of the thread run between slices. */
  async run(onEvent = () => {}, signal) {
    while (!this.isDone && !signal?.aborted) {
      onEvent(await this.advance());
      await turn();
    }
    return this.isDone;
  }

  /** The next update of the plan: its loss, and the finished epoch if it was its last update. */
  trainBatch() {
    return next(async () => {
      // It may have been left between the last update of an epoch and its validation.
      if (this.#session.is_epoch_over) await this.#advance(1, Infinity);
      if (this.isDone) throw new Error("the training has ended");
      const { losses, step } = await this.#advance(1, Infinity);
      const { epoch } = this.#session.is_epoch_over ? await this.#advance(1, Infinity) : { epoch: null };
      return { loss: losses[0], step, epoch };
    });
  }

  /** The metrics of the current weights on a batch of the valid split, from 0; null after the last one. */
  evalBatch(at = 0) {
    return next(async () => JSON.parse(await this.#session.evaluate_batch(at)));
  }

  /** The network, its task and its data. */
  modelInfo() {
    return next(() => ({ ...JSON.parse(this.#session.info()), step: this.step }));
  }

  /** The state, from which `Experiment.start` resumes to the bit: plain data that IndexedDB can store. */
  checkpoint() {
    return next(async () => {
      const saved = await this.#session.checkpoint();
      const { model, optimizer, scheduler, best, losses, digests, state } = saved;
      saved.free();
      return { model, optimizer, scheduler, best, losses, digests, state };
    });
  }

  /** The confusion matrix and the worst mistakes of the current weights, where the task has them. */
  errors() {
    return next(async () => JSON.parse(await this.#session.errors()));
  }

  /** Evaluates the best weights, which predict and are exported from then on. */
  finish() {
    return next(async () => JSON.parse(await this.#session.finish()));
  }

  /** The prediction for an item: its numbers in the units of the data. */
  predict(item) {
    return next(async () => JSON.parse(await this.#session.predict(Float32Array.from(item))));
  }

  /** A file of the weights: "safetensors", "pytorch", "pytorch-json", "npz" or "onnx". */
  async export(format) {
    const [run, weights] = await next(async () => [this.#session.run(), await this.#session.weights()]);
    const { write_weights } = await modules.files.load();
    return named(() => write_weights(run, weights, format));
  }

  /** What was recorded, with the weights and the paths of the data's files if it is whole. */
  #recorded(isWhole) {
    return next(async () => {
      const recorded = await this.#session.record(isWhole);
      const files = recorded.names.map((name, at) => [name, recorded.take(at)]);
      const { about, data } = recorded;
      recorded.free();
      return { about, files, data };
    });
  }

  /** The run with its data in a file, from which `runner reproduce` trains it again; for a training that has ended. */
  async capsule() {
    const { about, files, data } = await this.#recorded(true);
    const { Capsule } = await modules.files.load();
    return named(() => {
      const capsule = new Capsule(about);
      for (const [name, bytes] of files) capsule.add(name, bytes);
      for (const path of data) capsule.add_data(path, this.#functions.read_file(path));
      const { name } = capsule;
      return { name, bytes: capsule.pack(...now()) };
    });
  }

  /** What `Experiment.report` needs of a training that has ended: plain data. */
  async record() {
    const { about, files } = await this.#recorded(false);
    return { about, files };
  }

  /** Frees its memory. */
  free() {
    return next(() => this.#session.free());
  }
}

/** The time, in milliseconds and as text without fractions of a second, as the program writes it. */
function now() {
  const time = new Date();
  return [time.getTime(), time.toISOString().replace(/\.\d+/, "")];
}

/** The run of a capsule: what was recorded of it, and its weights. */
export class OpenedRun {
  #opened;

  constructor(opened) {
    this.#opened = opened;
    const { experiment, run, outcome, losses, history, finished } = JSON.parse(opened.shown);
    // Losses that were lost are null.
    Object.assign(this, { experiment, run, outcome, losses: losses.map((loss) => loss ?? NaN), history, finished });
  }

  /** A file of its best weights: "safetensors", "pytorch", "pytorch-json", "npz" or "onnx". */
  async export(format) {
    return named(() => this.#opened.export(format));
  }

  /** Frees its memory. */
  free() {
    this.#opened.free();
  }
}

/**
 * Opens a capsule of the program or of a page; throws if it is damaged.
 * @param {string} name its name in messages
 * @param {Uint8Array} bytes
 */
export async function openCapsule(name, bytes) {
  const { Opened } = await modules.files.load();
  return named(() => new OpenedRun(new Opened(name, bytes)));
}

/** The module throws texts. */
async function named(call) {
  try {
    return await call();
  } catch (wrong) {
    throw typeof wrong === "string" ? new Error(wrong) : wrong;
  }
}

/** Lets other tasks of this thread run. Timers would wait for 4 ms each. */
function turn() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
