// Lines as SVG.

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [360, 180, 48, 20, 10];
/** A line of more points shows the mean of neighbours. */
const MOST_POINTS = 400;

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function thinned(points) {
  const group = Math.ceil(points.length / MOST_POINTS);
  if (group <= 1) return points;
  const means = [];
  for (let from = 0; from < points.length; from += group) {
    const part = points.slice(from, from + group);
    const mean = (at) => part.reduce((sum, point) => sum + point[at], 0) / part.length;
    means.push([mean(0), mean(1)]);
  }
  return means;
}

/** Draws lines of [x, y] points with a common scale; the second line is dashed. */
export function draw(svg, lines, most) {
  const shown = lines.map(({ name, points }) => ({ name, points: thinned(points) }));
  const ys = shown.flatMap(({ points }) => points.map(([, y]) => y)).filter(Number.isFinite);
  if (ys.length === 0) return svg.replaceChildren();
  let [low, high] = [Math.min(...ys), Math.max(...ys)];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const x = (at) => LEFT + (at / Math.max(most, 1)) * (WIDTH - LEFT - 8);
  const y = (at) => TOP + (1 - (at - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const parts = [
    element("text", { x: 2, y: y(high) + 8 }, high.toPrecision(3)),
    element("text", { x: 2, y: y(low) }, low.toPrecision(3)),
    element("text", { x: LEFT, y: HEIGHT - 5 }, "0"),
    element("text", { x: WIDTH - 8, y: HEIGHT - 5, "text-anchor": "end" }, String(most)),
  ];
  shown.forEach(({ name, points }, number) => {
    const path = points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(" ");
    parts.push(element("polyline", { points: path, class: number ? "second" : "first" }));
    const last = points.at(-1);
    if (last && shown.length > 1) {
      parts.push(element("text", { x: WIDTH / 2 + number * 60 - 40, y: HEIGHT - 5 }, `${number ? "- -" : "—"} ${name}`));
    }
  });
  svg.replaceChildren(...parts);
}
