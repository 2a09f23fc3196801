// Data from this machine: files and folders that experiment files can name. They are read in this tab and sent nowhere.

import { call } from "./engine.js";
import { make, size } from "./elements.js";
import * as store from "./store.js";

/** All files together; the module and the training need memory too. */
const MOST_BYTES = 512 * 1024 * 1024;
const MOST_FILES = 50_000;

const list = document.querySelector("#files");
/** By path. */
const files = new Map();
let listener = () => {};

/** Calls back with `changed`, after files were added or removed, and with `write` for an experiment on a path. */
export function onChange(callbacks) {
  listener = callbacks;
}

/** Reads files, each with its path, and saves them for the next visit; returns what to say. */
export async function add(given) {
  const bytes = (of) => of.reduce((sum, { file }) => sum + file.size, 0);
  const others = [...files.values()].filter(({ path }) => !given.some((of) => of.path === path));
  const [first] = given;
  if (!first) return "The folder is empty";
  const what = given.length === 1 ? first.path : `${given.length.toLocaleString("en")} files`;
  if (bytes(given) + bytes(others) > MOST_BYTES || given.length + others.length > MOST_FILES) {
    return `${what} of ${size(bytes(given))} cannot be added: the page holds at most ${size(MOST_BYTES)} in ${MOST_FILES.toLocaleString("en")} files. \`runner run\` has no such limit`;
  }
  for (const { path, file } of given) {
    try {
      const content = new Uint8Array(await file.arrayBuffer());
      await call("put", { path, bytes: content }, [content.buffer]);
      files.set(path, { path, file });
    } catch (error) {
      show();
      return `${path} cannot be read: ${error.message}`;
    }
  }
  show();
  listener.changed();
  const problem = await store.save("files", [...files.values()]);
  return `Added ${what}${problem ? `; not saved for the next visit: ${problem}` : ""}`;
}

/** Adds the files of the last visit. */
export async function restore() {
  const saved = (await store.load("files")) ?? [];
  return saved.length > 0 ? add(saved) : "";
}

async function remove(path) {
  await call("remove", { path });
  for (const name of [...files.keys()]) {
    if (name === path || name.startsWith(`${path}/`)) files.delete(name);
  }
  show();
  listener.changed();
  await store.save("files", [...files.values()]);
}

/** All files with their paths. */
export const all = () => [...files.values()];

/** One line for each file or folder at the top. */
function show() {
  const tops = new Map();
  for (const { path, file } of files.values()) {
    const top = path.split("/")[0];
    const of = tops.get(top) ?? { num: 0, bytes: 0, isFolder: path !== top };
    tops.set(top, { ...of, num: of.num + 1, bytes: of.bytes + file.size });
  }
  const lines = [...tops].map(([top, { num, bytes, isFolder }]) => {
    const write = make("button", { type: "button", textContent: "Write an experiment", ariaLabel: `Write an experiment on ${top}` });
    write.addEventListener("click", () => listener.write(top));
    const gone = make("button", { type: "button", textContent: "Remove", ariaLabel: `Remove ${top}` });
    gone.addEventListener("click", () => remove(top));
    const about = isFolder ? `${num.toLocaleString("en")} files, ${size(bytes)}` : size(bytes);
    return make("li", {}, make("code", { textContent: top }), ` ${about} `, write, " ", gone);
  });
  list.replaceChildren(...lines);
}

/** What was dropped, with the paths in dropped folders. Entries must be taken before the event ends. */
export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...transfer.files].map((file) => ({ path: file.name, file }));
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

async function walk(entry, found) {
  if (found.length > MOST_FILES || entry.name.startsWith(".")) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ path: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // A folder is read in parts.
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return;
    for (const inside of part) await walk(inside, found);
  }
}

/** The files of an input, with the paths of a chosen folder. */
export function chosen(input) {
  const all = [...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  return all.filter(({ path }) => !path.split("/").some((name) => name.startsWith(".")));
}
