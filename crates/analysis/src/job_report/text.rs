//! The job report as text for a terminal.

use super::{JobReport, Recovery, Rewrite, Speed};
use crate::model::LogicalBlock;
use crate::model::focal::{MergeReport, SyncFit};
use crate::model::kinds::SyncKind;
use uflip_device::{Bytes, Nanos};
use uflip_measure::Baseline;

impl JobReport {
    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        speeds_text(&self.speeds, &mut text);
        if self.table31_mb_per_s.iter().any(Option::is_some) {
            text += "\nTable 3.1's row, MB/s   512 B: SR, RR, SW, RW; 2 MB: SR, RR, SW, RW\n ";
            let cell = |v: &Option<f64>| v.map_or("-".to_string(), |v| format!("{v:.3}"));
            self.table31_mb_per_s.iter().for_each(|v| text += &format!(" {:>9}", cell(v)));
            text.push('\n');
        }
        if !self.misaligned.is_empty() {
            text += "\nMisaligned against aligned random writes\n";
        }
        for m in &self.misaligned {
            text += &format!("  {:>6} shifted by {:>5}: {:.2}\n", m.block_bytes, m.shift_bytes, m.ratio);
        }
        if !self.recovery.is_empty() {
            text += "\nSequential writes after a burst: MB/s in each window, time to 60 % of their median\n";
        }
        self.recovery.iter().for_each(|r| text += &recovery_text(r));
        if !self.rewrite.is_empty() {
            text += "\nThe whole target written once\n";
        }
        self.rewrite.iter().for_each(|r| text += &rewrite_text(r));
        for s in &self.spikes {
            let p = s.spikes.period_ios.map_or("no period".to_string(), |p| format!("every {p} IOs"));
            text += &format!(
                "\nSpikes in run {} ({}): {}, the first at IO {}, {p}, of {}\n",
                s.run,
                s.line,
                s.spikes.count,
                s.spikes.first_io,
                Nanos(s.spikes.height_ns)
            );
        }
        if !self.drift.is_empty() {
            text += "\nDrift over age\n";
        }
        for d in &self.drift {
            let shift =
                if d.shift_bytes.0 > 0 { format!(" shifted by {}", d.shift_bytes) } else { String::new() };
            text += &format!(
                "  {} {:>6}{shift} from {} to {} passes: {:.3} of the first\n",
                d.baseline, d.block_bytes, d.passes.0, d.passes.1, d.last_over_first
            );
        }
        text += &self.merge.as_ref().map_or(String::new(), merge_text);
        text
    }
}

fn rewrite_text(r: &Rewrite) -> String {
    let burst = r.burst.as_ref().map_or("without a burst".to_string(), |b| format!("after {b}"));
    let over = r.over_normal.map_or(String::new(), |o| format!(", {o:.1} times as long"));
    let pass = if r.repeat > 0 { format!(", pass {}", r.repeat + 1) } else { String::new() };
    format!("  {} {burst}{pass}: {:.2} min{over}\n", r.block_bytes, r.minutes)
}

/// `1.500 (1.480..1.520) ms`, `not decided`.
fn ms(ns: Option<f64>, ci95: Option<(f64, f64)>) -> String {
    let Some(ns) = ns else { return "not decided".into() };
    let ci = ci95.map_or(String::new(), |(l, h)| format!(" ({:.3}..{:.3})", l / 1e6, h / 1e6));
    format!("{:.3}{ci} ms", ns / 1e6)
}

/// The write cost model: its parameters, then a line a sample.
fn merge_text(m: &MergeReport) -> String {
    let block = LogicalBlock { bytes: m.logical_block_bytes, source: m.logical_block_source };
    let mut text = format!("\nT = T_merge/(f R) + S/B with logical blocks of {block}\n");
    let of = |kind: &Option<SyncKind>| kind.as_ref().and_then(|k| k.fit.clone());
    let kinds = [("no merge", &m.kinds.no_merge), ("switch", &m.kinds.switch), ("full", &m.kinds.full)];
    for (name, fit) in [("all", m.fit.clone())].into_iter().chain(kinds.map(|(n, k)| (n, of(k)))) {
        let Some(fit) = fit else { continue };
        let b = fit.bytes_per_s.map_or("-".to_string(), |b| format!("{:.1} MB/s", b / 1e6));
        text += &format!("  {name:8} T_merge {}, B {b}\n", ms(fit.t_merge_ns, fit.t_merge_ci95));
    }
    for SyncFit { ios_per_sync, fit } in &m.by_sync {
        let plural = if *ios_per_sync == 1 { "write" } else { "writes" };
        let worst =
            fit.worst_held_out.map_or(String::new(), |w| format!(", off by {:.0} % at most", w * 100.0));
        let t_merge = ms(fit.t_merge_ns, fit.t_merge_ci95);
        text += &format!("  {ios_per_sync} {plural} a sync: T_merge {t_merge}{worst}\n");
    }
    for (name, kind) in kinds {
        let Some((kind, ns)) = kind.as_ref().and_then(|k| Some((k, k.merge_ns?))) else { continue };
        let writes: usize = kind.sizes.iter().map(|s| s.syncs).sum();
        text += &format!(
            "  a {name} merge adds {} to a write ({writes} writes)\n",
            ms(Some(ns), kind.merge_ci95)
        );
    }
    text += "  IOSize  a sync        R        f   us a sector  residual  held out\n";
    for s in &m.samples {
        let share = |r: Option<f64>| r.map_or("-".to_string(), |r| format!("{:+.1} %", r * 100.0));
        text += &format!(
            "  {:>6} {:>7} {:>8.0} {:>8.4} {:>13.2} {:>9} {:>9}{}\n",
            Bytes(s.io_bytes).to_string(),
            s.ios_per_sync,
            s.sample.sectors_per_sync,
            s.sample.focal_factor,
            s.sample.sector_ns / 1e3,
            share(s.residual),
            share(s.held_out_residual),
            match (s.inside, s.in_order) {
                (_, true) => "  (in order: not fitted)",
                (false, _) => "  (beyond a logical block)",
                _ => "",
            }
        );
    }
    text + &format!("  {} of {} held-out predictions within 20 %\n", m.holds, m.predicted)
}

fn recovery_text(r: &Recovery) -> String {
    let seconds = |s: Option<f64>| s.map_or("never".to_string(), |s| format!("{s} s"));
    let of_steady = r.median_over_steady.map_or(String::new(), |m| format!(", {m:.2} of steady"));
    let shown: Vec<String> = r.windows_mb_per_s.iter().take(30).map(|w| format!("{w:.1}")).collect();
    format!(
        "  {} after {}: median {:.2} MB/s{of_steady}; recovered after {}\n    {}\n",
        r.block_bytes,
        r.burst,
        r.median_mb_per_s,
        seconds(r.recovery_s),
        shown.join(" ")
    )
}

/// A table for each line and round: block sizes down, patterns across.
fn speeds_text(speeds: &[Speed], text: &mut String) {
    let mut seen: Vec<(&str, Option<u32>, Bytes)> = Vec::new();
    for speed in speeds {
        let key = (speed.line.as_str(), speed.round, speed.shift_bytes);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let of: Vec<&Speed> =
            speeds.iter().filter(|s| (s.line.as_str(), s.round, s.shift_bytes) == key).collect();
        let mut sizes: Vec<Bytes> = of.iter().map(|s| s.block_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        *text += &format!("\n{}", speed.line);
        *text += &speed.round.map_or(String::new(), |r| format!(", round {r}"));
        if speed.shift_bytes > Bytes(0) {
            *text += &format!(", shifted by {}", speed.shift_bytes);
        }
        *text += "; MB/s\n  IOSize        SR        RR        SW        RW\n";
        for size in sizes {
            *text += &format!("  {:>6}", size.to_string());
            for baseline in Baseline::ALL {
                let cell = of.iter().find(|s| s.baseline == baseline && s.block_bytes == size);
                *text += &cell.map_or(format!("{:>10}", "-"), |s| format!("{:>10.3}", s.mb_per_s));
            }
            text.push('\n');
        }
    }
}
