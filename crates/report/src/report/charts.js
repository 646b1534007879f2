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

function percentileOf(point, at) {
  const found = point.runs.map(id => runsById.get(id)).filter(r => r && r.running.p[at] !== null);
  return average(found.map(r => r.running.p[at]));
}

// A narrow screen gets a narrower picture, so that its letters stay legible.
const FRAME = { width: window.innerWidth < 560 ? 380 : 560, height: 300, left: 58, right: 12, top: 10, bottom: 46 };

function chart(section) {
  const values = valuesOf(section), places = placesOf(section, values);
  const all = [];
  for (const s of section.series) for (const p of s.points) {
    for (const ns of [p.mean_ns, ...(p.ci95_ns || [p.min_ns, p.max_ns])]) if (ns > 0) all.push(ns);
  }
  if (!all.length) return null;
  for (const m of section.marks) if (m.kind === "level") all.push(m.at);
  const f = FRAME;
  const tails = section.series.flatMap(s => s.points.flatMap(p => [percentileOf(p, 0), percentileOf(p, 3)])).filter(v => v > 0);
  const holder = el("div", {});
  const draw = wide => {
    const [least, most] = extent(wide ? all.concat(tails) : all);
    const ticks = logTicks(least, most);
    const [low, high] = [Math.log(ticks[0]), Math.log(ticks[ticks.length - 1])];
    const x = value => f.left + places.get(value) * (f.width - f.left - f.right);
    const y = ns => f.height - f.bottom - (Math.log(ns) - low) / (high - low) * (f.height - f.top - f.bottom);
    const body = [axisY(thin(ticks, 8), y), axisX(section, values, x), marksBehind(section, values, places, y)];
    section.series.forEach(s => body.push(curve(section, s, x, y)));
    body.push(marksBefore(section, x, y));
    holder.replaceChildren(svg("svg", {
      class: "chart", viewBox: `0 0 ${f.width} ${f.height}`, role: "group",
      "aria-label": `${section.title}. ${section.parameter} across, mean response time up, both numbers are in the table below.`,
    }, body));
  };
  draw(percentiles.on);
  percentiles.listeners.push(() => draw(percentiles.on));
  return holder;
}

// Place of any value, between those of the values measured.
function placeOf(value, values, places) {
  if (places.has(value)) return places.get(value);
  const above = values.findIndex(v => v.value > value);
  if (above < 0) return places.get(values[values.length - 1].value);
  if (above === 0) return places.get(values[0].value);
  const [a, b] = [values[above - 1].value, values[above].value];
  const part = a > 0 ? Math.log(value / a) / Math.log(b / a) : (value - a) / (b - a);
  return places.get(a) + part * (places.get(b) - places.get(a));
}

// What the profile reads off the curves: areas, values and levels.
function marksBehind(section, values, places, y) {
  const f = FRAME, bottom = f.height - f.bottom, across = f.width - f.left - f.right;
  let row = 0;
  return section.marks.map(m => {
    const group = parts => svg("g", { class: `figure c-${styleOf(m.baseline).c}` }, parts);
    if (m.kind === "level") {
      return group([svg("line", { class: "level", x1: f.left, x2: f.width - f.right, y1: y(m.at), y2: y(m.at) }),
        svg("text", { class: "figure-name", x: f.width - f.right - 3, y: y(m.at) - 4, "text-anchor": "end" }, m.label)]);
    }
    if (m.kind === "point") return null;
    const x = f.left + placeOf(m.at, values, places) * across;
    const right = x > f.left + across * 0.6, top = f.top + 11 + 14 * row++;
    return group([m.kind === "up_to" && svg("rect", { class: "area", x: f.left, y: f.top, width: Math.max(0, x - f.left), height: bottom - f.top }),
      svg("line", { class: "knee", x1: x, x2: x, y1: f.top, y2: bottom }),
      svg("text", { class: "figure-name", x: x + (right ? -5 : 5), y: top, "text-anchor": right ? "end" : "start" }, m.label)]);
  });
}

// Rings around points, with a word at the side that is free.
function marksBefore(section, x, y) {
  const f = FRAME;
  return section.marks.filter(m => m.kind === "point").map(m => {
    const series = section.series.find(s => s.baseline === m.baseline);
    const point = series && series.points.find(p => p.value === m.at && p.mean_ns > 0);
    if (!point) return null;
    const [px, py] = [x(point.value), y(point.mean_ns)], right = px > f.width * 0.7;
    return svg("g", { class: `figure c-${styleOf(m.baseline).c}`, "pointer-events": "none" },
      svg("circle", { class: "ring", cx: px, cy: py, r: 8 }),
      m.label === "90 %" ? null : svg("text", { class: "figure-name", x: px + (right ? -11 : 11), y: py - 6, "text-anchor": right ? "end" : "start" }, m.label));
  });
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
    const at = x(p.value), ends = p.ci95_ns || (p.max_ns > p.min_ns * 1.001 ? [p.min_ns, p.max_ns] : null);
    const text = `${series.baseline} at ${p.label}: mean ${time(p.mean_ns)}` +
      (p.ci95_ns ? `, 95 % interval ${time(p.ci95_ns[0])} to ${time(p.ci95_ns[1])}` : "") +
      (p.max_ns > p.min_ns * 1.001 ? `, repeats ${time(p.min_ns)} to ${time(p.max_ns)}` : "") +
      `, p50 ${time(percentileOf(p, 0))}, p99 ${time(percentileOf(p, 3))}`;
    const open = () => showRun(p.runs[0], true);
    // An interval may begin at 0, which a log axis has not.
    const low = ends && Math.min(FRAME.height - FRAME.bottom, y(Math.max(ends[0], 1e-3)));
    parts.push(svg("g", {
      class: "point", tabindex: 0, role: "button", "aria-label": `${text}; show its IOs`,
      onclick: open, onkeydown: e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); open(); } },
    },
      svg("title", {}, `${text}\nclick to see its IOs`),
      ends && svg("path", { class: "whisker", d: `M${at},${low}V${y(ends[1])}M${at - 4},${low}h8M${at - 4},${y(ends[1])}h8` }),
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
    const ends = p.ci95_ns || (p.runs.length > 1 ? [p.min_ns, p.max_ns] : null);
    return el("td", {}, inUnit(p.mean_ns, scale), ends && el("small", {}, ` ${inUnit(ends[0], scale)}–${inUnit(ends[1], scale)}`));
  };
  const points = section.series.flatMap(s => s.points);
  const what = points.some(p => p.ci95_ns) ? ", with its 95 % interval" : points.some(p => p.runs.length > 1) ? ", with the smallest and largest mean of the repeats" : "";
  return el("details", { open: values.length < 2 }, el("summary", {}, "Numbers"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${section.parameter}: numbers` }, el("table", { class: "points" },
    el("caption", {}, `Mean response time in ${unit}${what}`),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, section.parameter), section.series.map(s => el("th", { scope: "col" }, s.baseline)))),
    el("tbody", {}, values.map(v => el("tr", {}, el("td", {}, v.label),
      section.series.map(s => cell(s.points.find(p => p.value === v.value)))))))));
}

function microBenchmark(section) {
  const [name, ...rest] = section.title.split(": ");
  return el("article", { class: "card", id: `mb-${section.micro_benchmark}` },
    el("h3", {}, name, rest.length > 0 && el("small", {}, ` ${rest.join(": ")}`)),
    section.sentences.map(sentence => el("p", { class: "say" }, sentence)),
    valuesOf(section).length > 1 ? [chart(section), legend(section)] : null, section.series.length ? pointTable(section) : null,
    section.skipped.length ? el("details", {}, el("summary", {}, `${section.skipped.length} left out`),
      el("ul", { class: "left" }, section.skipped.map(s => el("li", {}, s)))) : null);
}
