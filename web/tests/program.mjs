// What the program recorded, and files for it.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A file with portable arithmetic. */
export function portable(text) {
  const key = 'arithmetic = "portable"';
  return /^\[backend\]$/m.test(text) ? text.replace(/^\[backend\]$/m, `[backend]\n${key}`) : `${text}\n[backend]\n${key}\n`;
}

/** The losses and the summary of a run. */
export function recorded(folder, experiment, run) {
  const place = join(folder, "results", experiment, "runs", run);
  const bytes = readFileSync(join(place, "trace/losses.f64"));
  const expected = Array.from({ length: bytes.length / 8 }, (_, at) => bytes.readDoubleLE(8 * at));
  return { expected, summary: JSON.parse(readFileSync(join(place, "summary.json"), "utf8")) };
}
