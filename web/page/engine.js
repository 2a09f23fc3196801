// Calls of a worker as promises.

import { fromBlob } from "./package/threads.js";

const source = fromBlob(new URL("worker.js", import.meta.url));

/** A worker with the module. */
export class Engine {
  #worker = new Worker(source, { type: "module" });
  #waiting = new Map();
  #listeners = new Map();
  #last = 0;
  #started;

  constructor() {
    let ready;
    this.#started = new Promise((resolve, reject) => {
      ready = resolve;
      this.#worker.addEventListener("error", () => reject(new Error("the worker cannot be started")));
    });
    // It is reported by the first call.
    this.#started.catch(() => {});
    this.#worker.addEventListener("message", ({ data }) => {
      if (data.event === "ready") return ready();
      if (data.event) return this.#listeners.get(data.event)?.(data);
      const { resolve, reject } = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      return "error" in data ? reject(new Error(data.error)) : resolve(data.result);
    });
  }

  /** Calls a function of the worker; buffers in `transfer` are moved to it. */
  async call(name, args, transfer = []) {
    await this.#started;
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, call: name, args }, transfer);
    });
  }

  /** Receives the events of a kind. */
  on(event, listener) {
    this.#listeners.set(event, listener);
  }

  /** Ends the worker; its calls are never answered. */
  end() {
    this.#worker.terminate();
  }
}

/** The worker of the page, which checks files and trains one run. */
const main = new Engine();
export const call = (name, args, transfer) => main.call(name, args, transfer);
export const on = (event, listener) => main.on(event, listener);
