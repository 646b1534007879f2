//! `uflip sim proof --adversarial`: the same method on devices drawn to mislead it.
//!
//! Method: what is drawn is in `sim/src/adverse/draw.rs`. The truth of a figure is what the
//! plan's own patterns cost at length on a copy of the device, as it was when the plan
//! began and when it ended, that nothing disturbs; of lengths, what was drawn. How a figure
//! is held against it: `analysis/src/score/adversarial.rs`. Same seed, same figures.

use super::{ProofArgs, SharedDevice, each, locked, plan_options};
use crate::command::{print, print_json};
use crate::interrupt::STOP;
use crate::lab::{self, Measured};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use uflip_analysis::score::adversarial::{FigureOutcome, Judged, KnownSpan, TruePoint, Truths, judge};
use uflip_device::rng::derive_seed;
use uflip_device::{Device, KeepAll, Nanos, RunLimits, Stop};
use uflip_measure::auto::AutoOptions;
use uflip_measure::run::RunSpec;
use uflip_measure::{Baseline, Curve, MicroBenchmark, Override, State};
use uflip_sim::adverse::AdverseDevice;
use uflip_sim::adverse::draw::{AdverseKind, Drawn, DrawnBody, draw};
use uflip_sim::adverse::ruled::{Ruled, TurnRule, WriteDrift};

/// IOs of which the latter half is a true mean: of mechanics, of a device by rule.
const TRUE_IOS: [u64; 2] = [12_288, 32_768];
/// A share of the mean that reads may still be slower by when an effect counts as over.
const OVER: f64 = 0.05;
/// How many of the worst are listed.
const WORST: usize = 20;

/// One device and its figures.
struct Judgement {
    number: u64,
    kind: AdverseKind,
    figures: Vec<Judged>,
}

/// Runs the command.
pub(super) fn proof(args: &ProofArgs, seed: u64) -> anyhow::Result<()> {
    if let Some(number) = args.device {
        let (drawn, one) = (draw(seed, number), one(number, seed, &STOP)?);
        if args.json {
            return print_json(&json!({
                "seed": seed, "device": number, "kind": one.kind.name(), "drawn": format!("{drawn:?}"),
                "figures": one.figures.iter().map(figure_json).collect::<Vec<_>>(),
            }));
        }
        return print(&one_as_text(&drawn, &one));
    }
    let all = each(0..args.devices, &STOP, &|number| one(number, seed, &STOP))?;
    if args.json { print_json(&as_json(&all, seed, args)) } else { print(&as_text(&all, seed)) }
}

/// Measures one device and judges its figures.
fn one(number: u64, seed: u64, stop: &Stop) -> anyhow::Result<Judgement> {
    let drawn = draw(seed, number);
    let device = Mutex::new(drawn.device()?);
    let mut plan = plan_options(derive_seed(drawn.seed, 2))?;
    plan.only.push(MicroBenchmark::Order);
    let baselines = Some(vec![Curve::One(Baseline::Sw)]);
    plan.overrides.insert(MicroBenchmark::Order, Override { baselines, ..Override::default() });
    if matches!(drawn.body, DrawnBody::Flash(_)) {
        plan.state = State::Complete;
    }
    let mut shared = SharedDevice(&device);
    let geometry = shared.geometry();
    let options = AutoOptions { plan, geometry, virtual_time: true, budget: None, pause_between: None };
    let mut began = None;
    let copy = || locked(&device).clone();
    let measured = lab::measure(&options, &mut shared, stop, &mut || began = Some(copy()))?;
    let ended = copy();
    let began = began.unwrap_or_else(|| ended.clone());
    let truths = truths(&drawn, [&began, &ended], &measured, stop)?;
    let figures = judge(&truths, &measured.profile, &measured.calibration);
    Ok(Judgement { number, kind: drawn.kind, figures })
}

/// What the pattern of `spec` costs at length on a rested copy of `device`.
fn true_ns(
    device: &AdverseDevice,
    spec: &RunSpec,
    rest: Nanos,
    ios: u64,
    stop: &Stop,
) -> anyhow::Result<f64> {
    let mut copy = device.quiet();
    copy.idle(rest, stop);
    let keep = KeepAll::new(1 << 16);
    let limits = RunLimits { time: None, stop, sequence: None };
    copy.run(spec.work.streams(ios, derive_seed(spec.seed, 7))?, &keep, limits)?;
    let records = keep.records();
    let latter = &records[records.len() / 2..];
    Ok(latter.iter().map(|r| r.response().0 as f64).sum::<f64>() / latter.len().max(1) as f64)
}

/// All that is so of a device, from how it was when the plan began and ended.
fn truths(
    drawn: &Drawn,
    at: [&AdverseDevice; 2],
    measured: &Measured,
    stop: &Stop,
) -> anyhow::Result<Truths> {
    let rest = measured.calibration.pause.as_ref().map_or(Nanos::from_secs(1), |p| p.between_runs);
    let ios = TRUE_IOS[usize::from(matches!(drawn.body, DrawnBody::Ruled(_)))];
    let mut truths = Truths::default();
    let both = |spec: &RunSpec| -> anyhow::Result<[f64; 2]> {
        let ns = [true_ns(at[0], spec, rest, ios, stop)?, true_ns(at[1], spec, rest, ios, stop)?];
        Ok([ns[0].min(ns[1]), ns[0].max(ns[1])])
    };
    for (i, baseline) in Baseline::ALL.into_iter().enumerate() {
        let Some(spec) = measured.plan.runs().find(|r| r.baseline() == Some(baseline)) else { continue };
        let [low, high] = both(spec)?;
        truths.quiet_ns[i] = (low * high).sqrt();
        truths.means_ns[i] = [drawn.upsets.mean_ns(low)[0], drawn.upsets.mean_ns(high)[1]];
    }
    for spec in measured.plan.runs() {
        let Some(point) = spec.point().filter(|p| p.repeat == 0) else { continue };
        let (Some(baseline), micro, value) = (point.curve.one(), point.micro, point.value) else { continue };
        let [low, high] = both(spec)?;
        truths.curves.push(TruePoint { micro, baseline, value, ns: (low * high).sqrt() });
    }
    if let DrawnBody::Ruled(ruled) = &drawn.body {
        by_rule(&mut truths, ruled, at);
    }
    Ok(truths)
}

/// What is drawn and need not be measured.
fn by_rule(truths: &mut Truths, ruled: &Ruled, at: [&AdverseDevice; 2]) {
    let visible = ruled.ratio > 1.5;
    truths.start_up_ios = start_up(ruled).filter(|_| visible);
    truths.period_ios = period(ruled).filter(|_| visible);
    truths.others_are_even = ruled.cliff.is_none() && ruled.drift == WriteDrift::None;
    truths.lasting_ns = ruled.lasting.map(|(ns, times)| ns * (1.0 - OVER / (times - 1.0)));
    let drifted = at.map(AdverseDevice::drifted);
    truths.drift = drifted[0].zip(drifted[1]).map(|(before, after)| after / before);
    if ruled.cliff.is_some() {
        (truths.start_up_ios, truths.drift) = (None, None);
    }
}

fn start_up(ruled: &Ruled) -> KnownSpan {
    Some(ruled.start_up.map(|s| [s.ios as f64; 2]))
}

fn period(ruled: &Ruled) -> KnownSpan {
    Some(match ruled.turns {
        TurnRule::Cycle { ios, wander, .. } if wander > 0.03 => Some([ios / 1.25, ios * 1.25]),
        TurnRule::Cycle { ios, .. } => Some([ios; 2]),
        TurnRule::Even | TurnRule::Chance { .. } => None,
    })
}

/// Figures by outcome, in the order of [`FigureOutcome::ALL`].
type Counts = [u64; 4];

fn count<'a>(figures: impl Iterator<Item = &'a Judged>) -> Counts {
    figures.fold([0; 4], |mut counts, f| {
        counts[f.outcome as usize] += 1;
        counts
    })
}

/// By a name of each figure and its device.
fn table<'a>(
    all: &'a [Judgement],
    name: impl Fn(&'a Judgement, &'a Judged) -> &'static str,
) -> Vec<(&'static str, Counts)> {
    let mut rows: Vec<(&'static str, Counts)> = Vec::new();
    for (one, figure) in all.iter().flat_map(|one| one.figures.iter().map(move |f| (one, f))) {
        let name = name(one, figure);
        let at = rows.iter().position(|(n, _)| *n == name).unwrap_or_else(|| {
            rows.push((name, [0; 4]));
            rows.len() - 1
        });
        rows[at].1[figure.outcome as usize] += 1;
    }
    rows
}

/// The figures that are most wrong without a word.
fn worst(all: &[Judgement]) -> Vec<(&Judgement, &Judged)> {
    let silent = |f: &&Judged| f.outcome == FigureOutcome::WrongSilent;
    let mut worst: Vec<_> =
        all.iter().flat_map(|one| one.figures.iter().filter(silent).map(move |f| (one, f))).collect();
    worst.sort_by(|a, b| b.1.off.total_cmp(&a.1.off));
    worst.truncate(WORST);
    worst
}

fn share(counts: Counts, outcome: FigureOutcome) -> f64 {
    counts[outcome as usize] as f64 / counts.iter().sum::<u64>().max(1) as f64
}

fn row(name: &str, counts: Counts) -> String {
    let cells: String =
        FigureOutcome::ALL.iter().map(|o| format!("{:>12.1} %", 100.0 * share(counts, *o))).collect();
    format!("{name:<20}{:>7}{cells}\n", counts.iter().sum::<u64>())
}

fn number(n: f64) -> String {
    if n == 0.0 || (0.01..1e7).contains(&n.abs()) {
        let text = format!("{n:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        format!("{n:.3e}")
    }
}

fn said(f: &Judged) -> String {
    let truth = f.truth.map_or("none".to_string(), |[low, high]| {
        if low == high { number(low) } else { format!("{} to {}", number(low), number(high)) }
    });
    let found = f.found.map_or("none".to_string(), number);
    format!("{:<20}{found:>12} found, {truth} is so", f.figure)
}

fn as_text(all: &[Judgement], seed: u64) -> String {
    let total = count(all.iter().flat_map(|one| &one.figures));
    let heads = ["right", "not decided", "wrong, said", "wrong, silent"];
    let heads: String = heads.iter().map(|h| format!("{h:>14}")).collect();
    let mut text = format!(
        "{} devices drawn to mislead, seed {seed}, measured by the automatic method\n\n{:<20}{:>7}{heads}\n",
        all.len(),
        "figure",
        "n"
    );
    table(all, |_, f| f.figure).into_iter().for_each(|(name, counts)| text += &row(name, counts));
    text += &format!("\n{:<20}{:>7}{heads}\n", "kind of device", "n");
    table(all, |one, _| one.kind.name()).into_iter().for_each(|(name, counts)| text += &row(name, counts));
    text += &format!("\n{}\ntargets\n", row("all", total));
    for (what, found, met) in targets(total) {
        let met = if met { "met" } else { "NOT MET" };
        text += &format!("  {what:<56}{:>7.1} %  {met}\n", 100.0 * found);
    }
    let worst = worst(all);
    if !worst.is_empty() {
        text += &format!(
            "\nthe {} that are most wrong without a word; again, with all figures of its device:\n  \
             uflip sim proof --adversarial --seed {seed} --device N\n",
            worst.len()
        );
    }
    for (one, figure) in worst {
        text += &format!("  --device {:<6}{:<16}{}\n", one.number, one.kind.name(), said(figure));
    }
    text
}

fn one_as_text(drawn: &Drawn, one: &Judgement) -> String {
    let mut text = format!("device {}: {}\n", one.number, one.kind.name());
    match &drawn.body {
        DrawnBody::Flash(file) => text += file,
        DrawnBody::Ruled(ruled) => text += &format!("{ruled:#?}\n"),
    }
    text += &format!("{:#?}\n\n", drawn.upsets);
    for figure in &one.figures {
        text += &format!("  {:<14}{}\n", figure.outcome.name(), said(figure));
    }
    text
}

/// What was asked for, what came out, and whether that is enough.
fn targets(total: Counts) -> [(&'static str, f64, bool); 2] {
    let (right, silent) = (share(total, FigureOutcome::Right), share(total, FigureOutcome::WrongSilent));
    [
        ("wrong and silent: at most 2 % of the figures", silent, silent <= 0.02),
        ("right and decided: at least 75 %", right, right >= 0.75),
    ]
}

fn figure_json(f: &Judged) -> Value {
    json!({ "figure": f.figure, "outcome": f.outcome.name(), "truth": f.truth, "found": f.found, "off": f.off })
}

fn counts_json(counts: Counts) -> Value {
    FigureOutcome::ALL.iter().map(|o| (o.name().to_string(), Value::from(counts[*o as usize]))).collect()
}

fn as_json(all: &[Judgement], seed: u64, args: &ProofArgs) -> Value {
    let total = count(all.iter().flat_map(|one| &one.figures));
    let by = |rows: Vec<(&'static str, Counts)>| -> BTreeMap<&'static str, Value> {
        rows.into_iter().map(|(name, counts)| (name, counts_json(counts))).collect()
    };
    let worst = worst(all).into_iter().map(|(one, figure)| {
        let mut value = figure_json(figure);
        value["device"] = one.number.into();
        value["kind"] = one.kind.name().into();
        value["again"] =
            format!("uflip sim proof --adversarial --seed {seed} --device {}", one.number).into();
        value
    });
    let targets = targets(total)
        .into_iter()
        .map(|(target, found, met)| json!({ "target": target, "found": found, "met": met }));
    json!({
        "adversarial": true, "seed": seed, "seed_of": args.seed_of, "devices": all.len(),
        "figures": counts_json(total), "by_figure": by(table(all, |_, f| f.figure)),
        "by_kind": by(table(all, |one, _| one.kind.name())),
        "worst": worst.collect::<Vec<_>>(), "targets": targets.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short form: mechanics, a gentle ratio, levels of alignment, shifts between runs.
    /// Not the targets, which take hundreds, but that all figures are judged and most right.
    #[test]
    fn figures_of_every_sort_are_judged_and_most_are_right() {
        let numbers = [4, 6, 11, 16];
        let all = each(0..4, &Stop::new(), &|at| one(numbers[at as usize], 1, &Stop::new())).unwrap();
        let kinds = [AdverseKind::Block, AdverseKind::Gentle, AdverseKind::Levels, AdverseKind::Shifting];
        assert_eq!(all.iter().map(|one| one.kind).collect::<Vec<_>>(), kinds);
        for figure in ["mean of SR", "locality area", "partitions", "alignment unit", "reverse factor"] {
            let judged = all.iter().filter(|one| one.figures.iter().any(|f| f.figure == figure)).count();
            assert_eq!(judged, 4, "{figure}");
        }
        let total = count(all.iter().flat_map(|one| &one.figures));
        assert!(share(total, FigureOutcome::Right) >= 0.75, "{}", as_text(&all, 1));
    }

    /// A profile that says something else is seen to be wrong, and silent without a finding.
    #[test]
    fn a_wrong_figure_is_counted_as_wrong() {
        let wrong = Judged {
            figure: "partitions",
            truth: Some([4.0; 2]),
            found: Some(64.0),
            outcome: FigureOutcome::WrongSilent,
            off: 16.0,
        };
        let all = [Judgement { number: 3, kind: AdverseKind::Gentle, figures: vec![wrong] }];
        let text = as_text(&all, 5);
        assert!(text.contains("NOT MET") && text.contains("--device 3"), "{text}");
    }
}
