// Reading the runs' IOs. loadTrace(run) is the only place that knows where they
// are: the seam for a server that has them all.

const unrounded = code => Math.exp(code / facts.steps) - 1;
const loaded = new Map();

function loadTrace(run) {
  if (!loaded.has(run.id)) {
    if (loaded.size > 12) loaded.delete(loaded.keys().next().value);
    loaded.set(run.id, readTrace(run));
  }
  return loaded.get(run.id);
}

async function readTrace(run) {
  if (!run.trace) return null;
  const blob = document.getElementById(`trace-${run.id}`);
  const columns = blob ? decode(run.trace.columns, await unpack(blob.textContent)) : null;
  const classes = run.trace.classes.map(([mode, pattern, stream, size]) => ({ mode, pattern, stream, size, group: groupOf(run, mode, pattern) }));
  const base = { kind: run.trace.kind, n: run.trace.n, length: run.trace.length, classes, outliers: run.trace.outliers };
  if (base.kind === "aggregated" || base.kind === "coarse") return { ...base, ...cellsOf(run.trace, columns) };
  if (base.kind === "sketched") {
    const [bucket, bucket_count] = [0, 1].map(k => run.trace.histogram.map(pair => pair[k]));
    return { ...base, histogram: histogramOf({ bucket, bucket_count }) };
  }
  const points = pointsOf(base, columns);
  return { ...base, ...points, points };
}

// value = base + scale x (plain | zigzag | running sum of zigzags).
function decode(described, data) {
  const columns = {};
  let at = 0;
  for (const d of described) {
    const values = new Float64Array(d.n);
    let sum = 0;
    for (let i = 0; i < d.n; i++) {
      let raw = 0;
      for (let p = d.planes - 1; p >= 0; p--) raw = raw * 256 + data[at + p * d.n + i];
      const signed = raw % 2 ? -(raw + 1) / 2 : raw / 2;
      if (d.code === "plain") sum = raw;
      else if (d.code === "signed") sum = signed;
      else sum += signed;
      values[i] = d.base + d.scale * sum;
    }
    at += d.planes * d.n;
    columns[d.name] = values;
  }
  return columns;
}

// Which of the four baselines' colours an IO has.
function groupOf(run, mode, pattern) {
  const parts = run.baseline.split("/");
  const name = parts[Math.min(pattern, parts.length - 1)];
  return facts.draw.looks[name] && name.length === 2 ? name : mode === "write" ? "RW" : "RR";
}

function pointsOf(base, columns) {
  const n = columns.response.length;
  const exact = base.kind === "whole";
  const response = exact ? columns.response : columns.response.map(unrounded);
  const cls = Uint16Array.from(columns.class);
  const io = new Float64Array(n), submit = exact ? new Float64Array(n) : null;
  const seen = new Map(), free = new Map();
  for (let i = 0; i < n; i++) {
    const stream = base.classes[cls[i]].stream;
    io[i] = seen.get(stream) || 0;
    seen.set(stream, io[i] + 1);
    if (exact) {
      submit[i] = (free.get(stream) || 0) + columns.wait[i];
      free.set(stream, submit[i] + response[i]);
    }
  }
  const streams = seen.size;
  let order = null;
  if (streams > 1) {
    const key = submit || io;
    order = Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) => key[a] - key[b]);
  }
  return { response, cls, io, submit, offset: exact ? columns.offset : columns.place || null, about: !exact, order, streams };
}

// The IOs around the slowest ones of a run that is summed up.
function windowsOf(c) {
  if (!c.window_io || !c.window_io.length) return null;
  return {
    io: c.window_io, response: c.window_response, submit: c.window_submit, offset: c.window_offset,
    cls: Uint16Array.from(c.window_class), stream: c.window_stream, order: null, streams: 1,
  };
}

function cellsOf(trace, c) {
  const values = name => c[name].map(unrounded);
  const cells = trace.cells;
  const time = trace.classes.map((_, k) => {
    const part = list => list.subarray(k * cells, (k + 1) * cells);
    const median = part(values("median"));
    return { count: part(c.count), min: part(values("min")), median, mean: c.mean ? part(values("mean")) : median, max: part(values("max")) };
  });
  const histogram = histogramOf(c);
  if (!c.mean) return { cells, time, histogram, coarse: true };
  const places = c.place_count.length / Math.max(1, trace.classes.length);
  const space = trace.classes.map((_, k) => {
    const part = list => list.subarray(k * places, (k + 1) * places);
    return { count: part(c.place_count), min: part(values("place_min")), mean: part(values("place_mean")), max: part(values("place_max")) };
  });
  return { cells, time, places, space, end: c.space[0], starts: c.start, histogram, points: windowsOf(c) };
}

function histogramOf(c) {
  return Array.from(c.bucket, (code, i) => ({ ns: unrounded(code + 37), n: c.bucket_count[i] }));
}

// How a run is embedded, in words.
function kindWords(run) {
  if (!run.trace) return `not in this file: ${run.missing || "no room"}`;
  return {
    whole: "every IO, exactly", rounded: `every IO, response times to 0.05 %, without time${(run.trace.columns || []).some(c => c.name === "place") ? "; where it went roughly" : " and location"}`,
    aggregated: "summed up in columns of IOs (smallest, middle, largest); the slowest IOs and those around them exactly",
    coarse: "summed up in columns of IOs, to 1.6 %, without time and location; the slowest IOs exactly",
    sketched: "histogram and slowest IOs only", sequence: "several runs one after the other",
  }[run.trace.kind];
}

// Several runs as one picture: the pause test's reads, writes and reads (figure
// 5), or the parts of a long baseline (figures 3 and 4). Only of runs whose
// every IO is here; null where one is not.
async function sequence(list) {
  const traces = [];
  for (const run of list) traces.push(await loadTrace(run));
  if (!traces.length || !traces.every(t => t && t.response)) return null;
  const n = traces.reduce((sum, t) => sum + t.n, 0), timed = traces.every(t => t.submit);
  const all = {
    kind: "sequence", n, length: n, classes: [], outliers: [], streams: 1, order: null, parts: [], offset: null,
    response: new Float64Array(n), io: new Float64Array(n), submit: timed ? new Float64Array(n) : null, cls: new Uint16Array(n),
  };
  let at = 0, begin = 0;
  list.forEach((run, k) => {
    const t = traces[k], classes = all.classes.length;
    all.classes.push(...t.classes);
    for (let i = 0; i < t.n; i++) {
      all.response[at + i] = t.response[i];
      all.io[at + i] = at + i;
      all.cls[at + i] = classes + t.cls[i];
      if (timed) all.submit[at + i] = begin + t.submit[i];
    }
    all.parts.push({ run, from: at, to: at + t.n, begin, end: begin + run.elapsed });
    at += t.n;
    begin += run.elapsed;
  });
  all.points = all;
  return all;
}

// The number of IOs in bins of equal ratio, for any kind of trace.
function binsOf(trace, perDecade) {
  const bins = new Map();
  const add = (ns, n) => {
    const bin = Math.floor(Math.log10(Math.max(1, ns)) * perDecade);
    bins.set(bin, (bins.get(bin) || 0) + n);
  };
  if (trace.histogram) trace.histogram.forEach(h => add(h.ns, h.n));
  else for (const ns of trace.response) add(ns, 1);
  return bins;
}
