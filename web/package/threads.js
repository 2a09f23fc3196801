// The threads that train on the processor.

/** Whether this is Node rather than a browser. */
export const isNode = typeof process === "object" && process.versions?.node;

/** More are only started if they are asked for: each costs memory and time to start. */
const MOST = 16;

/** How many to start, by default one for each processor; or why only one can be had. */
async function planned(wanted) {
  if (wanted === 1) return { count: 1, reason: "no more were asked for" };
  if (typeof SharedArrayBuffer !== "function" || !(isNode || globalThis.crossOriginIsolated)) {
    return { count: 1, reason: "the page is not isolated" };
  }
  if (typeof document === "object") return { count: 1, reason: "only a worker can wait for threads" };
  if (wanted) return { count: wanted };
  const processors = isNode ? (await import("node:os")).availableParallelism() : navigator.hardwareConcurrency;
  const count = Math.min(processors || 1, MOST);
  return count > 1 ? { count } : { count, reason: "there is one processor" };
}

/**
 * Starts threads, at most once. `module` has what they compute.
 * @returns {Promise<{ count: number, reason?: string, failures?: string }>}
 */
export async function open(module, wanted) {
  const plan = await planned(wanted);
  if (plan.count === 1) return plan;
  const workers = [];
  try {
    const functions = await module.load();
    const failures = `burn-runner threads ${crypto.randomUUID()}`;
    const starting = { module: functions.shared_module(), memory: functions.shared_memory(), failures };
    const start = await starter(new URL("./thread.js", import.meta.url));
    for (let at = 1; at < plan.count; at++) workers.push(start());
    await Promise.all(workers.map((worker) => ready(worker, starting)));
    functions.open_threads(plan.count - 1);
    // Node ends when nothing else is left to do.
    if (isNode) workers.forEach((worker) => worker.unref());
    return { count: plan.count, failures };
  } catch (error) {
    workers.forEach((worker) => worker.terminate());
    return { count: 1, reason: `threads cannot be started: ${error.message}` };
  }
}

/** What starts workers with a module. */
async function starter(place) {
  if (!isNode) {
    const source = fromBlob(place);
    return () => new Worker(source, { type: "module" });
  }
  const node = await import("node:worker_threads");
  // Options of the program, such as `--input-type`, may not suit a file.
  return () => new node.Worker(place, { execArgv: [] });
}

/**
 * The address of a blob with a module for workers, which inherit the policies of the page and of its server from it; from
 * an address, they would have their own.
 */
export function fromBlob(place) {
  return URL.createObjectURL(new Blob([`import ${JSON.stringify(place.href)};`], { type: "text/javascript" }));
}

/** Resolves when a worker has the memory. */
function ready(worker, starting) {
  return new Promise((resolve, reject) => {
    const told = (message) => (message === "ready" ? resolve() : reject(new Error(message)));
    if (isNode) {
      worker.once("message", told).once("error", reject);
    } else {
      worker.onmessage = ({ data }) => told(data);
      worker.onerror = () => reject(new Error("a worker cannot be started"));
    }
    worker.postMessage(starting);
  });
}
