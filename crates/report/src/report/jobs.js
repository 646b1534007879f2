// What a job came to (paper 004's tables and figures), the search for the
// logical block, and the cost models: job.json, logical-block.json, and what
// the report fitted itself.

// A chart of lines over a logarithmic or linear x. series: {name, style, points
// [[x, y]]}; scales: {x, y}: "log" or "linear"; formats: text of a tick.
function lineChart(label, series, { xLog = true, yLog = true, xText, yText, xName, yName, levels = [] }) {
  const points = series.flatMap(s => s.points).filter(p => p[1] > 0 || !yLog);
  if (!points.length) return null;
  const f = { ...FRAME, height: 260 };
  const [xLow, xHigh] = extent(points.map(p => p[0])), [yLow, yHigh] = extent(points.map(p => p[1]).concat(levels.map(l => l[0])));
  const yTicks = yLog ? logTicks(Math.max(yLow, yHigh / 1e9), yHigh) : linearTicks(Math.min(0, yLow), yHigh * 1.08 || 1, 5);
  const to = (v, low, high, log) => (log ? (Math.log(v) - Math.log(low)) / (Math.log(high) - Math.log(low) || 1) : (v - low) / (high - low || 1));
  const [a, b] = [yTicks[0], yTicks[yTicks.length - 1]];
  const x = v => f.left + (0.02 + 0.96 * to(v, xLow, xHigh, xLog)) * (f.width - f.left - f.right);
  const y = v => f.height - f.bottom - to(v, a, Math.max(b, yLog ? 0 : yHigh * 1.06), yLog) * (f.height - f.top - f.bottom);
  const values = [...new Set(points.map(p => p[0]))].sort((p, q) => p - q);
  let free = -Infinity;
  const xTicks = (xLog ? values : linearTicks(xLow, xHigh, 8)).map(v => {
    const text = xText(v), half = text.length * 3.4 + 3, at = x(v), shown = at - half > free;
    if (shown) free = at + half;
    return [svg("line", { class: "frame", x1: at, x2: at, y1: f.height - f.bottom, y2: f.height - f.bottom + (shown ? 5 : 3) }), shown && svg("text", { x: Math.min(at, f.width - half), y: f.height - f.bottom + 18, "text-anchor": "middle" }, text)];
  });
  return el("figure", { class: "plain" }, svg("svg", { class: "chart", viewBox: `0 0 ${f.width} ${f.height}`, role: "img", "aria-label": label },
    thin(yTicks, 8).map(t => [svg("line", { class: "grid", x1: f.left, x2: f.width - f.right, y1: y(t), y2: y(t) }), svg("text", { x: f.left - 7, y: y(t) + 4, "text-anchor": "end" }, yText(t))]),
    svg("path", { class: "frame", d: `M${f.left},${f.top}V${f.height - f.bottom}H${f.width - f.right}` }), xTicks,
    svg("text", { x: (f.left + f.width - f.right) / 2, y: f.height - 8, "text-anchor": "middle" }, xName),
    levels.map(([v, name]) => [svg("line", { class: "level", x1: f.left, x2: f.width - f.right, y1: y(v), y2: y(v) }), svg("text", { x: f.width - f.right - 3, y: y(v) - 4, "text-anchor": "end" }, name)]),
    series.map(s => { const st = s.style || styleOf(s.name), good = s.points.filter(p => p[1] > 0 || !yLog); return svg("g", { class: `c-${st.c}` },
      svg("path", { class: s.dashed ? "curve half" : "curve", d: path(good.map(p => [x(p[0]), y(p[1])])) }),
      s.dashed ? null : good.map(p => svg("g", {}, svg("title", {}, `${s.name}: ${yText(p[1])} ${yName} at ${xText(p[0])}`), mark(st, x(p[0]), y(p[1]), good.length > 40 ? 2.5 : 4)))); })),
    el("ul", { class: "legend" }, series.filter(s => !s.dashed || s.shown).map(s => el("li", {}, signOf(s.style || styleOf(s.name)), ` ${s.name}`))));
}
const signOf = style => svg("svg", { class: `sign c-${style.c}`, viewBox: "0 0 14 14", "aria-hidden": "true" }, mark(style, 7, 7, 4.3));
const VARIANTS = [{ c: "m0", shape: "diamond" }, { c: "m1", shape: "square" }, { c: "SW", shape: "triangle" }, { c: "RR", shape: "circle" }, { c: "m2", shape: "diamond", hollow: true }, { c: "SR", shape: "square", hollow: true }];
const numbers = v => three(v);
const figureCard = (title, small, ...children) => (children.flat().some(Boolean) ? el("article", { class: "card" }, el("h3", {}, title, small && el("small", {}, ` ${small}`)), children) : null);
const wideTable = table => el("div", { class: "scroll" }, table);
const byKey = (list, key) => { const map = new Map(); for (const item of list) { const k = key(item); if (!map.has(k)) map.set(k, []); map.get(k).push(item); } return map; };
const listOf = (object, name) => (Array.isArray(at(object, name)) ? object[name] : []);

function table31(row) {
  if (!row.some(v => v !== null)) return null;
  const cells = (from, sizes) => [el("th", { scope: "row" }, sizes), ...BASELINES.map((_, i) => el("td", {}, row[from + i] === null ? NONE : three(row[from + i])))];
  return figureCard("Table 3.1", "MB/s at 512 bytes and at 2 MB", el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, ""), BASELINES.map(b => el("th", { scope: "col" }, sign(b), ` ${b}`)))),
    el("tbody", {}, el("tr", {}, cells(0, "512 B")), el("tr", {}, cells(4, "2 MB")))));
}

function jobCards(job) {
  const speeds = listOf(job, "speeds"), fresh = speeds.filter(s => s.round === null && !(s.shift_bytes > 0));
  const cards = [table31(listOf(job, "table31_mb_per_s"))];
  for (const [name, list] of byKey(fresh, s => s.line)) {
    if (new Set(list.map(s => s.block_bytes)).size < 3) continue;
    const series = [...byKey(list, s => s.baseline)].map(([b, points]) => ({ name: b, points: points.map(s => [s.block_bytes, s.mb_per_s]) }));
    cards.push(figureCard("Speed by block size", `job line ${name}; figure 3.1`, lineChart("speed by block size", series, { xText: bytes, yText: numbers, xName: "block size", yName: "MB/s" }), el("p", { class: "status" }, "MB/s, 10⁶ bytes")));
  }
  const shifted = listOf(job, "misaligned");
  const off = [...byKey(shifted, m => m.shift_bytes)].map(([shift, list], i) => ({ name: `shifted by ${bytes(shift)}`, style: VARIANTS[i % 6], points: list.map(m => [m.block_bytes, m.ratio]) }));
  cards.push(figureCard("Misalignment", "speed of shifted over aligned random writes; figure 3.4a", lineChart("misalignment", off, { yLog: false, xText: bytes, yText: numbers, xName: "block size", yName: "of aligned", levels: [[1, "aligned"]] })));
  return cards.concat(recoveryCards(listOf(job, "recovery")), rewriteCard(listOf(job, "rewrite")), seriesCards(listOf(job, "series")), spikeCard(listOf(job, "spikes")),
    driftCards(listOf(job, "drift")), mergeCard(at(job, "merge")));
}

// Figure C.4: how long it takes to write everything after a burst.
function rewriteCard(list) {
  if (!list.length) return [];
  return [figureCard("Writing the whole device after a burst", "figure C.4", wideTable(el("table", {}, el("thead", {}, el("tr", {}, ["burst", "block", "minutes", "of normal", "run"].map(h => el("th", { scope: "col" }, h)))),
    el("tbody", {}, list.map(r => el("tr", {}, el("td", {}, (r.burst || "none") + (r.repeat > 0 ? `, pass ${r.repeat + 1}` : "")), el("td", {}, bytes(r.block_bytes)), el("td", {}, three(r.minutes)), el("td", {}, typeof r.over_normal === "number" ? `× ${three(r.over_normal)}` : NONE), el("td", {}, runButton(r.run))))))))];
}

// Figure 3.2: the time that each batch of a long series takes.
function seriesCards(list) {
  return list.filter(r => listOf(r, "batch_s").length > 2).map(r => figureCard("A long series of writes", `job line ${r.line}, ${bytes(r.block_bytes)}; figure 3.2`,
    lineChart("time of each batch", [{ name: `each ${count(r.batch_ios)} IOs`, style: { c: "RW", shape: "circle" }, points: r.batch_s.map((v, k) => [(k + 1) * r.batch_ios, v * 1e9]) }], { xLog: false, xText: count, yText: tick, xName: "IOs", yName: "" }), runButtons([r.run])));
}

// The write cost model on runs with syncs: what it predicts and what was measured.
function mergeCard(merge) {
  const samples = listOf(merge, "samples");
  if (!samples.length) return [];
  const of = (field, kept = () => true) => samples.filter(kept).map(s => [s.sectors_per_sync * s.focal_factor, s[field] * s.sectors_per_sync * s.focal_factor]).filter(p => p[0] > 0 && p[1] > 0).sort((a, b) => a[0] - b[0]);
  const block = merge.logical_block_source ? `Logical blocks of ${bytes(merge.logical_block_bytes)}, ${merge.logical_block_source}. ` : "";
  const held = merge.predicted ? `${block}${merge.holds} of ${merge.predicted} points lie within 20 % of what the others predict.` : null;
  const inOrder = s => s.in_order === true, atRandom = s => !inOrder(s);
  const series = [{ name: "model", style: { c: "m2", shape: "square" }, dashed: true, points: of("predicted_sector_ns", atRandom) },
    { name: "at random", style: { c: "RW", shape: "triangle" }, points: of("sector_ns", atRandom) }, { name: "in order, not fitted", style: { c: "SW", shape: "circle" }, points: of("sector_ns", inOrder) }];
  const adds = ["switch", "full"].filter(name => at(merge, name, "merge_ns") > 0).map(name => `a ${name} merge adds ${time(merge[name].merge_ns)} (${count(merge[name].sizes.reduce((sum, size) => sum + size.syncs, 0))} writes)`);
  const bySync = listOf(merge, "by_sync").map(one => `${count(one.ios_per_sync)}: ${time(one.fit.t_merge_ns)}`);
  return [figureCard("Write cost model", "a visit to a logical block over the sectors written there; Lee et al., eq. 2", held && el("p", { class: "say" }, held),
    adds.length ? el("p", { class: "say" }, `To a write of the same size ${adds.join(", ")}.`) : null,
    bySync.length > 1 ? el("p", { class: "say" }, `A merge by the number of writes a sync: ${bySync.join(", ")}.`) : null,
    lineChart("write cost model", series.filter(one => one.points.length), { xText: three, yText: tick, xName: "f R, sectors", yName: "" }),
    el("details", {}, el("summary", {}, "Residuals"), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["run", "R", "f", "measured T", "model", "off by", "predicted from the others"].map(h => el("th", { scope: "col" }, h)))),
      el("tbody", {}, samples.map(s => el("tr", {}, el("td", {}, runButton(s.run)), el("td", {}, three(s.sectors_per_sync)), el("td", {}, three(s.focal_factor)), el("td", {}, time(s.sector_ns)), el("td", {}, time(s.predicted_sector_ns)),
        el("td", {}, typeof s.residual === "number" ? signed(s.residual) : NONE), el("td", {}, typeof s.held_out_residual === "number" ? signed(s.held_out_residual) : NONE)))))))) ];
}

// A size as job files write it.
const jobSize = b => (b % 1048576 === 0 ? `${b / 1048576}M` : b % 1024 === 0 ? `${b / 1024}K` : `${b}B`);

// Figures C.1 and C.2: a curve for bursts of the experiment's own block size and
// one for each that is the same for all sizes; what is both is on both.
function burstCurves(all) {
  const own = r => r.burst.replace(`bs=${jobSize(r.block_bytes)},`, "bs=same,");
  const sizes = (name, of) => new Set(all.filter(r => of(r) === name).map(r => r.block_bytes)).size;
  const curves = new Map();
  for (const r of all) {
    const same = own(r), names = sizes(r.burst, o => o.burst) > 1 || sizes(same, own) < 2 ? [r.burst] : [];
    if (same !== r.burst && sizes(same, own) > 1) names.push(same);
    for (const name of names) curves.set(name, [...(curves.get(name) || []), r]);
  }
  return [...curves];
}

function recoveryCards(all) {
  if (!all.length) return [];
  const byBurst = burstCurves(all);
  const over = (field, title, small, text, level) => figureCard(title, small, lineChart(title, byBurst.map(([burst, list], i) => ({
    name: `after ${burst}`, style: VARIANTS[i % 6], points: list.filter(r => typeof r[field] === "number").map(r => [r.block_bytes, r[field]]),
  })).filter(s => s.points.length), { yLog: false, xText: bytes, yText: text, xName: "block size", yName: "", levels: level }));
  // The block size with the longest effect, and of these with the deepest, tells most as a time line.
  const depth = r => Math.min(...r.windows_mb_per_s) / (r.steady_mb_per_s || r.median_mb_per_s);
  const worse = (r, w) => (r.recovery_s || 0) - (w.recovery_s || 0) || depth(w) - depth(r);
  const worst = all.reduce((w, r) => (worse(r, w) > 0 ? r : w), all[0]);
  const same = all.filter(r => r.block_bytes === worst.block_bytes);
  const line = same.map((r, i) => ({ name: `after ${r.burst}`, style: VARIANTS[i % 6], points: r.windows_mb_per_s.map((v, k) => [(k + 1) * r.window_s, v]) }));
  const steady = same.find(r => r.steady_mb_per_s !== null);
  return [
    over("median_over_steady", "Speed after a burst", "median of the windows over the steady speed; figures 3.3, C.1, C.2", numbers, [[1, "steady"]]),
    over("recovery_s", "Recovery", "time until 0.6 of the median speed; figures C.1, C.2", v => `${three(v)} s`, []),
    figureCard("Time line after a burst", `sequential writes of ${bytes(worst.block_bytes)}, MB/s in each window; figures C.3, C.4`,
      lineChart("time line after a burst", line, { xLog: false, yLog: false, xText: v => `${three(v)} s`, yText: numbers, xName: "time after the burst", yName: "MB/s", levels: steady ? [[steady.steady_mb_per_s, "steady"]] : [] })),
  ];
}

function spikeCard(list) {
  if (!list.length) return [];
  return [figureCard("Spikes in long series of writes", "figure 3.2", wideTable(el("table", {}, el("thead", {}, el("tr", {}, ["job line", "spikes", "first at IO", "period", "height", "time between", "run"].map(h => el("th", { scope: "col" }, h)))),
    el("tbody", {}, list.map(s => el("tr", {}, el("td", {}, s.line), el("td", {}, count(s.count)), el("td", {}, count(s.first_io)), el("td", {}, s.period_ios === null ? NONE : `${count(s.period_ios)} IOs`), el("td", {}, time(s.height_ns)), el("td", {}, time(s.between_ns)), el("td", {}, runButton(s.run))))))))];
}

// A card for each pattern, a curve for each block size and shift.
function driftCards(list) {
  const shown = d => (d.shift_bytes > 0 ? `${bytes(d.block_bytes)} shifted by ${bytes(d.shift_bytes)}` : bytes(d.block_bytes));
  const rows = of => of.map(d => el("tr", {}, el("td", {}, shown(d)), el("td", {}, `× ${three(d.last_over_first)}`), el("td", {}, d.percent_per_1000_passes === null ? NONE : d.percent_per_1000_passes.toFixed(2))));
  return [...byKey(list, d => d.baseline)].map(([baseline, of]) => {
    const drawn = thin(of, VARIANTS.length);
    const series = drawn.map((d, i) => ({ name: shown(d), style: VARIANTS[i % VARIANTS.length], points: d.points }));
    return figureCard("Speed over age", `${baseline}; figure 3.4b`,
      lineChart(`speed over age, ${baseline}`, series, { xLog: false, xText: count, yText: numbers, xName: "whole-device writes", yName: "MB/s" }),
      el("p", { class: "status" }, `MB/s, 10⁶ bytes${drawn.length < of.length ? `; ${drawn.length} of ${of.length} block sizes are drawn` : ""}`),
      wideTable(el("table", {}, el("thead", {}, el("tr", {}, ["block", "last over first", "% per 1,000 passes"].map(h => el("th", { scope: "col" }, h)))), el("tbody", {}, rows(of)))));
  });
}

function logicalBlockCards(found) {
  return listOf(found, "amounts").map(a => {
    const passes = listOf(a, "passes"), of = (name, key) => ({ name, points: passes.map(p => [p.block_bytes, p[key]]) });
    const text = b => (b === null || b === undefined ? "none found" : bytes(b));
    return figureCard("Logical block", `${bytes(a.bytes_per_pass)} a pass`,
      el("p", { class: "say" }, `Logical block ${text(a.logical_block_bytes)}; by whole numbers ${text(a.by_whole_numbers)}, by the ratio's interval ${text(a.by_statistics)}.`),
      lineChart("speed in order and at random", [of("SW", "sequential_mb_per_s"), of("RW", "random_mb_per_s")], { xText: bytes, yText: numbers, xName: "IOSize", yName: "MB/s" }));
  });
}

// A fitted line with what was measured, and how far each point is off.
function fitCard(title, small, fit, curve, baseline, limit) {
  const points = Object.entries(curve).map(([size, ns]) => [Number(size), ns]).sort((a, b) => a[0] - b[0]);
  if (!fit || points.length < 3) return null;
  const model = size => fit.t_merge_ns + size * fit.ns_per_byte, inside = points.filter(p => !limit || p[0] <= limit);
  const fitted = inside.map(p => [p[0], model(p[0])]);
  const off = inside.map(([size, ns]) => [size, ns / model(size) - 1]), held = new Map(fit.held_out_error || []);
  const ends = (ci, show) => (ci ? ` (95 %: ${show(ci[0])} to ${show(ci[1])})` : "");
  const perKib = v => `${time(v * 1024)} a KiB`;
  return figureCard(title, small,
    el("p", { class: "say" }, `${time(fit.t_merge_ns)}${ends(fit.t_merge_ci95, time)} and ${perKib(fit.ns_per_byte)}${ends(fit.ns_per_byte_ci95, v => time(v * 1024))}${fit.worst_held_out === null ? "" : `; a point predicted from the others is off by at most ${percent(fit.worst_held_out)}`}.`),
    lineChart(title, [{ name: "model", style: { c: "m2", shape: "square" }, dashed: true, points: fitted }, { name: baseline, points }], { xText: bytes, yText: tick, xName: "IOSize", yName: "" }),
    el("details", {}, el("summary", {}, "Residuals"), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["IOSize", "measured", "model", "off by", "predicted from the others"].map(h => el("th", { scope: "col" }, h)))),
      el("tbody", {}, off.map(([size, e], i) => el("tr", {}, el("td", {}, bytes(size)), el("td", {}, time(inside[i][1])), el("td", {}, time(fitted[i][1])), el("td", {}, signed(e)), el("td", {}, held.has(size) ? signed(held.get(size)) : NONE))))))));
}
const signed = e => `${e >= 0 ? "+" : "−"}${(Math.abs(e) * 100).toFixed(1)} %`;

function modelCards(fitted) {
  if (!fitted) return [];
  const m = fitted.models, c = fitted.curves;
  const rows = [];
  if (m.em_flash_1) rows.push(["em-flash-1", `x + ${three(m.em_flash_1.c_w)} y`, `B = ${bytes(m.em_flash_1.block_bytes)}; a read ${time(m.em_flash_1.read_ns)}`]);
  if (m.em_flash_2) rows.push(["em-flash-2", `${time(m.em_flash_2.read_ns)} x + ${time(m.em_flash_2.write_ns)} y`, `B_R = ${bytes(m.em_flash_2.read_block_bytes)}, B_W = ${bytes(m.em_flash_2.write_block_bytes)}`],
    ["general flash", `x + ${three(m.em_flash_2.c)} y`, `B_R = ${bytes(m.em_flash_2.read_block_bytes)}, B_W = ${bytes(m.em_flash_2.write_block_bytes)}`]);
  if (m.unit_cost_ns_per_byte) rows.push(["unit-cost flash", `${time(m.unit_cost_ns_per_byte * 1024)} a KiB`, "x B_R + y B_W"]);
  return [fitCard("Random reads as a line", "latency and bytes", m.read_line, c.rr, "RR", m.logical_block_bytes), fitCard("Random writes: merge model", "T_merge and bytes; Lee et al., eq. 2", m.merge, c.rw, "RW", m.logical_block_bytes),
    rows.length ? figureCard("External-memory models", "what x reads and y writes of blocks cost", el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, rows.map(([name, cost, blocks]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, cost), el("td", { class: "text" }, blocks))))))) : null];
}

function otherSections() {
  const { job, logical_block: block, models } = facts.others;
  const make = (id, title, lead, cards) => { const some = cards.filter(Boolean); return some.length ? el("section", { id }, el("h2", {}, title), el("p", { class: "lead" }, lead), el("div", { class: "charts" }, some)) : null; };
  return [
    job && make("job", "Job", "What the job's runs came to, as Ajwani, Malinger, Meyer and Toledo (2008) show it.", jobCards(job)),
    block && make("logical-block", "Logical block", "The size at which random writes cost as sequential ones.", logicalBlockCards(block)),
    make("models", "Cost models", "Fitted to the means of random reads and writes by size; docs/models.md says how.", modelCards(models)),
  ];
}
