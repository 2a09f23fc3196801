// A drawing pad that gives gray values from 0 to 1, in the pixels of the network's items.

const SIDE = 224;
let current = null;

/** Draws on a canvas; `changed` receives the pixels of `size` x `size`. Starting again changes the size. */
export function start(canvas, clear, size, changed) {
  const isFirst = current === null;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  current = { size, changed };
  const erase = () => {
    context.fillStyle = "black";
    context.fillRect(0, 0, SIDE, SIDE);
  };
  erase();
  if (!isFirst) return;
  let last = null;
  const read = () => {
    const { data } = context.getImageData(0, 0, SIDE, SIDE);
    const cell = SIDE / current.size;
    const pixels = new Array(current.size ** 2).fill(0);
    for (let y = 0; y < SIDE; y++) {
      for (let x = 0; x < SIDE; x++) {
        pixels[Math.floor(y / cell) * current.size + Math.floor(x / cell)] += data[4 * (y * SIDE + x)] / 255 / cell ** 2;
      }
    }
    current.changed(pixels);
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = at(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    const next = at(event);
    Object.assign(context, { strokeStyle: "white", lineWidth: 26, lineCap: "round" });
    context.beginPath();
    context.moveTo(...last);
    context.lineTo(...next);
    context.stroke();
    last = next;
    read();
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (last = null));
  clear.addEventListener("click", () => {
    erase();
    read();
  });
}
