// What a job came to (paper 004's tables and figures), the search for the
// logical block, and the cost models: job.json, logical-block.json, and what
// the report fitted itself.

const jobChart = name => paint(facts.charts.job[name]);
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
    if (new Set(list.map(s => s.block_bytes)).size < 2) continue;
    cards.push(figureCard("Speed by block size", `job line ${name}; figure 3.1`, jobChart(`figure3.1-${name}`), el("p", { class: "status" }, "MB/s, 10⁶ bytes; whiskers from the slowest to the fastest repeat")));
  }
  cards.push(figureCard("Misalignment", "speed of shifted over aligned random writes; figure 3.4a", jobChart("figure3.4a")));
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
  return list.filter(r => listOf(r, "batch_s").length > 2).map(r => figureCard("A long series of writes", `job line ${r.section || r.line}, ${r.baseline ? `${r.baseline} ` : ""}${bytes(r.block_bytes)}, repeat ${(r.repeat || 0) + 1}; figure 3.2`,
    jobChart(`series-${r.run}`), runButtons([r.run])));
}

// The write cost model on runs with syncs: what it predicts and what was measured.
function mergeCard(merge) {
  const samples = listOf(merge, "samples");
  if (!samples.length) return [];
  const block = merge.logical_block_source ? `Logical blocks of ${bytes(merge.logical_block_bytes)}, ${merge.logical_block_source}. ` : "";
  const held = merge.predicted ? `${block}${merge.holds} of ${merge.predicted} points lie within 20 % of what the others predict.` : null;
  const adds = ["switch", "full"].filter(name => at(merge, name, "merge_ns") > 0).map(name => `a ${name} merge adds ${time(merge[name].merge_ns)} (${count(merge[name].sizes.reduce((sum, size) => sum + size.syncs, 0))} writes)`);
  const bySync = listOf(merge, "by_sync").map(one => `${count(one.ios_per_sync)}: ${time(one.fit.t_merge_ns)}`);
  return [figureCard("Write cost model", "a visit to a logical block over the sectors written there; Lee et al., eq. 2", held && el("p", { class: "say" }, held),
    adds.length ? el("p", { class: "say" }, `To a write of the same size ${adds.join(", ")}.`) : null,
    bySync.length > 1 ? el("p", { class: "say" }, `A merge by the number of writes a sync: ${bySync.join(", ")}.`) : null,
    jobChart("merge"),
    el("details", {}, el("summary", {}, "Residuals"), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["run", "R", "f", "measured T", "model", "off by", "predicted from the others"].map(h => el("th", { scope: "col" }, h)))),
      el("tbody", {}, samples.map(s => el("tr", {}, el("td", {}, runButton(s.run)), el("td", {}, three(s.sectors_per_sync)), el("td", {}, three(s.focal_factor)), el("td", {}, time(s.sector_ns)), el("td", {}, time(s.predicted_sector_ns)),
        el("td", {}, typeof s.residual === "number" ? signed(s.residual) : NONE), el("td", {}, typeof s.held_out_residual === "number" ? signed(s.held_out_residual) : NONE)))))))) ];
}

function recoveryCards(all) {
  return all.length ? [
    figureCard("Speed after a burst", "median of the windows over the steady speed; figures 3.3, C.1, C.2", jobChart("figure3.3")),
    figureCard("Recovery", "time until 0.6 of the median speed; figures C.1, C.2", jobChart("figureC.1")),
    figureCard("Time line after a burst", "sequential writes, MB/s in each window; figures C.3, C.4", jobChart("figureC.3")),
  ] : [];
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
    return figureCard("Speed over age", `${baseline}; figure 3.4b`, jobChart(`figure3.4b-${baseline}`), el("p", { class: "status" }, "MB/s, 10⁶ bytes"),
      wideTable(el("table", {}, el("thead", {}, el("tr", {}, ["block", "last over first", "% per 1,000 passes"].map(h => el("th", { scope: "col" }, h)))), el("tbody", {}, rows(of)))));
  });
}

function logicalBlockCards(found) {
  return listOf(found, "amounts").map((a, k) => {
    const text = b => (b === null || b === undefined ? "none found" : bytes(b));
    return figureCard("Logical block", `${bytes(a.bytes_per_pass)} a pass`,
      el("p", { class: "say" }, `Logical block ${text(a.logical_block_bytes)}; by whole numbers ${text(a.by_whole_numbers)}, by the ratio's interval ${text(a.by_statistics)}.`),
      paint(facts.charts.logical_block[k]));
  });
}

// A fitted line with what was measured, and how far each point is off.
function fitCard(title, small, fit, curve, picture, limit) {
  const points = Object.entries(curve).map(([size, ns]) => [Number(size), ns]).sort((a, b) => a[0] - b[0]);
  if (!fit || points.length < 3) return null;
  const model = size => fit.t_merge_ns + size * fit.ns_per_byte, inside = points.filter(p => !limit || p[0] <= limit);
  const fitted = inside.map(p => [p[0], model(p[0])]);
  const off = inside.map(([size, ns]) => [size, ns / model(size) - 1]), held = new Map(fit.held_out_error || []);
  const ends = (ci, show) => (ci ? ` (95 %: ${show(ci[0])} to ${show(ci[1])})` : "");
  const perKib = v => `${time(v * 1024)} a KiB`;
  return figureCard(title, small,
    el("p", { class: "say" }, `${time(fit.t_merge_ns)}${ends(fit.t_merge_ci95, time)} and ${perKib(fit.ns_per_byte)}${ends(fit.ns_per_byte_ci95, v => time(v * 1024))}${fit.worst_held_out === null ? "" : `; a point predicted from the others is off by at most ${percent(fit.worst_held_out)}`}.`),
    paint(picture),
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
  return [fitCard("Random reads as a line", "latency and bytes", m.read_line, c.rr, facts.charts.models.read_line, m.logical_block_bytes), fitCard("Random writes: merge model", "T_merge and bytes; Lee et al., eq. 2", m.merge, c.rw, facts.charts.models.merge, m.logical_block_bytes),
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
