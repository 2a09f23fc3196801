// Puts the static folder together: page, package, and the experiments that need no files.
//
//   node web/build.mjs FOLDER    FOLDER/package is already there

import { cp, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = resolve(process.argv[2]);
await mkdir(out, { recursive: true });
await cp(join(here, "page"), out, { recursive: true });

const { Experiment } = await import(pathToFileURL(join(out, "package/index.js")));
const found = [];
for (const folder of [join(here, "experiments"), join(here, "../experiments")]) {
  for (const name of (await readdir(folder)).sort()) {
    if (!name.endsWith(".toml")) continue;
    const text = await readFile(join(folder, name), "utf8");
    try {
      const { question } = await new Experiment(text, name).plan();
      found.push({ name, question, text });
    } catch (error) {
      console.log(`left out: ${name}: ${error.diagnostics?.[0].message ?? error.message}`);
    }
  }
}
const order = ({ name }) => (name === "iris.toml" ? 0 : name === "digits.toml" ? 1 : 2);
found.sort((a, b) => order(a) - order(b));
await writeFile(join(out, "experiments.json"), JSON.stringify(found));
console.log(`${found.length} experiments: ${found.map(({ name }) => name).join(", ")}`);

// The first load, as a server that compresses sends it. Files of trainings are made by a module that is loaded later.
let total = 0;
let later = 0;
const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
for (const name of (await readdir(out, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())) {
  const path = join(name.parentPath, name.name);
  if (/\.(d\.ts|md)$|package\.json$/.test(path)) continue;
  const bytes = await readFile(path);
  const packed = brotliCompressSync(bytes, quality).length;
  const isLater = /runner_files/.test(path);
  if (isLater) later += packed;
  else total += packed;
  console.log(`${String(bytes.length).padStart(9)} ${String(packed).padStart(8)}  ${path.slice(out.length + 1)}`);
}
console.log(`${total} bytes as brotli, and ${later} with the first file of a training`);
// The aim is 1.5 MB.
const MOST = 2_150_000;
if (total > MOST) throw new Error(`the first load has more than ${MOST} bytes`);
