// What is shown, in which order.

function runName(run) {
  const point = run.point ? ` ${run.point.micro_benchmark} ${run.point.label}` : "";
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
        engineWords(), `seed ${view.seed}`].filter(Boolean).join(" · "))]);
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

function trustSection() {
  const found = findings();
  const list = found.map(f => el("p", { class: "notice" }, f.text, Array.isArray(f.runs) ? evidence(f.runs) : null));
  return el("section", { id: "trust" }, el("h2", {}, "Can it be trusted?"),
    found.length ? list : el("p", { class: "good" }, "Nothing in the results speaks against them: no run was cut short or disturbed by its own recording."));
}

function baselineCard(rows) {
  const b = rows[0].baseline, s = styleOf(b);
  const means = rows.map(r => r.stats.mean_ns).filter(v => v !== null);
  const mean = average(means), of = field => average(rows.map(r => r.stats[field]).filter(v => v !== null));
  const [unit, scale] = unitFor(mean || 1e3);
  const facts = [["sd", time(of("sd_ns"))], ["p50", time(of("p50_ns"))], ["p99", time(of("p99_ns"))], ["p99.9", time(of("p999_ns"))], ["max", time(Math.max(...rows.map(r => r.stats.max_ns || 0)) || null)],
    ["IOs", count(rows.reduce((sum, r) => sum + r.stats.n, 0))]];
  return el("div", { class: `card chip c-${s.c}` }, el("h3", {}, sign(b), ` ${b} `, el("small", {}, words(b))),
    el("div", { class: "big" }, mean === null ? NONE : inUnit(mean, scale), el("small", {}, ` ${unit} mean`)),
    el("dl", { class: "facts" }, facts.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
    el("p", { class: "status" }, rows.slice(0, 3).map(r => [runButton(r.run), " "])));
}

function baselineSection() {
  if (!view.baselines.length) return null;
  const names = [...new Set(view.baselines.map(b => b.baseline))];
  const means = view.baselines.map(b => b.stats.mean_ns).filter(v => v !== null).sort((a, b) => a - b);
  const [unit, scale] = unitFor(means[means.length >> 1] || 1e3);
  const columns = [["IOs", "n"], ["mean", "mean_ns"], ["sd", "sd_ns"], ["min", "min_ns"], ["p50", "p50_ns"], ["p90", "p90_ns"], ["p95", "p95_ns"], ["p99", "p99_ns"], ["p99.9", "p999_ns"], ["p99.99", "p9999_ns"], ["max", "max_ns"]];
  return el("section", { id: "baselines" }, el("h2", {}, "Baselines"),
    el("p", { class: "lead" }, "Response times of the running phase, that is without the start-up."),
    el("div", { class: "cards" }, names.map(n => baselineCard(view.baselines.filter(b => b.baseline === n)))),
    el("details", { open: view.baselines.length > names.length }, el("summary", {}, "All figures"),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "figures of the baselines" }, el("table", {}, el("caption", {}, `Response time in ${unit}`),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "baseline"), columns.map(([n]) => el("th", { scope: "col" }, n)), el("th", { class: "text", scope: "col" }, "pattern"))),
        el("tbody", {}, view.baselines.map(b => el("tr", {}, el("td", {}, sign(b.baseline), ` ${b.baseline}${b.repeat ? ` #${b.repeat + 1}` : ""}`),
          columns.map(([, f]) => el("td", {}, f === "n" ? count(b.stats.n) : inUnit(b.stats[f], scale))), el("td", { class: "text" }, b.pattern))))))));
}

function microSection() {
  if (!view.sections.length) return null;
  return el("section", { id: "micro" }, el("h2", {}, "Micro-benchmarks"),
    el("p", { class: "lead" }, "One parameter varies, everything else is the baseline. Points are means of the running phase, whiskers the smallest and largest mean of the repeats. Choose a point to see its IOs."),
    el("div", { class: "tools" }, el("label", {}, el("input", { type: "checkbox", id: "percentiles", onchange: e => percentiles.toggle(e.target.checked) }), "percentiles (dashed p50, dotted p99)")),
    el("div", { class: "charts" }, view.sections.map((s, i) => microBenchmark(s, facts.sentences[i]))));
}

let explorer, location2, chosen = null, cumulative = false;
const ui = {};

function traceSection() {
  ui.select = el("select", { class: "run", "aria-label": "run", onchange: e => showRun(Number(e.target.value)) }, runGroups());
  const by = step => () => { const at = ui.select.selectedIndex + step; if (at >= 0 && at < ui.select.length) { ui.select.selectedIndex = at; showRun(Number(ui.select.value)); } };
  ui.axis = el("select", { "aria-label": "horizontal axis", onchange: e => explorer.setAxis(e.target.value) }, el("option", { value: "io" }, "by IO number"), el("option", { value: "time" }, "by time"));
  ui.streams = el("label", {}, el("input", { type: "checkbox", onchange: e => { explorer.byStream = e.target.checked; explorer.draw(); } }), "colour by stream");
  ui.canvas = el("canvas", { class: "trace", id: "trace", tabindex: 0, role: "application", "aria-describedby": "keys" });
  ui.tip = el("div", { class: "tip", hidden: true });
  ui.status = el("p", { class: "status", "aria-live": "polite" });
  ui.pattern = el("p", { class: "say" });
  ui.legend = el("ul", { class: "legend" });
  const zoom = (text, label, act) => el("button", { type: "button", "aria-label": label, onclick: act }, text);
  return el("section", { id: "traces" }, el("h2", {}, "Traces"),
    el("p", { class: "lead", id: "keys" }, "Every IO of a run. Drag over a range to zoom in, or click and use the wheel, two fingers, or keys: + and - zoom, ← → move, 0 shows all, . and , go from IO to IO, m finds the slowest."),
    el("div", { class: "card" },
      el("div", { class: "tools" }, zoom("‹", "previous run", by(-1)), ui.select, zoom("›", "next run", by(1)), ui.axis, ui.streams,
        zoom("+", "zoom in", () => explorer.zoom(0.5)), zoom("−", "zoom out", () => explorer.zoom(2)), zoom("All", "show the whole run", () => explorer.reset())),
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
  return el("div", { class: "two" },
    el("div", { class: "card" }, el("div", { class: "tools" }, el("h3", {}, "Distribution"), toggle), ui.distribution),
    el("div", { class: "card" }, el("h3", {}, "Location"), ui.place, ui.placeStatus));
}

function runGroups() {
  const groups = new Map();
  for (const run of runs) {
    const name = run.point ? run.point.micro_benchmark : run.purpose.replace("_", " ");
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(run);
  }
  return [...groups].map(([name, list]) => el("optgroup", { label: name }, list.map(run => el("option", { value: run.id }, runName(run)))));
}

async function showDistribution() {
  const run = chosen, made = await distribution(run, cumulative);
  if (chosen === run) ui.distribution.replaceChildren(made);
}

async function showRun(id, jump) {
  const run = runsById.get(id);
  if (!run) return;
  chosen = run;
  ui.select.value = String(id);
  if (jump) { document.getElementById("traces").scrollIntoView(); ui.canvas.focus({ preventScroll: true }); }
  const trace = await loadTrace(run);
  if (chosen !== run) return;
  const s = run.running;
  ui.pattern.replaceChildren(el("b", {}, runName(run)), ` ${run.pattern}; ${kindWords(run)}${run.time_limit_hit ? "; cut short by a time limit" : ""}. ` +
    `Running phase: mean ${time(s[2][0])}, sd ${time(s[2][1])}, p50 ${time(s[3][0])}, p99 ${time(s[3][3])}, max ${time(s[1][1])}, ${count(s[0])} IOs.`);
  ui.canvas.setAttribute("aria-label", `Response times of ${runName(run)}, logarithmic`);
  ui.streams.hidden = !(trace && trace.streams > 1);
  explorer.byStream = !ui.streams.hidden && ui.streams.firstChild.checked;
  explorer.show(run, trace);
  ui.axis.value = explorer.axis;
  ui.axis.disabled = !explorer.hasTime();
  traceLegend(run, trace);
  location2.show(run, trace);
  await showDistribution();
}

function traceLegend(run, trace) {
  const groups = trace ? [...new Set(trace.classes.map(c => c.group))] : [];
  const dash = kind => svg("svg", { class: "sign", viewBox: "0 0 14 14", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 14, y1: 7, y2: 7, stroke: "currentColor", "stroke-width": 1.6, "stroke-dasharray": kind }));
  ui.legend.replaceChildren(...groups.map(g => el("li", {}, sign(g), ` ${g} ${words(g)}`)),
    el("li", {}, dash("none"), " running average without the start-up"),
    ...(run.io_ignore ? [el("li", {}, dash("4 3"), " with it")] : []));
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
    tally.size > 1 ? el("details", {}, el("summary", {}, "which"), ids.join(", ")) : null));
  return el("section", { id: "about" }, el("h2", {}, "About this file"), el("div", { class: "card" },
    el("p", { class: "say" }, "How the runs are embedded; the folder of the results has every IO."), el("ul", { class: "left" }, kinds),
    view.overhead ? el("p", { class: "say" }, `What measuring costs (not subtracted): ${view.overhead}`) : null,
    list("Target", facts.target), list("Host", facts.host), list("Options", facts.options),
    el("details", {}, el("summary", {}, "Files"), el("dl", { class: "facts wide" }, view.files.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])))));
}

async function main() {
  head();
  runs = JSON.parse(new TextDecoder().decode(await unpack(document.getElementById("runs").textContent)));
  runs.forEach(run => runsById.set(run.id, run));
  const sections = [trustSection(), profileSection(), baselineSection(), microSection(), runs.length ? traceSection() : null, aboutSection()];
  document.getElementById("main").replaceChildren(...sections.filter(Boolean));
  nav(sections);
  if (runs.length) {
    explorer = new Explorer(ui.canvas, ui.tip, ui.status);
    location2 = new Location(ui.place, ui.placeStatus);
    // The baseline that spreads most has most to show.
    const own = view.baselines.map(b => runsById.get(b.run)).filter(r => r && r.trace);
    const spread = r => (r.all[2][1] || 0) / (r.all[2][0] || 1);
    await showRun((own.sort((a, b) => spread(b) - spread(a))[0] || runs[0]).id);
  }
  // What the address asks for was not there when the browser looked.
  if (location.hash.length > 1) document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
  document.documentElement.dataset.ready = "true";
}

main().catch(error => {
  document.getElementById("main").replaceChildren(el("p", { class: "notice" }, `This page could not be drawn: ${error.message}. It needs a browser of 2023 or later.`));
  throw error;
});
