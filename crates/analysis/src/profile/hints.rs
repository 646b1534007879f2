//! The seven hints of the uFLIP paper, judged on this device.
//!
//! Method: one rule a hint, in `docs/profile.md` under "Hints"; each goes by the answers of
//! `verdicts.rs` alone and says which runs it looked at. What was not measured is unknown,
//! and what the intervals leave open is not decided, with what would decide it.
//!
//! Source: paper 001, section 5.3, hints 1 to 7.

use super::Profile;
use super::facts::{CurveFacts, Facts, MeasuredCurve};
use super::verdicts::{Answered, answer, at_least};
use serde::{Deserialize, Serialize};
use uflip_device::Bytes;
use uflip_measure::MicroBenchmark;
use uflip_measure::detect::knee::Level;
use uflip_measure::detect::verdict::{Decision, HeldAgainst, corrected};
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
    /// It was, and the intervals leave it open.
    NotDecided,
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

fn hint(id: &str, holds: bool, statement: String, runs: Vec<u32>) -> Hint {
    of(id, if holds { Verdict::Holds } else { Verdict::DoesNotHold }, statement, runs)
}

fn of(id: &str, verdict: Verdict, statement: String, mut runs: Vec<u32>) -> Hint {
    runs.sort_unstable();
    runs.dedup();
    Hint { id: id.into(), verdict, statement, evidence: runs }
}

/// A hint that hangs on the open question `open`.
fn open(id: &str, open: &Answered) -> Hint {
    of(id, Verdict::NotDecided, open.not_decided(), open.runs.clone())
}

fn unknown(id: &str, statement: &str) -> Hint {
    Hint { id: id.into(), verdict: Verdict::Unknown, statement: statement.into(), evidence: Vec::new() }
}

/// All seven, in the paper's order.
pub(super) fn hints(profile: &Profile, facts: &Facts) -> Vec<Hint> {
    vec![
        larger_ios(profile, facts).unwrap_or_else(|| {
            unknown("larger_ios", "Whether larger IOs pay was not measured (granularity of SR, RR and SW).")
        }),
        block_size(facts).unwrap_or_else(|| {
            unknown("block_size", "The best block size was not measured (granularity of SR and SW).")
        }),
        alignment(profile)
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
fn larger_ios(profile: &Profile, facts: &Facts) -> Option<Hint> {
    const ID: &str = "larger_ios";
    let baselines = [Baseline::Sr, Baseline::Rr, Baseline::Sw];
    let mut all = Vec::new();
    for baseline in baselines {
        all.push((baseline, answer(&profile.verdicts, &format!("larger_ios.{baseline}"))?));
    }
    let curve = facts.curve(MicroBenchmark::Granularity, Baseline::Sr)?;
    let (small, large) = (size(at_least(curve, 4 << 10)?.value), size(at_least(curve, 32 << 10)?.value));
    let gain = |a: &Answered| a.ratio.unwrap_or(f64::NAN);
    let each: Vec<String> = all.iter().map(|(b, a)| format!("{b} x{:.1}", gain(a))).collect();
    let what = format!("{large} IOs move data faster than {small} ones: {}", each.join(", "));
    let runs = all.iter().flat_map(|(_, a)| a.runs.clone()).collect();
    if let Some((baseline, _)) = all.iter().find(|(_, a)| a.verdict == Decision::No) {
        let text = format!("Small IOs cost little more than large ones for {baseline}: {what}.");
        return Some(hint(ID, false, text, runs));
    }
    let left = all.iter().find(|(_, a)| a.verdict == Decision::NotDecided);
    Some(match left {
        Some((_, left)) => open(ID, left),
        None => hint(ID, true, format!("Use large IOs, also for reads; {what}."), runs),
    })
}

/// The smallest power of two that gets two thirds of the best throughput, and the smallest
/// and the largest that may be it by their intervals.
fn worthwhile(curve: &MeasuredCurve) -> Option<(&CurveFacts, [i64; 2])> {
    let best = curve.points.iter().min_by(|a, b| per_byte(a).total_cmp(&per_byte(b)))?;
    let confidence = corrected(curve.points.len());
    let of_best = |p: &CurveFacts| {
        let times = best.value as f64 / p.value.max(1) as f64;
        HeldAgainst { times, ..HeldAgainst::new(p.known(), best.known()) }.at(confidence)
    };
    let powers = || curve.points.iter().filter(|p| p.value.count_ones() == 1);
    let found = powers().find(|p| per_byte(p) <= WORTH * per_byte(best))?;
    let least = powers().find(|p| of_best(p).is_none_or(|r| r.low <= WORTH))?.value;
    let last = powers().next_back()?.value;
    // Compared with itself the best one is worthwhile whatever its interval.
    let sure = |p: &CurveFacts| p.value == best.value || of_best(p).is_some_and(|r| r.high <= WORTH);
    let most = powers().find(|p| sure(p)).map_or(last, |p| p.value);
    Some((found, [least, most.max(found.value)]))
}

/// Hint 2: block size should (currently) be 32 KB.
fn block_size(facts: &Facts) -> Option<Hint> {
    const ID: &str = "block_size";
    let reads = facts.curve(MicroBenchmark::Granularity, Baseline::Sr)?;
    let writes = facts.curve(MicroBenchmark::Granularity, Baseline::Sw)?;
    let ((read, of_reads), (write, of_writes)) = (worthwhile(reads)?, worthwhile(writes)?);
    let [least, most] = [of_reads[0].max(of_writes[0]), of_reads[1].max(of_writes[1])];
    let runs: Vec<u32> = [read, write].into_iter().flat_map(|p| p.runs.clone()).collect();
    let within = BLOCK.contains(&least) && BLOCK.contains(&most);
    if !within && most >= *BLOCK.start() && least <= *BLOCK.end() {
        let text = format!(
            "Not decided by this run: which IOs get two thirds of the best sequential throughput measured? By the \
             intervals it begins between {} and {}; --only granularity with more --repeats tells.",
            size(least),
            size(most)
        );
        return Some(of(ID, Verdict::NotDecided, text, runs));
    }
    let statement = format!(
        "Write in {} or more and read in {} or more: that gets at least two thirds of the best sequential \
         throughput measured.",
        size(write.value),
        size(read.value)
    );
    Some(hint(ID, within, statement, runs))
}

/// Hint 3: blocks should be aligned to flash pages.
fn alignment(profile: &Profile) -> Option<Hint> {
    const ID: &str = "alignment";
    let asked = answer(&profile.verdicts, ID)?;
    match asked.verdict {
        Decision::NotDecided => Some(open(ID, asked)),
        Decision::No => {
            let text = "Alignment does not matter at the sizes measured: no shift costs a quarter more.";
            Some(hint(ID, false, text.into(), asked.runs.clone()))
        }
        Decision::Yes => {
            let found = &profile.alignment;
            let on = found.baseline.map_or("an IO", Baseline::name);
            let factor = found.penalty_factor.or(asked.ratio).unwrap_or(f64::NAN);
            let to = found.unit_bytes.map_or_else(
                || "Align IOs to more than the largest shift measured".to_string(),
                |b| format!("Align IOs to {}", Bytes(b)),
            );
            let runs = found.evidence.get("penalty_factor").map_or(&asked.runs, |e| &e.runs).clone();
            Some(hint(ID, true, format!("{to}; otherwise {on} costs up to x{factor:.2}."), runs))
        }
    }
}

/// Hint 4: random writes should be limited to a focused area.
fn locality(profile: &Profile, facts: &Facts) -> Option<Hint> {
    const ID: &str = "locality";
    let curve = facts.curve(MicroBenchmark::Locality, Baseline::Rw)?;
    let (expensive, helps) = (answer(&profile.verdicts, "random_writes")?, answer(&profile.verdicts, ID)?);
    let runs = profile.locality.evidence.get("area_bytes").map(|e| e.runs.clone()).unwrap_or_default();
    let everywhere = expensive.ratio?;
    match (expensive.verdict, helps.verdict) {
        (Decision::No, _) => {
            let text = format!("Write anywhere: random writes cost x{everywhere:.2} of sequential ones.");
            return Some(hint(ID, false, text, runs));
        }
        (Decision::NotDecided, _) => return Some(open(ID, expensive)),
        (_, Decision::NotDecided) => return Some(open(ID, helps)),
        (_, Decision::No) => {
            let text = format!(
                "Avoid random writes: they cost x{everywhere:.1} of sequential ones, and a small area does not make \
                 them cheap."
            );
            return Some(hint(ID, false, text, runs));
        }
        (Decision::Yes, Decision::Yes) => {}
    }
    let costlier = profile.locality.factor.is_some_and(|f| f > 2.0);
    let twice = within(curve, facts.level(Baseline::Sw)?, |p| size(p.value)).filter(|_| costlier);
    let text = match (profile.locality.area_bytes, profile.locality.factor) {
        (Some(area), Some(factor)) => format!(
            "Keep random writes within {}: they cost x{factor:.1} of sequential ones there, x{everywhere:.0} \
             over the whole device{}.",
            Bytes(area),
            twice.map_or_else(String::new, |a| format!("; within {a} at most x2"))
        ),
        _ => format!(
            "Keep random writes in small areas: over the whole device they cost up to x{:.1} as much ({}), and no \
             area makes them cheap.",
            helps.ratio.unwrap_or(f64::NAN),
            helps.at.as_deref().unwrap_or("the cheapest area")
        ),
    };
    Some(hint(ID, true, text, runs))
}

/// Hint 5: sequential writes should be limited to a few partitions.
fn partitions(profile: &Profile, facts: &Facts) -> Option<Hint> {
    const ID: &str = "partitions";
    let curve = facts.curve(MicroBenchmark::Partitioning, Baseline::Sw)?;
    let asked = answer(&profile.verdicts, ID)?;
    let most = curve.points.last().filter(|p| p.value > 1)?.value;
    let runs = profile.partitions.evidence.get("count").map(|e| e.runs.clone())?;
    let sw = facts.level(Baseline::Sw)?;
    match asked.verdict {
        Decision::NotDecided => return Some(open(ID, asked)),
        Decision::No => {
            let all = curve.points.last()?.level.mean_ns / sw.mean_ns;
            let text = format!(
                "Write as many sequential streams as you like: {most} at once cost x{all:.2} of one."
            );
            return Some(hint(ID, false, text, runs));
        }
        Decision::Yes => {}
    }
    let text = match (profile.partitions.count, profile.partitions.factor) {
        (Some(count), Some(factor)) if i64::try_from(count).is_ok_and(|c| c >= most) => format!(
            "Write few sequential streams at a time: the cost grows with their number, up to x{factor:.1} of one \
             with {count}, without a jump{}.",
            within(curve, sw, |p| p.label.clone())
                .map_or_else(String::new, |n| format!("; it is at most x2 up to {n}"))
        ),
        (Some(count), Some(factor)) if count > 1 => format!(
            "Keep concurrent sequential writes to {count} streams (x{factor:.1} of one); with more, each costs \
             nearly as much as a random write."
        ),
        _ => "Write one sequential stream at a time: already two cost like random writes.".into(),
    };
    Some(hint(ID, true, text, runs))
}

/// The largest value up to which all cost at most twice as much as SW.
fn within<T>(curve: &MeasuredCurve, sw: &Level, show: impl Fn(&CurveFacts) -> T) -> Option<T> {
    curve.points.iter().take_while(|p| p.level.mean_ns <= 2.0 * sw.mean_ns).last().map(show)
}

/// Hint 6: combining a limited number of patterns is acceptable.
fn mix(profile: &Profile) -> Option<Hint> {
    const ID: &str = "mix";
    let asked = answer(&profile.verdicts, "mix.loss")?;
    let runs = || profile.mix.curves.values().flatten().flat_map(|p| p.runs.clone()).collect();
    let text = match asked.verdict {
        Decision::NotDecided => return Some(open(ID, asked)),
        Decision::No => {
            "Mix patterns freely: no mix measured costs a quarter more than its parts.".to_string()
        }
        Decision::Yes => {
            let (names, label) = asked.at.as_deref()?.split_once(" at ")?;
            format!(
                "Do not mix {}: together they cost up to x{:.1} of what they cost apart (at {label}).",
                names.replace('/', " with "),
                asked.ratio?
            )
        }
    };
    let freely = asked.verdict == Decision::No;
    Some(hint(ID, freely, text, if freely { runs() } else { asked.runs.clone() }))
}

/// Hint 7: neither concurrent nor delayed IOs improve the performance.
fn concurrency_and_delay(profile: &Profile, facts: &Facts) -> Option<Hint> {
    const ID: &str = "no_concurrency_or_delay";
    let gain = answer(&profile.verdicts, "parallelism.gain");
    let saves = answer(&profile.verdicts, "pause.saves");
    let yes = |a: &&Answered| a.verdict == Decision::Yes;
    let at =
        |a: &Answered| a.at.clone()?.split_once(" at ").map(|(name, at)| (name.to_string(), at.to_string()));
    if let Some(gain) = gain.filter(yes) {
        let ((name, label), ratio) = (at(gain)?, gain.ratio?);
        let text = format!("Submit {name} in parallel: {label} streams gain x{ratio:.1} in throughput.");
        return Some(hint(ID, false, text, gain.runs.clone()));
    }
    if let Some(saves) = saves.filter(yes) {
        let ((name, label), ratio) = (at(saves)?, saves.ratio?);
        let text =
            format!("Pause {label} before each {name}: the whole takes x{ratio:.1} less time than without.");
        return Some(hint(ID, false, text, saves.runs.clone()));
    }
    let (gain, saves) = gain.zip(saves)?;
    if let Some(left) = [gain, saves].into_iter().find(|a| a.verdict == Decision::NotDecided) {
        return Some(open(ID, left));
    }
    let runs = facts
        .curves_of(MicroBenchmark::Parallelism)
        .chain(facts.curves_of(MicroBenchmark::Pause))
        .flat_map(MeasuredCurve::runs)
        .collect();
    let loss = answer(&profile.verdicts, "parallelism.loss").filter(yes).and_then(|a| a.ratio);
    let more = loss.map_or_else(String::new, |w| format!(", and many streams at once lose up to x{w:.1}"));
    let best = gain.ratio?;
    let text = format!(
        "Neither parallel IOs (x{best:.1} at best) nor pauses save time{more}; submit one at a time."
    );
    Some(hint(ID, true, text, runs))
}
