// The editor: a text area with marks under its text, and completions.

import { completions } from "./complete.js";

const area = document.querySelector("#text");
const marks = document.querySelector("#marks");
const list = document.querySelector("#completions");

let schema = null;
let chosen = 0;
let shown = { start: "", choices: [] };

/** The schema that completions come from. */
export function useSchema(of) {
  schema = of;
}

/** The text. */
export const text = () => area.value;

/** Replaces the text. */
export function setText(to) {
  area.value = to;
  mark([]);
  area.dispatchEvent(new Event("input"));
}

/** Calls back whenever the text has changed. */
export function onChange(listener) {
  area.addEventListener("input", listener);
}

/** The position of a line and column, which count characters from 1. */
function position(line, column) {
  const lines = area.value.split("\n").slice(0, line);
  const last = [...(lines.pop() ?? "")].slice(0, column - 1).join("");
  return lines.reduce((sum, of) => sum + of.length + 1, 0) + last.length;
}

/** Moves the cursor to a diagnostic. */
export function show({ line, column, marked }) {
  const from = position(line, column);
  area.focus();
  area.setSelectionRange(from, from + (marked?.length ?? 0));
}

/** Underlines the places of diagnostics. */
export function mark(diagnostics) {
  const places = diagnostics
    .filter(({ line }) => line !== null)
    .map((of) => ({ from: position(of.line, of.column), length: Math.max(of.marked?.length ?? 0, 1), severity: of.severity }))
    .sort((a, b) => a.from - b.from);
  const parts = [];
  let done = 0;
  for (const { from, length, severity } of places) {
    if (from < done) continue;
    const made = document.createElement("mark");
    made.className = severity;
    made.textContent = area.value.slice(from, from + length);
    parts.push(area.value.slice(done, from), made);
    done = from + length;
  }
  parts.push(`${area.value.slice(done)}\n`);
  marks.replaceChildren(...parts);
  follow();
}

function follow() {
  marks.scrollTop = area.scrollTop;
  marks.scrollLeft = area.scrollLeft;
}
area.addEventListener("scroll", follow);

function close() {
  list.hidden = true;
  area.removeAttribute("aria-activedescendant");
}

function complete(isAsked) {
  const before = area.value.slice(0, area.selectionStart);
  shown = schema && area.selectionStart === area.selectionEnd ? completions(before, schema) : { start: "", choices: [] };
  const isUseful = isAsked || shown.start.length > 0;
  if (!isUseful || shown.choices.length === 0 || (shown.choices.length === 1 && shown.choices[0].text === shown.start)) return close();
  chosen = 0;
  list.replaceChildren(
    ...shown.choices.map(({ text, about }, at) => {
      const item = document.createElement("li");
      item.id = `completion-${at}`;
      item.setAttribute("role", "option");
      item.textContent = text;
      item.title = about;
      item.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        chosen = at;
        insert();
      });
      return item;
    }),
  );
  const lines = before.split("\n");
  const style = getComputedStyle(area);
  list.style.top = `${(lines.length + 0.6) * Number.parseFloat(style.lineHeight) - area.scrollTop}px`;
  list.style.left = `${Math.min(lines.at(-1).length * 7, area.clientWidth / 2)}px`;
  list.hidden = false;
  choose(0);
}

function choose(at) {
  list.children[chosen]?.setAttribute("aria-selected", "false");
  chosen = (at + list.children.length) % list.children.length;
  const item = list.children[chosen];
  item.setAttribute("aria-selected", "true");
  item.scrollIntoView({ block: "nearest" });
  area.setAttribute("aria-activedescendant", item.id);
}

function insert() {
  const at = area.selectionStart;
  area.setRangeText(shown.choices[chosen].text, at - shown.start.length, at, "end");
  close();
  area.dispatchEvent(new Event("input"));
  close();
}

area.addEventListener("input", (event) => {
  mark([]);
  if (event.isTrusted) complete(false);
});
area.addEventListener("blur", close);
area.addEventListener("keydown", (event) => {
  if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    complete(true);
  } else if (!list.hidden) {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves) choose(chosen + moves[event.key]);
    else if (event.key === "Enter" || event.key === "Tab") insert();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  }
});
