// The module in a worker: every call has a number, and is answered in order; training goes on between calls.

import {
  Experiment, ExperimentError, compareDevices, gpu, load, openCapsule, putFile, removeFile, schema, startRun, starter, threads,
  version,
} from "./package/index.js";
import { trapped } from "./traps.js";

let training = null;
let trains = false;

const calls = {
  version,
  schema,
  async check({ text, name }) {
    const experiment = new Experiment(text, name);
    try {
      const plan = await experiment.plan();
      return { plan, diagnostics: plan.warnings };
    } catch (error) {
      if (error instanceof ExperimentError) return { plan: null, diagnostics: error.diagnostics };
      throw error;
    }
  },
  resolve: ({ text, name, run }) => new Experiment(text, name).resolve(run),
  async start({ text, name, run, checkpoint }) {
    trains = false;
    training?.free();
    training = null;
    training = await new Experiment(text, name).start(run, checkpoint ?? undefined);
    return { step: training.step, history: training.history };
  },
  train() {
    if (training && !trains) {
      trains = true;
      loop(training).catch((error) => {
        trains = false;
        postMessage({ event: "failed", message: error.message });
      });
    }
  },
  /** Opens a capsule in place of a training. */
  async open({ name, bytes }) {
    const opened = await openCapsule(name, bytes);
    trains = false;
    training?.free();
    training = opened;
    return { ...opened };
  },
  /** Trains a run to its end on one thread, since others train beside it, and without the calls of a page between updates. */
  async whole({ id, run }) {
    await threads(1);
    const of = await startRun(run);
    try {
      await of.run(({ step, steps }) => postMessage({ event: "progress", run: id, share: step / steps }));
      const finished = await of.finish();
      return { history: of.history, finished, record: await of.record() };
    } finally {
      await of.free();
    }
  },
  pause() {
    trains = false;
  },
  discard() {
    trains = false;
    training?.free();
    training = null;
  },
  checkpoint: () => training.checkpoint(),
  errors: () => training.errors(),
  finish: () => training.finish(),
  predict: ({ item }) => training?.predict?.(item) ?? null,
  export: ({ format }) => training.export(format),
  capsule: () => training.capsule(),
  /** The report of records, or of the training. */
  report: async ({ text, name, records }) => new Experiment(text, name).report(records ?? [await training.record()]),
  gpu,
  /** The threads that train, whose module is loaded. */
  async threads() {
    const opened = await threads();
    if (opened.count === 1) await load("train");
    return opened;
  },
  compare: async ({ text, name, run }) => compareDevices(await new Experiment(text, name).resolve(run)),
  put: ({ path, bytes, parts }) => putFile(path, bytes, parts),
  remove: ({ path }) => removeFile(path),
  starter: ({ path }) => starter(path),
};

async function loop(of) {
  while (trains && of === training && !of.isDone) {
    postMessage({ event: "advanced", ...(await of.advance()) });
    await new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = resolve;
      port2.postMessage(null);
    });
  }
  if (of === training) trains = false;
}

addEventListener("message", async ({ data: { id, call, args } }) => {
  try {
    postMessage({ id, result: await calls[call](args ?? {}) });
  } catch (error) {
    const isTrap = error instanceof WebAssembly.RuntimeError;
    postMessage({ id, error: isTrap ? trapped(error.message) : error.message });
  }
});
postMessage({ event: "ready" });
