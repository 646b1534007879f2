//! Every conclusion as a question with an answer: yes, no, or not decided by these runs.
//!
//! Method: `detect::verdict`, on the levels of `gather.rs`; the hints, the class, the
//! sentences and the card go by these answers and by nothing else. A question that makes
//! several comparisons is answered yes by intervals that are corrected for their number; the
//! `ci95` of single figures stay uncorrected. What would decide an open question is told
//! from the width of its interval, which falls with the root of the runs, and from how long
//! the runs took.
//!
//! Source: paper 001, sections 5.2 and 5.3 (what is asked). Units: ratios.

use super::evidence::rounded;
use super::facts::{BaselineFacts, CurveFacts, Facts, MeasuredCurve};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use uflip_measure::MicroBenchmark;
use uflip_measure::detect::knee::{CostRatio, SAME, ratio};
use uflip_measure::detect::level::{KnownLevel, PRINTED};
use uflip_measure::detect::verdict::{Decision, HeldAgainst, any_above_of, corrected};
use uflip_measure::pattern::Baseline;
use uflip_measure::run::{CurveName, RunSection};
use uflip_store::contents::RunRow;

/// More repeats than this are no advice.
const MOST_REPEATS: f64 = 99.0;
/// Pairs of a long curve's points that are looked at for each of two answers.
const TELLING: usize = 64;

/// A question, its answer and what that rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// Which question: `random_writes`, `alignment`, `curve.order.SW`, …
    pub id: String,
    /// The question as a statement, which the verdict affirms or denies.
    pub question: String,
    /// The ratio from which on it is so.
    pub bound: f64,
    /// The answer.
    pub verdict: Decision,
    /// The largest of the ratios compared.
    pub ratio: Option<f64>,
    /// Its interval, corrected for the number of comparisons; null where it is open.
    pub interval: Option<[f64; 2]>,
    /// Where that is, as `RR at 4`; null for baselines.
    #[serde(default)]
    pub at: Option<String>,
    /// How many comparisons the question makes.
    pub comparisons: u64,
    /// What would decide it; null where it is decided.
    #[serde(default)]
    pub would_decide: Option<String>,
    /// The runs behind the ratio.
    pub runs: Vec<u32>,
}

impl Answered {
    /// The ratio with its interval, in words.
    pub fn figures(&self) -> String {
        let ratio = self.ratio.map_or_else(|| "not known".into(), |r| format!("x{}", short(r)));
        let ends = self.interval.map(|[low, high]| format!(" (x{} to x{})", short(low), short(high)));
        format!("{ratio}{}", ends.unwrap_or_else(|| " without an interval".into()))
    }

    /// For an open question: what is not known, and what would tell.
    pub fn not_decided(&self) -> String {
        let at = self.at.as_ref().map_or_else(String::new, |at| format!(" for {at}"));
        let first = format!(
            "Not decided by this run: {}? It is {}{at}, and x{} is the bound.",
            self.question,
            self.figures(),
            short(self.bound)
        );
        self.would_decide.as_ref().map_or(first.clone(), |more| format!("{first} {more}"))
    }
}

/// Two or three digits.
fn short(value: f64) -> String {
    match value {
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// The answer to a question, where it was asked.
pub fn answer<'a>(all: &'a [Answered], id: &str) -> Option<&'a Answered> {
    all.iter().find(|answer| answer.id == id)
}

/// The verdict of a question, where it was asked.
pub fn verdict(all: &[Answered], id: &str) -> Option<Decision> {
    answer(all, id).map(|answer| answer.verdict)
}

/// The id of the question whether a curve depends on its parameter.
pub fn of_curve(section: &RunSection, curve: &CurveName) -> String {
    format!("curve.{section}.{curve}")
}

/// One comparison of a question.
struct Held {
    compared: HeldAgainst,
    at: Option<String>,
    /// Runs on the side that has fewest.
    repeats: usize,
    runs: Vec<u32>,
}

/// What a level is of.
struct Side<'a> {
    known: KnownLevel,
    runs: &'a [u32],
}

impl<'a> From<&'a BaselineFacts> for Side<'a> {
    fn from(b: &'a BaselineFacts) -> Side<'a> {
        Side { known: b.known(), runs: &b.runs }
    }
}

impl<'a> From<&'a CurveFacts> for Side<'a> {
    fn from(p: &'a CurveFacts) -> Side<'a> {
        Side { known: p.known(), runs: &p.runs }
    }
}

fn held<'a>(of: impl Into<Side<'a>>, to: impl Into<Side<'a>>, at: Option<String>) -> Held {
    let (of, to) = (of.into(), to.into());
    Held {
        compared: HeldAgainst::new(of.known, to.known),
        at,
        repeats: of.runs.len().min(to.runs.len()),
        runs: of.runs.iter().chain(to.runs).copied().collect(),
    }
}

fn place(curve: &MeasuredCurve, point: &CurveFacts) -> Option<String> {
    Some(format!("{} at {}", curve.id.curve, point.label))
}

/// Asks questions of the facts of one folder.
struct Asker<'a> {
    facts: &'a Facts,
    /// How long each run took, in ns.
    took: HashMap<u32, u64>,
    answers: Vec<Answered>,
}

impl Asker<'_> {
    /// Asks whether any of `all` is at least `bound`. Nothing is asked where nothing is
    /// compared.
    fn ask(&mut self, id: &str, question: &str, bound: f64, only: Option<MicroBenchmark>, all: &[Held]) {
        self.ask_of(id, question, bound, only, all, all.len());
    }

    fn ask_of(
        &mut self,
        id: &str,
        question: &str,
        bound: f64,
        only: Option<MicroBenchmark>,
        all: &[Held],
        tests: usize,
    ) {
        let compared: Vec<HeldAgainst> = all.iter().map(|h| h.compared).collect();
        let at = |h: &Held| h.compared.at(corrected(tests));
        let largest = all.iter().filter_map(|h| Some((h, at(h)?)));
        // Of a yes the one that says so; else the one that says the most.
        let rank = |r: &CostRatio| (r.low > bound, r.ratio);
        let Some((which, found)) = largest.max_by(|a, b| {
            let (a, b) = (rank(&a.1), rank(&b.1));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        }) else {
            return;
        };
        let verdict = any_above_of(&compared, bound, tests);
        let open = verdict == Decision::NotDecided;
        let closed = found.high.is_finite() && found.low > 0.0;
        self.answers.push(Answered {
            id: id.into(),
            question: question.into(),
            bound,
            verdict,
            ratio: Some(rounded(found.ratio)),
            interval: closed.then(|| [rounded(found.low), rounded(found.high)]),
            at: which.at.clone(),
            comparisons: tests as u64,
            would_decide: open.then(|| self.would_decide(bound, only, all, tests)),
            runs: super::Evidence::new("", which.runs.iter().copied()).runs,
        });
    }

    /// How many repeats would decide, and how long they take.
    fn would_decide(&self, bound: f64, only: Option<MicroBenchmark>, all: &[Held], tests: usize) -> String {
        let square =
            |wide: f64, needed: f64| if needed > 0.0 { (wide / needed).powi(2) } else { f64::INFINITY };
        let yes = |h: &Held| {
            let r = h.compared.at(corrected(tests))?;
            (r.ratio > bound).then(|| square((r.ratio / r.low).ln(), (r.ratio / bound).ln()))
        };
        let no = |h: &Held| {
            let r = h.compared.at(PRINTED)?;
            (r.high >= bound).then(|| square((r.high / r.ratio).ln(), (bound / r.ratio).ln()))
        };
        let by_yes = all.iter().filter_map(yes).reduce(f64::min);
        let more = by_yes.or_else(|| all.iter().filter_map(no).reduce(f64::max)).unwrap_or(f64::INFINITY);
        let repeats = all.iter().map(|h| h.repeats.max(1)).max().unwrap_or(1) as f64;
        let wanted = (repeats * more * 1.1).ceil();
        if !wanted.is_finite() || wanted > MOST_REPEATS {
            return "It lies too near the bound, or changes too much from run to run, for repeats to tell."
                .into();
        }
        let runs: std::collections::BTreeSet<u32> = all.iter().flat_map(|h| h.runs.iter().copied()).collect();
        let took = runs.iter().filter_map(|run| self.took.get(run)).sum::<u64>() as f64 / 1e9;
        let only = only.map_or_else(String::new, |micro| format!("--only {micro} "));
        let time = match took * wanted / repeats {
            s if s < 1.0 => "under a second".to_string(),
            s if s < 90.0 => format!("about {s:.0} s"),
            s => format!("about {:.0} minutes", (s / 60.0).ceil()),
        };
        format!("{only}--repeats {wanted:.0} would decide it ({time} of IOs).")
    }
}

/// Every question that the runs allow to be asked.
pub(super) fn answers(facts: &Facts, rows: &[RunRow]) -> Vec<Answered> {
    let took = rows.iter().map(|row| (row.spec.id, row.outcome.end.elapsed.0)).collect();
    let mut asker = Asker { facts, took, answers: Vec::new() };
    baselines(&mut asker);
    larger_ios(&mut asker);
    alignment(&mut asker);
    writes(&mut asker);
    parallelism(&mut asker);
    mixes(&mut asker);
    pauses(&mut asker);
    queues(&mut asker);
    dependence(&mut asker);
    asker.answers
}

fn baselines(asker: &mut Asker<'_>) {
    let all = [
        ("random_writes", "do random writes cost more than sequential ones", Baseline::Rw, Baseline::Sw),
        ("random_reads", "do random reads cost more than sequential ones", Baseline::Rr, Baseline::Sr),
        ("reads_over_writes", "do random reads cost more than random writes", Baseline::Rr, Baseline::Rw),
    ];
    for (id, question, of, to) in all {
        let both = asker.facts.baseline(of).zip(asker.facts.baseline(to));
        let one: Vec<Held> = both.into_iter().map(|(of, to)| held(of, to, None)).collect();
        asker.ask(id, question, SAME, None, &one);
    }
}

/// The smallest size measured from `bytes` on.
pub(super) fn at_least(curve: &MeasuredCurve, bytes: i64) -> Option<&CurveFacts> {
    curve.points.iter().find(|p| p.value >= bytes)
}

fn larger_ios(asker: &mut Asker<'_>) {
    for baseline in [Baseline::Sr, Baseline::Rr, Baseline::Sw] {
        let curve = asker.facts.curve(MicroBenchmark::Granularity, baseline);
        let both = curve.and_then(|c| at_least(c, 4 << 10).zip(at_least(c, 32 << 10)));
        let one: Vec<Held> = both
            .filter(|(small, large)| small.value < large.value)
            .into_iter()
            .map(|(small, large)| {
                let mut one = held(small, large, None);
                one.compared.times = large.value as f64 / small.value.max(1) as f64;
                one
            })
            .collect();
        let question = format!("do 32K IOs move data faster than 4K ones for {baseline}");
        asker.ask(
            &format!("larger_ios.{baseline}"),
            &question,
            SAME,
            Some(MicroBenchmark::Granularity),
            &one,
        );
    }
}

fn alignment(asker: &mut Asker<'_>) {
    let io_size = asker.facts.io_size_bytes.and_then(|b| i64::try_from(b).ok());
    let mut all = Vec::new();
    for baseline in Baseline::ALL {
        let Some(curve) = asker.facts.curve(MicroBenchmark::Alignment, baseline) else { continue };
        // A shift by IOSize is aligned, and measured beside the others.
        let aligned = io_size.and_then(|b| curve.at(b));
        for point in curve.points.iter().filter(|p| p.value > 0 && Some(p.value) != io_size) {
            let at = Some(format!("{} shifted by {}", curve.id.curve, point.label));
            all.extend(match (aligned, asker.facts.baseline(baseline)) {
                (Some(aligned), _) => Some(held(point, aligned, at)),
                (None, Some(own)) => Some(held(point, own, at)),
                _ => None,
            });
        }
    }
    asker.ask(
        "alignment",
        "do shifted IOs cost more than aligned ones",
        SAME,
        Some(MicroBenchmark::Alignment),
        &all,
    );
}

/// Areas, streams and orders of writes.
fn writes(asker: &mut Asker<'_>) {
    let facts = asker.facts;
    let (sw, rw) = (facts.baseline(Baseline::Sw), facts.baseline(Baseline::Rw));
    if let Some((curve, rw)) = facts.curve(MicroBenchmark::Locality, Baseline::Rw).zip(rw) {
        let largest = curve.points.last().map(|p| p.value);
        let small = curve.points.iter().filter(|p| Some(p.value) != largest);
        let all: Vec<Held> = small.map(|p| held(rw, p, Some(format!("areas of {}", p.label)))).collect();
        asker.ask(
            "locality",
            "does a small area make random writes cheaper",
            SAME,
            Some(MicroBenchmark::Locality),
            &all,
        );
    }
    if let Some((curve, sw)) = facts.curve(MicroBenchmark::Partitioning, Baseline::Sw).zip(sw) {
        let several = curve.points.iter().filter(|p| p.value > 1);
        let all: Vec<Held> = several.map(|p| held(p, sw, Some(format!("{} streams", p.label)))).collect();
        let question = "do several sequential streams of writes cost more than one";
        asker.ask("partitions", question, SAME, Some(MicroBenchmark::Partitioning), &all);
    }
    let Some(curve) = facts.curve(MicroBenchmark::Order, Baseline::Sw) else { return };
    let orders = [
        ("order.reverse", "do writes in reverse cost more than sequential ones", -1, sw),
        ("order.in_place", "do writes in place cost more than sequential ones", 0, sw),
    ];
    for (id, question, incr, to) in orders {
        let one: Vec<Held> = curve.at(incr).zip(to).into_iter().map(|(p, to)| held(p, to, None)).collect();
        asker.ask(id, question, SAME, Some(MicroBenchmark::Order), &one);
    }
    let step = facts.io_size_bytes.and_then(|b| i64::try_from(b).ok());
    let (Some(step), Some(rw)) = (step, rw) else { return };
    let large = curve.points.iter().filter(|p| (1 << 20..=8 << 20).contains(&p.value.saturating_mul(step)));
    let all: Vec<Held> = large.map(|p| held(p, rw, Some(format!("increments of {}", p.label)))).collect();
    let question = "do writes in steps of 1 to 8 MiB cost more than random ones";
    asker.ask("order.large_incr", question, SAME, Some(MicroBenchmark::Order), &all);
}

fn parallelism(asker: &mut Asker<'_>) {
    let (mut gains, mut losses) = (Vec::new(), Vec::new());
    for curve in asker.facts.curves_of(MicroBenchmark::Parallelism) {
        let Some(one) = curve.at(1) else { continue };
        for point in curve.points.iter().filter(|p| p.value > 1) {
            let mut gain = held(one, point, place(curve, point));
            gain.compared.times = point.value as f64;
            gains.push(gain);
            let mut loss = held(point, one, place(curve, point));
            loss.compared.times = 1.0 / point.value as f64;
            losses.push(loss);
        }
    }
    let micro = Some(MicroBenchmark::Parallelism);
    asker.ask("parallelism.gain", "do parallel streams gain throughput", SAME, micro, &gains);
    asker.ask("parallelism.loss", "do parallel streams lose throughput", SAME, micro, &losses);
}

/// What the IOs of a mix cost apart, on average.
pub(super) fn apart(facts: &Facts, curve: uflip_measure::Curve, [n, m]: [u64; 2]) -> Option<KnownLevel> {
    let uflip_measure::Curve::Pair(first, second) = curve else { return None };
    let (first, second) = (facts.baseline(first)?.known(), facts.baseline(second)?.known());
    let all = n.checked_add(m).filter(|all| *all > 0)? as f64;
    Some(KnownLevel::weighted([n as f64 / all, m as f64 / all], [&first, &second]))
}

fn mixes(asker: &mut Asker<'_>) {
    let (mut losses, mut gains) = (Vec::new(), Vec::new());
    for curve in asker.facts.curves_of(MicroBenchmark::Mix) {
        for point in &curve.points {
            let Some(apart) = apart(asker.facts, curve.id.curve, point.by_pattern) else { continue };
            let one = |compared| Held {
                compared,
                at: place(curve, point),
                repeats: point.runs.len(),
                runs: point.runs.clone(),
            };
            losses.push(one(HeldAgainst::new(point.known(), apart)));
            gains.push(one(HeldAgainst::new(apart, point.known())));
        }
    }
    let micro = Some(MicroBenchmark::Mix);
    asker.ask("mix.loss", "do mixed patterns cost more than apart", SAME, micro, &losses);
    asker.ask("mix.gain", "do mixed patterns cost less than apart", SAME, micro, &gains);
}

fn pauses(asker: &mut Asker<'_>) {
    let facts = asker.facts;
    let micro = Some(MicroBenchmark::Pause);
    let mut saves = Vec::new();
    for curve in facts.curves_of(MicroBenchmark::Pause) {
        let Some(without) = curve.id.curve.one().and_then(|b| facts.baseline(b)) else { continue };
        for point in &curve.points {
            let mut one = held(without, point, place(curve, point));
            one.compared.to = point.known().plus(point.value as f64);
            saves.push(one);
        }
    }
    asker.ask("pause.saves", "do pauses save more time than they take", SAME, micro, &saves);
    let both = facts.curve(MicroBenchmark::Pause, Baseline::Rw).zip(facts.baseline(Baseline::Sw));
    let Some((curve, sw)) = both else { return };
    let all: Vec<Held> = curve.points.iter().map(|p| held(sw, p, place(curve, p))).collect();
    let question = "does a pause make random writes cost as little as sequential ones";
    asker.ask("pause.rw_as_sw", question, 1.0 / SAME, micro, &all);
}

fn queues(asker: &mut Asker<'_>) {
    for baseline in Baseline::ALL {
        let Some(curve) = asker.facts.curve(MicroBenchmark::QueueDepth, baseline) else { continue };
        let Some(one) = curve.at(1) else { continue };
        let deeper = curve.points.iter().filter(|p| p.value > 1);
        let gain = |p: &CurveFacts| {
            let mut gain = held(one, p, place(curve, p));
            gain.compared.times = p.value as f64;
            gain
        };
        let all: Vec<Held> = deeper.map(gain).collect();
        let question = format!("do several {baseline} under way gain throughput");
        asker.ask(
            &format!("queue_depth.{baseline}"),
            &question,
            SAME,
            Some(MicroBenchmark::QueueDepth),
            &all,
        );
    }
}

/// Whether each curve depends on its parameter: any of its points against any other.
fn dependence(asker: &mut Asker<'_>) {
    for curve in &asker.facts.curves {
        let points = &curve.points;
        let mut pairs: Vec<(&CurveFacts, &CurveFacts)> = Vec::new();
        for (at, a) in points.iter().enumerate() {
            let more = |b: &CurveFacts| a.level.mean_ns > b.level.mean_ns;
            pairs.extend(points[at + 1..].iter().map(|b| if more(b) { (a, b) } else { (b, a) }));
        }
        // Each pair either way round.
        let tests = 2 * pairs.len();
        let told = telling(pairs);
        let place =
            |more: &CurveFacts, less: &CurveFacts| Some(format!("{} against {}", more.label, less.label));
        let all: Vec<Held> =
            told.into_iter().map(|(more, less)| held(more, less, place(more, less))).collect();
        let (section, name) = (&curve.id.section, CurveName::from(curve.id.curve));
        let micro = curve.id.section.micro();
        let question = format!("does {name} depend on what {section} varies");
        asker.ask_of(&of_curve(section, &name), &question, SAME, micro, &all, tests);
    }
}

/// The pairs that answer for all: those whose intervals reach farthest down and up. A curve
/// of hundreds of points has a hundred thousand pairs.
fn telling<'a>(pairs: Vec<(&'a CurveFacts, &'a CurveFacts)>) -> Vec<(&'a CurveFacts, &'a CurveFacts)> {
    if pairs.len() <= 2 * TELLING {
        return pairs;
    }
    let mut ranked: Vec<_> =
        pairs.into_iter().filter_map(|(a, b)| Some((ratio(&a.level, &b.level)?, (a, b)))).collect();
    ranked.sort_by(|a, b| b.0.high.total_cmp(&a.0.high));
    let mut rest = ranked.split_off(TELLING.min(ranked.len()));
    rest.sort_by(|a, b| b.0.low.total_cmp(&a.0.low));
    ranked.into_iter().chain(rest.into_iter().take(TELLING)).map(|(_, pair)| pair).collect()
}
