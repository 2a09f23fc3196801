// All runs of a plan, several at a time, each in a worker of its own.

import { Engine, call } from "./engine.js";
import { make } from "./elements.js";
import * as files from "./files.js";

const table = document.querySelector("#sweep");
/** The sweep that trains, or was trained. */
let current = null;

/** As many as there are processors, except one for the page and the browser. */
const numWorkers = () => Math.max(1, (navigator.hardwareConcurrency || 2) - 1);

/** Whether a sweep trains. */
export const isRunning = () => current?.isRunning ?? false;

/** Trains all runs; resolves at the end, or when it was stopped. */
export async function train(text, name, plan) {
  stop();
  const sweep = { plan, text, name, isRunning: true, engines: [], waiting: [...plan.runs], results: new Map() };
  current = sweep;
  show(sweep);
  const num = Math.min(numWorkers(), plan.runs.length);
  const stopped = new Promise((resolve) => (sweep.resolve = resolve));
  const workers = Array.from({ length: num }, () => work(sweep, text, name));
  const ended = await Promise.race([stopped, Promise.allSettled(workers)]);
  end(sweep);
  const failed = ended?.find(({ status }) => status === "rejected");
  if (failed) throw failed.reason;
}

/** Ends the workers; what is trained stays. */
export function stop() {
  if (current) end(current);
}

/** Forgets the results. */
export function clear() {
  stop();
  current = null;
  table.replaceChildren();
}

function end(sweep) {
  sweep.isRunning = false;
  sweep.engines.forEach((engine) => engine.end());
  sweep.engines = [];
  sweep.resolve?.();
  if (sweep === current) show(sweep);
}

/** One worker, which trains the next run until there is none. */
async function work(sweep, text, name) {
  const engine = new Engine();
  sweep.engines.push(engine);
  const set = (run, of) => {
    sweep.results.set(run, { ...sweep.results.get(run), ...of });
    if (sweep === current && sweep.isRunning) show(sweep);
  };
  engine.on("progress", ({ run, share }) => set(run, { share }));
  for (const { path, file } of files.all()) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    await engine.call("put", { path, bytes, parts: ["train"] }, [bytes.buffer]);
  }
  for (let run = sweep.waiting.shift(); run && sweep.isRunning; run = sweep.waiting.shift()) {
    if (run.skipped) {
      set(run.id, { error: `skipped: ${run.skipped}` });
      continue;
    }
    set(run.id, { share: 0 });
    try {
      const resolved = await call("resolve", { text, name, run: run.id });
      const { history, finished, record } = await engine.call("whole", { id: run.id, run: resolved });
      const metrics = history[finished.epoch - 1]?.metrics ?? {};
      set(run.id, { share: 1, epoch: finished.epoch, value: metrics[run.objective], metrics, test: finished.test, record });
    } catch (error) {
      set(run.id, { error: error.message });
    }
  }
}

/** By trial: its runs, and the mean of their objectives. */
function trials({ plan, results }) {
  const found = new Map();
  for (const { id, trial, seed } of plan.runs) {
    const of = found.get(trial) ?? { trial, runs: [] };
    of.runs.push({ seed, ...results.get(id) });
    found.set(trial, of);
  }
  return [...found.values()].map((of) => {
    const values = of.runs.map(({ value }) => value).filter((value) => value !== undefined);
    const mean = values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
    return { ...of, values, mean };
  });
}

let pending = false;
function show(sweep) {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    if (sweep === current) draw(sweep);
  });
}

function draw(sweep) {
  const { plan } = sweep;
  const rows = trials(sweep);
  const means = rows.map(({ mean }) => mean).filter((mean) => mean !== null);
  const best = plan.higher_is_better ? Math.max(...means) : Math.min(...means);
  const share = plan.runs.reduce((sum, { id }) => sum + (sweep.results.get(id)?.share ?? 0), 0) / plan.runs.length;
  const number = (value) => value.toPrecision(5);
  const head = make("tr", {}, ...["trial", "runs", `${plan.objective}, mean`, "lowest", "highest"].map((text) => make("th", { scope: "col", textContent: text })));
  const body = rows.map(({ trial, runs, values, mean }) => {
    const failed = runs.filter(({ error }) => error);
    const done = `${values.length} of ${runs.length}${failed.length ? `, ${failed.length} failed` : ""}`;
    const cells = [done, ...(mean === null ? ["", "", ""] : [number(mean), number(Math.min(...values)), number(Math.max(...values))])];
    const row = make("tr", { className: mean !== null && mean === best ? "best" : "", title: failed[0]?.error ?? "" });
    row.append(make("th", { scope: "row", textContent: trial }), ...cells.map((text) => make("td", { textContent: text })));
    return row;
  });
  const num = [...sweep.results.values()].filter(({ value }) => value !== undefined).length;
  const caption = make("caption", { textContent: `${num} of ${plan.runs.length} runs are trained, ${Math.round(100 * share)} % of all updates` });
  table.replaceChildren(caption, make("thead", {}, head), make("tbody", {}, ...body));
}

/** What a report of the trained runs is made of. */
export function records() {
  if (!current) return null;
  const { text, name, results } = current;
  return { text, name, records: [...results.values()].flatMap(({ record }) => record ?? []) };
}

/** The trained runs as CSV. */
export function csv() {
  const quoted = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  const done = (current?.plan.runs ?? []).filter(({ id }) => current.results.get(id)?.value !== undefined);
  const axes = current?.plan.axes ?? [];
  const names = [...new Set(done.flatMap(({ id }) => Object.keys(current.results.get(id).metrics)))];
  const lines = done.map(({ id, trial, seed, axes: values }) => {
    const { epoch, metrics, test } = current.results.get(id);
    const tests = JSON.stringify(test);
    return [id, trial, seed, ...axes.map((axis) => (typeof values[axis] === "string" ? values[axis] : JSON.stringify(values[axis]))), epoch, ...names.map((of) => metrics[of]), tests];
  });
  return [["run", "trial", "seed", ...axes, "best_epoch", ...names, "test"], ...lines].map((line) => `${line.map(quoted).join(",")}\n`);
}
