//! What the nine micro-benchmarks say of a device, beyond its profile: the
//! figures that papers 000/001 print in their text and plots.
//!
//! An IO of a run is cheap where it takes at most twice the mean of sequential
//! writes (section 4.2: "oscillating between two or more values"). Costs of a
//! micro-benchmark's point are means over its repeats.

use super::Figures;
use crate::profile::{self, Profile, table3_row};
use std::path::Path;
use uflip_device::IoRecord;
use uflip_measure::{Baseline, Curve, MicroBenchmark};
use uflip_store::{RunRow, Store, StoreContents, StoreError, read_records};

/// Cheap writes take at most so many times a sequential one.
const CHEAP: f64 = 2.0;

/// All figures of the standard benchmark stored in `folder`.
///
/// # Errors
/// [`StoreError`] where the results cannot be read.
pub fn figures(folder: &Path) -> Result<Figures, StoreError> {
    let contents = Store::open(folder)?;
    let profile = profile::build(&contents)?;
    let mut found = Figures::default();
    row_of_table3(&profile, &mut found);
    phases(&profile, &mut found);
    effects(&profile, &mut found);
    granularity(&profile, &contents, &mut found);
    pause(&profile, &contents, &mut found);
    random_writes(&profile, &contents, &mut found)?;
    Ok(found)
}

fn row_of_table3(profile: &Profile, found: &mut Figures) {
    let row = table3_row(profile);
    found.put("sr", row.sr_ms);
    found.put("rr", row.rr_ms);
    found.put("sw", row.sw_ms);
    found.put("rw", row.rw_ms);
    found.put("pause_rw", row.pause_rw_ms);
    found.put("locality_mb", row.locality_mb);
    found.put("locality_factor", row.locality_factor);
    found.put("partitions", row.partitions.map(|n| n as f64));
    found.put("partitions_factor", row.partitions_factor);
    found.put("reverse", row.reverse_factor);
    found.put("in_place", row.in_place_factor);
    found.put("large_incr", row.large_incr_factor);
}

/// Figures 3 and 4, and section 5.1.
fn phases(profile: &Profile, found: &mut Figures) {
    let start_up = &profile.start_up_ios;
    let ios = |n: Option<u64>| n.map(|n| n as f64);
    found.put("start_up_sr_ios", ios(start_up.sr));
    found.put("start_up_rr_ios", ios(start_up.rr));
    found.put("start_up_sw_ios", ios(start_up.sw));
    found.put("start_up_rw_ios", ios(start_up.rw));
    found.put("period_sw_ios", profile.period_ios.sw);
    found.put("period_rw_ios", profile.period_ios.rw);
}

/// Section 5.2, "Other Results".
fn effects(profile: &Profile, found: &mut Figures) {
    found.put("mix_factor", profile.mix.worst.map(|gain| 1.0 / gain));
    found.put("parallel_gain", profile.parallelism.best);
    let alignment = &profile.alignment;
    let of_random_writes = alignment.baseline == Some(Baseline::Rw);
    let unit = alignment.unit_bytes.filter(|_| of_random_writes);
    found.put("alignment_kb", unit.map(|b| b as f64 / 1024.0));
    let penalty = alignment.penalty_factor.filter(|_| of_random_writes);
    found.put("rw_unaligned_ms", penalty.zip(profile.baseline_ms.rw).map(|(p, rw)| p * rw));
}

/// The mean over all repeats of a point of `micro`'s curve of `baseline`, in ms.
fn cost(contents: &StoreContents, micro: MicroBenchmark, baseline: Baseline, value: i64) -> Option<f64> {
    let wanted = (micro, Curve::One(baseline), value);
    let here = |row: &&RunRow| row.spec.point().is_some_and(|p| (p.micro, p.curve, p.value) == wanted);
    let means: Vec<f64> =
        contents.runs.iter().filter(here).filter_map(|row| row.stats.running.mean_ns).collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64 / 1e6)
}

/// Figures 6 and 7.
fn granularity(profile: &Profile, contents: &StoreContents, found: &mut Figures) {
    let latency = &profile.granularity.latency_us;
    found.put("latency_sr_us", latency.sr);
    found.put("latency_rr_us", latency.rr);
    found.put("latency_sw_us", latency.sw);
    let at = |baseline, kib: i64| cost(contents, MicroBenchmark::Granularity, baseline, kib << 10);
    let times = |n: f64, small: Option<f64>, large: Option<f64>| Some(n * small? / large?);
    found.put("rw_4x4k_over_16k", times(4.0, at(Baseline::Rw, 4), at(Baseline::Rw, 16)));
    found.put("rw_2x8k_over_16k", times(2.0, at(Baseline::Rw, 8), at(Baseline::Rw, 16)));
    found.put("sw_8x4k_over_32k", times(8.0, at(Baseline::Sw, 4), at(Baseline::Sw, 32)));
    found.put("rw_512b_ms", cost(contents, MicroBenchmark::Granularity, Baseline::Rw, 512));
    found.put("rw_256k_ms", at(Baseline::Rw, 256));
}

/// Section 5.2: with a pause "the total workload takes the same overall time
/// regardless of the length of the pause". The largest factor either way among
/// the pauses up to the one that makes random writes cheap.
fn pause(profile: &Profile, contents: &StoreContents, found: &mut Figures) {
    let (Some(enough), Some(rw)) = (profile.pause_rw_ms, profile.baseline_ms.rw) else { return };
    let pauses = contents.runs.iter().filter_map(|row| {
        let point = row.spec.point().filter(|p| p.micro == MicroBenchmark::Pause)?;
        (point.curve == Curve::One(Baseline::Rw)).then_some(point.value)
    });
    let total =
        |ns: i64| Some((ns as f64 / 1e6 + cost(contents, MicroBenchmark::Pause, Baseline::Rw, ns)?) / rw);
    let factors = pauses.filter(|ns| *ns as f64 / 1e6 <= enough).filter_map(total);
    found.put("pause_total", factors.max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs())));
}

/// Figure 3: how cheap and expensive random writes alternate, and what a run of 512
/// that counts the start-up is off by (section 4.2).
fn random_writes(profile: &Profile, contents: &StoreContents, found: &mut Figures) -> Result<(), StoreError> {
    let first = contents.runs.iter().find(|r| r.spec.baseline() == Some(Baseline::Rw));
    let (Some(row), Some(sw_ms)) = (first, profile.baseline_ms.sw) else { return Ok(()) };
    let records = read_records(&contents.dir.join(&row.records.file))?;
    let ms = |r: &IoRecord| r.response().as_millis_f64();
    let start_up = profile.start_up_ios.rw.unwrap_or(0) as usize;
    let running: Vec<f64> = records.iter().skip(start_up).map(ms).collect();
    let (cheap, expensive): (Vec<f64>, Vec<f64>) = running.iter().copied().partition(|t| *t <= CHEAP * sw_ms);
    let mean = |of: &[f64]| (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
    found.put("rw_cheap_share", (!running.is_empty()).then(|| cheap.len() as f64 / running.len() as f64));
    found.put("rw_cheap_ms", mean(&cheap));
    found.put("rw_expensive_ms", mean(&expensive));
    let short: Vec<f64> = records.iter().take(512).map(ms).collect();
    found.put("rw_512_over_running", mean(&short).zip(mean(&running)).map(|(s, r)| s / r));
    Ok(())
}
