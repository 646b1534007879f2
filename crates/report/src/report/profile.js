// The profile: the card (Table 3's row with intervals), the class, the hints,
// the nearest known devices, and what speaks against the results. All from the
// folder's profile.json; what is null there is shown as not measured.

const millis = ms => (ms === null || ms === undefined ? NONE : time(ms * 1e6));
const times = v => (v === null || v === undefined ? NONE : Math.abs(v - 1) <= 0.1 ? "=" : v < 0.1 ? `1/${three(1 / v)}` : `× ${v < 9.95 ? v.toFixed(1) : Math.round(v).toLocaleString("en")}`);

// The evidence of a figure: its interval or range in words, and its runs.
function restsOn(evidence, show, most = 1) {
  if (!evidence) return [null, null];
  const ends = evidence.ci95 || evidence.range;
  const text = ends && (ends[0] === ends[1] && !evidence.ci95 ? null : `${show(ends[0])} to ${show(ends[1])}`);
  return [text, runButtons(evidence.runs, most)];
}
const runButtons = (list, most = 4) => (Array.isArray(list) && list.length ? el("span", { class: "runs" },
  list.slice(0, most).map(id => [runButton(id), " "]), list.length > most ? el("small", {}, ` + ${count(list.length - most)}`) : null) : null);

// An "=" whose interval does not lie within x0.8 to x1.25 is not known to be one.
const borneOut = (value, evidence) => (value === "=" && !(evidence && evidence.ci95 && evidence.ci95[0] >= 0.8 && evidence.ci95[1] <= 1.25) ? "?" : value);
// A figure that was measured and is null is not decided.
const openText = (value, evidence) => (value === NONE && evidence && evidence.runs && evidence.runs.length ? "?" : value);

function profileTable(p) {
  const rows = [];
  const row = (name, value, evidence, show, what) => rows.push({ name, value: borneOut(value, evidence), what, rest: restsOn(evidence, show) });
  row("Pause", millis(p.pause_rw_ms), at(p, "evidence", "pause_rw_ms"), millis, "makes RW cost as SW");
  const l = p.locality, n = p.partitions, o = p.order, a = p.alignment;
  row("Locality", l.area_bytes === null ? NONE : bytes(l.area_bytes), at(l, "evidence", "area_bytes"), bytes, "area with cheap RW");
  row("", times(l.factor), at(l, "evidence", "factor"), times, "RW there, of SW");
  row("Partitions", count(n.count), at(n, "evidence", "count"), count, "cheap for SW");
  row("", times(n.factor), at(n, "evidence", "factor"), times, "each, of SW");
  row("Order", times(o.reverse_factor), at(o, "evidence", "reverse_factor"), times, "in reverse, of SW");
  row("", times(o.in_place_factor), at(o, "evidence", "in_place_factor"), times, "in place, of SW");
  row("", times(o.large_incr_factor), at(o, "evidence", "large_incr_factor"), times, "large steps, of RW");
  row("Alignment", a.unit_bytes === null ? NONE : bytes(a.unit_bytes), at(a, "evidence", "unit_bytes"), bytes, "unit");
  row("", times(a.penalty_factor), at(a, "evidence", "penalty_factor"), times, `off it${a.baseline ? `, ${a.baseline}` : ""}`);
  const gain = (name, e) => row(name, e.gain === 1 && !e.baseline ? "none" : openText(times(e.gain), at(e, "evidence", "gain")), at(e, "evidence", "gain"), times, e.baseline ? `throughput, ${e.baseline} at ${e.value}` : "throughput");
  gain("Parallel", p.parallelism);
  gain("Mix", p.mix);
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "profile" }, el("table", { class: "profile" },
    el("thead", {}, el("tr", {}, ["", "", "", "95 % or range", "runs"].map((h, i) => el("th", { scope: "col", class: i === 2 ? "text" : i === 4 ? "narrow" : null }, h)))),
    el("tbody", {}, rows.map(r => el("tr", {}, el("th", { scope: "row" }, r.name), el("td", { class: "value" }, r.value), el("td", { class: "text" }, r.what),
      el("td", {}, r.rest[0] || NONE), el("td", {}, r.rest[1]))))));
}

const VERDICTS = { holds: ["✓", "holds", "yes"], does_not_hold: ["✗", "does not hold", "no"], unknown: ["?", "not known", "soft"], not_decided: ["?", "not decided", "soft"] };
const HINTS = {
  larger_ios: "Larger IOs", block_size: "Block size", alignment: "Alignment", locality: "Focus random writes",
  partitions: "Few partitions", mix: "Mixing is fine", no_concurrency_or_delay: "No concurrency, no delay",
};

function hintList(hints) {
  return el("ol", { class: "hints" }, hints.map(h => {
    const [sign, word, shade] = VERDICTS[h.verdict] || ["?", String(h.verdict), "soft"];
    return el("li", {}, el("b", { class: `verdict ${shade}` }, el("span", { "aria-hidden": "true" }, `${sign} `), word), " ",
      el("b", {}, HINTS[h.id] || String(h.id)), el("p", {}, String(h.statement)), runButtons(h.evidence));
  }));
}

function nearestCard() {
  if (!facts.nearest.length) return null;
  const far = n => (n.farthest_ratio === null ? "only one has it" : `here × ${three(n.farthest_ratio)}`);
  return el("div", { class: "card" }, el("h3", {}, "Nearest known devices"),
    el("p", { class: "status" }, "By how much the columns of Table 3 differ on average; the known rows are the uFLIP paper's."),
    el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "device"), el("th", { scope: "col" }, "differs by"), el("th", { class: "text", scope: "col" }, "most in"))),
      el("tbody", {}, facts.nearest.slice(0, 4).map(n => el("tr", {}, el("td", {}, n.name), el("td", {}, `× ${three(n.factor)}`),
        el("td", { class: "text" }, `${n.farthest}: ${far(n)}`))))));
}

function profileSection() {
  const p = facts.profile;
  if (!p) return null;
  const c = p.device_class;
  const failing = c.failing.length ? el("details", {}, el("summary", {}, "Published assumptions that are wrong here"), el("ul", { class: "left" }, c.failing.map(f => el("li", {}, f.statement)))) : null;
  const why = c.indicators.length ? el("details", {}, el("summary", {}, "Why this class"), el("ul", { class: "left" }, c.indicators.map(i => el("li", {}, i.statement)))) : null;
  return el("section", { id: "profile" }, el("h2", {}, "Profile"),
    el("p", { class: "say strong" }, c.statement),
    el("div", { class: "two" },
      el("div", { class: "column" }, el("div", { class: "card" }, el("h3", {}, "What it boils down to", el("small", {}, " = no effect, ? not decided, – not measured or none found")), profileTable(p), why, failing), nearestCard()),
      p.hints.length ? el("div", { class: "card" }, el("h3", {}, "Hints", el("small", {}, " the uFLIP paper's seven, judged here")), hintList(p.hints)) : null));
}

// Findings against the results: the profile's; then what is to be known of the folder.
const SEVERITY = { serious: "Serious", warning: "Warning", info: "Note" };
function findings() {
  const listed = view.soundness.map(f => ({ text: String(f.statement), severity: f.severity, runs: f.runs }));
  const known = new Set(listed.map(f => f.text));
  const alerts = (view.alerts || []).filter(text => !known.has(text) && known.add(text));
  listed.unshift(...alerts.map(text => ({ text, severity: "serious" })));
  const more = view.notes.concat(facts.notes).filter(text => !known.has(text) && known.add(text));
  return listed.concat(more.map(text => ({ text, severity: "info" })));
}

function trustSection() {
  const found = findings(), grave = found.filter(f => f.severity === "serious").length, warned = found.filter(f => f.severity === "warning").length;
  const some = (n, word) => (n ? `${n} ${word}${n > 1 ? "s" : ""}` : null);
  const verdict = grave ? `Not as it stands: ${[some(grave, "serious finding"), some(warned, "warning")].filter(Boolean).join(" and ")}.`
    : warned ? `With care: ${some(warned, "warning")}.` : `Yes: nothing in the results speaks against them.${(view.open_loops || []).length ? " Open loops are told by themselves and not judged." : ""}`;
  const line = f => el("li", { class: `finding ${f.severity}` }, el("b", {}, SEVERITY[f.severity] || "Note"), " ", f.text, " ", runButtons(f.runs));
  const told = found.filter(f => f.severity !== "info"), notes = found.filter(f => f.severity === "info");
  return el("section", { id: "trust" }, el("h2", {}, "Can it be trusted?"), el("p", { class: "say strong" }, verdict),
    told.length ? el("ul", { class: "findings" }, told.map(line)) : null,
    notes.length ? el("details", { open: notes.length <= 2 }, el("summary", {}, `${count(notes.length)} note${notes.length > 1 ? "s" : ""}`), el("ul", { class: "findings" }, notes.map(line))) : null);
}
