//! The seven hints of the uFLIP paper, judged on this device.
//!
//! Method: one rule a hint, in `docs/profile.md` under "Hints"; each looks at
//! figures and curves that exist already and says which runs it looked at. What
//! was not measured is unknown, never guessed.
//!
//! Source: paper 001, section 5.3, hints 1 to 7.

use super::Profile;
use super::facts::{CurveFacts, Facts, MeasuredCurve};
use serde::{Deserialize, Serialize};
use uflip_device::Bytes;
use uflip_measure::MicroBenchmark;
use uflip_measure::detect::knee::{CostRatio, Level, SAME, ratio};
use uflip_measure::pattern::Baseline;

/// An IO size gives its due from this share of the best throughput on: beyond
/// it, doubling the size gains less than half as much again.
const WORTH: f64 = 1.5;
/// Sizes that count as the 32 KiB of hint 2: within a power of two.
const BLOCK: std::ops::RangeInclusive<i64> = 16 << 10..=64 << 10;

/// What a hint is worth on this device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Good advice.
    Holds,
    /// Not so here.
    DoesNotHold,
    /// What it takes to tell was not measured.
    Unknown,
}

/// One hint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    /// `larger_ios`, `block_size`, `alignment`, `locality`, `partitions`, `mix`,
    /// `no_concurrency_or_delay`.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// What to do on this device, in a sentence.
    pub statement: String,
    /// The runs looked at.
    pub evidence: Vec<u32>,
}

fn hint(id: &str, holds: bool, statement: String, mut runs: Vec<u32>) -> Hint {
    runs.sort_unstable();
    runs.dedup();
    let verdict = if holds { Verdict::Holds } else { Verdict::DoesNotHold };
    Hint { id: id.into(), verdict, statement, evidence: runs }
}

fn unknown(id: &str, statement: &str) -> Hint {
    Hint { id: id.into(), verdict: Verdict::Unknown, statement: statement.into(), evidence: Vec::new() }
}

/// All seven, in the paper's order.
pub(super) fn hints(profile: &Profile, facts: &Facts) -> Vec<Hint> {
    vec![
        larger_ios(facts).unwrap_or_else(|| {
            unknown("larger_ios", "Whether larger IOs pay was not measured (granularity of SR, RR and SW).")
        }),
        block_size(facts).unwrap_or_else(|| {
            unknown("block_size", "The best block size was not measured (granularity of SR and SW).")
        }),
        alignment(profile, facts)
            .unwrap_or_else(|| unknown("alignment", "What alignment costs was not measured (alignment).")),
        locality(profile, facts).unwrap_or_else(|| {
            unknown("locality", "Where random writes are cheap was not measured (locality of RW).")
        }),
        partitions(profile, facts).unwrap_or_else(|| {
            unknown("partitions", "How many streams may be written was not measured (partitioning of SW).")
        }),
        mix(profile).unwrap_or_else(|| unknown("mix", "What mixing patterns costs was not measured (mix).")),
        concurrency_and_delay(profile, facts).unwrap_or_else(|| {
            let text = "Whether parallel or delayed IOs pay was not measured (parallelism, pause).";
            unknown("no_concurrency_or_delay", text)
        }),
    ]
}

fn size(bytes: i64) -> String {
    Bytes(u64::try_from(bytes).unwrap_or(0)).to_string()
}

/// Time for each byte at a point of a granularity curve.
fn per_byte(point: &CurveFacts) -> f64 {
    point.level.mean_ns / point.value.max(1) as f64
}

/// Hint 1: larger IOs are generally beneficial, even for reads.
fn larger_ios(facts: &Facts) -> Option<Hint> {
    let mut gains = Vec::new();
    let mut runs = Vec::new();
    for baseline in [Baseline::Sr, Baseline::Rr, Baseline::Sw] {
        let curve = facts.curve(MicroBenchmark::Granularity, baseline)?;
        let at_least = |bytes: i64| curve.points.iter().find(|p| p.value >= bytes);
        let (small, large) = (at_least(4 << 10)?, at_least(32 << 10)?);
        gains.push((baseline, per_byte(small) / per_byte(large), small.value, large.value));
        runs.extend(small.runs.iter().chain(&large.runs));
    }
    let holds = gains.iter().all(|(_, gain, ..)| *gain >= SAME);
    let least = gains.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (small, large) = (size(least.2), size(least.3));
    let all: Vec<String> = gains.iter().map(|(b, gain, ..)| format!("{} x{gain:.1}", b.name())).collect();
    let what = format!("{large} IOs move data faster than {small} ones: {}", all.join(", "));
    let statement = if holds {
        format!("Use large IOs, also for reads; {what}.")
    } else {
        format!("Small IOs cost little more than large ones for {}: {what}.", least.0.name())
    };
    Some(hint("larger_ios", holds, statement, runs))
}

/// The smallest power of two that gets two thirds of the best throughput.
fn worthwhile(curve: &MeasuredCurve) -> Option<&CurveFacts> {
    let best = curve.points.iter().map(per_byte).min_by(f64::total_cmp)?;
    curve.points.iter().find(|p| p.value.count_ones() == 1 && per_byte(p) <= WORTH * best)
}

/// Hint 2: block size should (currently) be 32 KB.
fn block_size(facts: &Facts) -> Option<Hint> {
    let reads = facts.curve(MicroBenchmark::Granularity, Baseline::Sr)?;
    let writes = facts.curve(MicroBenchmark::Granularity, Baseline::Sw)?;
    let (read, write) = (worthwhile(reads)?, worthwhile(writes)?);
    let block = read.value.max(write.value);
    let statement = format!(
        "Write in {} or more and read in {} or more: that gets at least two thirds of the best sequential \
         throughput measured.",
        size(write.value),
        size(read.value)
    );
    let runs = [read, write].into_iter().flat_map(|p| p.runs.clone());
    Some(hint("block_size", BLOCK.contains(&block), statement, runs.collect()))
}

/// Hint 3: blocks should be aligned to flash pages.
fn alignment(profile: &Profile, facts: &Facts) -> Option<Hint> {
    let runs: Vec<u32> = facts.curves_of(MicroBenchmark::Alignment).flat_map(MeasuredCurve::runs).collect();
    if runs.is_empty() {
        return None;
    }
    let found = &profile.alignment;
    let Some(factor) = found.penalty_factor else {
        let text = "Alignment does not matter at the sizes measured: no shift costs a tenth more.";
        return Some(hint("alignment", false, text.into(), runs));
    };
    let on = found.baseline.map_or("IOs", Baseline::name);
    let to = found.unit_bytes.map_or_else(
        || "Align IOs to more than the largest shift measured".to_string(),
        |b| format!("Align IOs to {}", Bytes(b)),
    );
    let runs = found.evidence.get("penalty_factor").map(|e| e.runs.clone()).unwrap_or(runs);
    Some(hint("alignment", true, format!("{to}; otherwise {on} costs up to x{factor:.2}."), runs))
}

/// Hint 4: random writes should be limited to a focused area.
fn locality(profile: &Profile, facts: &Facts) -> Option<Hint> {
    let curve = facts.curve(MicroBenchmark::Locality, Baseline::Rw)?;
    let (sw, rw) = (profile.baseline_ms.sw?, profile.baseline_ms.rw?);
    let runs = profile.locality.evidence.get("area_bytes").map(|e| e.runs.clone()).unwrap_or_default();
    let everywhere = rw / sw;
    let largest = curve.points.last()?.value;
    let one = |holds, text| Some(hint("locality", holds, text, runs));
    let costlier = profile.locality.factor.is_some_and(|f| f > 2.0);
    let twice = within(curve, facts.level(Baseline::Sw)?, |p| size(p.value)).filter(|_| costlier);
    if everywhere <= SAME {
        return one(
            false,
            format!("Write anywhere: random writes cost x{everywhere:.2} of sequential ones."),
        );
    }
    match (profile.locality.area_bytes, profile.locality.factor) {
        (Some(area), Some(factor)) if i64::try_from(area).is_ok_and(|a| a < largest) => one(
            true,
            format!(
                "Keep random writes within {}: they cost x{factor:.1} of sequential ones there, x{everywhere:.0} \
                 over the whole device{}.",
                Bytes(area),
                twice.map_or_else(String::new, |a| format!("; within {a} at most x2"))
            ),
        ),
        (Some(_), _) => {
            one(false, format!("Random writes are cheap in any area measured, up to {}.", size(largest)))
        }
        _ => one(
            false,
            format!(
                "Avoid random writes: they cost x{everywhere:.0} of sequential ones, and a small area does not make \
                 them cheap."
            ),
        ),
    }
}

/// Hint 5: sequential writes should be limited to a few partitions.
fn partitions(profile: &Profile, facts: &Facts) -> Option<Hint> {
    let curve = facts.curve(MicroBenchmark::Partitioning, Baseline::Sw)?;
    let most = curve.points.last().filter(|p| p.value > 1)?.value;
    let runs = profile.partitions.evidence.get("count").map(|e| e.runs.clone())?;
    let one = |holds, text| Some(hint("partitions", holds, text, runs));
    let (sw, everything) = (facts.level(Baseline::Sw)?, curve.points.last()?);
    let all = everything.level.mean_ns / sw.mean_ns;
    match (profile.partitions.count, profile.partitions.factor) {
        (Some(_), Some(_)) if all <= SAME => one(
            false,
            format!("Write as many sequential streams as you like: {most} at once cost x{all:.2} of one."),
        ),
        (Some(count), Some(factor)) if i64::try_from(count).is_ok_and(|c| c >= most) => one(
            true,
            format!(
                "Write few sequential streams at a time: the cost grows with their number, up to x{factor:.1} of one \
                 with {count}, without a jump{}.",
                within(curve, sw, |p| p.label.clone())
                    .map_or_else(String::new, |n| format!("; it is at most x2 up to {n}"))
            ),
        ),
        (Some(count), Some(factor)) if count > 1 => one(
            true,
            format!(
                "Keep concurrent sequential writes to {count} streams (x{factor:.1} of one); with more, each costs \
                 nearly as much as a random write."
            ),
        ),
        _ => one(false, "Write one sequential stream at a time: already two cost like random writes.".into()),
    }
}

/// The largest value up to which all cost at most twice as much as SW.
fn within<T>(curve: &MeasuredCurve, sw: &Level, show: impl Fn(&CurveFacts) -> T) -> Option<T> {
    curve.points.iter().take_while(|p| p.level.mean_ns <= 2.0 * sw.mean_ns).last().map(show)
}

/// Hint 6: combining a limited number of patterns is acceptable.
fn mix(profile: &Profile) -> Option<Hint> {
    let worst = profile.mix.worst?;
    let points = || profile.mix.curves.iter().flat_map(|(name, all)| all.iter().map(move |p| (name, p)));
    let (name, point) = points().min_by(|a, b| a.1.gain.total_cmp(&b.1.gain))?;
    let holds = worst >= 1.0 / SAME;
    let statement = if holds {
        "Mix patterns freely: no mix measured costs a quarter more than its parts.".to_string()
    } else {
        format!(
            "Do not mix {}: together they cost up to x{:.1} of what they cost apart (at {}).",
            name.baselines().iter().map(|b| b.name()).collect::<Vec<_>>().join(" with "),
            1.0 / worst,
            point.label
        )
    };
    let evidence =
        if holds { points().flat_map(|(_, p)| p.runs.clone()).collect() } else { point.runs.clone() };
    Some(hint("mix", holds, statement, evidence))
}

/// Hint 7: neither concurrent nor delayed IOs improve the performance.
fn concurrency_and_delay(profile: &Profile, facts: &Facts) -> Option<Hint> {
    const ID: &str = "no_concurrency_or_delay";
    let (parallel, delay) = (profile.parallelism.best, best_delay(facts));
    if let Some(gain) = parallel.filter(|g| *g >= SAME) {
        let points =
            profile.parallelism.curves.iter().flat_map(|(name, all)| all.iter().map(move |p| (name, p)));
        let (name, point) = points.max_by(|a, b| a.1.gain.total_cmp(&b.1.gain))?;
        let text =
            format!("Submit {name} in parallel: {} streams gain x{gain:.1} in throughput.", point.label);
        return Some(hint(ID, false, text, point.runs.clone()));
    }
    if let Some((curve, point, gain)) = &delay
        && gain.ratio >= SAME
        && gain.low > 1.0
    {
        let text = format!(
            "Pause {} before each {}: the whole takes x{:.1} less time than without.",
            point.label, curve.id.curve, gain.ratio
        );
        return Some(hint(ID, false, text, point.runs.clone()));
    }
    let (gain, _) = parallel.zip(delay)?;
    let runs = facts
        .curves_of(MicroBenchmark::Parallelism)
        .chain(facts.curves_of(MicroBenchmark::Pause))
        .flat_map(MeasuredCurve::runs)
        .collect();
    let loss = profile.parallelism.worst.filter(|w| *w < 1.0 / SAME);
    let more =
        loss.map_or_else(String::new, |w| format!(", and many streams at once lose up to x{:.1}", 1.0 / w));
    let text = format!(
        "Neither parallel IOs (x{gain:.1} at best) nor pauses save time{more}; submit one at a time."
    );
    Some(hint(ID, true, text, runs))
}

/// The pause that shortens the whole, pause included, most.
fn best_delay(facts: &Facts) -> Option<(&MeasuredCurve, &CurveFacts, CostRatio)> {
    let mut all = Vec::new();
    for curve in facts.curves_of(MicroBenchmark::Pause) {
        let Some(without) = curve.id.curve.one() else { continue };
        let Some(without) = facts.level(without) else { continue };
        for point in &curve.points {
            let mut whole = point.level;
            let pause = point.value as f64;
            (whole.mean_ns, whole.low_ns, whole.high_ns) =
                (whole.mean_ns + pause, whole.low_ns + pause, whole.high_ns + pause);
            all.extend(ratio(without, &whole).map(|gain| (curve, point, gain)));
        }
    }
    all.into_iter().max_by(|a, b| a.2.ratio.total_cmp(&b.2.ratio))
}
