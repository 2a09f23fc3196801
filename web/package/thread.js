// A worker that is a thread of the module `runner_threads`: the same memory, and a stack of its own.

import { initSync, thread } from "./runner_threads.js";
import { isNode } from "./threads.js";

/** Waits for the memory, and computes from then on. */
function start(port) {
  port.onmessage = ({ data: { module, memory, failures } }) => {
    try {
      initSync({ module, memory });
      port.postMessage("ready");
    } catch (error) {
      return port.postMessage(error.message);
    }
    try {
      thread();
    } catch (error) {
      // The thread that trains waits for this one, and hears nothing.
      if (isNode) {
        console.error(`burn-runner: a thread of WebAssembly failed: ${error.message}`);
        process.kill(process.pid, "SIGABRT");
      }
      new BroadcastChannel(failures).postMessage(error.message);
    }
  };
}

if (isNode) import("node:worker_threads").then(({ parentPort }) => start(parentPort));
else start(globalThis);
