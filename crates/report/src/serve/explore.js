// The table of all runs. Rows are asked for page by page as they come into view; the address holds what was chosen.
(() => {
  "use strict";
  const ROW = 30;
  const PAGE = 100;
  const MOST_PINNED = 8;
  const POLL = 3000;
  const at = (id) => document.getElementById(id);
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElementNS(name === "svg" || attributes.svg ? "http://www.w3.org/2000/svg" : document.body.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) if (key !== "svg") made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // What was chosen, as in the address.
  const read = () => {
    const asked = new URLSearchParams(location.search);
    const list = (name) => (asked.get(name) ?? "").split(" ").filter(Boolean);
    return {
      filter: asked.get("filter") ?? "",
      sort: asked.get("sort") ?? "",
      group: asked.get("group") ?? "",
      columns: list("columns"),
      pins: asked.getAll("pin").slice(0, MOST_PINNED),
      metric: asked.get("metric") ?? "",
      from: Number(asked.get("from")) || 0,
      to: Number(asked.get("to")) || 0,
      row: Math.max(0, Math.floor(Number(asked.get("row")) || 0)),
      a: asked.get("a") ?? "",
      b: asked.get("b") ?? "",
    };
  };
  let state = read();
  const write = (isNew) => {
    const asked = new URLSearchParams();
    for (const name of ["filter", "sort", "group", "metric", "from", "to", "a", "b", "row"]) if (state[name]) asked.set(name, state[name]);
    if (state.columns.length) asked.set("columns", state.columns.join(" "));
    for (const pin of state.pins) asked.append("pin", pin);
    const text = asked.toString();
    const address = location.pathname + (text && "?" + text);
    if (address === location.pathname + location.search) return;
    history[isNew ? "pushState" : "replaceState"](null, "", address);
  };

  const ask = async (path, asked) => {
    const answer = await fetch(path + "?" + new URLSearchParams(asked));
    const content = await answer.json().catch(() => ({ error: "the server does not answer" }));
    if (answer.ok) return content;
    const error = new Error([content.error, content.help].filter(Boolean).join(": "));
    error.isRefused = answer.status === 400;
    throw error;
  };
  const tell = (text) => {
    at("wrong").hidden = !text;
    at("wrong").textContent = text;
  };

  // Values as text: numbers with five digits, everything else as it is.
  const shown = (value) => {
    if (value === null || value === undefined) return "-";
    if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(5)));
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  };

  let names = { own: [], shared: [], axes: [], experiments: 0 };
  let total = 0;
  let all = 0;
  let pages = new Map();
  let heads = [];
  let round = 0;
  const pinned = new Map();

  const columns = () => (state.columns.length ? state.columns : [...(names.experiments > 1 ? ["experiment"] : []), "run", "outcome", "objective", "epochs", ...names.axes.slice(0, 4)]);
  const nameOf = (row) => `${row.experiment}/${row.run}`;

  // The rows of a page, once per round: an answer that was overtaken is dropped.
  const load = async (page) => {
    const own = round;
    pages.set(page, pages.get(page) ?? null);
    const asked = { filter: state.filter, sort: state.sort, group: state.group, offset: page * PAGE, limit: PAGE };
    if (!state.group) asked.columns = ["experiment", "run", ...columns()].join(" ");
    try {
      const found = await ask("/-/runs.json", asked);
      if (own !== round) return;
      [total, all] = [found.total, found.all];
      pages.set(page, found.rows);
      tell("");
      const what = state.group ? "groups" : "runs";
      at("said").textContent = state.group ? `${total} ${what} of ${all} runs` : `${total} of ${all} ${what}`;
      if (!heads.length || state.group) setHeads(found.rows);
      draw();
      // Rows have a height only now.
      if (wanted) {
        at("box").scrollTop = wanted * ROW;
        wanted = 0;
        draw();
      }
    } catch (error) {
      if (own !== round) return;
      // Rows of an earlier condition are not those of a wrong one.
      if (error.isRefused) {
        total = 0;
        at("said").textContent = "";
        draw();
      }
      tell(error.message);
    }
  };
  // Asks again; from a row on if the address has one.
  let wanted = 0;
  const restart = (row = 0) => {
    round += 1;
    pages = new Map();
    heads = [];
    wanted = row;
    state.row = row;
    at("box").scrollTop = 0;
    write(false);
    load(0);
  };

  const setHeads = (rows) => {
    const next = state.group ? Object.keys(rows[0] ?? { [state.group]: "" }) : columns();
    if (next.join() === heads.join()) return;
    heads = next;
    const width = (name) => {
      const texts = rows.map((row) => shown(row[name]).length);
      return Math.min(44, Math.max(name.length + 2, ...texts, 4)) + 3;
    };
    at("widths").replaceChildren(element("col", { style: "width:4.5rem" }), ...heads.map((name) => element("col", { style: `width:${width(name)}ch` })));
    const focused = document.activeElement?.closest?.("#heads button")?.title;
    const first = element("th", { scope: "col" }, state.group ? "show" : "pin");
    const cells = heads.map((name) => {
      const order = state.sort.replace(/^-/, "") === name ? (state.sort.startsWith("-") ? "descending" : "ascending") : "";
      const button = element("button", { type: "button", title: name }, name);
      button.addEventListener("click", () => {
        state.sort = state.sort === name ? "-" + name : name;
        write(true);
        restart();
      });
      return element("th", order ? { scope: "col", "aria-sort": order } : { scope: "col" }, button);
    });
    at("heads").replaceChildren(first, ...cells);
    if (focused) [...at("heads").querySelectorAll("button")].find((button) => button.title === focused)?.focus({ preventScroll: true });
  };

  const cell = (row, name) => {
    const text = shown(row[name]);
    return element("td", typeof row[name] === "number" ? { class: "n", title: text } : { title: text }, text);
  };
  // The condition for a value of a group; text has the quotes that are not in it.
  const having = (name, value) => {
    if (value === null || value === undefined) return `not is_set(${name})`;
    const quote = typeof value === "string" && value.includes("'") ? '"' : "'";
    return `${name} == ${typeof value === "string" ? quote + value + quote : JSON.stringify(value)}`;
  };
  const rowOf = (row, index) => {
    const made = element("tr", { "aria-rowindex": index });
    if (state.group) {
      const button = element("button", { type: "button", "aria-label": `show the runs with ${state.group} ${shown(row[state.group])}` }, "runs");
      button.addEventListener("click", () => {
        const condition = having(state.group, row[state.group]);
        state.filter = state.filter ? `(${state.filter}) and ${condition}` : condition;
        [state.group, state.sort] = ["", ""];
        fill();
        write(true);
        restart();
        at("box").focus({ preventScroll: true });
      });
      made.append(element("td", {}, button));
    } else {
      const name = nameOf(row);
      const box = element("input", { type: "checkbox", "aria-label": `pin ${name}`, "data-run": name });
      box.checked = state.pins.includes(name);
      box.addEventListener("change", () => pin(name, box));
      made.append(element("td", {}, box));
    }
    made.append(...heads.map((head) => cell(row, head)));
    return made;
  };
  const space = (height) => element("tr", { class: "space", "aria-hidden": "true" }, element("td", { colspan: heads.length + 1, style: `height:${height}px` }));

  // Only the rows in view are in the page, between two empty ones of the height of all others.
  const draw = () => {
    const box = at("box");
    const active = document.activeElement;
    const focused = active?.dataset?.run;
    const place = active?.closest?.("#rows button") && active.closest("tr").getAttribute("aria-rowindex");
    const isPinned = Boolean(document.activeElement?.closest?.("#pinned"));
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 10);
    const last = Math.min(total, first + Math.ceil(box.clientHeight / ROW) + 20);
    const rows = [];
    for (let index = first; index < last; index += 1) {
      const page = Math.floor(index / PAGE);
      if (!pages.has(page)) load(page);
      const row = pages.get(page)?.[index % PAGE];
      rows.push(row ? rowOf(row, index + 2) : space(ROW));
    }
    at("rows").replaceChildren(space(first * ROW), ...rows, space((total - last) * ROW));
    at("runs").setAttribute("aria-rowcount", total + 1);
    const tops = state.group ? [] : state.pins.map((name) => pinned.get(name)).filter(Boolean);
    at("pinned").replaceChildren(...tops.map((run) => rowOf(flat(run), 1)));
    if (focused) {
      const again = [...document.querySelectorAll(isPinned ? "#pinned input" : "#rows input")].find((input) => input.dataset.run === focused);
      again?.focus({ preventScroll: true });
    } else if (place) at("rows").querySelector(`tr[aria-rowindex="${place}"] button`)?.focus({ preventScroll: true });
  };
  // What is known of a run, by the names of columns.
  const flat = (run) => ({ ...run.settings, ...run.metrics, ...run, objective: run.value, age: run.age_secs });

  const pin = async (name, box) => {
    if (state.pins.includes(name)) state.pins = state.pins.filter((pin) => pin !== name);
    else if (state.pins.length < MOST_PINNED) state.pins = [...state.pins, name];
    else {
      box.checked = false;
      tell(`at most ${MOST_PINNED} runs can be pinned`);
      return;
    }
    write(false);
    await showPinned();
  };
  let curves = {};
  const showPinned = async () => {
    for (const name of [...pinned.keys()]) if (!state.pins.includes(name)) pinned.delete(name);
    const asked = state.pins.map((name) => ["run", name]);
    try {
      for (const name of state.pins) pinned.set(name, await ask("/-/run.json", [["run", name]]));
      curves = state.pins.length ? await ask("/-/curves.json", asked) : {};
    } catch (error) {
      tell(error.message);
    }
    draw();
    drawCurves();
    drawPair();
  };

  const options = (select, values, chosen) => {
    const known = [...select.options].map((option) => option.value);
    if (known.join("\n") !== values.join("\n")) select.replaceChildren(...values.map((value) => element("option", { value }, value)));
    select.value = values.includes(chosen) ? chosen : (values[0] ?? "");
    return select.value;
  };

  // At most six round numbers from a low one to a high one.
  const ticks = (low, high) => {
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough * 0.999);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(at * step);
    return found;
  };

  // The curve of each pinned run.
  const FRAME = { height: 340, left: 70, right: 15, top: 10, bottom: 40 };
  const drawCurves = () => {
    const found = state.pins.filter((name) => curves[name]);
    at("curves").hidden = !found.length;
    if (!found.length) return;
    const metrics = [...new Set(found.flatMap((name) => Object.keys(curves[name])))].sort();
    const usual = pinned.get(found[0])?.objective;
    const metric = options(at("metric"), metrics, state.metric || usual);
    const lines = found.map((name) => [name, curves[name][metric] ?? []]);
    const epochs = lines.flatMap(([, points]) => points.map(([epoch]) => epoch));
    const [least, most] = [Math.min(...epochs), Math.max(...epochs)];
    const [from, to] = [Math.max(state.from || least, least), Math.min(state.to || most, most)];
    for (const [id, value] of [["from", from], ["to", to]]) if (document.activeElement !== at(id)) at(id).value = Number.isFinite(value) ? value : "";
    const inView = lines.map(([name, points]) => [name, points.filter(([epoch]) => epoch >= from && epoch <= to)]);
    const values = inView.flatMap(([, points]) => points.map(([, value]) => value));
    const key = (index) => element("span", { class: `key s${index}`, "aria-hidden": "true" });
    at("legend").replaceChildren(...found.map((name, index) => element("li", {}, key(index), name)));
    if (!values.length) {
      at("plot").replaceChildren(element("p", {}, "No values in these epochs."));
      return;
    }
    const { height, left, right, top, bottom } = FRAME;
    const width = Math.min(1200, Math.max(320, at("plot").clientWidth));
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const x = (epoch) => left + ((epoch - from) / Math.max(to - from, 1e-9)) * (width - left - right);
    const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - top - bottom);
    const part = (name, attributes, ...children) => element(name, { svg: "yes", ...attributes }, ...children);
    const svg = part("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${metric} over epochs ${from} to ${to} of ${found.length} runs` });
    for (const value of ticks(low, high)) {
      svg.append(part("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
      svg.append(part("text", { class: "tick", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value)));
    }
    for (const epoch of to > from ? ticks(from, to).filter(Number.isInteger) : [from]) {
      svg.append(part("text", { class: "tick", x: x(epoch), y: height - bottom + 16, "text-anchor": "middle" }, shown(epoch)));
    }
    svg.append(part("text", { class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "epoch"));
    inView.forEach(([, points], index) => {
      if (points.length === 1) svg.append(part("circle", { class: `mark s${index}`, r: 3, cx: x(points[0][0]), cy: y(points[0][1]) }));
      svg.append(part("polyline", { class: `line s${index}`, points: points.map(([epoch, value]) => `${x(epoch)},${y(value)}`).join(" ") }));
    });
    // Dragging over the plot zooms in; the two numbers above it do the same.
    const epochAt = (event) => {
      const box = svg.getBoundingClientRect();
      const share = (((event.clientX - box.left) / box.width) * width - left) / (width - left - right);
      return from + Math.min(1, Math.max(0, share)) * (to - from);
    };
    let start = null;
    const mark = part("rect", { class: "zoom", y: top, height: height - top - bottom, width: 0 });
    svg.append(mark);
    svg.addEventListener("pointerdown", (event) => {
      start = epochAt(event);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const ends = [start, epochAt(event)].sort((a, b) => a - b);
      mark.setAttribute("x", x(ends[0]));
      mark.setAttribute("width", x(ends[1]) - x(ends[0]));
    });
    svg.addEventListener("pointerup", (event) => {
      const ends = [start, epochAt(event)].sort((a, b) => a - b);
      start = null;
      if (ends[0] === null || ends[1] - ends[0] < 0.5) return drawCurves();
      zoom(Math.floor(ends[0]), Math.ceil(ends[1]));
    });
    at("plot").replaceChildren(svg);
  };
  const zoom = (from, to) => {
    [state.from, state.to] = [from, to];
    write(false);
    drawCurves();
  };

  // What differs between two of the pinned runs.
  const drawPair = () => {
    const found = state.pins.filter((name) => pinned.has(name));
    at("pair").hidden = found.length < 2;
    if (found.length < 2) return;
    const a = options(at("a"), found, state.a || found[0]);
    const b = options(at("b"), found, state.b || found[1]);
    const facts = (run) => ({ ...run.settings, ...run.metrics, outcome: run.outcome, epochs: run.epochs, best_epoch: run.best_epoch, wall_secs: run.wall_secs, memory_bytes: run.memory_bytes, seed: run.seed });
    const [first, second] = [a, b].map((name) => facts(pinned.get(name)));
    const keys = [...new Set([...Object.keys(first), ...Object.keys(second)])].sort();
    const differ = keys.filter((key) => JSON.stringify(first[key]) !== JSON.stringify(second[key]));
    at("same").textContent = `They differ in ${differ.length} of ${keys.length} settings, metrics and facts.`;
    const rows = differ.map((key) => {
      const isNumber = [first[key], second[key]].every((value) => typeof value === "number");
      const cells = [first[key], second[key], isNumber ? second[key] - first[key] : null];
      // Numbers that differ are not shown as equal.
      const text = shown(first[key]) === shown(second[key]) ? String : shown;
      return element("tr", {}, element("th", { scope: "row" }, key), ...cells.map((value, at) => element("td", { class: "n" }, (at < 2 ? text : shown)(value))));
    });
    at("differences").replaceChildren(...rows);
  };

  // Puts what was chosen into the controls.
  const fill = () => {
    at("filter").value = state.filter;
    const keys = [...names.axes, ...names.own.filter((name) => !names.axes.includes(name))];
    const group = at("group");
    group.replaceChildren(element("option", { value: "" }, "nothing"), ...keys.map((name) => element("option", { value: name }, name)));
    group.value = state.group;
    const chosen = columns();
    const known = [...new Set([...chosen, ...names.axes, ...names.own, ...names.shared])];
    const boxes = known.map((name) => {
      const box = element("input", { type: "checkbox", value: name });
      box.checked = chosen.includes(name);
      box.addEventListener("change", () => {
        const boxes = [...at("columns").querySelectorAll("input:checked")];
        state.columns = boxes.map((box) => box.value);
        write(true);
        restart();
      });
      return element("label", {}, box, " " + name);
    });
    at("columns").replaceChildren(...boxes);
  };

  at("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    state.filter = at("filter").value.trim();
    write(true);
    restart();
  });
  at("group").addEventListener("change", () => {
    [state.group, state.sort] = [at("group").value, ""];
    write(true);
    restart();
  });
  at("metric").addEventListener("change", () => {
    state.metric = at("metric").value;
    write(false);
    drawCurves();
  });
  for (const id of ["from", "to"]) at(id).addEventListener("change", () => zoom(Number(at("from").value) || 0, Number(at("to").value) || 0));
  at("reset").addEventListener("click", () => zoom(0, 0));
  for (const id of ["a", "b"]) {
    at(id).addEventListener("change", () => {
      state[id] = at(id).value;
      write(false);
      drawPair();
    });
  }
  let isDrawing = false;
  let isStill = 0;
  at("box").addEventListener("scroll", () => {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => {
      isDrawing = false;
      draw();
    });
    // Browsers refuse many changes of the address in a short time.
    clearTimeout(isStill);
    isStill = setTimeout(() => {
      if (wanted) return;
      state.row = Math.floor(at("box").scrollTop / ROW);
      write(false);
    }, 300);
  });
  // From run to run: the next row may have to be scrolled to first.
  at("rows").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest("tr");
    if (!step || !row) return;
    event.preventDefault();
    const next = Number(row.getAttribute("aria-rowindex")) + step;
    const box = at("box");
    const top = (next - 2) * ROW;
    const height = box.clientHeight - at("heads").offsetHeight - at("pinned").offsetHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW > box.scrollTop + height) box.scrollTop = top + ROW - height;
    draw();
    at("rows").querySelector(`tr[aria-rowindex="${next}"] :is(input, button)`)?.focus({ preventScroll: true });
  });
  addEventListener("popstate", () => {
    state = read();
    fill();
    restart(state.row);
    showPinned();
  });

  const start = async () => {
    try {
      names = await ask("/-/names.json", {});
    } catch (error) {
      tell(error.message);
    }
    fill();
    restart(state.row);
    await showPinned();
    document.documentElement.dataset.ready = "yes";
  };
  // While runs train, what is in view changes.
  setInterval(() => {
    if (document.hidden) return;
    const first = Math.floor(at("box").scrollTop / ROW / PAGE);
    const last = Math.floor((at("box").scrollTop + at("box").clientHeight) / ROW / PAGE);
    for (const page of pages.keys()) if (page < first || page > last) pages.delete(page);
    for (let page = first; page <= last; page += 1) load(page);
    if (state.pins.length) showPinned();
  }, POLL);
  start();
})();
