// Experiments of burn-runner on WebAssembly: the code of the command line, for browsers and Node.

import initialize, * as native from "./runner_web.js";

/** Updates between two events take about this long. */
const SLICE_SECS = 0.03;

/** The smallest module that needs SIMD. */
const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];

let loading;

/**
 * Loads the WebAssembly module, once. By default it is next to this file.
 * @param {BufferSource | WebAssembly.Module} [module]
 */
export function load(module) {
  loading ??= (async () => {
    if (!WebAssembly.validate(Uint8Array.from(SIMD))) {
      throw new Error("WebAssembly has no SIMD here; use Chrome 91, Firefox 89, Safari 16.4, Node 20 or later");
    }
    await start(initialize, "runner_web_bg.wasm", module);
  })();
  return loading;
}

let loadingFiles;

/**
 * Loads the module that makes files of trainings, once; the first file does so. By default it is next
 * to this file.
 * @param {BufferSource | WebAssembly.Module} [module]
 */
export function loadFiles(module) {
  loadingFiles ??= (async () => {
    const files = await import("./runner_files.js");
    await start(files.default, "runner_files_bg.wasm", module);
    return files;
  })();
  // It can be loaded later, when the server answers again.
  loadingFiles.catch(() => (loadingFiles = undefined));
  return loadingFiles.then(() => {});
}

async function start(initialize, name, module) {
  let source = module;
  if (source === undefined && typeof process === "object" && process.versions?.node) {
    const { readFile } = await import("node:fs/promises");
    source = await readFile(new URL(name, import.meta.url));
  }
  await initialize(source === undefined ? undefined : { module_or_path: source });
}

/** The JSON schema of experiment files. */
export async function schema() {
  await load();
  return JSON.parse(native.schema());
}

/** The version of burn-runner. */
export async function version() {
  await load();
  return native.version();
}

/**
 * Adds a file that experiment files can name, or replaces it.
 * @param {string} path from the folder of the experiment file
 * @param {Uint8Array} bytes
 */
export async function putFile(path, bytes) {
  await load();
  native.put_file(path, bytes);
}

/** Removes a file, or all files of a folder. */
export async function removeFile(path) {
  await load();
  native.remove_file(path);
}

/** The text of a first experiment file for a file or folder that was added, with a comment on every line. */
export async function starter(path) {
  await load();
  return named(() => native.starter(path));
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
    await load();
    return JSON.parse(native.check(this.text, this.name));
  }

  /** The runs, with the shapes of their networks. Throws an ExperimentError. */
  async plan() {
    await load();
    try {
      return JSON.parse(native.plan(this.text, this.name));
    } catch (wrong) {
      throw typeof wrong === "string" ? new ExperimentError(JSON.parse(wrong)) : wrong;
    }
  }

  /**
   * A run before its first update, or as a checkpoint left it.
   * @param {string} [run] its id; by default the first run
   */
  async start(run, checkpoint) {
    const planned = await this.plan();
    return named(() => {
      const session = new native.Session(this.text, this.name, run ?? planned.runs[0].id);
      return new Training(checkpoint ? session.resume(unpacked(checkpoint)) : session);
    });
  }

  /**
   * The report of trainings of its runs, as `runner report` writes it: an HTML page.
   * @param {{ about: string, files: [string, Uint8Array][] }[]} records from `Training.record`
   */
  async report(records) {
    await load();
    await loadFiles();
    const files = await loadingFiles;
    return named(() => {
      const report = new files.Report(native.plan_json(this.text, this.name));
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

/** A run in training, or after it. */
export class Training {
  #session;

  constructor(session) {
    this.#session = session;
  }

  /** Updates so far. */
  get step() {
    return this.#session.step;
  }

  /** Whether the training has ended. */
  get isDone() {
    return this.#session.is_done;
  }

  /** The finished epochs. */
  get history() {
    return JSON.parse(this.#session.history());
  }

  /** At most `updates` updates, no further than the end of an epoch. Throws the failure of the run. */
  advance(updates = Infinity, secs = SLICE_SECS) {
    const most = Math.min(updates, 2 ** 31);
    return named(() => JSON.parse(this.#session.advance(most, secs)));
  }

  /** Trains until the end, or until `signal` aborts it; other tasks of the thread run between slices. */
  async run(onEvent = () => {}, signal) {
    while (!this.isDone && !signal?.aborted) {
      onEvent(this.advance());
      await turn();
    }
    return this.isDone;
  }

  /** The next update of the plan: its loss, and the finished epoch if it was its last update. */
  trainBatch() {
    // It may have been left between the last update of an epoch and its validation.
    if (this.#session.is_epoch_over) this.advance(1, Infinity);
    if (this.isDone) throw new Error("the training has ended");
    const { losses, step } = this.advance(1, Infinity);
    const { epoch } = this.#session.is_epoch_over ? this.advance(1, Infinity) : { epoch: null };
    return { loss: losses[0], step, epoch };
  }

  /** The metrics of the current weights on a batch of the valid split, from 0; null after the last one. */
  evalBatch(at = 0) {
    return named(() => JSON.parse(this.#session.evaluate_batch(at)));
  }

  /** The network, its task and its data. */
  modelInfo() {
    return { ...JSON.parse(this.#session.info()), step: this.step };
  }

  /** The state, from which `Experiment.start` resumes to the bit: plain data that IndexedDB can store. */
  checkpoint() {
    const saved = named(() => this.#session.checkpoint());
    const { model, optimizer, scheduler, best, losses, digests, state } = saved;
    saved.free();
    return { model, optimizer, scheduler, best, losses, digests, state };
  }

  /** The confusion matrix and the worst mistakes of the current weights, where the task has them. */
  errors() {
    return named(() => JSON.parse(this.#session.errors()));
  }

  /** Evaluates the best weights, which predict and are exported from then on. */
  finish() {
    return named(() => JSON.parse(this.#session.finish()));
  }

  /** The prediction for an item: its numbers in the units of the data. */
  predict(item) {
    return named(() => JSON.parse(this.#session.predict(Float32Array.from(item))));
  }

  /** A file of the weights: "safetensors", "pytorch", "pytorch-json", "npz" or "onnx". */
  async export(format) {
    const [run, weights] = named(() => [this.#session.run(), this.#session.weights()]);
    await loadFiles();
    const files = await loadingFiles;
    return named(() => files.write_weights(run, weights, format));
  }

  /** The run with its data in a file, from which `runner reproduce` trains it again; for a training that has ended. */
  async capsule() {
    const recorded = named(() => this.#session.record(true));
    try {
      await loadFiles();
      const files = await loadingFiles;
      return named(() => {
        const capsule = new files.Capsule(recorded.about);
        recorded.names.forEach((name, at) => capsule.add(name, recorded.take(at)));
        for (const path of recorded.data) capsule.add_data(path, native.read_file(path));
        const { name } = capsule;
        return { name, bytes: capsule.pack(...now()) };
      });
    } finally {
      recorded.free();
    }
  }

  /** What `Experiment.report` needs of a training that has ended: plain data. */
  record() {
    const recorded = named(() => this.#session.record(false));
    const files = recorded.names.map((name, at) => [name, recorded.take(at)]);
    const { about } = recorded;
    recorded.free();
    return { about, files };
  }

  /** Frees its memory. */
  free() {
    this.#session.free();
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
  await loadFiles();
  const files = await loadingFiles;
  return named(() => new OpenedRun(new files.Opened(name, bytes)));
}

function unpacked({ model, optimizer, scheduler, best, losses, digests, state }) {
  return new native.Checkpoint(model, optimizer, scheduler, best, losses, digests, state);
}

/** The module throws texts. */
function named(call) {
  try {
    return call();
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
