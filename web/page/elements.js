// Parts of the page, and numbers as text.

/** An element with properties and children. */
export function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Bytes as text. */
export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  const power = bytes > 0 ? Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1) : 0;
  const value = bytes / 1024 ** power;
  return `${power > 0 ? value.toPrecision(3) : value} ${units[power]}`;
}
