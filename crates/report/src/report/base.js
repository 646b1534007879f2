// Elements, numbers with units, the theme. Text from the data reaches the page
// through textContent and attributes set by name only.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

// Three significant digits, but all digits before the point.
function three(value) {
  if (value === 0 || Math.abs(value) >= 99.95) return Math.round(value).toLocaleString("en");
  const decimals = Math.abs(value) >= 9.995 ? 1 : Math.abs(value) >= 0.9995 ? 2 : 3;
  // Halves go up, as in the terminal.
  return (Math.round(value * 10 ** decimals) / 10 ** decimals).toFixed(decimals);
}
const NONE = "–";
function time(ns) {
  if (ns === null || ns === undefined) return NONE;
  if (ns < 0) return `−${time(-ns)}`;
  const [unit, scale] = unitFor(ns);
  return `${three(ns / scale)} ${unit}`;
}
const inUnit = (ns, scale) => (ns === null || ns === undefined ? NONE : three(ns / scale));
function bytes(n) {
  if (n === null || n === undefined) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  while (n >= 1024 && at < 5) { n /= 1024; at++; }
  return `${Number.isInteger(n) ? n : three(n)} ${units[at]}`;
}
const count = n => (n === null || n === undefined ? NONE : n.toLocaleString("en"));

const WORDS = { S: "sequential", R: "random" };
const MODES = { R: "read", W: "write" };
const words = baseline => (/^[SR][RW]$/.test(baseline) ? `${WORDS[baseline[0]]} ${MODES[baseline[1]]}` : "");
const BASELINES = ["SR", "RR", "SW", "RW"];

// The theme: as the system has it until a button says otherwise.
const theme = {
  now: () => document.documentElement.dataset.theme,
  set(name) {
    document.documentElement.dataset.theme = name;
    theme.listeners.forEach(listener => listener());
  },
  listeners: [],
};
const preferred = matchMedia("(prefers-color-scheme: dark)");
theme.set(preferred.matches ? "dark" : "light");
let themeChosen = false;
preferred.addEventListener("change", () => { if (!themeChosen) theme.set(preferred.matches ? "dark" : "light"); });
// Paper is white: pictures are drawn again in the light colours for it.
addEventListener("beforeprint", () => { theme.before = theme.now(); theme.set("light"); });
addEventListener("afterprint", () => { if (theme.before) theme.set(theme.before); });
const color = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// What the file says, filled in by readFacts: facts as report.rs has them, its
// view, and the runs as objects.
let facts, view;
let runs = [];
const runsById = new Map();

async function readFacts() {
  facts = JSON.parse(new TextDecoder().decode(await unpack(document.getElementById("facts").textContent)));
  view = facts.view;
  const t = facts.table, text = n => t.texts[n];
  const figures = (f, i) => {
    const of = column => column[i] ?? null;
    return { n: f.n[i], min: of(f.min), max: of(f.max), mean: of(f.mean), sd: of(f.sd), p: f.percentiles.map(of) };
  };
  runs = t.id.map((id, i) => {
    const p = t.point[i];
    return {
      id, purpose: t.purpose[i], baseline: text(t.baseline[i]), repeat: t.repeat[i], pattern: text(t.pattern[i]),
      point: p && { micro: text(p[0]), parameter: text(p[1]), value: p[2], label: text(p[3]) },
      ignore: t.io_ignore[i], elapsed: t.elapsed[i], cut: t.time_limit_hit[i] === 1,
      running: figures(t.running, i), all: figures(t.all, i), trace: t.trace[i] ?? null, missing: t.missing[i] ?? null,
    };
  });
  for (const run of runs) {
    // Where the profile found a longer start-up than IOIgnore, the page goes by that.
    const found = run.point ? null : at(facts.profile, "start_up_ios", run.baseline);
    run.ignore = Math.max(run.ignore, found || 0);
    runsById.set(run.id, run);
  }
}

// A field of a field …; null where something is not there.
const at = (object, ...keys) => keys.reduce((o, k) => (o && typeof o === "object" ? o[k] ?? null : null), object);
const extent = values => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
const average = list => (list.length ? list.reduce((a, b) => a + b, 0) / list.length : null);
