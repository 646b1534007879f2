// Distribution and location of the chosen run: drawn here, as the run is chosen here.

const PER_DECADE = 32;

// The runs of the same pattern at the same value.
function repeatsOf(run) {
  const key = r => JSON.stringify([r.purpose, r.baseline, r.point && [r.point.micro, r.point.parameter, r.point.value], r.point ? null : r.pattern.replace(/target_offset=[^,)]*/g, "")]);
  const own = key(run);
  return runs.filter(r => r.trace && key(r) === own).slice(0, 6);
}

// Shares of the IOs in bins of equal ratio, or their running sum.
async function distribution(run, cumulative) {
  const list = [];
  for (const r of repeatsOf(run)) {
    const trace = await loadTrace(r);
    const bins = [...binsOf(trace, PER_DECADE)].sort((a, b) => a[0] - b[0]);
    list.push({ run: r, own: r.id === run.id, n: bins.reduce((sum, b) => sum + b[1], 0), bins });
  }
  const all = list.flatMap(l => l.bins.map(b => b[0]));
  if (!all.length) return el("p", { class: "lead" }, "No IOs of this run are in this file.");
  const ends = [10 ** (Math.min(...all) / PER_DECADE), 10 ** ((Math.max(...all) + 1) / PER_DECADE)];
  const ticks = logTicks(ends[0], ends[1]);
  const f = { width: NARROW ? 380 : 560, height: 250, left: 66, right: 24, top: 10, bottom: 46 };
  const [low, high] = [Math.log(ticks[0]), Math.log(ticks[ticks.length - 1])];
  const x = ns => f.left + (Math.log(ns) - low) / (high - low) * (f.width - f.left - f.right);
  const least = Math.log10(1 / Math.max(...list.map(l => l.n))) - 0.2;
  const inner = f.height - f.top - f.bottom;
  const y = share => f.height - f.bottom - (cumulative ? share : Math.max(0, 1 - Math.log10(Math.max(share, 1e-12)) / least)) * inner;
  const style = styleOf(run.baseline);
  const shapes = list.sort((a, b) => a.own - b.own).map(l => shape(l, cumulative, x, y, f));
  const yTicks = cumulative ? [0, 0.25, 0.5, 0.75, 1] : Array.from({ length: Math.ceil(-least) }, (_, i) => 10 ** -i);
  const frame = [
    yTicks.map(t => [svg("line", { class: "grid", x1: f.left, x2: f.width - f.right, y1: y(t), y2: y(t) }),
      svg("text", { x: f.left - 6, y: y(t) + 4, "text-anchor": "end" }, `${parseFloat((t * 100).toPrecision(2))} %`)]),
    thin(ticks, 8).map(t => svg("text", { x: x(t), y: f.height - f.bottom + 18, "text-anchor": "middle" }, tick(t))),
    svg("path", { class: "frame", d: `M${f.left},${f.top}V${f.height - f.bottom}H${f.width - f.right}` }),
    svg("text", { x: f.width / 2, y: f.height - 8, "text-anchor": "middle" }, "response time, all IOs"),
  ];
  const own = list.find(l => l.own), found = modes(own.bins, own.n);
  const top = f.top + 10;
  shapes.push(found.length > 1 ? found.map((m, i) => [
    svg("line", { class: "knee", x1: x(m.ns), x2: x(m.ns), y1: f.top, y2: f.height - f.bottom }),
    svg("text", { class: "figure-name", x: x(m.ns) + (x(m.ns) > f.width * 0.8 ? -4 : 4), y: top + 13 * i, "text-anchor": x(m.ns) > f.width * 0.8 ? "end" : "start" }, `${percent(m.share)} ${time(m.ns)}`),
  ]) : null);
  const label = cumulative ? "Share of IOs not slower" : "Share of IOs by response time";
  return el("div", {},
    svg("svg", { class: `chart c-${style.c}`, viewBox: `0 0 ${f.width} ${f.height}`, role: "img", "aria-label": label }, frame, shapes),
    el("p", { class: "status" }, modesText(found, own.n)),
    list.length > 1 ? el("p", { class: "status" }, `Filled: run ${run.id}; lines: ${list.filter(l => !l.own).map(l => `run ${l.run.id}`).join(", ")} (its repeats).`) : null);
}

const percent = share => (share >= 0.1 ? `${Math.round(share * 100)} %` : `${parseFloat((share * 100).toPrecision(2))} %`);

// The modes that response times oscillate between: heaps of the histogram with a
// valley between them of at most a third of the lower one's height, and at least
// 0.5 % of the IOs. [{ns, share}], the middle IO of each heap.
function modes(bins, n) {
  if (!bins.length) return [];
  const first = bins[0][0], heights = new Array(bins[bins.length - 1][0] - first + 1).fill(0);
  for (const [bin, m] of bins) heights[bin - first] = m;
  const smooth = heights.map((h, i) => (h * 2 + (heights[i - 1] || 0) + (heights[i + 1] || 0)) / 4);
  const sum = (a, b) => heights.slice(a, b).reduce((x, y) => x + y, 0);
  let heaps = [];
  let start = 0;
  for (let i = 1; i <= smooth.length; i++) {
    const empty = i === smooth.length || (smooth[i] <= (smooth[i - 1] || 0) && smooth[i] < (smooth[i + 1] || 0)) || (smooth[i] === 0 && smooth[i - 1] > 0);
    if (empty) { heaps.push([start, i]); start = i; }
  }
  const top = ([a, b]) => Math.max(...smooth.slice(a, b), 0);
  for (let k = 0; k + 1 < heaps.length;) {
    const valley = Math.min(smooth[heaps[k][1] - 1], smooth[heaps[k][1]]);
    const low = Math.min(top(heaps[k]), top(heaps[k + 1]));
    const small = h => sum(...h) < 0.005 * n;
    if (valley > low / 3 || small(heaps[k]) || small(heaps[k + 1])) { heaps.splice(k, 2, [heaps[k][0], heaps[k + 1][1]]); k = Math.max(0, k - 1); } else k++;
  }
  return heaps.map(([a, b]) => {
    const m = sum(a, b);
    let middle = a;
    for (let seen = heights[a]; seen < m / 2 && middle + 1 < b;) seen += heights[++middle];
    return { ns: 10 ** ((middle + 0.5 + first) / PER_DECADE), share: m / n };
  }).filter(m => m.share > 0);
}
function modesText(found) {
  if (found.length < 2) return "One mode: the response times form a single heap.";
  return `${found.length} modes: ${found.map(m => `${percent(m.share)} of the IOs about ${time(m.ns)}`).join(", ")}.`;
}

// The repeats of a run side by side, on the same scales; choosing one shows it.
async function repeatsSideBySide(run) {
  const list = repeatsOf(run).sort((a, b) => a.id - b.id);
  if (list.length < 2) return null;
  const traces = [];
  for (const r of list) traces.push(await loadTrace(r));
  const ends = extent(list.flatMap((r, k) => (traces[k].response ? extent(traces[k].response) : extent(traces[k].histogram.map(h => h.ns)))));
  const means = list.map(r => r.running.mean).filter(v => v !== null), [least, most] = extent(means);
  const pictures = list.map((r, k) => {
    const canvas = el("canvas", { class: "tiny", role: "img", "aria-label": `response times of run ${r.id}` });
    const draw = () => tiny(canvas, r, traces[k], ends);
    theme.listeners.push(() => canvas.isConnected && draw());
    requestAnimationFrame(draw);
    return el("figure", {}, canvas, el("figcaption", {}, runButton(r.id), ` mean ${time(r.running.mean)}`));
  });
  const spread = means.length > 1 && least > 0 ? ` Their means differ by ${percent(most / least - 1)}.` : "";
  return el("div", { class: "card" }, el("h3", {}, "Repeats side by side", el("small", {}, ` the same scales.${spread}`)), el("div", { class: "tinies" }, pictures));
}

function tiny(canvas, run, trace, [least, most]) {
  const { context, w, h } = prepare(canvas, 60, 40);
  const low = Math.log(Math.max(1, least)), high = Math.log(Math.max(2, most * 1.05));
  const y = ns => h - 4 - (Math.log(Math.max(1, ns)) - low) / (high - low || 1) * (h - 8), x = io => 3 + io / Math.max(1, trace.length) * (w - 6);
  context.strokeStyle = color("line");
  context.strokeRect(0.5, 0.5, w - 1, h - 1);
  if (trace.response) for (let i = 0; i < trace.n; i++) {
    context.fillStyle = color(styleOf(trace.classes[trace.cls[i]].group).c);
    context.fillRect(x(trace.io[i]) - 0.75, y(trace.response[i]) - 0.75, 1.5, 1.5);
  } else if (trace.time) trace.time.forEach((cells, k) => {
    context.fillStyle = color(styleOf(trace.classes[k].group).c);
    for (let i = 0; i < trace.cells; i++) if (cells.count[i]) context.fillRect(x(i / trace.cells * trace.length), y(cells.max[i]), 1, Math.max(1, y(cells.min[i]) - y(cells.max[i])));
  });
}

function shape(l, cumulative, x, y, f) {
  const steps = [];
  let sum = 0, before = null;
  const bottom = f.height - f.bottom;
  const edge = bin => Math.max(f.left, x(10 ** (bin / PER_DECADE)));
  for (const [bin, n] of l.bins) {
    if (!cumulative && before !== null && bin > before + 1) steps.push([edge(before + 1), bottom], [edge(bin), bottom]);
    if (cumulative) steps.push([edge(bin), y(sum / l.n)]);
    sum += n;
    const at = y((cumulative ? sum : n) / l.n);
    if (!cumulative) { if (before === null) steps.push([edge(bin), bottom]); steps.push([edge(bin), at]); }
    steps.push([edge(bin + 1), at]);
    before = bin;
  }
  if (!cumulative) steps.push([edge(before + 1), bottom]); else steps.push([f.width - f.right, y(1)]);
  const d = path(steps);
  if (!l.own) return svg("path", { class: "curve half", d });
  return [cumulative ? null : svg("path", { class: "band", d: `${d}Z` }), svg("path", { class: "curve", d })];
}

// Response time over offset.
class Location {
  constructor(canvas, status) {
    Object.assign(this, { canvas, status });
    theme.listeners.push(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }
  show(run, trace) { Object.assign(this, { run, trace }); this.draw(); }
  draw() {
    if (!this.run || !this.canvas.isConnected) return;
    const { context, w, h } = prepare(this.canvas), { trace, run } = this;
    const known = trace && (trace.offset || trace.space);
    this.status.textContent = known ? "" : "The locations of this run's IOs are not in this file.";
    this.canvas.hidden = !known;
    if (!known) return;
    const ends = trace.offset ? this.ends() : this.usedEnds();
    const seen = trace.response ? extent(trace.response) : extent(trace.histogram.map(h => h.ns).concat(trace.outliers.map(o => o.response)));
    const ticks = logTicks(Math.max(1, seen[0] * 0.97), Math.max(2, seen[1] * 1.03));
    const s = scales(w, h, ends[0], ends[1], ticks[0], ticks[ticks.length - 1]);
    const unit = 2 ** Math.max(0, Math.ceil(Math.log2((ends[1] - ends[0]) / Math.max(2, w / 80))));
    const xTicks = [];
    for (let t = Math.ceil(ends[0] / unit) * unit; t <= ends[1]; t += unit) xTicks.push([t, bytes(t)]);
    axes(context, w, h, s, thin(ticks, 7), xTicks, "offset on the device");
    if (trace.offset) this.points(context, w, h, s); else this.places(context, s);
  }
  ends() {
    let low = Infinity, high = 0;
    for (const o of this.trace.offset) { if (o < low) low = o; if (o > high) high = o; }
    return high > low ? [low, high] : [low, low + 1];
  }
  usedEnds() {
    const t = this.trace, used = Array.from({ length: t.places }, (_, i) => t.space.some(c => c.count[i] > 0));
    const first = used.indexOf(true), last = used.lastIndexOf(true);
    return [Math.max(0, first) * t.end / t.places, (last + 1) * t.end / t.places];
  }
  points(context, w, h, s) {
    const { trace } = this, n = trace.response.length, groups = [...new Set(trace.classes.map(c => c.group))];
    const of = trace.classes.map(c => groups.indexOf(c.group));
    if (n <= MARKS_UP_TO) {
      for (let i = 0; i < n; i++) stamp(context, groups[of[trace.cls[i]]], s.x(trace.offset[i]), s.y(trace.response[i]), n > 600 ? 1.8 : 2.6);
    } else density(context, w, h, groups.map(g => styleOf(g).c), put => {
      for (let i = 0; i < n; i++) put(s.x(trace.offset[i]), s.y(trace.response[i]), of[trace.cls[i]]);
    });
  }
  places(context, s) {
    const { trace } = this, width = trace.end / trace.places;
    trace.space.forEach((cells, k) => {
      context.strokeStyle = context.fillStyle = color(styleOf(trace.classes[k].group).c);
      for (let i = 0; i < trace.places; i++) {
        if (!cells.count[i]) continue;
        const x = s.x((i + 0.5) * width);
        context.globalAlpha = 0.4;
        line(context, x, s.y(cells.min[i]), x, s.y(cells.max[i]));
        context.globalAlpha = 1;
        context.fillRect(x - 1, s.y(cells.max[i]) - 1, 2, 2);
        context.fillRect(x - 1, s.y(cells.mean[i]) - 1, 2, 2);
      }
    });
  }
}
