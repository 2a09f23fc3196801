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
    let source = module;
    if (source === undefined && typeof process === "object" && process.versions?.node) {
      const { readFile } = await import("node:fs/promises");
      source = await readFile(new URL("runner_web_bg.wasm", import.meta.url));
    }
    await initialize(source === undefined ? undefined : { module_or_path: source });
  })();
  return loading;
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

  /** The state, from which `Experiment.start` resumes to the bit: plain data that IndexedDB can store. */
  checkpoint() {
    const saved = named(() => this.#session.checkpoint());
    const { model, optimizer, scheduler, best, state } = saved;
    saved.free();
    return { model, optimizer, scheduler, best, state };
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
  export(format) {
    return named(() => this.#session.export(format));
  }

  /** Frees its memory. */
  free() {
    this.#session.free();
  }
}

function unpacked({ model, optimizer, scheduler, best, state }) {
  return new native.Checkpoint(model, optimizer, scheduler, best, state);
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
