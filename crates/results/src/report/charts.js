// The micro-benchmarks: a chart, a sentence and a table each.

// Order (…, -1, 0, 1, …) and Mix (…, 1 : 2, 1 : 1, 2 : 1, …) have no log axis.
const isCategorical = (section, values) =>
  ["order", "mix"].includes(section.micro_benchmark) || values.some(v => v.value < 0) || values.length < 3;

function valuesOf(section) {
  const known = new Map();
  for (const series of section.series) for (const p of series.points) known.set(p.value, p.label);
  return [...known].map(([value, label]) => ({ value, label })).sort((a, b) => a.value - b.value);
}

// Place of each value from 0 to 1; log where that is possible, 0 before the rest.
function placesOf(section, values) {
  const places = new Map();
  if (isCategorical(section, values)) {
    values.forEach((v, i) => places.set(v.value, (i + 0.5) / values.length));
    return places;
  }
  const positive = values.filter(v => v.value > 0);
  const low = Math.log(positive[0].value), high = Math.log(positive[positive.length - 1].value);
  const zero = positive.length < values.length ? 1 / (positive.length + 1) : 0;
  for (const v of values) {
    const part = v.value > 0 ? (high > low ? (Math.log(v.value) - low) / (high - low) : 0.5) : -1;
    places.set(v.value, part < 0 ? 0.03 : 0.03 + zero + part * (0.94 - zero));
  }
  return places;
}

const average = list => (list.length ? list.reduce((a, b) => a + b, 0) / list.length : null);
function percentileOf(point, at) {
  const found = point.runs.map(id => runsById.get(id)).filter(r => r && r.running[3][at] !== null);
  return average(found.map(r => r.running[3][at]));
}

// A narrow screen gets a narrower picture, so that its letters stay legible.
const FRAME = { width: window.innerWidth < 560 ? 380 : 560, height: 300, left: 58, right: 12, top: 10, bottom: 46 };

function chart(section) {
  const values = valuesOf(section), places = placesOf(section, values);
  const all = [];
  for (const s of section.series) for (const p of s.points) {
    for (const ns of [p.mean_ns, p.min_ns, p.max_ns]) if (ns > 0) all.push(ns);
  }
  if (!all.length) return null;
  const f = FRAME;
  const tails = section.series.flatMap(s => s.points.flatMap(p => [percentileOf(p, 0), percentileOf(p, 3)])).filter(v => v > 0);
  const holder = el("div", {});
  const draw = wide => {
    const range = wide ? all.concat(tails) : all;
    const ticks = logTicks(Math.min(...range), Math.max(...range));
    const [low, high] = [Math.log(ticks[0]), Math.log(ticks[ticks.length - 1])];
    const x = value => f.left + places.get(value) * (f.width - f.left - f.right);
    const y = ns => f.height - f.bottom - (Math.log(ns) - low) / (high - low) * (f.height - f.top - f.bottom);
    const body = [axisY(thin(ticks, 8), y), axisX(section, values, x)];
    section.series.forEach(s => body.push(curve(section, s, x, y)));
    holder.replaceChildren(svg("svg", {
      class: "chart", viewBox: `0 0 ${f.width} ${f.height}`, role: "group",
      "aria-label": `${section.title}. ${section.parameter} across, mean response time up, both numbers are in the table below.`,
    }, body));
  };
  draw(percentiles.on);
  percentiles.listeners.push(() => draw(percentiles.on));
  return holder;
}

function axisY(ticks, y) {
  const f = FRAME;
  return [
    ticks.map(t => [
      svg("line", { class: "grid", x1: f.left, x2: f.width - f.right, y1: y(t), y2: y(t) }),
      svg("text", { x: f.left - 7, y: y(t) + 4, "text-anchor": "end" }, tick(t)),
    ]),
    svg("path", { class: "frame", d: `M${f.left},${f.top}V${f.height - f.bottom}H${f.width - f.right}` }),
  ];
}

function axisX(section, values, x) {
  const f = FRAME, bottom = f.height - f.bottom;
  let free = -Infinity;
  const labels = values.map(v => {
    const at = x(v.value), half = v.label.length * 3.4 + 3;
    const shown = at - half > free;
    if (shown) free = at + half;
    return [
      svg("line", { class: "frame", x1: at, x2: at, y1: bottom, y2: bottom + (shown ? 5 : 3) }),
      shown && svg("text", { x: at, y: bottom + 18, "text-anchor": "middle" }, v.label),
    ];
  });
  return [labels, svg("text", { x: (f.left + f.width - f.right) / 2, y: f.height - 8, "text-anchor": "middle" }, section.parameter)];
}

function path(points) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}

function curve(section, series, x, y) {
  const style = styleOf(series.baseline);
  const measured = series.points.filter(p => p.mean_ns > 0);
  const line = at => path(measured.filter(p => percentileOf(p, at) > 0).map(p => [x(p.value), y(percentileOf(p, at))]));
  const parts = [
    svg("path", { class: "p50 pc", d: line(0) }), svg("path", { class: "p99 pc", d: line(3) }),
    svg("path", { class: "curve", d: path(measured.map(p => [x(p.value), y(p.mean_ns)])) }),
  ];
  for (const p of measured) {
    const at = x(p.value);
    const spread = p.max_ns > p.min_ns * 1.001;
    const text = `${series.baseline} at ${p.label}: mean ${time(p.mean_ns)}` +
      (spread ? `, repeats ${time(p.min_ns)} to ${time(p.max_ns)}` : "") +
      `, p50 ${time(percentileOf(p, 0))}, p99 ${time(percentileOf(p, 3))}`;
    parts.push(svg("g", {
      class: "point", tabindex: 0, role: "button", "aria-label": `${text}; show its IOs`,
      onclick: () => showRun(p.runs[0], true), onkeydown: e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); showRun(p.runs[0], true); } },
    },
      svg("title", {}, `${text}\nclick to see its IOs`),
      spread && svg("path", { class: "whisker", d: `M${at},${y(p.min_ns)}V${y(p.max_ns)}M${at - 4},${y(p.min_ns)}h8M${at - 4},${y(p.max_ns)}h8` }),
      mark(style, at, y(p.mean_ns), 4.2)));
  }
  return svg("g", { class: `c-${style.c}` }, parts);
}

const percentiles = {
  on: false, listeners: [],
  toggle(on) {
    percentiles.on = on;
    document.body.classList.toggle("percentiles", on);
    percentiles.listeners.forEach(listener => listener());
  },
};

function legend(section) {
  return el("ul", { class: "legend" }, section.series.map(s => el("li", {}, sign(s.baseline), ` ${s.baseline}`,
    words(s.baseline) && ` ${words(s.baseline)}`)));
}

function pointTable(section) {
  const values = valuesOf(section);
  const means = section.series.flatMap(s => s.points.map(p => p.mean_ns)).filter(v => v > 0).sort((a, b) => a - b);
  const [unit, scale] = unitFor(means[means.length >> 1] || 1e3);
  const cell = p => {
    if (!p || p.mean_ns === null) return el("td", {}, NONE);
    const spread = p.runs.length > 1 ? ` (${inUnit(p.min_ns, scale)}–${inUnit(p.max_ns, scale)})` : "";
    return el("td", {}, inUnit(p.mean_ns, scale), el("small", {}, spread));
  };
  return el("details", {}, el("summary", {}, "Numbers"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${section.parameter}: numbers` }, el("table", {},
    el("caption", {}, `Mean response time in ${unit}`, means.length && section.series.some(s => s.points.some(p => p.runs.length > 1)) ? " (smallest–largest mean of the repeats)" : ""),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, section.parameter), section.series.map(s => el("th", { scope: "col" }, s.baseline)))),
    el("tbody", {}, values.map(v => el("tr", {}, el("td", {}, v.label),
      section.series.map(s => cell(s.points.find(p => p.value === v.value)))))))));
}

function microBenchmark(section, sentence) {
  const [name, rest] = section.title.split(": ");
  return el("article", { class: "card", id: `mb-${section.micro_benchmark}` },
    el("h3", {}, name, rest && el("small", {}, ` ${rest}`)),
    sentence && el("p", { class: "say" }, sentence),
    chart(section), legend(section), section.series.length ? pointTable(section) : null,
    section.skipped.length ? el("details", {}, el("summary", {}, `${section.skipped.length} left out`),
      el("ul", { class: "left" }, section.skipped.map(s => el("li", {}, s)))) : null);
}
