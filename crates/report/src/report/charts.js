// The micro-benchmarks: a chart, a sentence and a table each.

function valuesOf(section) {
  const known = new Map();
  for (const series of section.series) for (const p of series.points) known.set(p.value, p.label);
  return [...known].map(([value, label]) => ({ value, label })).sort((a, b) => a.value - b.value);
}

function percentileOf(point, at) {
  return average(point.runs.map(id => runsById.get(id)).filter(Boolean).map(r => r.running.p[at]).filter(v => v !== null));
}

// What a point says: the points of all series are numbered one after the other.
function tellOf(section) {
  const points = section.series.flatMap(s => s.points.map(p => [s.baseline, p]));
  return number => {
    const [baseline, p] = points[number];
    const [p50, p99] = [percentileOf(p, 0), percentileOf(p, 3)];
    const text = `${baseline} at ${p.label}: mean ${time(p.mean_ns)}` +
      (p.ci95_ns ? `, 95 % interval ${time(p.ci95_ns[0])} to ${time(p.ci95_ns[1])}` : "") +
      (p.max_ns > p.min_ns * 1.001 ? `, repeats ${time(p.min_ns)} to ${time(p.max_ns)}` : "") +
      (p50 === null ? "" : `, p50 ${time(p50)}, p99 ${time(p99)}`);
    return { text, run: p.runs[0] };
  };
}

// The chart without or with percentiles, as the page is set.
function chart(section, drawn) {
  if (!drawn) return valuesOf(section).length > 1 && section.series.length ? el("p", { class: "status" }, "There is no room for the chart in this file.") : null;
  const holder = el("div", {}), tell = tellOf(section);
  const draw = () => holder.replaceChildren(paint(percentiles.on && drawn.percentiles || drawn.plain, tell));
  draw();
  percentiles.listeners.push(draw);
  return holder;
}

const percentiles = {
  on: false, listeners: [],
  toggle(on) {
    percentiles.on = on;
    percentiles.listeners.forEach(listener => listener());
  },
};

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
    el("caption", {}, `Mean response time in ${unit}${facts.profile ? ", without the start-up that was found" : ""}${what}`),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, section.parameter), section.series.map(s => el("th", { scope: "col" }, s.baseline)))),
    el("tbody", {}, values.map(v => el("tr", {}, el("td", {}, v.label),
      section.series.map(s => cell(s.points.find(p => p.value === v.value)))))))));
}

function microBenchmark(section, at) {
  const [name, ...rest] = section.title.split(": ");
  return el("article", { class: "card", id: `mb-${section.micro_benchmark}` },
    el("h3", {}, name, rest.length > 0 && el("small", {}, ` ${rest.join(": ")}`)),
    section.sentences.map(sentence => el("p", { class: "say" }, sentence)),
    chart(section, facts.charts.sections[at]), section.series.length ? pointTable(section) : null,
    section.skipped.length ? el("details", {}, el("summary", {}, `${section.skipped.length} left out`),
      el("ul", { class: "left" }, section.skipped.map(s => el("li", {}, s)))) : null);
}
