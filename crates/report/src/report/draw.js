// Painting. Charts were decided when the file was made (draw/): their marks
// become elements here and nothing is decided. What is drawn while somebody zooms
// uses the same looks and shapes.

const styleOf = name => facts.draw.looks[name] || { c: "m2", shape: "square", hollow: false };

function path(points) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}
const cornersOf = (shape, x, y, r) => (facts.draw.corners[shape] || []).map(([dx, dy]) => [x + dx * r, y + dy * r]);

function shapeAt(attributes, shape, x, y, r) {
  const corners = cornersOf(shape, x, y, r);
  return corners.length ? svg("path", { ...attributes, d: `${path(corners)}Z` }) : svg("circle", { ...attributes, cx: x, cy: y, r });
}
function sign(name) {
  const style = styleOf(name);
  return svg("svg", { class: `sign c-${style.c}`, viewBox: "0 0 14 14", "aria-hidden": "true" }, shapeAt({ class: style.hollow ? "mark hollow" : "mark fill" }, style.shape, 7, 7, 4.3));
}

// A mark that tells something where somebody asks, and shows its run.
function telling({ text, run }, shape) {
  const open = () => showRun(run, true);
  return svg("g", {
    class: "point", tabindex: 0, role: "button", "aria-label": `${text}; show its IOs`,
    onclick: open, onkeydown: e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); open(); } },
  }, svg("title", {}, `${text}\nclick to see its IOs`), shape);
}

// Marks of one look: by kind, its look, then places and what each tells.
const every = (places, n, make) => Array.from({ length: places.length / n }, (_, k) => make(...places.slice(k * n, (k + 1) * n), k));
const PAINT = {
  r: ([ink], [x, y, width, height]) => svg("rect", { class: `f c-${ink}`, x, y, width, height }),
  l: ([ink, width, dash], at) => svg("polyline", { class: `s c-${ink}`, points: at.join(" "), "stroke-width": width, "stroke-dasharray": dash && dash.join(" "), "stroke-linejoin": "round" }),
  w: ([ink], at) => svg("path", { class: `s c-${ink}`, "stroke-width": 0.6, d: every(at, 3, (x, low, high) => `M${x},${low}V${high}M${x - 1.6},${low}h3.2M${x - 1.6},${high}h3.2`).join("") }),
  o: ([ink, r], [cx, cy]) => svg("circle", { class: `s c-${ink}`, cx, cy, r, "stroke-width": 0.7 }),
  s: ([ink, r, shape, hollow], at, tips, tell) => every(at, 2, (x, y, k) => {
    const made = shapeAt({ class: `${shape === "dot" ? "f" : hollow ? "h" : "b"} c-${ink}`, "stroke-width": 0.8 }, shape, x, y, r);
    return tell && tips && tips[k] !== null ? telling(tell(tips[k]), made) : made;
  }),
  t: ([ink, anchor, upwards], [x, y], [text]) => svg("text", { class: `f c-${ink}`, x, y, "text-anchor": anchor, transform: upwards && `rotate(-90 ${x} ${y})` }, text),
};
// A narrow screen gets a narrower picture, so that its letters stay legible.
const NARROW = window.innerWidth < 560;
function paint(picture, tell) {
  if (!picture) return null;
  const { size: [w, h], marks } = NARROW && picture.narrow || picture.wide;
  return svg("svg", { class: "figure", viewBox: `0 0 ${w} ${h}`, role: "group", "aria-label": picture.title }, marks.map(([[kind, ...look], at, told]) => PAINT[kind](look, at, told, tell)));
}
