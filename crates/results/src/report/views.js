// Distribution and location of the chosen run.

const PER_DECADE = 32;

// The runs of the same pattern at the same value.
function repeatsOf(run) {
  const key = r => JSON.stringify([r.purpose, r.baseline, r.point && [r.point.micro_benchmark, r.point.value], r.point ? null : r.pattern.replace(/target_offset=[^,)]*/g, "")]);
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
  const f = { ...FRAME, height: 250, left: 66, right: 24 };
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
  const label = cumulative ? "Share of IOs not slower" : "Share of IOs by response time";
  return el("div", {},
    svg("svg", { class: `chart c-${style.c}`, viewBox: `0 0 ${f.width} ${f.height}`, role: "img", "aria-label": label }, frame, shapes),
    list.length > 1 ? el("p", { class: "status" }, `Filled: run ${run.id}; lines: ${list.filter(l => !l.own).map(l => `run ${l.run.id}`).join(", ")} (its repeats).`) : null);
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
    const ticks = logTicks(Math.max(1, run.all[1][0] * 0.97), Math.max(2, run.all[1][1] * 1.03));
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
