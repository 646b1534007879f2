//! What a micro-benchmark's curves show, in sentences.
//!
//! Method: first what the profile reads off them, figure by figure; then the
//! extremes. For these, for each baseline the ratio of its largest to its smallest mean over
//! the values. The one with the largest ratio is told with its extremes, the
//! others with their ratios. Whether a curve depends on its parameter at all is the profile's
//! answer to the question `curve.…`: where that is open, so is the sentence. Without a
//! profile means alone are told.

use crate::view::{BaselineSeries, CurvePoint, Section};
use uflip_analysis::profile::verdicts::{answer, of_curve, verdict};
use uflip_analysis::profile::{Effect, Evidence, Profile};
use uflip_device::Bytes;
use uflip_measure::MicroBenchmark;
use uflip_measure::detect::verdict::Decision;
use uflip_measure::pattern::Baseline;
use uflip_measure::run::CurveName;

/// A ratio of means below which a parameter hardly matters, where nothing is known of
/// intervals.
const HARDLY: f64 = 1.25;

/// A curve's extremes.
struct Range<'a> {
    baseline: &'a CurveName,
    low: (&'a CurvePoint, f64),
    high: (&'a CurvePoint, f64),
    /// Whether it depends on the parameter.
    depends: Decision,
}

impl Range<'_> {
    fn ratio(&self) -> f64 {
        self.high.1 / self.low.1
    }

    /// True where a repeat at the slowest value was faster than one at the
    /// fastest.
    fn repeats_overlap(&self) -> bool {
        let repeated = self.low.0.runs.len() > 1 && self.high.0.runs.len() > 1;
        repeated && self.high.0.min_ns.zip(self.low.0.max_ns).is_some_and(|(high, low)| high <= low)
    }
}

/// What is seen; `None` where no curve has two values.
pub(crate) fn sentence(section: &Section, profile: Option<&Profile>) -> Option<String> {
    let told = |series| range(section, series, profile);
    let mut ranges: Vec<Range<'_>> = section.series.iter().filter_map(told).collect();
    ranges.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    let name = &section.parameter;
    let of = |wanted: Decision| ranges.iter().filter(move |r| r.depends == wanted);
    let open: Vec<String> = of(Decision::NotDecided).map(|r| r.baseline.to_string()).collect();
    let hardly: Vec<String> = of(Decision::No).map(|r| r.baseline.to_string()).collect();
    let Some(first) = of(Decision::Yes).next() else {
        let most = factor(ranges.first()?.ratio());
        return Some(match (open.is_empty(), hardly.is_empty()) {
            (true, _) => {
                format!("{name} hardly matters: the means of each curve stay within a factor of {most}.")
            }
            (false, true) => format!(
                "Not decided: whether anything depends on {name}; means differ by a factor of {most}, and so may chance."
            ),
            (false, false) => {
                format!(
                    "{name} hardly matters for {}; not decided for {}.",
                    hardly.join(", "),
                    open.join(", ")
                )
            }
        });
    };
    let (low, high) = (first.low, first.high);
    let mut text = format!(
        "{} depends most on {name}: {} at {}, {} at {} ({} times)",
        first.baseline,
        time(low.1),
        low.0.label,
        time(high.1),
        high.0.label,
        factor(first.ratio())
    );
    let others = of(Decision::Yes).skip(1).map(|r| format!("{} {}", r.baseline, factor(r.ratio())));
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        text += &format!("; {} times", others.join(", "));
    }
    if !hardly.is_empty() {
        text += &format!("; {} hardly", hardly.join(", "));
    }
    if !open.is_empty() {
        text += &format!("; not decided for {}", open.join(", "));
    }
    if first.repeats_overlap() {
        text += "; its repeats differ by as much, so this may be noise";
    }
    Some(text + ".")
}

fn range<'a>(section: &Section, series: &'a BaselineSeries, profile: Option<&Profile>) -> Option<Range<'a>> {
    let means = || series.points.iter().filter_map(|p| p.mean_ns.filter(|ns| *ns > 0.0).map(|ns| (p, ns)));
    let low = means().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let high = means().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let by_means = || if high.1 / low.1 < HARDLY { Decision::No } else { Decision::Yes };
    // Profiles of before the answers have none.
    let asked = profile.filter(|p| !p.verdicts.is_empty()).map(|p| {
        let id = of_curve(&section.micro_benchmark, &series.baseline);
        verdict(&p.verdicts, &id).unwrap_or_default()
    });
    let depends = asked.unwrap_or_else(by_means);
    (means().count() > 1).then_some(Range { baseline: &series.baseline, low, high, depends })
}

/// What the profile says of this micro-benchmark; nothing where it was not
/// measured.
pub(super) fn of_profile(section: &Section, p: &Profile) -> Vec<String> {
    let one = match section.micro() {
        Some(MicroBenchmark::Granularity) => return granularity(p),
        Some(MicroBenchmark::Alignment) => alignment(p),
        Some(MicroBenchmark::Locality) => locality(p),
        Some(MicroBenchmark::Partitioning) => partitioning(p),
        Some(MicroBenchmark::Order) => order(p),
        Some(MicroBenchmark::Pause) => pause(p),
        Some(MicroBenchmark::QueueDepth) => return queue_depth(p),
        Some(MicroBenchmark::Parallelism) => effect("Parallel streams", &p.parallelism),
        Some(MicroBenchmark::Mix) => effect("Mixing", &p.mix),
        _ => None,
    };
    one.into_iter().collect()
}

/// The interval of a figure, in brackets; nothing where there is none.
fn interval(evidence: Option<&Evidence>, show: impl Fn(f64) -> String) -> String {
    let ends = evidence.and_then(|e| e.ci95);
    ends.map_or_else(String::new, |[low, high]| format!(" (95 %: {} to {})", show(low), show(high)))
}

/// True where runs stand behind a figure, found or not.
fn measured(evidence: Option<&Evidence>) -> bool {
    evidence.is_some_and(|e| !e.runs.is_empty())
}

fn granularity(p: &Profile) -> Vec<String> {
    let g = &p.granularity;
    let line = |b: Baseline| {
        let (latency, slope) = (g.latency_us.of(b)?, g.us_per_kib.of(b)?);
        Some(format!("{} {} and {} a KiB", b.name(), time(latency * 1e3), time(slope * 1e3)))
    };
    let straight = |wanted| Baseline::ALL.into_iter().filter(move |b| g.linear.of(*b) == Some(wanted));
    let lines: Vec<String> = straight(true).filter_map(line).collect();
    let bent: Vec<&str> = straight(false).map(Baseline::name).collect();
    let mut all = Vec::new();
    let no_line = match bent.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} is no line"),
        some => format!("; {} are no lines", some.join(", ")),
    };
    if !lines.is_empty() {
        all.push(format!("As a line over the size: {}{no_line}.", lines.join(", ")));
    }
    let size = |b: Baseline| Some((b.name(), g.saturation_bytes.of(b)?));
    let sizes: Vec<String> = Baseline::ALL
        .into_iter()
        .filter_map(size)
        .map(|(name, bytes)| format!("{name} {}", Bytes(bytes)))
        .collect();
    if !sizes.is_empty() {
        all.push(format!("90 % of the best throughput from: {} (ringed).", sizes.join(", ")));
    }
    all
}

/// The sentence of an open question; `None` where it is decided, or was not asked.
fn open(p: &Profile, id: &str) -> Option<String> {
    let asked = answer(&p.verdicts, id)?;
    (asked.verdict == Decision::NotDecided).then(|| asked.not_decided())
}

fn alignment(p: &Profile) -> Option<String> {
    let a = &p.alignment;
    if let Some(text) = open(p, "alignment") {
        return Some(text);
    }
    if verdict(&p.verdicts, "alignment") == Some(Decision::No) {
        let figures = answer(&p.verdicts, "alignment").map(|a| a.figures()).unwrap_or_default();
        return Some(format!("No shift costs a quarter more than an aligned IO: the most is {figures}."));
    }
    let Some(penalty) = a.penalty_factor else {
        let some = a.evidence.values().any(|e| !e.runs.is_empty());
        return some.then(|| {
            "Not decided: no measured shift costs more than an aligned IO beyond its interval.".into()
        });
    };
    let whose = a.baseline.map_or("IOs", Baseline::name);
    let ci95 = interval(a.evidence.get("penalty_factor"), times);
    let off = a.unit_bytes.map_or("Shifted".into(), |b| format!("Off a grid of {}", Bytes(b)));
    Some(format!("{off}, {whose} costs up to {} as much{ci95}.", times_of(penalty)))
}

/// Random writes relative to sequential ones over the whole device, in brackets.
fn elsewhere(p: &Profile) -> String {
    let ratio = p.baseline_ms.rw.zip(p.baseline_ms.sw).map(|(rw, sw)| rw / sw);
    ratio.map_or_else(String::new, |r| format!("; random writes anywhere cost {} as much", times_of(r)))
}

fn locality(p: &Profile) -> Option<String> {
    let l = &p.locality;
    if let Some(text) = open(p, "random_writes").or_else(|| open(p, "locality")) {
        return measured(l.evidence.get("area_bytes")).then_some(text);
    }
    let Some((area, factor)) = l.area_bytes.zip(l.factor) else {
        let why = "No area measured makes random writes cost a quarter or less of what they cost anywhere.";
        return measured(l.evidence.get("area_bytes")).then(|| why.into());
    };
    let (ci95, else_) = (interval(l.evidence.get("factor"), times), elsewhere(p));
    Some(format!(
        "Within {}, random writes cost {} sequential ones{ci95}{else_}.",
        Bytes(area),
        as_much(factor)
    ))
}

fn partitioning(p: &Profile) -> Option<String> {
    let l = &p.partitions;
    if let Some(text) = open(p, "partitions") {
        return Some(text);
    }
    let Some((count, factor)) = l.count.zip(l.factor) else {
        let why = "Even two concurrent sequential writers cost much more than one.";
        return measured(l.evidence.get("count")).then(|| why.into());
    };
    let (ci95, else_) = (interval(l.evidence.get("factor"), times), elsewhere(p));
    Some(format!("Up to {count} partitions written at once cost {} one{ci95}{else_}.", as_much(factor)))
}

fn order(p: &Profile) -> Option<String> {
    let o = &p.order;
    let part = |what: &str, name: &str, factor: Option<f64>| {
        let ci95 = interval(o.evidence.get(name), times);
        factor.map(|f| format!("{what} {}{ci95}", known_times(f, o.evidence.get(name))))
    };
    let to_sw = [
        part("in reverse", "reverse_factor", o.reverse_factor),
        part("in place", "in_place_factor", o.in_place_factor),
    ];
    let to_sw: Vec<String> = to_sw.into_iter().flatten().collect();
    let large = part("in steps of 1 to 8 MiB", "large_incr_factor", o.large_incr_factor);
    let large = large.map(|l| format!("{l} of random ones"));
    let to_sw = (!to_sw.is_empty()).then(|| format!("{} of sequential writes", to_sw.join(", ")));
    let all: Vec<String> = to_sw.into_iter().chain(large).collect();
    (!all.is_empty()).then(|| format!("Writes cost {}.", all.join("; ")))
}

fn pause(p: &Profile) -> Option<String> {
    if let Some(text) = open(p, "random_writes").or_else(|| open(p, "pause.rw_as_sw")) {
        return measured(p.evidence.get("pause_rw_ms")).then_some(text);
    }
    let Some(ms) = p.pause_rw_ms else {
        let why = "No pause measured makes random writes cost as sequential ones, or they do without.";
        return measured(p.evidence.get("pause_rw_ms")).then(|| why.into());
    };
    Some(format!("A pause of {} before each makes random writes cost as sequential ones.", time(ms * 1e6)))
}

/// A sentence for each baseline: throughput by depth, and what it comes to.
fn queue_depth(p: &Profile) -> Vec<String> {
    let q = &p.queue_depth;
    let one = |b: Baseline| {
        let points = q.curves.get(&b)?;
        let each: Vec<String> = points.iter().map(|p| format!("{:.0} at {}", p.ios_per_s, p.depth)).collect();
        let gain = q.gain.of(b).map_or_else(String::new, |gain| {
            let ci95 = interval(q.gain.evidence.get(&b), times);
            format!("; {} the throughput of one{ci95} at most", times(gain))
        });
        let enough = match q.enough.of(b) {
            Some(depth) => format!("; from {depth} on it hardly grows"),
            None if points.len() > 1 => "; it grows up to the deepest measured".into(),
            None => String::new(),
        };
        Some(format!("{} in IOs/s: {}{gain}{enough}.", b.name(), each.join(", ")))
    };
    Baseline::ALL.into_iter().filter_map(one).collect()
}

fn effect(what: &str, e: &Effect) -> Option<String> {
    if e.curves.is_empty() {
        return None;
    }
    let Some(gain) = e.gain else {
        return Some(format!("Not decided: no gain or loss of {what} goes beyond its interval."));
    };
    let Some((baseline, value)) = e.baseline.zip(e.value) else {
        return Some(format!("{what} has no effect: all gains and losses lie within x0.8 to x1.25."));
    };
    let label = e.curves.get(&baseline).and_then(|c| c.iter().find(|p| p.value == value));
    let label = label.map_or_else(|| value.to_string(), |p| p.label.clone());
    let ci95 = interval(e.evidence.get("gain"), times);
    let goes = format!("{what}: throughput goes to {}{ci95} at most, {baseline} at {label}", times(gain));
    let other = if gain > 1.0 { e.worst } else { e.best };
    let other = other.map_or_else(String::new, |o| format!("; the other way to {}", times(o)));
    Some(format!("{goes}{other}."))
}

/// `× 1.5`, or `=` within a tenth of 1, as Table 3 prints it; `1/42` below a
/// tenth.
pub(super) fn times(factor_: f64) -> String {
    match factor_ {
        f if (f - 1.0).abs() <= 0.1 => "=".into(),
        f if f < 0.1 => format!("1/{}", factor(1.0 / f)),
        f => format!("× {}", factor(f)),
    }
}

/// [`times`], with `?` for an `=` that the interval does not bear out.
pub(super) fn known_times(factor_: f64, evidence: Option<&Evidence>) -> String {
    let sure = evidence.and_then(|e| e.ci95).is_some_and(|[low, high]| low >= 1.0 / HARDLY && high <= HARDLY);
    match times(factor_) {
        text if text == "=" && !sure => "= ?".into(),
        text => text,
    }
}

fn times_of(factor_: f64) -> String {
    format!("{} times", factor(factor_))
}

fn as_much(factor_: f64) -> String {
    if (factor_ - 1.0).abs() <= 0.1 {
        "as much as".into()
    } else {
        format!("{} times as much as", factor(factor_))
    }
}

/// Two or three digits.
fn factor(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}

/// A time in the unit that suits it, to three digits.
pub(crate) fn time(ns: f64) -> String {
    let (unit, scale) = match ns {
        v if v >= 999.5e6 => ("s", 1e9),
        v if v >= 999.5e3 => ("ms", 1e6),
        v if v >= 999.5 => ("µs", 1e3),
        _ => ("ns", 1.0),
    };
    let value = ns / scale;
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_measure::run::RunSection;

    fn section(curves: &[(&str, &[f64])]) -> Section {
        let point = |(at, ns): (usize, &f64)| CurvePoint {
            value: at as i64,
            label: format!("{}K", 1 << at),
            mean_ns: (*ns > 0.0).then_some(*ns),
            min_ns: None,
            max_ns: None,
            ci95_ns: None,
            write_amplification: None,
            energy_uj_per_io: None,
            runs: vec![],
        };
        let series = curves.iter().map(|(baseline, means)| BaselineSeries {
            baseline: baseline.to_string().into(),
            points: means.iter().enumerate().map(point).collect(),
        });
        Section {
            micro_benchmark: RunSection::Micro(MicroBenchmark::Granularity),
            title: String::new(),
            parameter: "IOSize".into(),
            series: series.collect(),
            sentences: vec![],
            marks: vec![],
            skipped: vec![],
        }
    }

    #[test]
    fn extremes_are_told_and_what_does_not_matter() {
        let text = sentence(
            &section(&[("SR", &[1e5, 1.1e5]), ("RW", &[5e6, 0.0, 4.5e4]), ("RR", &[1e3, 2e3])]),
            None,
        );
        assert_eq!(
            text.as_deref(),
            Some(
                "RW depends most on IOSize: 45.0 µs at 4K, 5.00 ms at 1K (111 times); RR 2.0 times; SR hardly."
            )
        );
        let flat = sentence(&section(&[("SR", &[1e5, 1.1e5])]), None);
        assert_eq!(
            flat.as_deref(),
            Some("IOSize hardly matters: the means of each curve stay within a factor of 1.1.")
        );
        assert_eq!(sentence(&section(&[("SR", &[1e5])]), None), None);
        let mut noisy = section(&[("SR", &[1e5, 1e6])]);
        for (point, (min, max)) in noisy.series[0].points.iter_mut().zip([(5e4, 2e5), (1e5, 2e6)]) {
            (point.min_ns, point.max_ns, point.runs) = (Some(min), Some(max), vec![1, 2]);
        }
        assert!(
            sentence(&noisy, None)
                .unwrap()
                .ends_with("(10 times); its repeats differ by as much, so this may be noise.")
        );
        noisy.series[0].points[1].min_ns = Some(2.1e5);
        assert!(sentence(&noisy, None).unwrap().ends_with("(10 times)."));
    }
}
