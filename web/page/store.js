// The state of the page in IndexedDB. Only one tab at a time writes it.

const NAME = "burn-runner";
const STORE = "state";

let opened;
function database() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

async function transact(mode, act) {
  const transaction = (await database()).transaction(STORE, mode);
  const request = act(transaction.objectStore(STORE));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = () => reject(transaction.error);
  });
}

/** Whether this tab owns the state: the first one does until it is closed. */
export const owned = new Promise((resolve) => {
  if (!navigator.locks) return resolve(true);
  navigator.locks.request(NAME, { ifAvailable: true }, (lock) => {
    resolve(lock !== null);
    return lock && new Promise(() => {});
  });
});

/** The saved value, or undefined; a store that cannot be read has none. */
export async function load(key) {
  try {
    return (await owned) ? await transact("readonly", (store) => store.get(key)) : undefined;
  } catch {
    return undefined;
  }
}

/** Saves a value; returns why that was not possible, or null. */
export async function save(key, value) {
  if (!(await owned)) return "another tab of this page saves its training";
  try {
    await transact("readwrite", (store) => store.put(value, key));
    return null;
  } catch (error) {
    return error?.name === "QuotaExceededError" ? "the browser's storage is full" : String(error?.message ?? error);
  }
}

/** Removes a value. */
export async function remove(key) {
  if (await owned) await transact("readwrite", (store) => store.delete(key)).catch(() => {});
}
