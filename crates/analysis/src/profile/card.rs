//! A profile as a card for the terminal, 80 columns wide.

use super::finding::{Finding, FindingCode, Severity};
use super::hints::Verdict;
use super::table3::{factor_text, table3_row};
use super::verdicts::answer;
use super::{Evidence, Per, Profile};
use crate::compare::three;
use std::fmt::Write;
use uflip_device::Bytes;
use uflip_measure::detect::between::Between;
use uflip_measure::detect::knee::SAME;
use uflip_measure::detect::verdict::Decision;
use uflip_measure::pattern::Baseline;

/// Columns of the card.
pub const WIDTH: usize = 80;
/// Where text after a label begins.
const INDENT: usize = 14;

/// The card's text, at most [`WIDTH`] columns except for single long words.
pub fn render(profile: &Profile) -> String {
    let mut out = String::new();
    let first = |f: &&Finding| {
        [FindingCode::Damaged, FindingCode::Incomplete].iter().any(|code| code.text() == f.code)
    };
    profile.soundness.iter().filter(first).for_each(|f| wrap(&mut out, "", &format!("! {}", f.statement)));
    wrap(&mut out, "", &profile.target);
    wrap(&mut out, "", &format!("{} (seed {})", profile.device_class.statement, profile.seed));
    out.push('\n');
    baselines(&mut out, profile);
    out.push('\n');
    writes(&mut out, profile);
    device_work(&mut out, profile);
    if !profile.hints.is_empty() {
        out.push_str("\nHints\n");
        for (number, hint) in (1..).zip(&profile.hints) {
            let mark = match hint.verdict {
                Verdict::Holds => "holds",
                Verdict::DoesNotHold => "fails",
                Verdict::Unknown => "unknown",
                Verdict::NotDecided => "open",
            };
            wrap(&mut out, &format!("  {number} {mark}"), &hint.statement);
        }
    }
    let told: Vec<_> =
        profile.soundness.iter().filter(|f| f.severity > Severity::Info && !first(f)).collect();
    if !told.is_empty() {
        out.push_str("\nSoundness\n");
        for finding in told {
            let word = if finding.severity == Severity::Serious { "  serious" } else { "  warning" };
            wrap(&mut out, word, &finding.statement);
        }
    }
    out
}

/// `label` and then `text`, broken at blanks, later lines under the text.
fn wrap(out: &mut String, label: &str, text: &str) {
    let indent = if label.is_empty() { 0 } else { INDENT };
    let mut current = format!("{label:<indent$}");
    let mut filled = false;
    for word in text.split_whitespace() {
        if filled && current.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{}", current.trim_end());
            (current, filled) = (" ".repeat(indent), false);
        }
        if filled {
            current.push(' ');
        }
        current.push_str(word);
        filled = true;
    }
    let _ = writeln!(out, "{}", current.trim_end());
}

fn cell<T: Copy>(per: &Per<T>, baseline: Baseline, show: impl Fn(T) -> String) -> String {
    per.of(baseline).map_or_else(|| "-".into(), show)
}

fn baselines(out: &mut String, p: &Profile) {
    let size = p.io_size_bytes.map_or_else(String::new, |b| format!("{} IOs", Bytes(b)));
    let _ = writeln!(
        out,
        "{size:<INDENT$}{:>10}{:>18}{:>9}{:>8}{:>10}{:>10}",
        "mean ms", "95 % interval", "start-up", "period", "latency", "per KiB"
    );
    for b in Baseline::ALL {
        // Where no line describes the curve, its parameters are none.
        let line =
            |text: String| if p.granularity.linear.of(b) == Some(false) { "no line".into() } else { text };
        let ci95 = p.baseline_ms.evidence.get(&b).and_then(|e| e.ci95);
        let _ = writeln!(
            out,
            "  {:<12}{:>10}{:>18}{:>9}{:>8}{:>10}{:>10}",
            b.name(),
            cell(&p.baseline_ms, b, three),
            ci95.map_or_else(|| "-".into(), |[low, high]| format!("{} to {}", three(low), three(high))),
            cell(&p.start_up_ios, b, |n| n.to_string()),
            cell(&p.period_ios, b, three),
            line(cell(&p.granularity.latency_us, b, |v| format!("{} us", three(v)))),
            line(cell(&p.granularity.us_per_kib, b, |v| format!("{} us", three(v)))),
        );
    }
    let percent = |between: Option<Between>| {
        between.map(|b| b.relative_sd).filter(|sd| *sd >= 0.005).map(|sd| format!("{:.0} %", 100.0 * sd))
    };
    let [reads, writes] = [percent(p.between_runs.reads), percent(p.between_runs.writes)];
    if reads.is_some() || writes.is_some() {
        let or = |text: Option<String>| text.unwrap_or_else(|| "nothing".into());
        let text = format!(
            "reads differ by {}, writes by {} from run to run (standard deviation)",
            or(reads),
            or(writes)
        );
        wrap(out, "  Equal runs", &text);
    }
}

/// What the device counted: a line for each baseline of which it tells, and all runs.
fn device_work(out: &mut String, p: &Profile) {
    let Some(of_all) = p.device_work.sentence() else { return };
    out.push_str("\nThe device's own work\n");
    for b in Baseline::ALL {
        let amplification = p.device_work.write_amplification.of(b);
        let energy = p.device_work.energy_uj_per_io.of(b);
        let parts = [
            amplification.map(|wa| format!("write amplification {}", three(wa))),
            energy.map(|uj| format!("{} uJ an IO", three(uj))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            wrap(out, &format!("  {}", b.name()), &parts.join(", "));
        }
    }
    wrap(out, "  all runs", &of_all);
}

/// A factor as Table 3 prints it, `?` where it is near 1 and its interval does not lie
/// within x0.8 to x1.25: nobody knows then that it is `=`.
pub fn known_factor(factor: f64, beside: Option<&Evidence>) -> String {
    let sure = beside.and_then(|e| e.ci95).is_some_and(|[low, high]| low >= 1.0 / SAME && high <= SAME);
    match factor_text(factor) {
        text if text == "=" && !sure => "?".into(),
        text => text,
    }
}

fn writes(out: &mut String, p: &Profile) {
    let row = table3_row(p);
    let times =
        |f: Option<f64>, beside: Option<&Evidence>| f.map_or_else(|| "-".into(), |f| known_factor(f, beside));
    let none = || "-".to_string();
    let pause = row.pause_rw_ms.map_or_else(none, |ms| format!("{} ms makes RW cost as SW", three(ms)));
    let locality = p.locality.area_bytes.map_or_else(none, |b| {
        format!(
            "random writes cost {} SW within {}",
            times(row.locality_factor, p.locality.evidence.get("factor")),
            Bytes(b)
        )
    });
    let partitions = row.partitions.map_or_else(none, |n| {
        format!(
            "up to {n} sequential streams cost {} SW",
            times(row.partitions_factor, p.partitions.evidence.get("factor"))
        )
    });
    let order_evidence = |name: &str| p.order.evidence.get(name);
    let order = format!(
        "reverse {}, in place {} (of SW); large steps {} (of RW)",
        times(row.reverse_factor, order_evidence("reverse_factor")),
        times(row.in_place_factor, order_evidence("in_place_factor")),
        times(row.large_incr_factor, order_evidence("large_incr_factor"))
    );
    let alignment = match answer(&p.verdicts, "alignment").map(|a| a.verdict) {
        None => none(),
        Some(Decision::NotDecided) => "not decided".into(),
        Some(Decision::No) => "no effect".into(),
        Some(Decision::Yes) => format!(
            "to {}, else {} costs {}",
            p.alignment.unit_bytes.map_or_else(|| "no measured unit".into(), |b| Bytes(b).to_string()),
            p.alignment.baseline.map_or("an IO", Baseline::name),
            times(p.alignment.penalty_factor, p.alignment.evidence.get("penalty_factor"))
        ),
    };
    let effect = |e: &super::Effect| match (e.gain, &e.baseline, e.value) {
        (Some(gain), Some(baseline), Some(value)) => {
            let text = if gain >= 1.0 { factor_text(gain) } else { format!("1/{}", three(1.0 / gain)) };
            format!("throughput goes to {text} ({baseline} at {value})")
        }
        (Some(_), ..) => "no effect".into(),
        _ if e.curves.is_empty() => "-".to_string(),
        _ => "not decided".into(),
    };
    for (label, text) in [
        ("Pause", pause),
        ("Locality", locality),
        ("Partitions", partitions),
        ("Order", order),
        ("Alignment", alignment),
        ("Parallelism", effect(&p.parallelism)),
        ("Mix", effect(&p.mix)),
    ] {
        wrap(out, &format!("  {label}"), &text);
    }
    let deep = |b: Baseline| {
        let gain = factor_text(p.queue_depth.gain.of(b)?);
        let enough = p.queue_depth.enough.of(b);
        let enough =
            enough.map_or_else(|| "still growing".into(), |depth| format!("no more from {depth} on"));
        Some(format!("{} {gain}, {enough}", b.name()))
    };
    let deep: Vec<String> = Baseline::ALL.into_iter().filter_map(deep).collect();
    if !deep.is_empty() {
        wrap(out, "  Queue depth", &format!("throughput goes to: {}", deep.join("; ")));
    }
}
