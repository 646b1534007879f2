// What is shown, in which order.

function runName(run) {
  if (run.title) return run.title;
  const point = run.point ? ` ${run.point.micro === "calibration" ? run.point.parameter.replaceAll("_", " ") : run.point.micro} ${run.point.label}` : "";
  return `${run.baseline}${point}${run.repeat ? ` #${run.repeat + 1}` : ""} (run ${run.id})`;
}
const runButton = id => el("button", { type: "button", onclick: () => showRun(id, true), "aria-label": `show the IOs of run ${id}` }, `run ${id}`);

function head() {
  document.title = `uflip: ${view.target}`;
  const button = el("button", { type: "button", id: "theme", onclick: () => { themeChosen = true; theme.set(theme.now() === "dark" ? "light" : "dark"); } });
  const name = () => { button.textContent = theme.now() === "dark" ? "Light" : "Dark"; button.setAttribute("aria-label", `${theme.now() === "dark" ? "light" : "dark"} colours`); };
  theme.listeners.push(name);
  name();
  fill(document.getElementById("head"), {},
    [el("div", {}, el("div", { class: "kicker" }, "uflip report"), el("h1", {}, targetName())), button,
      el("p", { class: "made" }, [targetWords(), `measured ${view.created.replace("T", " ").replace("Z", " UTC")}`, `${count(view.runs)} runs`,
        engineWords(), `seed ${view.seed}`].filter(Boolean).join(" · ")),
      ...(view.alerts || []).map(text => el("p", { class: "notice alert" }, text))]);
  fill(document.getElementById("foot"), {}, [`Made by ${view.tool}. This file is complete: it loads nothing and sends nothing.`]);
}

const targetName = () => (facts.target && typeof facts.target.name === "string" ? facts.target.name : view.target);
function targetWords() {
  const f = at(facts.target, "facts");
  if (!f) return null;
  const beneath = at(f, "file", "beneath");
  const model = [f.vendor, f.model, f.firmware].filter(v => typeof v === "string").join(" ");
  const under = beneath ? `file on ${beneath.name}${beneath.model ? ` (${beneath.model})` : ""}` : f.kind;
  return [model || under, typeof f.size_bytes === "number" ? bytes(f.size_bytes) : null].filter(Boolean).join(", ") || null;
}
function engineWords() {
  const o = facts.options || {}, engine = typeof o.engine === "string" ? o.engine : o.engine && Object.keys(o.engine)[0];
  return [engine && `engine ${engine}`, o.buffering && `${o.buffering} IO`].filter(v => typeof v === "string").join(", ") || null;
}

function nav(sections) {
  fill(document.getElementById("nav"), {}, sections.filter(Boolean).map(s => el("a", { href: `#${s.id}` }, s.querySelector("h2").textContent)));
}

function baselineCard(rows) {
  const b = rows[0].baseline, s = styleOf(b);
  const means = rows.map(r => r.stats.mean_ns).filter(v => v !== null);
  const mean = average(means), of = field => average(rows.map(r => r.stats[field]).filter(v => v !== null));
  const rest = at(facts.profile, "baseline_ms", "evidence", b), ends = rest && rest.ci95;
  const level = at(facts.profile, "baseline_ms", b), shown = level === null ? mean : level * 1e6;
  const [unit, scale] = unitFor(shown || 1e3);
  const found = name => at(facts.profile, name, b);
  const figures = [["sd", time(of("sd_ns"))], ["p50", time(of("p50_ns"))], ["p99", time(of("p99_ns"))], ["p99.9", time(of("p999_ns"))], ["max", time(Math.max(...rows.map(r => r.stats.max_ns || 0)) || null)],
    ["IOs", count(rows.reduce((sum, r) => sum + r.stats.n, 0))],
    found("start_up_ios") === null ? null : ["start-up", `${count(found("start_up_ios"))} IOs`],
    found("period_ios") === null ? null : ["period", `${three(found("period_ios"))} IOs`]].filter(Boolean);
  return el("div", { class: `card chip c-${s.c}` }, el("h3", {}, sign(b), ` ${b} `, el("small", {}, words(b))),
    el("div", { class: "big" }, shown === null ? NONE : inUnit(shown, scale), el("small", {}, ` ${unit} mean`)),
    ends && el("p", { class: "status" }, `95 %: ${millis(ends[0])} to ${millis(ends[1])}`),
    el("dl", { class: "facts" }, figures.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
    el("p", { class: "status" }, rows.slice(0, 3).map(r => [runButton(r.run), " "])));
}

function baselineSection() {
  if (!view.baselines.length) return null;
  const names = [...new Set(view.baselines.map(b => b.baseline))];
  const means = view.baselines.map(b => b.stats.mean_ns).filter(v => v !== null).sort((a, b) => a - b);
  const [unit, scale] = unitFor(means[means.length >> 1] || 1e3);
  const columns = [["IOs", "n"], ["mean", "mean_ns"], ["sd", "sd_ns"], ["min", "min_ns"], ["p50", "p50_ns"], ["p90", "p90_ns"], ["p95", "p95_ns"], ["p99", "p99_ns"], ["p99.9", "p999_ns"], ["p99.99", "p9999_ns"], ["max", "max_ns"]];
  const told = [["write amplification", b => b.write_amplification], ["µJ an IO", b => b.energy_uj_per_io]].filter(([, get]) => view.baselines.some(b => Number.isFinite(get(b))));
  const beside = b => told.map(([, get]) => el("td", {}, Number.isFinite(get(b)) ? three(get(b)) : "–"));
  return el("section", { id: "baselines" }, el("h2", {}, "Baselines"),
    el("p", { class: "lead" }, facts.profile ? "Response times of the running phase. The large figures leave out the start-up that the profile found; all others the first IOIgnore IOs." : "Response times of the running phase, that is without the start-up."),
    el("div", { class: "cards" }, names.map(n => baselineCard(view.baselines.filter(b => b.baseline === n)))),
    el("details", { open: false }, el("summary", {}, "All figures"),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "figures of the baselines" }, el("table", { class: "baselines" }, el("caption", {}, `Response time in ${unit}`),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "baseline"), columns.concat(told).map(([n]) => el("th", { scope: "col" }, n)), el("th", { class: "text", scope: "col" }, "pattern"))),
        el("tbody", {}, view.baselines.map(b => el("tr", {}, el("td", {}, sign(b.baseline), ` ${b.baseline}${b.repeat ? ` #${b.repeat + 1}` : ""}`),
          columns.map(([, f]) => el("td", {}, f === "n" ? count(b.stats.n) : inUnit(b.stats[f], scale))), beside(b), el("td", { class: "text" }, b.pattern))))))));
}

// Runs whose IOs were due at instants of their own: no baselines and no points of a curve.
function openLoopSection() {
  const rows = view.open_loops || [];
  if (!rows.length) return null;
  const means = rows.map(b => b.stats.mean_ns).filter(v => v !== null).sort((a, b) => a - b);
  const [unit, scale] = unitFor(means[means.length >> 1] || 1e3);
  const columns = [["IOs", b => count(b.stats.n)], ...[["mean", "mean_ns"], ["sd", "sd_ns"], ["p50", "p50_ns"], ["p99", "p99_ns"], ["p99.9", "p999_ns"], ["max", "max_ns"]].map(([n, f]) => [n, b => inUnit(b.stats[f], scale)]),
    ...[["write amplification", "write_amplification"], ["µJ an IO", "energy_uj_per_io"]].filter(([, f]) => rows.some(b => Number.isFinite(b[f]))).map(([n, f]) => [n, b => (Number.isFinite(b[f]) ? three(b[f]) : NONE)])];
  const wide = text => el("td", { class: "text" }, text);
  return el("section", { id: "open-loops" }, el("h2", {}, "Open loops"),
    el("p", { class: "lead" }, "Response times from the instant that an IO was due: the wait for those before is in them. These runs are no baselines and no points of a curve; nothing else on this page rests on them."),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "figures of the open loops" }, el("table", { class: "baselines" }, el("caption", {}, `Response time in ${unit}`),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "run"), columns.map(([n]) => el("th", { scope: "col" }, n)), el("th", { class: "text", scope: "col" }, "pattern"), el("th", { class: "text", scope: "col" }, "lateness"))),
      el("tbody", {}, rows.map(b => el("tr", {}, el("td", {}, runButton(b.run), ` ${b.baseline}`), columns.map(([, f]) => el("td", {}, f(b))), wide(b.pattern), wide(b.lateness || NONE)))))));
}

// What a program did on each of its devices, step by step.
function programSection() {
  const runs = view.programs || [];
  if (!runs.length) return null;
  const number = v => (Number.isFinite(v) ? three(v) : NONE);
  const columns = [["device", r => r.target || r.device], ["requests", r => count(r.requests)], ["read", r => bytes(r.read)], ["written", r => bytes(r.written)], ["time", r => time(r.elapsed_ns)], ["MB/s", r => number(r.mb_s)], ["under way", r => number(r.mean_under_way)], ["mean", r => (r.stats.mean_ns === null ? NONE : time(r.stats.mean_ns))], ["write amplification", r => number(r.write_amplification)], ["µJ a request", r => number(r.energy_uj_per_io)]];
  return el("section", { id: "program" }, el("h2", {}, `Program: ${runs[0].program}`),
    el("p", { class: "lead" }, "What each step did on each device, on the device's own clock; requests under way on average."),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "what the program did" }, el("table", { class: "baselines" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "step"), columns.map(([n]) => el("th", { scope: "col" }, n)))),
      el("tbody", {}, runs.map(r => el("tr", {}, el("td", {}, runButton(r.run), ` ${r.step} ${r.device}`), columns.map(([, f]) => el("td", {}, f(r)))))))));
}

function microSection() {
  if (!view.sections.length) return null;
  return el("section", { id: "micro" }, el("h2", {}, facts.others.job ? "Experiments" : "Micro-benchmarks"),
    el("p", { class: "lead" }, `One parameter varies, everything else is the baseline. Points are means ${facts.profile ? "that leave out the start-up which the profile found for the baseline, where it is longer than IOIgnore" : "from IOIgnore on"}; the figures of a single run begin at IOIgnore. Whiskers are ${facts.profile ? "their 95 % intervals" : "the smallest and largest mean of the repeats"}. Choose a point to see its IOs.`),
    el("div", { class: "tools" }, el("label", {}, el("input", { type: "checkbox", id: "percentiles", onchange: e => percentiles.toggle(e.target.checked) }), "percentiles (dashed p50, dotted p99)")),
    el("div", { class: "charts" }, view.sections.map(microBenchmark)));
}

let explorer, location2, chosen = null, cumulative = false;
const ui = {};

function traceSection() {
  ui.group = el("select", { id: "group", "aria-label": "experiment", onchange: () => showRun(groups.get(ui.group.value)[0].id) });
  ui.select = el("select", { class: "run", "aria-label": "run", onchange: e => showRun(Number(e.target.value)) });
  const by = step => () => { const list = groups.get(ui.group.value), i = list.indexOf(chosen) + step; if (list[i]) showRun(list[i].id); };
  ui.axis = el("select", { "aria-label": "horizontal axis", onchange: e => explorer.setAxis(e.target.value) }, el("option", { value: "io" }, "by IO number"), el("option", { value: "time" }, "by time"));
  ui.streams = el("label", {}, el("input", { type: "checkbox", onchange: e => { explorer.byStream = e.target.checked; explorer.draw(); } }), "colour by stream");
  ui.canvas = el("canvas", { class: "trace", id: "trace", tabindex: 0, role: "application", "aria-describedby": "keys" });
  ui.tip = el("div", { class: "tip", hidden: true });
  ui.status = el("p", { class: "status", "aria-live": "polite" });
  ui.pattern = el("p", { class: "say" });
  ui.legend = el("ul", { class: "legend" });
  const zoom = (text, label, act) => el("button", { type: "button", "aria-label": label, onclick: act }, text);
  return el("section", { id: "traces" }, el("h2", {}, "Traces"),
    el("p", { class: "lead", id: "keys" }, "Every IO of a run. Drag over a range to zoom in, or click and use the wheel, two fingers, or keys: + and - zoom, ← → move, 0 shows all, . and , go from IO to IO, m finds the slowest, again the next."),
    el("div", { class: "card" },
      el("div", { class: "tools" }, ui.group, zoom("‹", "previous run", by(-1)), ui.select, zoom("›", "next run", by(1)), ui.axis, ui.streams,
        zoom("+", "zoom in", () => explorer.zoom(0.5)), zoom("−", "zoom out", () => explorer.zoom(2)), zoom("All", "show the whole run", () => explorer.reset()),
        zoom("Slowest", "go to the slowest IO, again to the next slowest", () => explorer.toSlowest())),
      ui.pattern, el("div", { class: "stage" }, ui.canvas, ui.tip), ui.status, ui.legend),
    viewsCards());
}

function viewsCards() {
  ui.distribution = el("div", {});
  ui.place = el("canvas", { class: "small", role: "img", "aria-label": "response time over offset" });
  ui.placeStatus = el("p", { class: "status" });
  const toggle = el("button", { type: "button", id: "cdf", "aria-pressed": "false", onclick: () => {
    cumulative = !cumulative;
    toggle.setAttribute("aria-pressed", cumulative);
    showDistribution();
  } }, "cumulative");
  ui.repeats = el("div", {});
  return [el("div", { class: "two" },
    el("div", { class: "card" }, el("div", { class: "tools" }, el("h3", {}, "Distribution"), toggle), ui.distribution),
    el("div", { class: "card" }, el("h3", {}, "Location", el("small", {}, " response time over the address")), ui.place, ui.placeStatus)), ui.repeats];
}

// Runs by experiment: a list of tens of thousands would be no choice.
const groups = new Map();
const SEQUENCE = 1e9;
function groupName(run) {
  if (run.title) return "pause tests and long baselines";
  if (!run.point) return run.purpose.replaceAll("_", " ");
  return run.point.micro === "calibration" ? `calibration: ${run.point.parameter.replaceAll("_", " ")}` : `${run.point.micro} ${run.baseline}`;
}
// In the order of the page; what is not of a micro-benchmark first.
function rank(run) {
  const section = run.point ? view.sections.findIndex(s => s.micro_benchmark === run.point.micro) : -1;
  const baseline = BASELINES.indexOf(run.baseline);
  return section * 10 + (baseline < 0 ? 9 : baseline);
}
function groupRuns() {
  const first = runs.concat(sequences()).map(run => [run.point ? rank(run) : -100, run]);
  for (const [, run] of first.sort((a, b) => a[0] - b[0] || a[1].id - b[1].id)) {
    const name = groupName(run);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(run);
    runsById.set(run.id, run);
  }
  ui.group.replaceChildren(...[...groups.keys()].map(name => el("option", { value: name }, `${name} (${count(groups.get(name).length)})`)));
}
// The run among those of its experiment, at most a thousand on either side.
function fillSelect(run) {
  const list = groups.get(groupName(run)), i = list.indexOf(run);
  ui.group.value = groupName(run);
  ui.select.replaceChildren(...list.slice(Math.max(0, i - 1000), i + 1000).map(r => el("option", { value: r.id }, runName(r))));
  ui.select.value = String(run.id);
}

// Several calibration runs as one picture: each pause test, each long baseline.
function sequences() {
  const found = at(facts.others, "calibration"), list = [];
  const add = (title, baseline, ids, extra) => {
    const parts = (ids || []).map(id => runsById.get(id)).filter(Boolean);
    if (!parts.length || !parts.every(r => r.trace)) return;
    const of = key => ({ n: parts.reduce((s, r) => s + r.running.n, 0), min: null, max: Math.max(...parts.map(r => r.running[key])), mean: null, sd: null, p: [] });
    list.push({ id: SEQUENCE + list.length, title, baseline, parts, purpose: "calibration", point: null, repeat: 0, ignore: 0, cut: false, missing: null,
      pattern: parts.map(r => r.pattern).filter((p, i, all) => all.indexOf(p) === i).join("; "), elapsed: parts.reduce((s, r) => s + r.elapsed, 0),
      running: of("max"), all: of("max"), trace: { kind: "sequence" }, ...extra });
  };
  for (const t of at(found, "pause", "tests") || []) {
    const before = t.runs_before.slice(-1), ids = before.concat([t.run_batch], t.runs_after);
    const mark = t.found && t.found.affected_ios > 0 ? [{ after: before.length + 1, ios: t.found.affected_ios, name: `lasting effect on ${t.found.over ? "" : "at least "}${count(t.found.affected_ios)} IOs, ${time(t.found.affected_ns)}` }] : [];
    add(`Pause test with ${t.batch}`, "SR/RW", ids, { mark, names: ids.map((_, k) => (k < before.length ? "SR before" : k === before.length ? String(t.batch) : "SR after")) });
  }
  for (const [name, b] of Object.entries(at(found, "baselines") || {})) {
    const start = b.start_up ? [{ after: 0, ios: b.start_up.ios, name: `start-up ${count(b.start_up.ios)} IOs` }] : [];
    add(`Long baseline ${name}${b.period ? `, period ${three(b.period.ios)} IOs` : ""}`, name, b.runs, { mark: start, ignore: b.start_up ? b.start_up.ios : 0 });
  }
  return list;
}
async function loadSequence(run) {
  const trace = await sequence(run.parts);
  if (!trace) return null;
  trace.parts.forEach((part, k) => { part.name = run.names && run.names[k]; });
  trace.marks = run.mark.filter(m => trace.parts[m.after]).map(m => ({ io: trace.parts[m.after].from + m.ios, name: m.name }));
  if (!run.names) { trace.parts = null; trace.marked = true; }
  return trace;
}

async function showDistribution() {
  const run = chosen, made = await distribution(run, cumulative);
  if (chosen === run) ui.distribution.replaceChildren(made);
}

async function showRun(id, jump) {
  const run = runsById.get(id);
  if (!run) return;
  chosen = run;
  fillSelect(run);
  if (jump) { document.getElementById("traces").scrollIntoView(); ui.canvas.focus({ preventScroll: true }); }
  const trace = run.parts ? await loadSequence(run) : await loadTrace(run);
  if (chosen !== run) return;
  const s = run.running;
  const figures = run.parts ? "" : ` From IOIgnore on: mean ${time(s.mean)}, sd ${time(s.sd)}, p50 ${time(s.p[0])}, p99 ${time(s.p[3])}, max ${time(s.max)}, ${count(s.n)} IOs.`;
  ui.pattern.replaceChildren(el("b", {}, runName(run)), ` ${run.pattern}; ${kindWords(run)}${run.cut ? "; cut short by a time limit" : ""}.${figures}`);
  ui.canvas.setAttribute("aria-label", `Response times of ${runName(run)}, logarithmic`);
  ui.streams.hidden = !(trace && trace.streams > 1);
  explorer.byStream = !ui.streams.hidden && ui.streams.firstChild.checked;
  explorer.show(run, trace);
  ui.axis.value = explorer.axis;
  ui.axis.disabled = !explorer.hasTime();
  traceLegend(run, trace);
  location2.show(run, trace);
  ui.repeats.replaceChildren();
  if (run.parts) return void ui.distribution.replaceChildren(el("p", { class: "lead" }, "Choose one of the runs for its distribution."));
  await showDistribution();
  const beside = await repeatsSideBySide(run);
  if (chosen === run && beside) ui.repeats.replaceChildren(beside);
}

function traceLegend(run, trace) {
  const groups = trace ? [...new Set(trace.classes.map(c => c.group))] : [];
  const dash = kind => svg("svg", { class: "sign", viewBox: "0 0 14 14", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 14, y1: 7, y2: 7, stroke: "currentColor", "stroke-width": 1.6, "stroke-dasharray": kind }));
  ui.legend.replaceChildren(...groups.map(g => el("li", {}, sign(g), ` ${g} ${words(g)}`)),
    ...(trace && trace.parts ? [] : [el("li", {}, dash("none"), " running average without the start-up")]),
    ...(run.ignore ? [el("li", {}, dash("4 3"), " with it")] : []));
}

function aboutSection() {
  const tally = new Map();
  for (const run of runs) { const kind = kindWords(run); tally.set(kind, (tally.get(kind) || []).concat(run.id)); }
  const flat = (name, value) => {
    if (value === null || value === undefined) return [];
    if (typeof value !== "object") return [[name, typeof value === "number" && /bytes$/.test(name) ? bytes(value) : String(value)]];
    return Object.entries(value).flatMap(([k, v]) => flat(name ? `${name}.${k}` : k, v));
  };
  const list = (title, value) => (flat("", value).length ? el("details", {}, el("summary", {}, title), el("dl", { class: "facts wide" }, flat("", value).map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]))) : null);
  const kinds = [...tally].map(([kind, ids]) => el("li", {}, `${count(ids.length)} runs: ${kind}`,
    tally.size > 1 ? el("details", {}, el("summary", {}, "which"), ids.slice(0, 2000).join(", "), ids.length > 2000 ? " …" : "") : null));
  return el("section", { id: "about" }, el("h2", {}, "About this file"), el("div", { class: "card" },
    el("p", { class: "say" }, "How the runs are embedded; the folder of the results has every IO."), el("ul", { class: "left" }, kinds),
    runs.length < facts.runs ? el("p", { class: "notice" }, `Only the first ${count(runs.length)} of ${count(facts.runs)} runs are in this file.`) : null,
    view.overhead ? el("p", { class: "say" }, `What measuring costs (not subtracted): ${view.overhead}`) : null,
    list("Target", facts.target), list("Host", facts.host), list("Options", facts.options),
    el("details", {}, el("summary", {}, "Files"), el("dl", { class: "facts wide" }, view.files.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])))));
}

async function main() {
  await readFacts();
  head();
  const sections = [trustSection(), profileSection(), baselineSection(), openLoopSection(), programSection(), ...(facts.others.job ? otherSections().concat(microSection()) : [microSection(), ...otherSections()]), runs.length ? traceSection() : null, aboutSection()];
  document.getElementById("main").replaceChildren(...sections.filter(Boolean));
  nav(sections);
  if (runs.length) {
    groupRuns();
    explorer = new Explorer(ui.canvas, ui.tip, ui.status);
    location2 = new Location(ui.place, ui.placeStatus);
    // The baseline that spreads most has most to show.
    const own = view.baselines.map(b => runsById.get(b.run)).filter(r => r && r.trace);
    const spread = r => (r.all.sd || 0) / (r.all.mean || 1);
    const asked = runsById.get(Number((/^#run-([0-9]+)$/.exec(location.hash) || [])[1]));
    await showRun((asked || own.sort((a, b) => spread(b) - spread(a))[0] || runs[0]).id, !!asked);
  }
  // What the address asks for was not there when the browser looked.
  if (location.hash.length > 1) document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
  document.documentElement.dataset.ready = "true";
}

main().catch(error => {
  document.getElementById("main").replaceChildren(el("p", { class: "notice" }, `This page could not be drawn: ${error.message}. It needs a browser of 2023 or later.`));
  throw error;
});
