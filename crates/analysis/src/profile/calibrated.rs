//! What the automatic method found before the benchmark itself, as figures and
//! findings of the profile.
//!
//! Method: `calibration.json` has start-up, period, pause, the state probe and
//! what was left out, each with its runs (`uflip_measure::auto::findings`). A
//! figure found there goes before one found in the shorter runs of the plan,
//! whose answers become its range. Rules: "start-up", "period",
//! "pause-between-runs" and the soundness codes in `docs/profile.md`.
//!
//! Source: paper 001, sections 4.1 to 4.3.

use super::Profile;
use super::evidence::{Evidence, Per, rounded};
use super::finding::{Finding, FindingCode, Severity, finding};
use uflip_measure::auto::findings::{BaselineFound, Calibration};
use uflip_measure::pattern::Baseline;

/// `figure` of a long baseline in the place of what the plan's runs say.
fn set<T: Copy>(per: &mut Per<T>, baseline: Baseline, found: &BaselineFound, value: Option<T>, rule: &str) {
    let before = per.evidence.remove(&baseline);
    let evidence = Evidence::new(rule, found.runs.iter().copied()).with_n(found.ios);
    let evidence = Evidence { range: before.and_then(|e| e.range), ..evidence };
    per.set(baseline, value, evidence);
}

/// A start-up of the long baseline within this factor of the repeats' is the same.
const SAME_START_UP: f64 = 2.0;

/// The start-up by consensus: of the long baseline, unless most of the baseline's own runs
/// found one and that is outside of their range by more than [`SAME_START_UP`].
fn start_up(profile: &mut Profile, baseline: Baseline, found: &BaselineFound) {
    let per = &mut profile.start_up_ios;
    let (long, repeats) = (found.start_up.map(|s| s.ios), per.of(baseline));
    let before = per.evidence.get(&baseline).cloned().unwrap_or_default();
    let outside = |ios: u64, [low, high]: [f64; 2]| {
        (ios as f64) < low / SAME_START_UP || ios as f64 > high * SAME_START_UP
    };
    let overruled = match (long, before.range) {
        (Some(ios), Some(range)) => outside(ios, range),
        (None, _) => true,
        (Some(_), None) => false,
    };
    let Some(by_repeats) = repeats.filter(|_| overruled) else {
        set(per, baseline, found, long, "start-up");
        return;
    };
    let runs = before.runs.iter().chain(&found.runs).copied();
    let evidence = Evidence::new("start-up", runs).with_n(found.ios);
    let range = before.range.map(|[low, high]| {
        let ios = long.map_or(low, |ios| ios as f64);
        [low.min(ios), high.max(ios)]
    });
    per.set(baseline, Some(by_repeats), Evidence { range, ..evidence });
}

/// Puts what the calibration found into the profile.
pub(super) fn apply(profile: &mut Profile, found: &Calibration) {
    for baseline in Baseline::ALL {
        let Some(of) = found.baselines.get(&baseline) else { continue };
        start_up(profile, baseline, of);
        set(&mut profile.period_ios, baseline, of, of.period.map(|p| rounded(p.ios)), "period");
    }
    if let Some(pause) = &found.pause {
        let seconds = pause.between_runs.as_secs_f64();
        let runs = pause.tests.iter().flat_map(|t| {
            t.runs_before.iter().chain([&t.run_batch]).chain(&t.runs_after).copied().collect::<Vec<_>>()
        });
        let evidence = Evidence::new("pause-between-runs", runs);
        profile.pause_between_runs_s = Some(seconds);
        profile.evidence.insert("pause_between_runs_s".into(), evidence);
    }
}

/// What speaks against the results, by the calibration.
pub(super) fn findings(profile: &Profile, found: &Calibration) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(
        Baseline::ALL.into_iter().filter_map(|b| start_up_unclear(profile, b, found.baselines.get(&b)?)),
    );
    all.extend(state_not_steady(found));
    all.extend(state_drift(found));
    all.extend(pause_too_short(found));
    all.extend(baselines_capped(found));
    all.extend(values_dropped(found));
    all
}

/// Code `start_up_unclear`: the repeats overruled the long baseline.
fn start_up_unclear(profile: &Profile, baseline: Baseline, found: &BaselineFound) -> Option<Finding> {
    let (long, told) = (found.start_up.map(|s| s.ios), profile.start_up_ios.of(baseline)?);
    if long == Some(told) {
        return None;
    }
    let name = baseline.name();
    let long = long.map_or_else(|| "none".to_string(), |ios| format!("{ios} IOs"));
    let text = format!(
        "The start-up of {name} is not clear: {told} IOs in most of its runs, {long} in the long run before them."
    );
    let runs = profile.start_up_ios.evidence.get(&baseline).map(|e| e.runs.clone()).unwrap_or_default();
    Some(finding(FindingCode::StartUpUnclear, Severity::Warning, text, runs))
}

/// Code `state_not_steady`.
fn state_not_steady(found: &Calibration) -> Option<Finding> {
    let state = &found.state;
    let text = format!(
        "After {} rounds of the state probe random writes had not become steady: the device may still change \
         its behaviour.",
        state.runs.len()
    );
    state.capped.then(|| finding(FindingCode::StateNotSteady, Severity::Warning, text, state.runs.clone()))
}

/// Code `state_drift`.
fn state_drift(found: &Calibration) -> Option<Finding> {
    let drift = found.drift.as_ref()?;
    let ratio = drift.drift.as_ref().filter(|d| d.drifted)?.ratio.ratio;
    let text = format!(
        "Random writes cost x{ratio:.2} after the benchmark of what they cost before it: the state drifted while \
         measuring."
    );
    let runs = drift.before.iter().chain(&drift.after).copied().collect();
    Some(finding(FindingCode::StateDrift, Severity::Warning, text, runs))
}

/// Code `pause_too_short`.
fn pause_too_short(found: &Calibration) -> Option<Finding> {
    let pause = found.pause.as_ref()?;
    let open = pause.tests.iter().filter(|t| t.found.is_some_and(|l| !l.over)).collect::<Vec<_>>();
    let text = if pause.between_runs < pause.needed {
        format!(
            "The pause between runs was {}, while {} are needed: runs may disturb those after them.",
            pause.between_runs, pause.needed
        )
    } else if !open.is_empty() {
        "The lasting effect of writes had not ended when the pause test did: the pause between runs may be too short."
            .to_string()
    } else {
        return None;
    };
    let runs = pause.tests.iter().flat_map(|t| [t.run_batch].into_iter().chain(t.runs_after.clone()));
    Some(finding(FindingCode::PauseTooShort, Severity::Warning, text, runs.collect()))
}

/// Code `baseline_capped`, one finding for all.
fn baselines_capped(found: &Calibration) -> Option<Finding> {
    let capped: Vec<_> = found.baselines.iter().filter(|(_, b)| b.capped).collect();
    let parts: Vec<String> = capped
        .iter()
        .map(|(name, b)| {
            let width = b.interval.and_then(|i| i.relative_half_width());
            let width = width.map_or("unknown".into(), |w| format!("±{:.1} %", 100.0 * w));
            format!("{name} ({width} by {} IOs)", b.ios)
        })
        .collect();
    let text = format!(
        "IOCount was capped before there were IOs enough for a mean known to 5 %: {}.",
        parts.join(", ")
    );
    let runs = capped.iter().flat_map(|(_, b)| b.runs.clone()).collect();
    (!capped.is_empty()).then(|| finding(FindingCode::BaselineCapped, Severity::Info, text, runs))
}

/// Code `values_dropped`.
fn values_dropped(found: &Calibration) -> Option<Finding> {
    let plan = found.plan.as_ref()?;
    let text = format!("{} values were left out to stay within the time budget.", plan.dropped.len());
    (!plan.dropped.is_empty()).then(|| finding(FindingCode::ValuesDropped, Severity::Info, text, Vec::new()))
}
