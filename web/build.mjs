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

// As a server that compresses sends it. A file is checked and planned with the first load; the modules that train and make
// files are loaded later.
const total = { first: 0, runner_train: 0, runner_threads: 0, runner_gpu: 0, runner_files: 0 };
const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
for (const name of (await readdir(out, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())) {
  const path = join(name.parentPath, name.name);
  if (/\.(d\.ts|md)$|package\.json$/.test(path)) continue;
  const bytes = await readFile(path);
  const packed = brotliCompressSync(bytes, quality).length;
  total[Object.keys(total).find((of) => name.name.startsWith(of)) ?? "first"] += packed;
  console.log(`${String(bytes.length).padStart(9)} ${String(packed).padStart(8)}  ${path.slice(out.length + 1)}`);
}
const { first, runner_train, runner_threads, runner_gpu, runner_files } = total;
console.log(
  `${first} bytes as brotli, ${runner_train} before the first training (${runner_threads} if it is on several threads, ` +
    `${runner_gpu} on WebGPU), and ${runner_files} with its first file`,
);
const MOST = 1_500_000;
if (first > MOST) throw new Error(`the first load has more than ${MOST} bytes`);
