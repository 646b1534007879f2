//! Each figure of a profile, held against what is truly so of a device that was drawn to
//! mislead: right and decided, not decided, wrong and said so, wrong and silent.
//!
//! Method: the truth is what the plan's own patterns cost on a copy of the device that
//! nothing disturbs, and what the device was drawn to have. A figure is right within its
//! tolerance ([`MEAN`], [`FACTOR`], …); it is not decided where its own interval or range
//! is wider and holds the truth, or where its hint says that it is not known; else it is
//! wrong, and said so where a finding that is a warning or worse, and not about the way
//! of measuring, stands against the figure. What is cheap is where the true cost lies
//! below the geometric middle of SW and RW; a knee is right within a factor of two of any
//! that a middle shifted by [`FACTOR`] gives, or the paper's quarter of RW, so that a gentle slope has no one answer.
//!
//! Units: nanoseconds, bytes, IOs. Limits: parallel streams and mixes are not scored.

use crate::Profile;
use crate::profile::{Evidence, Severity, Verdict};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::{Baseline, MicroBenchmark};

/// A mean is right within this factor.
pub const MEAN: f64 = 1.1;
/// A ratio of means is right within this factor.
pub const FACTOR: f64 = 1.25;
/// A place on a scale of powers of two is right within this factor.
pub const PLACE: f64 = 2.0;
/// What is missed, or found where it is not, counts as so far off.
const ALARM: f64 = 8.0;

/// From and to: what a figure may truly be.
pub type Span = [f64; 2];

/// How a figure compares with the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FigureOutcome {
    /// Right and decided.
    Right,
    /// Its interval, range or hint leaves it open.
    NotDecided,
    /// Wrong, and a finding stands against it.
    WrongSaid,
    /// Wrong, and nothing says so.
    WrongSilent,
}

impl FigureOutcome {
    /// All, the best first.
    pub const ALL: [FigureOutcome; 4] = [
        FigureOutcome::Right,
        FigureOutcome::NotDecided,
        FigureOutcome::WrongSaid,
        FigureOutcome::WrongSilent,
    ];

    /// As programs read it.
    pub const fn name(self) -> &'static str {
        match self {
            FigureOutcome::Right => "right",
            FigureOutcome::NotDecided => "not_decided",
            FigureOutcome::WrongSaid => "wrong_said",
            FigureOutcome::WrongSilent => "wrong_silent",
        }
    }
}

/// One figure of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Its name in the profile.
    pub figure: &'static str,
    /// What is so, in the figure's unit; None for no such thing.
    pub truth: Option<Span>,
    /// What was found.
    pub found: Option<f64>,
    /// How it compares.
    pub outcome: FigureOutcome,
    /// How far off it is, as a factor from 1 on.
    pub off: f64,
}

/// A point of a curve as it truly is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TruePoint {
    /// Which micro-benchmark.
    pub micro: MicroBenchmark,
    /// Which of its curves.
    pub baseline: Baseline,
    /// The parameter's value.
    pub value: i64,
    /// The mean response time without disturbances.
    pub ns: f64,
}

/// What is drawn of random writes, and not to be measured: None where it is not known of
/// a device, Some(None) where the device has no such thing.
pub type KnownSpan = Option<Option<Span>>;

/// What is so of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truths {
    /// Means of SR, RR, SW and RW, disturbances included.
    pub means_ns: [Span; 4],
    /// The same without disturbances.
    pub quiet_ns: [f64; 4],
    /// The curves without disturbances.
    pub curves: Vec<TruePoint>,
    /// Start-up of random writes.
    pub start_up_ios: KnownSpan,
    /// Period of random writes.
    pub period_ios: KnownSpan,
    /// True where reads and sequential writes are known to have neither.
    pub others_are_even: bool,
    /// For how long reads are slow after random writes.
    pub lasting_ns: Option<f64>,
    /// How much more expensive writes became between the plan's first run and its last.
    pub drift: Option<f64>,
}

/// Where figures are judged.
struct Judge<'a> {
    truths: &'a Truths,
    profile: &'a Profile,
    calibration: &'a Calibration,
    all: Vec<Judged>,
}

/// Holds every figure that has a truth against it.
pub fn judge(truths: &Truths, profile: &Profile, calibration: &Calibration) -> Vec<Judged> {
    let mut judge = Judge { truths, profile, calibration, all: Vec::new() };
    judge.means();
    judge.phases();
    judge.knees();
    judge.order();
    judge.alignment();
    judge.over_time();
    judge.all
}

/// How far `found` is from the nearest end of `truth`, as a factor from 1 on.
fn off(truth: Span, found: f64) -> f64 {
    if found < truth[0] { truth[0] / found.max(f64::MIN_POSITIVE) } else { (found / truth[1]).max(1.0) }
}

fn holds(interval: Option<[f64; 2]>, truth: Span) -> bool {
    interval.is_some_and(|[low, high]| low <= truth[1] && high >= truth[0])
}

/// Findings about the way of measuring, which stand on every result of their kind and
/// so say nothing of a figure.
const ABOUT_THE_WAY: [&str; 3] = ["state_not_enforced", "target_warning", "own_overhead"];

impl Judge<'_> {
    /// True where a finding stands against a figure that rests on `runs`.
    fn said(&self, evidence: Option<&Evidence>) -> bool {
        let about_time = |code: &str| ["state_drift", "state_not_steady", "pause_too_short"].contains(&code);
        self.profile.soundness.iter().any(|f| {
            f.severity != Severity::Info
                && !ABOUT_THE_WAY.contains(&f.code.as_str())
                && (about_time(&f.code)
                    || evidence.is_some_and(|e| e.runs.iter().any(|r| f.runs.contains(r))))
        })
    }

    fn add(
        &mut self,
        figure: &'static str,
        truth: Option<Span>,
        found: Option<f64>,
        off: f64,
        outcome: FigureOutcome,
    ) {
        self.all.push(Judged { figure, truth, found, outcome, off });
    }

    fn wrong(&self, evidence: Option<&Evidence>) -> FigureOutcome {
        if self.said(evidence) { FigureOutcome::WrongSaid } else { FigureOutcome::WrongSilent }
    }

    /// A figure with an interval, right within `factor`.
    fn figure(
        &mut self,
        name: &'static str,
        truth: Span,
        found: f64,
        evidence: Option<&Evidence>,
        factor: f64,
    ) {
        let interval = evidence.and_then(|e| e.ci95);
        let away = off(truth, found);
        let outcome = if away <= factor {
            FigureOutcome::Right
        } else if interval.is_none() || holds(interval, truth) {
            FigureOutcome::NotDecided
        } else {
            self.wrong(evidence)
        };
        self.add(name, Some(truth), Some(found), away, outcome);
    }

    fn means(&mut self) {
        let names = ["mean of SR", "mean of RR", "mean of SW", "mean of RW"];
        for (i, baseline) in Baseline::ALL.into_iter().enumerate() {
            let Some(found) = self.profile.baseline_ms.of(baseline) else { continue };
            let evidence = self.profile.baseline_ms.evidence.get(&baseline);
            let truth = self.truths.means_ns[i].map(|ns| ns / 1e6);
            self.figure(names[i], truth, found, evidence, MEAN);
        }
    }

    /// A length in IOs, right within `factor`; a range that holds it leaves it open.
    fn length(
        &mut self,
        name: &'static str,
        truth: Option<Span>,
        found: Option<f64>,
        e: Option<&Evidence>,
        factor: f64,
    ) {
        let range = e.and_then(|e| e.range);
        let away = match (truth, found) {
            (None, None) => 1.0,
            (Some(truth), Some(found)) => off(truth, found),
            _ => ALARM,
        };
        let open = match (truth, found) {
            (Some(truth), Some(_)) => holds(range, truth),
            // Looked for in a series that does not hold four of it.
            (Some(truth), None) => e.and_then(|e| e.n).is_some_and(|n| 4.0 * truth[0] > n as f64),
            _ => false,
        };
        let outcome = if away <= factor {
            FigureOutcome::Right
        } else if open {
            FigureOutcome::NotDecided
        } else {
            self.wrong(e)
        };
        self.add(name, truth, found, away, outcome);
    }

    fn phases(&mut self) {
        let (profile, truths) = (self.profile, self.truths);
        let (start_ups, periods) = (&profile.start_up_ios, &profile.period_ios);
        for baseline in Baseline::ALL {
            let even = baseline != Baseline::Rw && truths.others_are_even;
            let known = |of: KnownSpan| if baseline == Baseline::Rw { of } else { even.then_some(None) };
            if let Some(truth) = known(truths.start_up_ios) {
                let found = start_ups.of(baseline).map(|n| n as f64);
                let figure = if even { "start-up of others" } else { "start-up of RW" };
                self.length(figure, truth, found, start_ups.evidence.get(&baseline), PLACE);
            }
            if let Some(truth) = known(truths.period_ios) {
                let figure = if even { "period of others" } else { "period of RW" };
                self.length(figure, truth, periods.of(baseline), periods.evidence.get(&baseline), MEAN);
            }
        }
    }

    /// The curve of a micro-benchmark by rising value.
    fn curve(&self, micro: MicroBenchmark, baseline: Baseline) -> Vec<(i64, f64)> {
        let points = self.truths.curves.iter().filter(|p| p.micro == micro && p.baseline == baseline);
        let mut points: Vec<(i64, f64)> = points.map(|p| (p.value, p.ns)).collect();
        points.sort_by_key(|(value, _)| *value);
        points
    }

    fn knees(&mut self) {
        let profile = self.profile;
        let (l, p) = (&profile.locality, &profile.partitions);
        let area = self.curve(MicroBenchmark::Locality, Baseline::Rw);
        let streams = self.curve(MicroBenchmark::Partitioning, Baseline::Sw);
        let found = l.area_bytes.map(|b| b as f64);
        self.knee("locality area", "locality", &area, found, l.evidence.get("area_bytes"));
        self.factor_at("locality factor", &area, found.zip(l.factor), l.evidence.get("factor"));
        let found = p.count.map(|n| n as f64);
        self.knee("partitions", "partitions", &streams, found, p.evidence.get("count"));
        self.factor_at("partitions factor", &streams, found.zip(p.factor), p.evidence.get("factor"));
    }

    fn knee(
        &mut self,
        name: &'static str,
        hint: &str,
        curve: &[(i64, f64)],
        found: Option<f64>,
        e: Option<&Evidence>,
    ) {
        let [_, _, sw, rw] = self.truths.quiet_ns;
        let Some((last, _)) = curve.last().copied() else { return };
        let allowed = allowed_knees(curve, sw, rw);
        let some: Vec<f64> = allowed.iter().copied().flatten().collect();
        let truth =
            some.first().map(|first| some.iter().fold([*first; 2], |s, n| [s[0].min(*n), s[1].max(*n)]));
        let away = match found {
            None if allowed.contains(&None) => 1.0,
            Some(found) => truth.map_or(ALARM, |truth| off(truth, found)),
            None => ALARM,
        };
        // All values are cheap: what is said beyond the last cannot be measured.
        let away = if rw <= FACTOR * sw && found == Some(last as f64) { 1.0 } else { away };
        let open = matches!(profile_hint(self.profile, hint), Some(Verdict::Unknown | Verdict::NotDecided))
            || found.is_some() && truth.is_some_and(|truth| holds(e.and_then(|e| e.range), truth));
        let outcome = if away <= PLACE {
            FigureOutcome::Right
        } else if open {
            FigureOutcome::NotDecided
        } else {
            self.wrong(e)
        };
        let truth = if allowed.contains(&None) && found.is_none() { None } else { truth };
        self.add(name, truth, found, away, outcome);
    }

    /// A factor relative to SW, told of a place on the curve.
    fn factor_at(
        &mut self,
        name: &'static str,
        curve: &[(i64, f64)],
        found: Option<(f64, f64)>,
        e: Option<&Evidence>,
    ) {
        let Some((at, factor)) = found else { return };
        let Some((_, ns)) = curve.iter().find(|(value, _)| *value as f64 == at) else { return };
        let truth = ns / self.truths.quiet_ns[2];
        self.figure(name, [truth; 2], factor, e, FACTOR);
    }

    fn order(&mut self) {
        let curve = self.curve(MicroBenchmark::Order, Baseline::Sw);
        let [_, _, sw, rw] = self.truths.quiet_ns;
        let order = &self.profile.order;
        let at = |incr: i64| curve.iter().find(|(value, _)| *value == incr).map(|(_, ns)| ns / sw);
        let large = curve.iter().filter(|(incr, _)| (32..=256).contains(incr)).map(|(_, ns)| ns / rw);
        let large = large.reduce(f64::max);
        for (name, field, truth, found) in [
            ("reverse factor", "reverse_factor", at(-1), order.reverse_factor),
            ("in-place factor", "in_place_factor", at(0), order.in_place_factor),
            ("large Incr factor", "large_incr_factor", large, order.large_incr_factor),
        ] {
            let Some((truth, found)) = truth.zip(found) else { continue };
            self.figure(name, [truth; 2], found, order.evidence.get(field), FACTOR);
        }
    }

    fn alignment(&mut self) {
        let found = &self.profile.alignment;
        let evidence = found.evidence.get("unit_bytes");
        let curves = [Baseline::Sw, Baseline::Rw].map(|b| (b, self.curve(MicroBenchmark::Alignment, b)));
        if curves.iter().all(|(_, curve)| curve.is_empty()) {
            return;
        }
        let worst = |curve: &[(i64, f64)]| penalties(curve).iter().map(|p| p.1).fold(1.0, f64::max);
        let most = curves.iter().map(|(_, curve)| worst(curve)).fold(1.0, f64::max);
        let named = curves.iter().find(|(b, _)| found.baseline == Some(*b));
        let allowed = named.map_or_else(Vec::new, |(_, curve)| advice(&penalties(curve)));
        let unit = found.unit_bytes.map(|b| b as f64);
        let truth = allowed.first().zip(allowed.last()).map(|(a, b)| [*a as f64, *b as f64]);
        let right = match unit {
            None => most <= FACTOR,
            Some(unit) => allowed.iter().any(|a| *a as f64 == unit),
        };
        let open =
            matches!(profile_hint(self.profile, "alignment"), Some(Verdict::Unknown | Verdict::NotDecided));
        let outcome = match (right, open) {
            (true, _) => FigureOutcome::Right,
            (false, true) => FigureOutcome::NotDecided,
            _ => self.wrong(evidence),
        };
        let away = match (unit, truth) {
            _ if right => 1.0,
            (Some(unit), Some(truth)) => off(truth, unit),
            _ => ALARM,
        };
        self.add("alignment unit", truth, unit, away, outcome);
        if let Some(penalty) = found.penalty_factor {
            self.figure(
                "alignment penalty",
                [most; 2],
                penalty,
                found.evidence.get("penalty_factor"),
                FACTOR,
            );
        }
    }

    fn over_time(&mut self) {
        if let Some((lasting, pause)) = self.truths.lasting_ns.zip(self.calibration.pause.as_ref()) {
            let found = pause.between_runs.0 as f64;
            let outcome = if found >= lasting { FigureOutcome::Right } else { self.wrong(None) };
            let away = (lasting / found.max(1.0)).max(1.0);
            self.add("pause between runs", Some([lasting; 2]), Some(found), away, outcome);
        }
        if let Some((truth, found)) = self.truths.drift.zip(self.calibration.drift.as_ref()) {
            let Some(found) = found.drift else { return };
            let said = if found.drifted { found.ratio.ratio } else { 1.0 };
            let away = off([truth; 2], said);
            let outcome = if away <= FACTOR.sqrt() {
                FigureOutcome::Right
            } else if !found.drifted && !found.stable {
                FigureOutcome::NotDecided
            } else {
                self.wrong(None)
            };
            self.add("drift of the state", Some([truth; 2]), Some(said), away, outcome);
        }
    }
}

fn profile_hint(profile: &Profile, id: &str) -> Option<Verdict> {
    profile.hints.iter().find(|h| h.id == id).map(|h| h.verdict)
}

/// The last value of the first stretch that is cheap, by the middle of SW and RW and by
/// middles a [`FACTOR`] to either side, or by a quarter of RW; None among them where nothing need be said.
fn allowed_knees(curve: &[(i64, f64)], sw: f64, rw: f64) -> Vec<Option<f64>> {
    let mut allowed = Vec::new();
    if rw <= FACTOR * FACTOR * sw {
        allowed.push(None);
    }
    let middle = (sw * rw).sqrt();
    for limit in [middle / FACTOR, middle, middle * FACTOR, (rw / 4.0).max(middle)] {
        let cheap = curve.iter().skip_while(|(_, ns)| *ns > limit).take_while(|(_, ns)| *ns <= limit);
        allowed.push(cheap.last().map(|(value, _)| *value as f64));
    }
    allowed
}

/// How many times as long as the aligned shift (the largest) each other takes.
fn penalties(curve: &[(i64, f64)]) -> Vec<(i64, f64)> {
    let Some((_, aligned)) = curve.last() else { return Vec::new() };
    curve.iter().map(|(shift, ns)| (*shift, ns / aligned)).collect()
}

/// The smallest unit whose multiples are spared half of the penalty, where half may be 40
/// to 60 %; empty where nothing costs [`MEAN`] times as much.
fn advice(penalties: &[(i64, f64)]) -> Vec<i64> {
    let worst = penalties.iter().map(|p| p.1).fold(1.0, f64::max);
    if worst < MEAN {
        return Vec::new();
    }
    let left = |unit: i64| {
        let multiples = penalties.iter().filter(|(shift, _)| shift % unit == 0);
        (multiples.map(|p| p.1).fold(1.0, f64::max) - 1.0) / (worst - 1.0)
    };
    let mut units: Vec<i64> = [0.4, 0.5, 0.6]
        .iter()
        .filter_map(|share| penalties.iter().map(|p| p.0).find(|unit| *unit > 0 && left(*unit) <= *share))
        .collect();
    units.sort_unstable();
    units.dedup();
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gentle_slope_has_several_right_knees_and_a_flat_one_none() {
        let curve = [(1, 1.0), (2, 1.0), (4, 1.05), (8, 3.2), (16, 3.3)];
        assert_eq!(allowed_knees(&curve, 1.01, 3.31), [Some(4.0); 4]);
        let slope = [(1, 1.0), (2, 1.5), (4, 1.8), (8, 2.2), (16, 3.3)];
        assert_eq!(allowed_knees(&slope, 1.0, 3.31), [Some(1.0), Some(4.0), Some(8.0), Some(4.0)]);
        assert!(allowed_knees(&curve, 1.0, 1.3).contains(&None));
    }

    #[test]
    fn advice_is_the_smallest_unit_that_takes_most_of_the_penalty() {
        let shifts = |of: &dyn Fn(i64) -> f64| {
            (0..=6).map(|i| 512i64 << i).map(|shift| (shift, of(shift))).collect::<Vec<_>>()
        };
        let two = shifts(&|s| {
            if s % 2048 != 0 {
                3.2
            } else if s % 8192 != 0 {
                1.17
            } else {
                1.0
            }
        });
        assert_eq!(advice(&two), [2048]);
        let four = shifts(&|s| {
            if s % 4096 != 0 {
                2.8
            } else if s % 32768 != 0 {
                1.33
            } else {
                1.0
            }
        });
        assert_eq!(advice(&four), [4096]);
        let half = shifts(&|s| {
            if s % 2048 != 0 {
                2.0
            } else if s % 8192 != 0 {
                1.5
            } else {
                1.0
            }
        });
        assert_eq!(advice(&half), [2048, 8192]);
        assert_eq!(advice(&shifts(&|_| 1.0)), Vec::<i64>::new());
    }

    #[test]
    fn a_figure_is_right_open_or_wrong_by_its_interval() {
        assert!((off([2.0, 4.0], 1.0) - 2.0).abs() < 1e-12 && (off([2.0, 4.0], 8.0) - 2.0).abs() < 1e-12);
        assert!((off([2.0, 4.0], 3.0) - 1.0).abs() < 1e-12);
        assert!(holds(Some([3.9, 9.0]), [2.0, 4.0]) && !holds(Some([4.1, 9.0]), [2.0, 4.0]));
        assert!(!holds(None, [2.0, 4.0]));
    }
}
