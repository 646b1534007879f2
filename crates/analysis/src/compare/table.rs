//! The figures that are compared, under the names that rules take.
//!
//! Names are those of `profile.json` where it has the figure (`locality.factor`,
//! `start_up_ios.RW`); a baseline's mean is its name (`RW`), its percentiles
//! follow it (`RW.p99`), a point of a curve is `locality.RW@8M`. Times are in
//! nanoseconds whatever the name in `profile.json` says.

use super::{Better, ComparedCurve, ComparedFigure, ComparedPoint, Subject, Unit, Value};
use crate::profile::levels::{Cost, PERCENTILES};
use crate::profile::{Effect, Evidence, EvidenceMap, Per, Profile};
use std::collections::BTreeMap;
use uflip_measure::MicroBenchmark;
use uflip_measure::pattern::Baseline;
use uflip_measure::run::{Belongs, CurveId, RunSection};

impl Value {
    fn of_cost(cost: Option<&Cost>) -> Value {
        cost.map_or_else(Value::default, |c| Value {
            value: Some(c.ns),
            measured: true,
            interval: c.ci95_ns,
            freedom: Some(c.freedom),
            runs: c.runs.clone(),
            change: None,
        })
    }

    /// A percentile, with `Some(None)` where too few IOs lie beyond it to tell.
    fn of_percentile(cost: Option<&Option<Cost>>) -> Value {
        Value::of_cost(cost.and_then(Option::as_ref))
    }

    /// A figure of the profile in its unit times `scale`.
    fn of_profile(value: Option<f64>, evidence: Option<&Evidence>, scale: f64) -> Value {
        let interval = evidence.and_then(|e| e.ci95.or(e.range));
        Value {
            value: value.map(|v| v * scale),
            // What was looked for in vain rests on runs too.
            measured: value.is_some() || evidence.is_some_and(|e| !e.runs.is_empty()),
            interval: interval.map(|[low, high]| [low * scale, high * scale]),
            freedom: evidence.and_then(|e| e.freedom),
            runs: evidence.map(|e| e.runs.clone()).unwrap_or_default(),
            change: None,
        }
    }
}

/// A figure that is one of the profile's fields.
struct Field {
    name: String,
    group: &'static str,
    title: String,
    unit: Unit,
    better: Better,
    /// From the profile's unit to the figure's.
    scale: f64,
    stepped: bool,
}

/// The value and the evidence of a field.
type Get<'a> = &'a dyn Fn(&Profile) -> (Option<f64>, Option<&Evidence>);

fn field(subjects: &[Subject], field: Field, get: Get<'_>) -> ComparedFigure {
    let value = |s: &Subject| {
        let (value, evidence) = get(&s.profile);
        Value::of_profile(value, evidence, field.scale)
    };
    let values = subjects.iter().map(value).collect();
    let Field { name, group, title, unit, better, stepped, .. } = field;
    ComparedFigure { name, group: group.into(), title, unit, better, stepped, values }
}

/// Every figure that any subject was measured for.
pub(super) fn figures(subjects: &[Subject]) -> Vec<ComparedFigure> {
    let mut all = all_figures(subjects);
    all.retain(|f| f.values.iter().any(|v| v.measured));
    all
}

/// Every figure there is, measured or not.
pub(super) fn all_figures(subjects: &[Subject]) -> Vec<ComparedFigure> {
    let mut all = baselines(subjects);
    phases(subjects, &mut all);
    writes(subjects, &mut all);
    granularity(subjects, &mut all);
    effects(subjects, &mut all);
    queue(subjects, &mut all);
    device_work(subjects, &mut all);
    all
}

fn baselines(subjects: &[Subject]) -> Vec<ComparedFigure> {
    let mut all = Vec::new();
    let figure = |name: String, group: &str, title: String, get: &dyn Fn(&Subject) -> Value| ComparedFigure {
        name,
        group: group.into(),
        title,
        unit: Unit::Ns,
        better: Better::Lower,
        stepped: false,
        values: subjects.iter().map(get).collect(),
    };
    for baseline in Baseline::ALL {
        let own = |s: &Subject| s.levels.baselines.iter().position(|b| b.baseline == baseline);
        let get = |s: &Subject| Value::of_cost(own(s).map(|i| &s.levels.baselines[i].mean));
        let name = baseline.name();
        all.push(figure(name.into(), "Response time, mean", name.into(), &get));
    }
    for baseline in Baseline::ALL {
        let own = |s: &Subject| s.levels.baselines.iter().position(|b| b.baseline == baseline);
        for (at, (percentile, _)) in PERCENTILES.iter().enumerate() {
            let get = |s: &Subject| {
                Value::of_percentile(own(s).and_then(|i| s.levels.baselines[i].percentiles.get(at)))
            };
            let name = format!("{baseline}.{percentile}");
            all.push(figure(name, "Response time, percentiles", format!("{baseline} {percentile}"), &get));
        }
    }
    all
}

/// The evidence of one baseline's figure.
fn per<T: Copy>(per: &Per<T>, b: Baseline, as_f64: impl Fn(T) -> f64) -> (Option<f64>, Option<&Evidence>) {
    (per.of(b).map(as_f64), per.evidence.get(&b))
}

fn phases(subjects: &[Subject], all: &mut Vec<ComparedFigure>) {
    for b in Baseline::ALL {
        let told = |name: &str, title: &str| Field {
            name: format!("{name}.{}", b.name()),
            group: "Phases",
            title: format!("{} {title}", b.name()),
            unit: Unit::Count,
            better: Better::Neither,
            scale: 1.0,
            stepped: true,
        };
        let start_up: Get<'_> = &|p| per(&p.start_up_ios, b, |n| n as f64);
        all.push(field(subjects, told("start_up_ios", "start-up, IOs"), start_up));
        let period: Get<'_> = &|p| per(&p.period_ios, b, |n| n);
        all.push(field(subjects, told("period_ios", "period, IOs"), period));
    }
}

fn of<'a>(value: Option<f64>, evidence: &'a EvidenceMap, name: &str) -> (Option<f64>, Option<&'a Evidence>) {
    (value, evidence.get(name))
}

fn writes(subjects: &[Subject], all: &mut Vec<ComparedFigure>) {
    use Better::{Higher, Lower, Neither};
    use Unit::{Bytes, Count, Ns, Times};
    type Row<'a> = (&'static str, &'static str, Unit, Better, f64, bool, Get<'a>);
    let whole = |n: Option<u64>| n.map(|n| n as f64);
    let locality_area: Get<'_> = &|p| of(whole(p.locality.area_bytes), &p.locality.evidence, "area_bytes");
    let partitions: Get<'_> = &|p| of(whole(p.partitions.count), &p.partitions.evidence, "count");
    let alignment: Get<'_> = &|p| of(whole(p.alignment.unit_bytes), &p.alignment.evidence, "unit_bytes");
    let rows: [Row<'_>; 10] = [
        ("pause_rw_ms", "pause that makes RW cost as SW", Ns, Lower, 1e6, true, &|p| {
            of(p.pause_rw_ms, &p.evidence, "pause_rw_ms")
        }),
        ("locality.area_bytes", "area of cheap RW", Bytes, Higher, 1.0, true, locality_area),
        ("locality.factor", "RW there, times SW", Times, Lower, 1.0, false, &|p| {
            of(p.locality.factor, &p.locality.evidence, "factor")
        }),
        ("partitions.count", "cheap partitions", Count, Higher, 1.0, true, partitions),
        ("partitions.factor", "SW over them, times SW", Times, Lower, 1.0, false, &|p| {
            of(p.partitions.factor, &p.partitions.evidence, "factor")
        }),
        ("order.reverse_factor", "reverse, times SW", Times, Lower, 1.0, false, &|p| {
            of(p.order.reverse_factor, &p.order.evidence, "reverse_factor")
        }),
        ("order.in_place_factor", "in place, times SW", Times, Lower, 1.0, false, &|p| {
            of(p.order.in_place_factor, &p.order.evidence, "in_place_factor")
        }),
        ("order.large_incr_factor", "large steps, times RW", Times, Lower, 1.0, false, &|p| {
            of(p.order.large_incr_factor, &p.order.evidence, "large_incr_factor")
        }),
        ("alignment.unit_bytes", "alignment unit", Bytes, Neither, 1.0, true, alignment),
        ("alignment.penalty_factor", "unaligned, times aligned", Times, Lower, 1.0, false, &|p| {
            of(p.alignment.penalty_factor, &p.alignment.evidence, "penalty_factor")
        }),
    ];
    for (name, title, unit, better, scale, stepped, get) in rows {
        let (name, title) = (name.to_string(), title.to_string());
        all.push(field(subjects, Field { name, group: "Writes", title, unit, better, scale, stepped }, get));
    }
}

fn granularity(subjects: &[Subject], all: &mut Vec<ComparedFigure>) {
    for b in Baseline::ALL {
        let told = |name: &str, title: &str, unit, scale, stepped| Field {
            name: format!("granularity.{name}.{}", b.name()),
            group: "Cost of an IO by its size",
            title: format!("{} {title}", b.name()),
            unit,
            better: if stepped { Better::Neither } else { Better::Lower },
            scale,
            stepped,
        };
        // Where no line describes the curve there is no such figure.
        fn line(p: &Profile, b: Baseline, of: &Per<f64>) -> Option<f64> {
            of.of(b).filter(|_| p.granularity.linear.of(b) != Some(false))
        }
        let latency: Get<'_> = &|p| {
            let of = &p.granularity.latency_us;
            (line(p, b, of), of.evidence.get(&b))
        };
        all.push(field(subjects, told("latency_us", "latency", Unit::Ns, 1e3, false), latency));
        let slope: Get<'_> = &|p| {
            let of = &p.granularity.us_per_kib;
            (line(p, b, of), of.evidence.get(&b))
        };
        all.push(field(subjects, told("us_per_kib", "per KiB", Unit::Ns, 1e3, false), slope));
        let saturation: Get<'_> = &|p| per(&p.granularity.saturation_bytes, b, |n| n as f64);
        let title = "90 % of best MB/s from";
        all.push(field(subjects, told("saturation_bytes", title, Unit::Bytes, 1.0, true), saturation));
    }
}

fn effects(subjects: &[Subject], all: &mut Vec<ComparedFigure>) {
    type Pick = fn(&Profile) -> &Effect;
    let both: [(MicroBenchmark, &str, Pick); 2] = [
        (MicroBenchmark::Parallelism, "parallel streams", |p| &p.parallelism),
        (MicroBenchmark::Mix, "mixes", |p| &p.mix),
    ];
    for (name, title, pick) in both {
        let told = |which: &str, words: &str| Field {
            name: format!("{name}.{which}"),
            group: "Throughput, times that of the parts alone",
            title: format!("{title}, {words}"),
            unit: Unit::Times,
            better: Better::Higher,
            scale: 1.0,
            stepped: false,
        };
        let best: Get<'_> = &|p| of(pick(p).best, &pick(p).evidence, "best");
        all.push(field(subjects, told("best", "best"), best));
        let worst: Get<'_> = &|p| of(pick(p).worst, &pick(p).evidence, "worst");
        all.push(field(subjects, told("worst", "worst"), worst));
    }
}

/// What several requests under way gain.
fn queue(subjects: &[Subject], all: &mut Vec<ComparedFigure>) {
    for b in Baseline::ALL {
        let told = |name: &str, title: &str, unit, better, stepped| Field {
            name: format!("queue_depth.{name}.{}", b.name()),
            group: "Queue depth",
            title: format!("{} {title}", b.name()),
            unit,
            better,
            scale: 1.0,
            stepped,
        };
        let gain: Get<'_> = &|p| per(&p.queue_depth.gain, b, |v| v);
        all.push(field(
            subjects,
            told("gain", "best, times depth 1", Unit::Times, Better::Higher, false),
            gain,
        ));
        let enough: Get<'_> = &|p| per(&p.queue_depth.enough, b, |n| n as f64);
        let title = "hardly grows from depth";
        all.push(field(subjects, told("enough", title, Unit::Count, Better::Neither, true), enough));
    }
}

/// What the device counted of its own work.
fn device_work(subjects: &[Subject], all: &mut Vec<ComparedFigure>) {
    let told = |name: String, title: String, unit, better| Field {
        name: format!("device_work.{name}"),
        group: "The device's own work",
        title,
        unit,
        better,
        scale: 1.0,
        stepped: false,
    };
    for b in Baseline::ALL {
        let get: Get<'_> = &|p| per(&p.device_work.write_amplification, b, |v| v);
        let (name, title) = (format!("write_amplification.{b}"), format!("{b} write amplification"));
        all.push(field(subjects, told(name, title, Unit::Times, Better::Lower), get));
        let get: Get<'_> = &|p| per(&p.device_work.energy_uj_per_io, b, |v| v);
        let (name, title) = (format!("energy_uj_per_io.{b}"), format!("{b} energy of an IO, uJ"));
        all.push(field(subjects, told(name, title, Unit::Count, Better::Lower), get));
    }
    let amplification: Get<'_> = &|p| (p.device_work.write_amplification_of_all, None);
    let (name, title) = ("write_amplification_of_all".into(), "all runs, write amplification".into());
    all.push(field(subjects, told(name, title, Unit::Times, Better::Lower), amplification));
    let energy: Get<'_> = &|p| (p.device_work.energy_j, None);
    let (name, title) = ("energy_j".into(), "all runs, J".into());
    all.push(field(subjects, told(name, title, Unit::Count, Better::Neither), energy));
}

/// Every curve that any subject has, in the papers' order.
pub(super) fn curves(subjects: &[Subject]) -> Vec<ComparedCurve> {
    let of = |subject: &'_ Subject| -> Vec<(CurveId, String)> {
        let own = subject.levels.curves.iter().map(|curve| &curve.id);
        own.map(|id| (id.clone(), parameter(subject, &id.section))).collect()
    };
    // The first that has a curve says what varies in it.
    let found: BTreeMap<CurveId, String> = subjects.iter().rev().flat_map(of).collect();
    let curve = |(id, parameter)| ComparedCurve { points: points(&id, subjects), id, parameter };
    found.into_iter().map(curve).collect()
}

fn parameter(subject: &Subject, section: &RunSection) -> String {
    let of = |belongs: &Belongs| belongs.section().as_ref() == Some(section);
    let mut runs = subject.contents.runs.iter().map(|row| &row.spec.belongs).filter(|b| of(b));
    runs.find_map(Belongs::varying).map(|(parameter, ..)| parameter).unwrap_or_default()
}

/// What each subject's curve of this identity says, by rising value.
fn points(id: &CurveId, subjects: &[Subject]) -> Vec<ComparedPoint> {
    let own = |s: &'_ Subject| {
        s.levels.curves.iter().find(|own| own.id == *id).map(|c| c.points.clone()).unwrap_or_default()
    };
    let points: Vec<_> = subjects.iter().map(own).collect();
    let mut values: Vec<(i64, String)> =
        points.iter().flatten().map(|p| (p.value, p.label.clone())).collect();
    values.sort();
    values.dedup_by_key(|(value, _)| *value);
    values
        .into_iter()
        .map(|(value, label)| {
            let of = |own: &Vec<crate::profile::levels::PointUncertainty>| {
                Value::of_cost(own.iter().find(|p| p.value == value).map(|p| &p.mean))
            };
            ComparedPoint { value, label, values: points.iter().map(of).collect() }
        })
        .collect()
}
