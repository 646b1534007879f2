// The trace explorer: response time (log) against IO number or submission time.
// Many IOs are drawn as a density on a log scale in which a single IO still has
// more than half the ink, few as marks.

const PAD = { left: 60, right: 12, top: 22, bottom: 36 };
const MARKS_UP_TO = 2500;

// Canvas of CSS size, sharp on any display; gives its context and size.
function prepare(canvas, least = 200, lowest = 150) {
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(least, Math.round(width)), Math.max(lowest, Math.round(height))];
  if (canvas.width !== w * ratio || canvas.height !== h * ratio) { canvas.width = w * ratio; canvas.height = h * ratio; }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, w, h);
  context.font = "12px system-ui, sans-serif";
  return { context, w, h };
}

// Scales of a scatter: x linear, y log.
function scales(w, h, x0, x1, low, high) {
  const [a, b] = [Math.log(low), Math.log(high)];
  return {
    x: v => PAD.left + (v - x0) / (x1 - x0) * (w - PAD.left - PAD.right),
    back: px => x0 + (px - PAD.left) / (w - PAD.left - PAD.right) * (x1 - x0),
    y: ns => h - PAD.bottom - (Math.log(Math.max(ns, 1)) - a) / (b - a) * (h - PAD.top - PAD.bottom),
  };
}

function axes(context, w, h, s, yTicks, xTicks, xLabel) {
  context.lineWidth = 1;
  context.fillStyle = color("soft");
  context.textBaseline = "middle";
  for (const t of yTicks) {
    context.strokeStyle = color("grid");
    line(context, PAD.left, s.y(t), w - PAD.right, s.y(t));
    context.textAlign = "right";
    context.fillText(tick(t), PAD.left - 7, s.y(t));
  }
  context.strokeStyle = color("line");
  context.textAlign = "center";
  for (const [value, text] of xTicks) {
    const at = s.x(value);
    if (at < PAD.left - 1 || at > w - PAD.right + 1) continue;
    line(context, at, h - PAD.bottom, at, h - PAD.bottom + 4);
    context.fillText(text, Math.min(at, w - PAD.right - context.measureText(text).width / 2 + 8), h - PAD.bottom + 12);
  }
  line(context, PAD.left, h - PAD.bottom, w - PAD.right, h - PAD.bottom);
  line(context, PAD.left, PAD.top, PAD.left, h - PAD.bottom);
  context.fillText(xLabel, (PAD.left + w - PAD.right) / 2, h - 7);
}
function line(context, x0, y0, x1, y1) {
  context.beginPath(); context.moveTo(x0, y0); context.lineTo(x1, y1); context.stroke();
}

// Points as ink on cells of two pixels: alpha grows with the log of the count
// from 0.6, colours of several groups mix by the same weight.
function density(context, w, h, groups, each) {
  const cols = (w - PAD.left - PAD.right) >> 1, rows = (h - PAD.top - PAD.bottom) >> 1;
  const counts = groups.map(() => new Uint32Array(cols * rows));
  let most = 1;
  each((px, py, group) => {
    const c = (px - PAD.left) >> 1, r = (py - PAD.top) >> 1;
    if (c < 0 || c > cols || r < 0 || r > rows) return;
    const n = ++counts[group][Math.min(r, rows - 1) * cols + Math.min(c, cols - 1)];
    if (n > most) most = n;
  });
  const layer = document.createElement("canvas");
  layer.width = cols; layer.height = rows;
  const inner = layer.getContext("2d"), image = inner.createImageData(cols, rows);
  const inks = groups.map(g => rgb(color(g)));
  for (let i = 0; i < cols * rows; i++) {
    let weight = 0, r = 0, g = 0, b = 0, total = 0;
    for (let k = 0; k < groups.length; k++) {
      const n = counts[k][i];
      if (!n) continue;
      const share = Math.log1p(n);
      total += n; weight += share; r += inks[k][0] * share; g += inks[k][1] * share; b += inks[k][2] * share;
    }
    if (!total) continue;
    image.data.set([r / weight, g / weight, b / weight, 255 * (0.6 + 0.4 * Math.log(total) / Math.log(most + 1))], i * 4);
  }
  inner.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(layer, PAD.left, PAD.top, cols * 2, rows * 2);
}
function rgb(hex) {
  const v = parseInt(hex.slice(1).replace(/^(.)(.)(.)$/, "$1$1$2$2$3$3"), 16);
  return [v >> 16, (v >> 8) & 255, v & 255];
}

function stamp(context, group, x, y, r) {
  const style = styleOf(group);
  context.beginPath();
  const corners = cornersOf(style.shape, x, y, r);
  if (!corners.length) context.arc(x, y, r, 0, 7);
  corners.forEach(([px, py], k) => (k ? context.lineTo(px, py) : context.moveTo(px, py)));
  if (corners.length) context.closePath();
  context.strokeStyle = context.fillStyle = color(style.c);
  context.lineWidth = 1.3;
  if (style.hollow) context.stroke(); else context.fill();
}

// Cumulative means with and without the start-up, in the order of the IOs.
function averages(trace, ioIgnore) {
  const n = trace.response.length, all = new Float64Array(n), running = new Float64Array(n);
  let sum = 0, part = 0, counted = 0;
  for (let k = 0; k < n; k++) {
    const i = trace.order ? trace.order[k] : k;
    sum += trace.response[i];
    if (trace.io[i] >= ioIgnore) { part += trace.response[i]; counted++; }
    all[k] = sum / (k + 1);
    running[k] = counted ? part / counted : NaN;
  }
  return { all, running };
}

const STREAM_INKS = ["RR", "RW", "m0", "m1", "SW", "SR", "m2"];

class Explorer {
  constructor(canvas, tip, status) {
    Object.assign(this, { canvas, tip, status, run: null, trace: null, axis: "io", byStream: false, cursor: -1 });
    canvas.addEventListener("wheel", e => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", e => this.down(e));
    canvas.addEventListener("pointermove", e => this.move(e));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, e => this.up(e));
    canvas.addEventListener("pointerleave", () => { this.hover = null; this.tip.hidden = true; });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", e => this.key(e));
    this.pointers = new Map();
    theme.listeners.push(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  show(run, trace) {
    Object.assign(this, { run, trace, cursor: -1 });
    if (trace && trace.response && !trace.average) trace.average = averages(trace, run.ignore);
    if (!this.hasTime()) this.axis = "io";
    this.range();
    this.reset();
  }

  hasTime() { return !!this.trace && (!!this.trace.submit || !!this.trace.starts); }

  setAxis(axis) { this.axis = axis; this.cursor = -1; this.reset(); }

  range() {
    const trace = this.trace;
    if (!trace) return;
    let low = Infinity, high = 0;
    const see = ns => { if (ns < low) low = ns; if (ns > high) high = ns; };
    if (trace.response) trace.response.forEach(see);
    else trace.histogram.forEach(h => see(h.ns)), trace.outliers.forEach(o => see(o.response));
    this.ticks = logTicks(Math.max(1, low * 0.97), Math.max(2, high * 1.03));
  }

  // The IOs that are here one by one: all, or those around the slowest.
  get points() { return this.trace && this.trace.points; }

  full() {
    if (this.axis === "io" || !this.trace) return [-0.5, Math.max(1, this.trace ? this.trace.length : 1) - 0.5];
    return [0, Math.max(1, this.run.elapsed)];
  }

  reset() { [this.x0, this.x1] = this.full(); this.draw(); }

  // Keeps the range inside the run and no narrower than two IOs.
  zoomTo(x0, x1) {
    const [a, b] = this.full();
    const least = Math.min(b - a, this.axis === "io" ? 2 : Math.max(1000, (b - a) / Math.max(1, this.trace.length) * 2));
    let span = Math.min(b - a, Math.max(least, x1 - x0));
    let from = (x0 + x1 - span) / 2;
    from = Math.max(a, Math.min(b - span, from));
    [this.x0, this.x1] = [from, from + span];
    this.draw();
  }
  zoom(factor, at) {
    const centre = at === undefined ? (this.x0 + this.x1) / 2 : at;
    this.zoomTo(centre - (centre - this.x0) * factor, centre + (this.x1 - centre) * factor);
  }
  pan(part) { const d = (this.x1 - this.x0) * part; this.zoomTo(this.x0 + d, this.x1 + d); }

  // Length of an IO on the axis.
  perIo() { return this.axis === "io" ? 1 : this.run.elapsed / Math.max(1, this.trace.length); }
  xs() { return this.axis === "io" ? this.points.io : this.points.submit; }
  xOf(i) { return this.xs()[i]; }

  startUpEnd() {
    const { trace, run } = this;
    if (!run.ignore) return null;
    if (this.axis === "io") return run.ignore - 0.5;
    if (trace.starts) return trace.starts[Math.min(trace.cells - 1, Math.floor(run.ignore * trace.cells / trace.length))];
    let end = 0;
    for (let i = 0; i < trace.io.length; i++) if (trace.io[i] < run.ignore && trace.submit[i] + trace.response[i] > end) end = trace.submit[i] + trace.response[i];
    return end;
  }

  draw() {
    if (!this.run || !this.canvas.isConnected) return;
    const { context, w, h } = prepare(this.canvas);
    if (!this.trace || this.trace.kind === "sketched") return this.drawNothing(context, w, h);
    const s = scales(w, h, this.x0, this.x1, this.ticks[0], this.ticks[this.ticks.length - 1]);
    this.s = s;
    this.shade(context, w, h, s);
    axes(context, w, h, s, thin(this.ticks, 9), this.xTicks(w), this.axis === "io" ? "IO number" : "time of submission");
    context.save();
    context.beginPath(); context.rect(PAD.left, PAD.top - 6, w - PAD.left - PAD.right + 4, h - PAD.top - PAD.bottom + 8); context.clip();
    const visible = this.trace.response ? this.drawPoints(context, w, h, s) : this.drawCells(context, s);
    this.drawSpikes(context, s, visible);
    this.drawAverages(context, s);
    this.drawCursor(context, h, s);
    context.restore();
    const c = this.canvas.dataset;
    [c.visible, c.from, c.to, c.run] = [visible, this.x0, this.x1, this.run.id];
    this.status.textContent = this.describe(visible);
  }

  drawNothing(context, w, h) {
    context.fillStyle = color("soft");
    context.textAlign = "center";
    const why = this.trace ? "Only the histogram and the slowest IOs of this run are in this file." : `The IOs of this run are ${kindWords(this.run)}.`;
    context.fillText(why, w / 2, h / 2);
    this.status.textContent = why;
    this.canvas.dataset.visible = 0;
    this.canvas.dataset.run = this.run.id;
  }

  describe(visible) {
    const columns = `${count(this.trace.n)} IOs in ${count(this.trace.cells)} columns: line smallest to largest, dash the middle one`;
    const single = this.points ? `${count(visible)} IOs one by one, as everywhere around the slowest` : "The IOs of one column, of which this file has no more than the smallest, middle and largest";
    const shown = this.trace.response ? `${count(visible)} of ${count(this.trace.n)} IOs` : this.within() ? single : columns;
    const part = this.axis === "io" ? `IO ${count(Math.max(0, Math.ceil(this.x0)))} to ${count(Math.min(this.trace.length - 1, Math.floor(this.x1)))}` : `${time(this.x0)} to ${time(this.x1)}`;
    return `${shown}, ${part}`;
  }

  xTicks(w) {
    const ticks = linearTicks(this.x0, this.x1, Math.max(3, w / 110));
    if (this.axis === "io") return ticks.filter(Number.isInteger).map(t => [t, count(t)]);
    const [unit, scale] = unitFor(this.x1);
    return ticks.map(t => [t, `${parseFloat((t / scale).toPrecision(7)).toLocaleString("en", { maximumFractionDigits: 6 })} ${unit}`]);
  }

  shade(context, w, h, s) {
    context.textBaseline = "middle";
    context.textAlign = "left";
    if (this.trace.parts) return this.shadeParts(context, w, h, s);
    this.drawMarks(context, w, h, s);
    const end = this.startUpEnd();
    const period = this.period();
    const running = `running phase${period ? `, period ${three(period)} IOs` : ""}`;
    context.fillStyle = color("soft");
    if (end === null) return void context.fillText(running, PAD.left + 4, PAD.top - 10);
    const at = Math.min(w - PAD.right, s.x(end));
    if (at > PAD.left) {
      context.fillStyle = color("shade");
      context.fillRect(PAD.left, PAD.top, at - PAD.left, h - PAD.top - PAD.bottom);
    }
    context.fillStyle = color("soft");
    const room = at - PAD.left;
    if (room > 50) context.fillText("start-up", PAD.left + 4, PAD.top - 10);
    if (w - PAD.right - at > 90) context.fillText(room > 50 || room < -1 ? running : `${running} after ${count(this.run.ignore)} IOs of start-up`, Math.max(PAD.left, at) + 4, PAD.top - 10);
  }

  // Of the running phase of a baseline's own run, as the profile has it.
  period() { return this.run.point ? null : at(facts.profile, "period_ios", this.run.baseline); }

  // Every other part shaded, each with its name, and where a lasting effect ends.
  shadeParts(context, w, h, s) {
    const place = v => Math.max(PAD.left, Math.min(w - PAD.right, s.x(v)));
    const spans = [];
    for (const part of this.trace.parts) {
      const last = spans[spans.length - 1];
      if (last && last.name === part.name) [last.to, last.end] = [part.to, part.end];
      else spans.push({ ...part });
    }
    spans.forEach((part, k) => {
      const [a, b] = (this.axis === "io" ? [part.from - 0.5, part.to - 0.5] : [part.begin, part.end]).map(place);
      if (b <= a) return;
      context.fillStyle = color("shade");
      if (k % 2) context.fillRect(a, PAD.top, b - a, h - PAD.top - PAD.bottom);
      context.fillStyle = color("soft");
      if (part.name && b - a > context.measureText(part.name).width + 8) context.fillText(part.name, a + 4, PAD.top - 10);
    });
    this.drawMarks(context, w, h, s);
  }

  drawMarks(context, w, h, s) {
    for (const m of this.trace.marks || []) {
      const x = s.x(this.axis === "io" ? m.io - 0.5 : this.trace.submit[Math.min(this.trace.n - 1, m.io)]);
      if (x < PAD.left || x > w - PAD.right) continue;
      context.strokeStyle = context.fillStyle = color("ink");
      context.setLineDash([3, 3]);
      line(context, x, PAD.top, x, h - PAD.bottom);
      context.setLineDash([]);
      const left = x > w * 0.7;
      context.textAlign = left ? "right" : "left";
      context.fillText(m.name, x + (left ? -5 : 5), PAD.top + 10);
      context.textAlign = "left";
    }
  }

  inks() {
    const { trace } = this;
    if (this.byStream) return { groups: STREAM_INKS, of: trace.classes.map(c => c.stream % STREAM_INKS.length) };
    const groups = [...new Set(trace.classes.map(c => c.group))];
    return { groups, of: trace.classes.map(c => groups.indexOf(c.group)) };
  }

  drawPoints(context, w, h, s) {
    const { trace } = this, n = trace.response.length, { groups, of } = this.inks();
    const xs = this.axis === "io" ? trace.io : trace.submit;
    let visible = 0;
    for (let i = 0; i < n; i++) if (xs[i] >= this.x0 && xs[i] <= this.x1) visible++;
    if (visible > MARKS_UP_TO) {
      density(context, w, h, groups.map(g => (facts.draw.looks[g] ? styleOf(g).c : g)), put => {
        for (let i = 0; i < n; i++) if (xs[i] >= this.x0 && xs[i] <= this.x1) put(s.x(xs[i]), s.y(trace.response[i]), of[trace.cls[i]]);
      });
      return visible;
    }
    const r = visible > 600 ? 2 : 3;
    for (let i = 0; i < n; i++) if (xs[i] >= this.x0 && xs[i] <= this.x1) stamp(context, groups[of[trace.cls[i]]], s.x(xs[i]), s.y(trace.response[i]), r);
    return visible;
  }

  // Left edge of a column on the axis in use.
  cellX(k) { const t = this.trace; return this.axis === "io" ? k * t.length / t.cells - 0.5 : k < t.cells ? t.starts[k] : this.run.elapsed; }

  // True where less than two columns are in view: single IOs are what is seen.
  within() {
    const { trace } = this;
    if (trace.response) return false;
    const width = this.axis === "io" ? trace.length / trace.cells : this.run.elapsed / trace.cells;
    return this.x1 - this.x0 < 1.5 * width;
  }

  drawCells(context, s) {
    const { trace } = this, within = this.within();
    let visible = 0;
    trace.time.forEach((cells, k) => {
      const ink = color(styleOf(trace.classes[k].group).c);
      for (let i = 0; i < trace.cells; i++) {
        const [a, b] = [this.cellX(i), this.cellX(i + 1)];
        if (!cells.count[i] || b < this.x0 || a > this.x1) continue;
        visible += cells.count[i];
        const own = s.x(b) - s.x(a), width = Math.max(1, own);
        context.strokeStyle = context.fillStyle = ink;
        if (width > 12) { this.drawWideCell(context, s, a, b, cells, i); continue; }
        const x = s.x((a + b) / 2);
        // Several columns on one pixel share its ink.
        context.globalAlpha = Math.max(0.1, 0.4 * Math.min(1, own));
        context.lineWidth = Math.min(3, width);
        line(context, x, s.y(cells.min[i]), x, s.y(cells.max[i]));
        context.globalAlpha = 1;
        context.fillRect(x - 1, s.y(cells.max[i]) - 1, 2, 2);
        context.fillRect(x - width / 2, s.y(cells.median[i] || cells.mean[i]) - 1, Math.max(1.5, width), 2);
      }
    });
    const single = this.drawSingles(context, s);
    return within ? single : visible;
  }

  // A column that is wider than a line: its range as a box.
  drawWideCell(context, s, a, b, cells, i) {
    const [x0, x1] = [Math.max(PAD.left - 2, s.x(a)), Math.min(s.x(this.x1) + 2, s.x(b))];
    const [top, bottom] = [s.y(cells.max[i]), s.y(cells.min[i])];
    context.globalAlpha = 0.13;
    context.fillRect(x0 + 0.5, top, x1 - x0 - 1, bottom - top);
    context.globalAlpha = 0.8;
    context.fillRect(x0 + 0.5, s.y(cells.median[i] || cells.mean[i]) - 1, x1 - x0 - 1, 2);
    context.globalAlpha = 1;
  }

  // The IOs around the slowest, one by one, where there is room for them.
  drawSingles(context, s) {
    const { trace, points } = this;
    if (!points) return 0;
    const xs = this.xs(), apart = this.axis === "io" ? s.x(1) - s.x(0) : (s.x(this.run.elapsed) - s.x(0)) / trace.length;
    let seen = 0;
    for (let i = 0; i < xs.length; i++) {
      if (xs[i] < this.x0 || xs[i] > this.x1) continue;
      seen++;
      if (apart > 0.5) stamp(context, trace.classes[points.cls[i]].group, s.x(xs[i]), s.y(points.response[i]), apart > 4 ? 3 : 2);
    }
    return seen;
  }

  // Rings around the slowest IOs where they stand out and could be overlooked.
  drawSpikes(context, s, visible) {
    const { trace, run } = this;
    if (visible <= MARKS_UP_TO || trace.kind === "sequence") return;
    const limit = 2 * (run.all.p[4] || run.running.p[4] || run.running.mean || 0);
    if (!trace.spikes) {
      trace.spikes = trace.outliers.map(o => ({ io: o.io, submit: o.submit, response: o.response }));
      if (trace.response && !trace.spikes.length) {
        const far = [];
        for (let i = 0; i < trace.response.length; i++) if (trace.response[i] > limit) far.push(i);
        far.sort((a, b) => trace.response[b] - trace.response[a]);
        trace.spikes = far.slice(0, 24).map(i => ({ io: trace.io[i], submit: trace.submit && trace.submit[i], response: trace.response[i] }));
      }
    }
    context.strokeStyle = color("ink");
    context.lineWidth = 1;
    for (const o of trace.spikes.slice(0, 24)) {
      const at = this.axis === "io" ? o.io : o.submit;
      if (o.response <= limit || at === null || at < this.x0 || at > this.x1) continue;
      context.beginPath(); context.arc(s.x(at), s.y(o.response), 5, 0, 7); context.stroke();
    }
  }

  drawAverages(context, s) {
    const { trace } = this;
    // Means cannot be had from medians.
    if (trace.coarse || trace.parts) return;
    const lines = trace.response ? this.pointAverages() : this.cellAverages();
    context.strokeStyle = color("avg");
    context.lineWidth = 1.5;
    for (const [dash, points] of [[[6, 4], lines.all], [[], lines.running]]) {
      context.setLineDash(dash);
      context.beginPath();
      let begun = false;
      for (const [x, ns] of points) {
        if (!(ns > 0)) continue;
        if (begun) context.lineTo(s.x(x), s.y(ns)); else context.moveTo(s.x(x), s.y(ns));
        begun = true;
      }
      context.stroke();
    }
    context.setLineDash([]);
  }

  pointAverages() {
    const { trace } = this, n = trace.response.length, all = [], running = [];
    const at = k => this.xOf(trace.order ? trace.order[k] : k);
    const find = x => { let a = 0, b = n; while (a < b) { const m = (a + b) >> 1; if (at(m) < x) a = m + 1; else b = m; } return a; };
    const from = Math.max(0, find(this.x0) - 1), to = Math.min(n - 1, find(this.x1) + 1);
    const step = Math.max(1, Math.floor((to - from) / 1500));
    for (let k = from; k <= to; k += step) { all.push([at(k), trace.average.all[k]]); running.push([at(k), trace.average.running[k]]); }
    return { all: this.run.ignore ? all : [], running };
  }

  cellAverages() {
    const { trace, run } = this, all = [], running = [];
    let sum = 0, n = 0, part = 0, m = 0;
    for (let i = 0; i < trace.cells; i++) {
      const later = (i + 0.5) * trace.length / trace.cells >= run.ignore;
      for (const c of trace.time) {
        sum += c.count[i] * c.mean[i]; n += c.count[i];
        if (later) { part += c.count[i] * c.mean[i]; m += c.count[i]; }
      }
      const x = (this.cellX(i) + this.cellX(i + 1)) / 2;
      all.push([x, sum / n]); running.push([x, m ? part / m : NaN]);
    }
    return { all: run.ignore ? all : [], running };
  }

  drawCursor(context, h, s) {
    if (this.cursor >= 0 && this.points) {
      const x = s.x(this.xOf(this.cursor)), y = s.y(this.points.response[this.cursor]);
      context.strokeStyle = color("soft");
      context.lineWidth = 1;
      line(context, x, PAD.top, x, h - PAD.bottom);
      context.strokeStyle = color("ink");
      context.lineWidth = 2;
      context.beginPath(); context.arc(x, y, 6, 0, 7); context.stroke();
    }
    if (this.brush) {
      context.fillStyle = color("shade");
      context.fillRect(s.x(this.brush[0]), PAD.top, s.x(this.brush[1]) - s.x(this.brush[0]), h);
    }
  }

  // The IO whose mark is nearest to a place, within 30 pixels.
  nearest(px, py) {
    const { points, s } = this;
    if (!points || !s) return -1;
    const xs = this.xs();
    const [a, b] = [s.back(px - 30), s.back(px + 30)];
    let found = -1, least = 900;
    for (let i = 0; i < xs.length; i++) {
      if (xs[i] < a || xs[i] > b) continue;
      const dx = s.x(xs[i]) - px, dy = s.y(points.response[i]) - py, d = dx * dx + dy * dy;
      if (d < least) { least = d; found = i; }
    }
    return found;
  }

  text(i) {
    const { trace, run, points: p } = this, c = trace.classes[p.cls[i]];
    const part = trace.parts && trace.parts.find(q => i < q.to);
    const lines = [`IO ${count(part ? i - part.from : p.io[i])}: ${time(p.response[i])}`, `${c.mode} of ${bytes(c.size)}${p.offset ? ` at ${p.about ? "about " : ""}${bytes(p.offset[i])}` : ""}`];
    if (p.offset && !p.about) lines.push(`offset ${count(p.offset[i])} B`);
    if (p.submit) lines.push(`submitted at ${time(p.submit[i])}`);
    if (trace.streams > 1) lines.push(`stream ${c.stream}`);
    if (p.stream && p.stream[i] > 0) lines.push(`stream ${p.stream[i]}`);
    if (!part && run.baseline.includes("/")) lines.push(`pattern ${c.pattern + 1} (${c.group})`);
    lines.push(part ? part.name || `run ${part.run.id}` : p.io[i] < run.ignore ? "start-up" : "running phase");
    return lines.join("\n");
  }

  cellText(px) {
    const { trace, s } = this;
    if (!trace || !trace.time || !s) return "";
    const x = s.back(px);
    for (let i = 0; i < trace.cells; i++) {
      if (x < this.cellX(i) || x >= this.cellX(i + 1)) continue;
      const from = Math.round(i * trace.length / trace.cells), to = Math.round((i + 1) * trace.length / trace.cells) - 1;
      const parts = trace.time.map((c, k) => (c.count[i] ? `${trace.classes[k].mode}: ${time(c.min[i])} … ${time(c.median[i] || c.mean[i])} … ${time(c.max[i])} (${count(c.count[i])})` : null));
      const near = trace.outliers.find(o => o.io >= from && o.io <= to);
      return [`IO ${count(from)} to ${count(to)}`, ...parts.filter(Boolean), near && `slowest: IO ${count(near.io)}, ${time(near.response)}, offset ${count(near.offset)} B`].filter(Boolean).join("\n");
    }
    return "";
  }

  showTip(text, px, py) {
    this.tip.hidden = !text;
    if (!text) return;
    this.tip.textContent = text;
    const { width } = this.canvas.getBoundingClientRect(), own = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(0, Math.min(width - own.width, px + 14))}px`;
    this.tip.style.top = `${py > 150 ? py - own.height - 12 : py + 16}px`;
  }

  place(e) { const box = this.canvas.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; }

  wheel(e) {
    // A page that is only scrolled past must not catch the wheel.
    if (!this.s || !(document.activeElement === this.canvas || e.ctrlKey || e.metaKey)) return;
    e.preventDefault();
    const [px] = this.place(e);
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan(e.deltaX / 600);
    else this.zoom(Math.exp(Math.max(-1.5, Math.min(1.5, e.deltaY / 260))), this.s.back(px));
  }

  down(e) {
    this.canvas.focus({ preventScroll: true });
    if (!this.s) return;
    this.canvas.setPointerCapture(e.pointerId);
    this.pointers.set(e.pointerId, this.place(e));
    this.begin = { at: this.place(e), range: [this.x0, this.x1], pan: e.shiftKey || e.pointerType === "touch", s: this.s };
    if (this.pointers.size === 2) this.pinch = [...this.pointers.values()].map(([x]) => this.s.back(x));
  }

  move(e) {
    const [px, py] = this.place(e);
    if (!this.pointers.has(e.pointerId)) {
      const i = this.nearest(px, py);
      if (i !== this.cursor) { this.cursor = i; this.draw(); }
      return this.showTip(i >= 0 ? this.text(i) : this.cellText(px), px, py);
    }
    this.pointers.set(e.pointerId, [px, py]);
    if (this.pointers.size === 2 && this.pinch) return this.pinchTo([...this.pointers.values()].map(([x]) => x));
    const { at, range, pan, s } = this.begin;
    if (pan) {
      const d = s.back(at[0]) - s.back(px);
      this.zoomTo(range[0] + d, range[1] + d);
    } else {
      this.brush = [s.back(Math.min(at[0], px)), s.back(Math.max(at[0], px))];
      this.draw();
    }
  }

  // Keeps what was under the two fingers under them.
  pinchTo([a, b]) {
    const [u, v] = this.pinch, width = this.canvas.getBoundingClientRect().width - PAD.left - PAD.right;
    if (Math.abs(a - b) < 8 || u === v) return;
    const per = (v - u) / (b - a), x0 = u - (a - PAD.left) * per;
    if (per > 0) this.zoomTo(x0, x0 + per * width);
  }

  up(e) {
    const moved = this.begin && Math.abs(this.place(e)[0] - this.begin.at[0]) > 6;
    if (this.brush && moved) { const [a, b] = this.brush; this.brush = null; this.zoomTo(a, b); }
    else if (!moved && this.s && e.type === "pointerup") {
      const [px, py] = this.place(e), i = this.nearest(px, py);
      this.cursor = i;
      this.showTip(i >= 0 ? this.text(i) : this.cellText(px), px, py);
      this.brush = null;
      this.draw();
    }
    this.brush = null;
    this.pointers.delete(e.pointerId);
    this.pinch = null;
    // The finger that stays goes on from here.
    for (const at of this.pointers.values()) this.begin = { ...this.begin, at, range: [this.x0, this.x1], s: this.s };
  }

  key(e) {
    const step = e.shiftKey ? 1 : 0.2;
    const actions = {
      "+": () => this.zoom(0.5, this.anchor()), "=": () => this.zoom(0.5, this.anchor()), "-": () => this.zoom(2, this.anchor()),
      "0": () => this.reset(), ArrowLeft: () => this.pan(-step), ArrowRight: () => this.pan(step),
      Home: () => this.zoomTo(this.full()[0], this.full()[0] + this.x1 - this.x0), End: () => this.zoomTo(this.full()[1] - (this.x1 - this.x0), this.full()[1]),
      ",": () => this.step(-1), ".": () => this.step(1), m: () => this.slowest(),
    };
    if (!actions[e.key] || e.ctrlKey || e.metaKey || e.altKey || !this.trace) return;
    e.preventDefault();
    actions[e.key]();
  }
  anchor() { return this.cursor >= 0 && this.points ? Math.max(this.x0, Math.min(this.x1, this.xOf(this.cursor))) : undefined; }

  // Puts the cursor on the next IO, or on the first one in view.
  step(by) {
    const { points } = this;
    if (!points) return;
    let i = this.cursor + by;
    if (this.cursor < 0) i = points.io.findIndex((_, k) => this.xOf(k) >= this.x0);
    this.point(Math.max(0, Math.min(points.response.length - 1, i)));
  }
  // The slowest IO; again, the next slowest.
  slowest() {
    const { points } = this;
    if (!points) return;
    const below = this.cursor >= 0 && this.cursor === this.found ? points.response[this.cursor] : Infinity;
    let found = -1;
    points.response.forEach((ns, i) => { if (ns < below && (found < 0 || ns > points.response[found])) found = i; });
    this.found = Math.max(found, 0);
    this.point(this.found);
  }
  // Close around the slowest; again, around the next slowest.
  toSlowest() {
    this.slowest();
    if (!this.points) return;
    const x = this.xOf(this.cursor), half = 20.5 * this.perIo();
    this.zoomTo(x - half, x + half);
    this.point(this.cursor);
  }
  point(i) {
    this.cursor = i;
    const x = this.xOf(i), half = (this.x1 - this.x0) / 2;
    if (x < this.x0 || x > this.x1) this.zoomTo(x - half, x + half); else this.draw();
    this.showTip(this.text(i), this.s.x(x), this.s.y(this.points.response[i]));
    this.status.textContent = this.text(i).replaceAll("\n", ", ");
  }
}
