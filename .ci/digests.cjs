// Runs a WebAssembly module that compares digests: an example `portable_*` of a crate. Ends with 1 if some differ.
const fs = require("fs");

const compiled = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
const imports = {};
let memory;
for (const { module, name } of WebAssembly.Module.imports(compiled)) {
    imports[module] ??= {};
    imports[module][name] = (...args) => {
        // Burn draws ids of parameters, which change no number. Nothing else of a browser is needed.
        if (!name.includes("getRandomValues")) {
            throw new Error(`the module calls ${name}`);
        }
        crypto.getRandomValues(new Uint8Array(memory.buffer, args[0], args[1]));
    };
}
const found = new WebAssembly.Instance(compiled, imports).exports;
memory = found.memory;
const [num, wrong] = [found.num_digests(), found.num_wrong()];
const place = wrong ? `, the first at ${found.first_wrong()}` : "";
console.log(`${num} digests, ${wrong} are not the expected ones${place}`);
process.exit(wrong ? 1 : 0);
