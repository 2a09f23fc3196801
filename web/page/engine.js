// Calls of the worker as promises.

// A worker from a blob inherits the page's policy; one from an address would have none.
const place = new URL("worker.js", import.meta.url).href;
const source = new Blob([`import ${JSON.stringify(place)};`], { type: "text/javascript" });
const worker = new Worker(URL.createObjectURL(source), { type: "module" });

const waiting = new Map();
const listeners = new Map();
let last = 0;
let ready;
const started = new Promise((resolve, reject) => {
  ready = resolve;
  worker.addEventListener("error", () => reject(new Error("the worker cannot be started")));
});

worker.addEventListener("message", ({ data }) => {
  if (data.event === "ready") return ready();
  if (data.event) return listeners.get(data.event)?.(data);
  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  return "error" in data ? reject(new Error(data.error)) : resolve(data.result);
});

/** Calls a function of the worker. */
export async function call(name, args) {
  await started;
  const id = ++last;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, call: name, args });
  });
}

/** Receives the events of a kind. */
export function on(event, listener) {
  listeners.set(event, listener);
}
