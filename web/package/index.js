// Experiments of burn-runner on WebAssembly: the code of the command line, for browsers and Node.

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
    if (source === undefined && typeof process === "object" && process.versions?.node) {
      const { readFile } = await import("node:fs/promises");
      source = await readFile(new URL(`${this.#name}_bg.wasm`, import.meta.url));
    }
    await functions.default(source === undefined ? undefined : { module_or_path: source });
    return functions;
  }
}

/** Checks and plans; trains; makes files of trainings. */
const modules = { plan: new Module("runner_plan"), train: new Module("runner_train"), files: new Module("runner_files") };

/**
 * Loads modules before they are needed. By default they are next to this file.
 * @param {"plan" | "train" | "files"} part
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

/** The module that checks and plans, with all files. */
async function planner() {
  const functions = await modules.plan.load();
  changes.plan.tell(functions);
  return functions;
}

/** The module that trains, with all files. Those of a training stay as they are until the next one starts. */
async function trainer() {
  const functions = await modules.train.load();
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

/**
 * A run before its first update, or as a checkpoint left it.
 * @param {string} run from `Experiment.resolve`
 */
export async function startRun(run, checkpoint) {
  const { Session, Checkpoint } = await trainer();
  return named(() => {
    const session = new Session(run);
    if (!checkpoint) return new Training(session);
    const { model, optimizer, scheduler, best, losses, digests, state } = checkpoint;
    return new Training(session.resume(new Checkpoint(model, optimizer, scheduler, best, losses, digests, state)));
  });
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
    const { write_weights } = await modules.files.load();
    return named(() => write_weights(run, weights, format));
  }

  /** The run with its data in a file, from which `runner reproduce` trains it again; for a training that has ended. */
  async capsule() {
    const recorded = named(() => this.#session.record(true));
    try {
      const { read_file } = await modules.train.load();
      const { Capsule } = await modules.files.load();
      return named(() => {
        const capsule = new Capsule(recorded.about);
        recorded.names.forEach((name, at) => capsule.add(name, recorded.take(at)));
        for (const path of recorded.data) capsule.add_data(path, read_file(path));
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
  const { Opened } = await modules.files.load();
  return named(() => new OpenedRun(new Opened(name, bytes)));
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
