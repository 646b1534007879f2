// The profile card (the row of Table 3), hints and findings, from the folder's
// profile.json where there is one. Its fields may be numbers or objects with
// `value` or `mean` and `ci95` ([low, high] or a half width); what is null or
// not there is shown as not measured. Nothing is made up here.

const numberOf = v => (typeof v === "number" ? v : v && typeof v === "object" ? [v.value, v.mean, v.median].find(n => typeof n === "number") ?? null : null);

function interval(v, show) {
  const n = numberOf(v);
  if (n === null) return NONE;
  const ci = v && v.ci95;
  if (Array.isArray(ci) && ci.every(c => typeof c === "number")) return [show(n), el("small", {}, ` (${show(ci[0])} to ${show(ci[1])})`)];
  if (typeof ci === "number") return [show(n), el("small", {}, ` (± ${show(ci)})`)];
  return show(n);
}

const millis = v => time(v * 1e6);
const times = v => (Math.abs(v - 1) < 0.1 ? "=" : `× ${three(v)}`);
const at = (object, ...keys) => keys.reduce((o, k) => (o && typeof o === "object" ? o[k] : null), object);

function profileRow(profile) {
  const pair = (first, show, factor) => (numberOf(first) === null ? NONE : [interval(first, show), numberOf(factor) === null ? null : ` (${times(numberOf(factor))})`]);
  const cells = [
    ...["SR", "RR", "SW", "RW"].map(b => [b, interval(at(profile, "baseline_ms", b), millis)]),
    ["Pause, RW as SW", interval(profile.pause_rw_ms, millis)],
    ["Locality, RW", pair(at(profile, "locality", "area_bytes"), bytes, at(profile, "locality", "factor"))],
    ["Partitions, SW", pair(at(profile, "partitions", "count"), count, at(profile, "partitions", "factor"))],
    ["Reverse", interval(at(profile, "order", "reverse_factor"), times)],
    ["In place", interval(at(profile, "order", "in_place_factor"), times)],
    ["Large Incr", interval(at(profile, "order", "large_incr_factor"), times)],
  ];
  return el("dl", { class: "facts profile" }, cells.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

const VERDICTS = { holds: "✓ holds", does_not_hold: "✗ does not hold", unknown: "? not known" };

function profileSection() {
  const profile = facts.profile;
  if (!profile || typeof profile !== "object") return null;
  const hints = Array.isArray(profile.hints) ? profile.hints : [];
  return el("section", { id: "profile" }, el("h2", {}, "Profile"),
    el("p", { class: "lead" }, "What the results boil down to; = means no effect, – not measured or no effect found, in brackets the 95 % interval or the cost relative to sequential writes."),
    el("div", { class: "two" }, el("div", { class: "card" }, profileRow(profile)),
      hints.length ? el("div", { class: "card" }, el("h3", {}, "Hints"), el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, hints.map(h => el("tr", {},
        el("td", { class: "verdict" }, VERDICTS[h.verdict] || String(h.verdict)),
        el("td", { class: "text" }, String(h.statement ?? h.id), evidence(h.evidence)))))))) : null));
}

const evidence = list => (Array.isArray(list) && list.length ? el("span", {}, " ", list.slice(0, 4).map(id => [runButton(id), " "])) : null);

// Findings against the results: the profile's, and the view's own.
function findings() {
  const own = at(facts.profile, "soundness");
  const listed = (Array.isArray(own) ? own : []).map(f => ({ text: String(f.statement ?? f.code), runs: f.runs }));
  return listed.concat(view.soundness.map(text => ({ text })), facts.notes.map(text => ({ text })));
}
