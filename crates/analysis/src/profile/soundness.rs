//! What speaks against the results, as far as the stored runs, the plan and the
//! manifest can tell.
//!
//! Method: one rule a code, in `docs/profile.md` under "Soundness".
//!
//! Source: paper 001, sections 4.1 to 4.3; paper 003, section 3 (state,
//! start-up and interference make results meaningless).

use super::Profile;
use super::facts::{BaselineFacts, BetweenRuns, Facts, Repeat, SPREAD_LIMIT};
use super::finding::{Finding, FindingCode, Severity, finding};
use super::resumed::resumed;
use super::spaces;
use uflip_device::{Buffering, Incidents};
use uflip_measure::auto::findings::Calibration;
use uflip_measure::detect::drift::drift;
use uflip_measure::detect::spread::{Cause, Spread};
use uflip_measure::detect::startup::StartUp;
use uflip_measure::pattern::PatternMode;
use uflip_measure::{State, Step};
use uflip_store::complete::{completeness, program_of};
use uflip_store::contents::{RunRow, StoreContents};
use uflip_store::damage;
use uflip_store::job::job_of;
use uflip_store::manifest::DeviceChange;

/// An interval is wide from this half width on, relative to its mean.
/// Source: paper 001, section 5.1: differences "typically within 5 %".
const WIDE: f64 = 0.05;
/// A start-up matters where it shifts the mean of its run by more than this.
const MATTERS: f64 = 0.01;
/// Own overhead matters from this share of a baseline's mean on.
const OVERHEAD: f64 = 0.05;

/// All findings, the gravest first.
pub(super) fn findings(
    profile: &Profile,
    facts: &Facts,
    contents: &StoreContents,
    calibration: Option<&Calibration>,
) -> Vec<Finding> {
    let mut all = of_store(contents);
    all.extend(of_manifest(contents));
    all.extend(calibration.into_iter().flat_map(|found| super::calibrated::findings(profile, found)));
    all.extend(super::beside::findings(&contents.runs, calibration));
    all.extend(of_plan(contents));
    let is_job = job_of(contents).is_some();
    all.extend(of_rows(&contents.runs, is_job));
    all.extend(layout_finding(&contents.runs));
    all.extend(time_lost(&contents.runs));
    all.extend(resumed(&contents.runs));
    all.extend(super::open_loop::findings(&contents.runs));
    for baseline in &facts.baselines {
        all.extend(start_up_not_covered(baseline));
        all.extend(wide_interval(baseline, &facts.between, is_job));
        all.extend(repeats_differ(baseline));
        all.extend(baseline_drift(baseline));
    }
    all.extend(curves_differ(facts));
    all.extend(overhead(profile, contents));
    all.sort_by_key(|f| std::cmp::Reverse(f.severity));
    all
}

/// Codes `damaged`, `incomplete` and `plan_edited`.
fn of_store(contents: &StoreContents) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for (at, text) in damage::statements(contents).into_iter().enumerate() {
        let runs = contents.damage.get(at).and_then(|damage| damage.run).into_iter().collect();
        all.push(finding(FindingCode::Damaged, Severity::Serious, text, runs));
    }
    let found = completeness(contents);
    all.extend(
        found.statement.map(|text| finding(FindingCode::Incomplete, Severity::Serious, text, found.missing)),
    );
    if contents.plan_edited {
        all.push(finding(FindingCode::PlanEdited, Severity::Warning, damage::PLAN_EDITED.into(), Vec::new()));
    }
    all
}

/// Codes `target_warning`, `page_cache` and `device_changed`.
fn of_manifest(contents: &StoreContents) -> Vec<Finding> {
    let manifest = &contents.manifest;
    let warning =
        |text: &String| finding(FindingCode::TargetWarning, Severity::Warning, text.clone(), Vec::new());
    let mut all: Vec<Finding> = manifest.target.warnings.iter().map(warning).collect();
    if manifest.options.engine.is_some_and(|engine| engine.buffering == Buffering::Buffered) {
        let text =
            "IOs went through the page cache: the figures are those of memory as much as of the device.";
        all.push(finding(FindingCode::PageCache, Severity::Serious, text.into(), Vec::new()));
    }
    all.extend(device_changed(contents));
    all
}

/// Code `device_changed`, one finding a change.
fn device_changed(contents: &StoreContents) -> Vec<Finding> {
    let of = |change: &DeviceChange| {
        let after = |row: &&RunRow| match row.outcome.started_unix_ns {
            Some(started) => started >= change.unix_ns,
            None => change.from_run.is_some_and(|from| row.spec.id >= from),
        };
        let runs: Vec<u32> = contents.runs.iter().filter(after).map(|row| row.spec.id).collect();
        let told = change.differences.iter().map(|d| format!("{} was {}, is {}", d.what, d.was, d.is));
        let told = told.collect::<Vec<_>>().join("; ");
        let from = change.from_run.map_or("later".to_string(), |run| format!("run {run}"));
        let text = format!(
            "From {from} on another device was measured ({told}): the figures are those of two devices."
        );
        finding(FindingCode::DeviceChanged, Severity::Serious, text, runs)
    };
    contents.manifest.target.changed.iter().map(of).collect()
}

/// Codes `state_not_enforced` and `space_reused`.
fn of_plan(contents: &StoreContents) -> Vec<Finding> {
    let Some(plan) = &contents.plan else { return Vec::new() };
    let mut all = Vec::new();
    let enforced = plan.steps.iter().any(|s| matches!(s, Step::Reset { state } if *state != State::None));
    // A program takes its device as it is: it is no measurement of a state.
    let bare = spaces::not_filled(plan);
    let a_state = program_of(contents).is_none();
    if !enforced && a_state && bare.as_ref().is_none_or(|lines| !lines.is_empty()) {
        let of = bare.map_or_else(String::new, |lines| format!(" (lines {})", lines.join(", ")));
        // A job has no such option; what comes before a line is the line's.
        let advice = match job_of(contents) {
            Some(_) => "In a job before=fill(1M) writes a line's space first.",
            None => "Measure again with --state random.",
        };
        let text = format!(
            "The device's state was not enforced before measuring{of}: writes may cost less, or more, than they \
             do after some time of use. {advice}"
        );
        all.push(finding(FindingCode::StateNotEnforced, Severity::Warning, text, Vec::new()));
    }
    let reused = spaces::reused(plan);
    if !reused.is_empty() {
        let text = format!(
            "{} runs write sequentially where an earlier one did, without a state reset in between{}.",
            reused.len(),
            spaces::lines_of(plan, &reused)
        );
        all.push(finding(FindingCode::SpaceReused, Severity::Warning, text, reused));
    }
    all
}

/// Code `time_lost`, one finding for all runs that are kept although something
/// befell each of their attempts.
fn time_lost(rows: &[RunRow]) -> Option<Finding> {
    let lost: Vec<&RunRow> = rows.iter().filter(|row| row.outcome.end.incidents.time_lost()).collect();
    let first = lost.first()?;
    let runs: Vec<u32> = lost.iter().map(|row| row.spec.id).collect();
    let named: Vec<String> = runs.iter().take(5).map(u32::to_string).collect();
    let more = if runs.len() > named.len() { ", …" } else { "" };
    let incidents = Incidents { layout_changed: false, ..first.outcome.end.incidents };
    let text = format!(
        "Something took time from run {}{more}, each time it was measured; of run {}: {incidents}. Its response \
         times are not the device's alone.",
        named.join(", "),
        first.spec.id
    );
    Some(finding(FindingCode::TimeLost, Severity::Serious, text, runs))
}

/// Codes `stalls`, `time_limit_hit` and `no_running_phase`. A job's own time
/// limits are what was asked for.
fn of_rows(rows: &[RunRow], is_job: bool) -> Vec<Finding> {
    let cut = |r: &RunRow| r.outcome.end.time_limit_hit && !(is_job && r.spec.time_limit.is_some());
    type Rule<'a> = (FindingCode, Severity, &'a str, &'a dyn Fn(&RunRow) -> bool);
    let rules: [Rule<'_>; 3] = [
        (
            FindingCode::Stalls,
            Severity::Warning,
            "recording kept IOs waiting, so some pauses are longer than planned",
            &|r| r.stalls.is_some_and(|n| n > 0),
        ),
        (
            FindingCode::TimeLimitHit,
            Severity::Warning,
            "a time limit ended the run before all its IOs were done",
            &cut,
        ),
        (FindingCode::NoRunningPhase, Severity::Serious, "no IO is left in the running phase", &|r| {
            r.stats.running.n == 0
        }),
    ];
    let mut all = Vec::new();
    for (code, severity, text, test) in rules {
        let runs: Vec<u32> = rows.iter().filter(|r| test(r)).map(|r| r.spec.id).collect();
        if !runs.is_empty() {
            all.push(finding(
                code,
                severity,
                format!("In {} of {} runs {text}.", runs.len(), rows.len()),
                runs,
            ));
        }
    }
    all
}

/// Code `layout_changed`.
fn layout_finding(rows: &[RunRow]) -> Option<Finding> {
    let changed = |r: &&RunRow| r.outcome.end.incidents.layout_changed;
    let runs: Vec<u32> = rows.iter().filter(changed).map(|r| r.spec.id).collect();
    let text = format!(
        "In {} of {} runs the file came to lie otherwise on its disk, or had holes, which are answered without the disk.",
        runs.len(),
        rows.len()
    );
    (!runs.is_empty()).then(|| finding(FindingCode::LayoutChanged, Severity::Serious, text, runs))
}

/// Code `start_up_not_covered`.
fn start_up_not_covered(b: &BaselineFacts) -> Option<Finding> {
    let uncovered: Vec<_> =
        b.repeats.iter().filter(|r| r.start_up.is_some_and(|s| s.ios > r.io_ignore)).collect();
    let longest = uncovered.iter().filter_map(|r| r.start_up).max_by_key(|s| s.ios)?;
    let left_out = if b.start_up.is_some() { "; this profile leaves them out" } else { "" };
    let text = format!(
        "{}: the first {} IOs are a start-up phase (x{:.2} of what follows), which IOIgnore {} does not cover{left_out}.",
        b.baseline.name(),
        longest.ios,
        longest.before_mean_ns / longest.after_mean_ns,
        uncovered.iter().map(|r| r.io_ignore).min().unwrap_or(0)
    );
    let runs = uncovered.iter().map(|r| r.run).collect();
    let shifts = |r: &&&Repeat| {
        let share =
            |s: &StartUp| s.ios as f64 / r.ios as f64 * (s.before_mean_ns / s.after_mean_ns - 1.0).abs();
        r.start_up.as_ref().is_some_and(|s| share(s) > MATTERS)
    };
    let severity = if uncovered.iter().any(|r| shifts(&r)) { Severity::Warning } else { Severity::Info };
    Some(finding(FindingCode::StartUpNotCovered, severity, text, runs))
}

/// Code `wide_interval`.
fn wide_interval(b: &BaselineFacts, between: &BetweenRuns, is_job: bool) -> Option<Finding> {
    let half = (b.level.high_ns - b.level.low_ns) / 2.0 / b.level.mean_ns;
    let text = if half.is_finite() {
        format!("the mean is known to within {:.0} % only", half * 100.0)
    } else {
        "the runs are too short for an interval of the mean".into()
    };
    let found = if b.baseline.mode() == PatternMode::Write { between.writes } else { between.reads };
    let by_runs = found.map_or(0.0, |found| found.relative_half_width(b.repeats.len()));
    // Longer runs do not help against what changes from run to run.
    let runs_differ = half.is_finite() && by_runs > half / 2.0;
    let (why, more) = ("equal runs differ by most of that: measure with", (2 * b.repeats.len()).max(3));
    let advice = match (runs_differ, is_job) {
        (true, false) => format!("{why} --repeats {more} or more"),
        (true, true) => format!("{why} reps={more} or more in the job"),
        (false, _) => "measure with a larger IOCount".into(),
    };
    let text = format!("{}: {text}; {advice}.", b.baseline.name());
    (half > WIDE || half.is_nan())
        .then(|| finding(FindingCode::WideInterval, Severity::Warning, text, b.runs.clone()))
}

/// The likely cause in words.
fn cause_text(cause: Option<Cause>) -> String {
    match cause {
        Some(Cause::Interference { repeat, ios }) => format!(
            "what ran before repeat {} still affected its first {ios} IOs; a longer pause between runs would help",
            repeat + 1
        ),
        Some(Cause::Drift { rising: true }) => "they rise from repeat to repeat: the state drifts".into(),
        Some(Cause::Drift { rising: false }) => "they fall from repeat to repeat: the state drifts".into(),
        Some(Cause::Noise) | None => "response times vary more than the runs are long".into(),
    }
}

/// Code `repeats_differ`, of a baseline.
fn repeats_differ(b: &BaselineFacts) -> Option<Finding> {
    let spread = b.spread.as_ref().filter(|s| s.spread > SPREAD_LIMIT)?;
    let (name, percent) = (b.baseline.name(), spread.spread * 100.0);
    let text =
        format!("{name}: repeats differ by {percent:.0} %; likely cause: {}.", cause_text(spread.cause));
    Some(finding(FindingCode::RepeatsDiffer, Severity::Warning, text, b.runs.clone()))
}

/// Code `repeats_differ`, one finding a curve.
fn curves_differ(facts: &Facts) -> Vec<Finding> {
    let mut all = Vec::new();
    for curve in &facts.curves {
        let differ = |s: &Option<Spread>| s.as_ref().is_some_and(|s| s.spread > SPREAD_LIMIT);
        let far: Vec<_> = curve.points.iter().filter(|p| differ(&p.spread)).collect();
        let size = |s: &Option<Spread>| s.as_ref().map_or(0.0, |s| s.spread);
        let Some(worst) = far.iter().max_by(|a, b| size(&a.spread).total_cmp(&size(&b.spread))) else {
            continue;
        };
        let text = format!(
            "{} of {}: at {} of {} values repeats differ by more than 5 %, at {} by {:.0} %; likely cause there: {}.",
            curve.id.section,
            curve.id.curve,
            far.len(),
            curve.points.len(),
            worst.label,
            size(&worst.spread) * 100.0,
            cause_text(worst.spread.as_ref().and_then(|s| s.cause))
        );
        let runs = far.iter().flat_map(|p| p.runs.clone()).collect();
        all.push(finding(FindingCode::RepeatsDiffer, Severity::Info, text, runs));
    }
    all
}

/// Code `baseline_drift`.
fn baseline_drift(b: &BaselineFacts) -> Option<Finding> {
    let [first, .., last] = &b.repeats[..] else { return None };
    let found = drift(&first.known.level, &last.known.level, SPREAD_LIMIT).filter(|d| d.drifted)?;
    let text = format!(
        "{}: the last repeat costs x{:.2} of the first: the state changed while measuring.",
        b.baseline.name(),
        found.ratio.ratio
    );
    Some(finding(FindingCode::BaselineDrift, Severity::Warning, text, vec![first.run, last.run]))
}

/// Code `own_overhead`. A device in virtual time has none.
fn overhead(profile: &Profile, contents: &StoreContents) -> Option<Finding> {
    let own = contents.manifest.overhead.as_ref()?.facts.empty_io_response_ns;
    let real = contents.runs.iter().any(|r| r.outcome.started_unix_ns.is_some());
    let ms = &profile.baseline_ms;
    let least = [ms.sr, ms.rr, ms.sw, ms.rw].into_iter().flatten().min_by(f64::total_cmp)? * 1e6;
    let text = format!(
        "An IO that does nothing shows {own:.0} ns, {:.0} % of the fastest baseline's mean: the figures contain it.",
        own / least * 100.0
    );
    (real && own > OVERHEAD * least)
        .then(|| finding(FindingCode::OwnOverhead, Severity::Warning, text, Vec::new()))
}
