// Adds an unused local to every function of a module that waits for another thread.
//
//   node web/waits.mjs MODULE    is changed in place
//
// V8 11.3, that of Node 20, loses what lies under the operands of `memory.atomic.wait32` and `wait64` where Liftoff has
// compiled the function: the last local, if nothing else does. `thread` of threads.rs kept its frame of the stack there, so
// that two workers took the same thread of the pool and another was lost. What is lost now is of no use. Nothing may
// renumber locals after this, as wasm-opt does.

import { readFile, writeFile } from "node:fs/promises";

/** Reads unsigned numbers of the format (LEB128) and bytes. */
class Reader {
  at = 0;
  constructor(bytes) {
    this.bytes = bytes;
  }
  number() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.bytes[this.at++];
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  }
  take(count) {
    return this.bytes.subarray(this.at, (this.at += count));
  }
}

const written = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...written(value >>> 7)]);
const sized = (parts) => {
  const bytes = Buffer.concat(parts);
  return [Buffer.from(written(bytes.length)), bytes];
};

const CODE = 10;
const I32 = 0x7f;
/** `memory.atomic.wait32` and `wait64`. The same bytes in another place cost an unused local. */
const WAITS = [Buffer.from([0xfe, 1]), Buffer.from([0xfe, 2])];

function changed(body) {
  if (!WAITS.some((wait) => body.includes(wait))) return body;
  const locals = new Reader(body);
  const groups = locals.number();
  const start = locals.at;
  for (let group = 0; group < groups; group++) {
    locals.number();
    // A type of values is one byte, and those of references to types, which have two, are in no module from Rust.
    locals.take(1);
  }
  const end = locals.at;
  return Buffer.concat([
    Buffer.from(written(groups + 1)),
    body.subarray(start, end),
    Buffer.from([1, I32]),
    body.subarray(end),
  ]);
}

const path = process.argv[2];
const module = new Reader(await readFile(path));
const out = [module.take(8)];
let count = 0;
while (module.at < module.bytes.length) {
  const id = module.take(1);
  let section = module.take(module.number());
  if (id[0] === CODE) {
    const code = new Reader(section);
    const bodies = [Buffer.from(written(code.number()))];
    while (code.at < section.length) {
      const body = code.take(code.number());
      const other = changed(body);
      count += other !== body;
      bodies.push(...sized([other]));
    }
    section = Buffer.concat(bodies);
  }
  out.push(id, ...sized([section]));
}
if (count === 0) throw new Error(`${path}: no function waits`);
await writeFile(path, Buffer.concat(out));
console.log(`${count} functions that may wait have one more local`);
