// Sorting and values under the pointer. Everything can be read without.
(() => {
  "use strict";

  // What is written in a cell as a number, if it begins with one: `0.97 ± 0.01`, `3 of 5`, `41.5 MiB`.
  const units = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
  const number = (text) => {
    const found = /^([+-]?\d[\d.]*(?:e[+-]?\d+)?)(?:\*|\s+(\S+).*|$)/.exec(text);
    return found ? parseFloat(found[1]) * (units[found[2]] || 1) : NaN;
  };
  const compare = (a, b) => {
    const [x, y] = [number(a), number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };
  const sort = (head) => {
    const column = head.cellIndex;
    const body = head.closest("table").tBodies[0];
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const text = (row) => row.cells[column].textContent.trim();
    const rows = [...body.rows].map((row) => [text(row), row]);
    const missing = (text) => text === "-" || text === "";
    rows.sort(([a], [b]) => missing(a) - missing(b) || sign * compare(a, b));
    body.append(...rows.map(([, row]) => row));
  };
  const prepare = () => {
    for (const head of document.querySelectorAll("table.sortable th")) {
      // A plot has no order.
      const row = head.closest("table").tBodies[0].rows[0];
      if (!row || row.cells[head.cellIndex].querySelector("svg")) continue;
      head.classList.add("can-sort");
      head.tabIndex = 0;
      head.title = "Sort";
    }
  };
  const headOf = (event) => event.target.closest && event.target.closest("th.can-sort");
  document.addEventListener("click", (event) => {
    const head = headOf(event);
    if (head) sort(head);
  });
  document.addEventListener("keydown", (event) => {
    const head = headOf(event);
    if (head && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      sort(head);
    }
  });

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  const show = (text, event) => {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 6);
    const above = event.clientY - height - 12;
    tip.style.left = Math.max(6, left) + "px";
    tip.style.top = (above > 6 ? above : event.clientY + 18) + "px";
  };
  // The browser's own tip comes late and not at all on a phone, so a title becomes ours when it is first met.
  const titleOf = (target) => {
    for (let at = target; at && at.localName !== "svg"; at = at.parentNode) {
      const title = [...at.children].find((child) => child.localName === "title");
      if (title) {
        at.dataset.tip = title.textContent;
        title.remove();
      }
      if (at.dataset.tip) return at.dataset.tip;
    }
    return "";
  };
  // All lines of a plot at the epoch under the pointer.
  const valuesAt = (svg, event) => {
    const lines = [...svg.querySelectorAll("g.series")].reverse();
    const split = (text) => text.trim().split(" ");
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const axis = [svg.dataset.left, svg.dataset.right, svg.dataset.from, svg.dataset.to].map(Number);
    const share = (point.x - axis[0]) / (axis[1] - axis[0]);
    if (share < -0.02 || share > 1.02) return "";
    const x = axis[2] + share * (axis[3] - axis[2]);
    const all = lines.map((line) => [line.dataset.name, split(line.dataset.x), split(line.dataset.y)]);
    const nearest = all.flatMap(([, xs]) => xs).reduce((a, b) => (Math.abs(b - x) < Math.abs(a - x) ? b : a), Infinity);
    const at = all.map(([name, xs, ys]) => [name, ys[xs.indexOf(nearest)]]);
    const known = at.filter(([, y]) => y !== undefined).map(([name, y]) => `${name}: ${y}`);
    return known.length ? `at ${nearest}\n${known.join("\n")}` : "";
  };
  const point = (event) => {
    const svg = event.target.closest && event.target.closest("svg.plot");
    if (!svg) return show("", event);
    const own = titleOf(event.target);
    show(svg.dataset.left ? valuesAt(svg, event) || own : own, event);
  };
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.addEventListener("scroll", (event) => show("", event), true);

  const choose = (event, chosen) => {
    const key = event.target.closest && event.target.closest(".legend [data-series]");
    if (!key) return;
    const section = key.closest("section");
    section.classList.toggle("dim", chosen);
    for (const line of section.querySelectorAll("g.series")) {
      line.classList.toggle("chosen", chosen && line.classList.contains("s" + key.dataset.series));
    }
  };
  document.addEventListener("pointerover", (event) => choose(event, true));
  document.addEventListener("pointerout", (event) => choose(event, false));

  document.body.append(tip);
  prepare();
  // Whoever puts another body into the page says so.
  document.addEventListener("report-changed", () => {
    document.body.append(tip);
    prepare();
  });
})();
