//! Values become places: domains, ticks and their texts.
//!
//! Method: logarithmic axes begin and end at 1, 2 or 5 times a power of ten around the values; linear ones begin at
//! 0. Values below the lower end, and 0 on a logarithmic axis, stand at that end. The values of a varying parameter
//! stand by their logarithm; a 0 among them stands one mean step before the others; steps forward and backward,
//! ratios, and fewer than three values stand side by side.
//!
//! The page zooms into traces, so that its script needs ticks too: `report/ticks.js` has the same rules, and a test
//! in a browser holds both to the same answers.

use super::{Axis, Scale};
use uflip_device::Bytes;
use uflip_measure::run::RunSection;

/// Ticks of an axis up, at most.
pub(crate) const TICKS: usize = 9;

/// Part of the axis, from 0 to 1, at which a value stands.
pub(crate) fn part(axis: &Axis, value: f64) -> f64 {
    let [low, high] = axis.ends;
    let part = match axis.scale {
        Scale::Linear => (value - low) / (high - low),
        Scale::Log => (value / low).ln() / (high / low).ln(),
    };
    if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
}

/// Ticks of 1, 2 and 5 times a power of ten that enclose `low` to `high` (above 0).
pub(crate) fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decade = low.log10().floor() as i32;
    let all = (decade..decade + 25).flat_map(|d| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(d)));
    let mut ticks: Vec<f64> = Vec::new();
    for tick in all {
        if tick <= low * 1.000_001 {
            ticks.clear();
        }
        ticks.push(tick);
        if tick >= high * 0.999_999 && ticks.len() > 1 {
            break;
        }
    }
    ticks
}

/// Those of the logarithmic `ticks` that there is room for: powers of ten where they are many, and of these every
/// n-th.
pub(crate) fn thinned(ticks: &[f64], most: usize) -> Vec<f64> {
    if ticks.len() <= most {
        return ticks.to_vec();
    }
    let decade = |t: &f64| (t.log10() - t.log10().round()).abs() < 1e-6;
    let decades: Vec<f64> = ticks.iter().copied().filter(decade).collect();
    let every = decades.len().div_ceil(most).max(1);
    decades.into_iter().step_by(every).collect()
}

/// 1, 2, 5 or 10 times a power of ten: the step between about `most` round values from `low` to `high`.
fn step(low: f64, high: f64, most: f64) -> f64 {
    let raw = ((high - low) / most).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= raw * 0.999_999).unwrap_or(raw)
}

/// Round values from `low` to beyond `high`, about `most` of them.
pub(crate) fn linear_ticks(low: f64, high: f64, most: f64) -> Vec<f64> {
    let step = step(low, high, most);
    let first = (low / step).floor() as i64;
    let last = (high / step - 1e-9).ceil() as i64;
    (first..=last.max(first + 1)).map(|n| n as f64 * step).collect()
}

/// Round values within `low` to `high`, about `most` of them; the one value where both are the same.
pub(crate) fn ticks_within(low: f64, high: f64, most: f64) -> Vec<f64> {
    if low >= high {
        return vec![low];
    }
    let step = step(low, high, most);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|n| n as f64 * step).collect()
}

/// A time as short as an axis needs it.
pub(crate) fn tick(ns: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];
    let (unit, scale) = units.into_iter().find(|(_, s)| ns >= *s * 0.9995).unwrap_or(("ns", 1.0));
    format!("{} {unit}", (ns / scale * 1e3).round() / 1e3)
}

/// A number as short as an axis needs it.
fn plain(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// A logarithmic axis that holds `values` (those above 0), or `otherwise` where there are none.
fn log_axis(
    label: &str,
    values: impl Iterator<Item = f64>,
    otherwise: [f64; 2],
    text: fn(f64) -> String,
) -> Axis {
    let (low, high) = values.filter(|v| *v > 0.0).fold((f64::MAX, 0f64), |(a, b), v| (a.min(v), b.max(v)));
    let [low, high] = if high > 0.0 { [low, high] } else { otherwise };
    let all = log_ticks(low, high);
    let ticks = thinned(&all, TICKS).into_iter().map(|v| (v, text(v))).collect();
    Axis { label: label.into(), scale: Scale::Log, ends: [all[0], all[all.len() - 1]], ticks }
}

/// A logarithmic axis of times in ns.
pub(crate) fn time_axis(label: &str, values: impl Iterator<Item = f64>) -> Axis {
    log_axis(label, values, [1e3, 1e6], tick)
}

/// A logarithmic axis of numbers.
pub(crate) fn number_axis(label: &str, values: impl Iterator<Item = f64>) -> Axis {
    log_axis(label, values, [1.0, 10.0], plain)
}

/// A linear axis from 0 that holds `values`, labelled in units of `scale`.
pub(crate) fn from_zero(label: &str, values: impl Iterator<Item = f64>, scale: f64) -> Axis {
    let high = values.fold(0f64, f64::max) / scale;
    let ticks = linear_ticks(0.0, if high > 0.0 { high } else { 1.0 }, 6.0);
    let last = ticks[ticks.len() - 1];
    Axis {
        label: label.into(),
        scale: Scale::Linear,
        ends: [0.0, last * scale],
        ticks: ticks.into_iter().map(|v| (v * scale, plain(v))).collect(),
    }
}

/// Numbers of IOs across.
pub(crate) fn io_axis(count: usize) -> Axis {
    let count = count.max(1) as f64;
    let ticks = ticks_within(0.0, count, 6.0).into_iter().map(|t| (t, t.to_string())).collect();
    Axis { label: "IO number".into(), scale: Scale::Linear, ends: [-0.5, count - 0.5], ticks }
}

/// Ends of a logarithmic axis around `low` to `high`, with room for half a mark.
fn with_room(low: f64, high: f64) -> [f64; 2] {
    let room = if high > low { (high / low).powf(0.03) } else { 2f64.sqrt() };
    [low / room, high * room]
}

/// Sizes in bytes across, a tick for each power of four, or of two where they are few.
pub(crate) fn size_axis(label: &str, sizes: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = sizes.filter(|v| *v > 0.0).fold((f64::MAX, 0f64), |(a, b), v| (a.min(v), b.max(v)));
    let (low, high) = if high > 0.0 { (low, if high > low { high } else { low * 2.0 }) } else { (1.0, 2.0) };
    let of = |base: f64| {
        let all = (0..63).map(move |e| base.powi(e));
        all.filter(|t| *t >= low * 0.999 && *t <= high * 1.001).collect::<Vec<f64>>()
    };
    let ticks = Some(of(4.0)).filter(|ticks| ticks.len() > 1).unwrap_or_else(|| of(2.0));
    let text = |t: f64| Bytes(t as u64).to_string().replace(' ', "");
    Axis {
        label: label.into(),
        scale: Scale::Log,
        ends: with_room(low, high),
        ticks: ticks.into_iter().map(|t| (t, text(t))).collect(),
    }
}

/// The axis across for the values of a varying parameter, and where each of them stands on it.
pub(crate) struct Across {
    /// The axis.
    pub axis: Axis,
    /// Values, ascending, with their places on the axis.
    places: Vec<(i64, f64)>,
}

/// Whether values stand side by side without a scale: steps forward and backward, ratios, and where there are too few.
fn side_by_side(section: &RunSection, values: &[(i64, String)]) -> bool {
    let positive = values.iter().filter(|(v, _)| *v > 0).count();
    section.micro().is_some_and(|micro| micro.row().categorical)
        || values.len() < 3
        || positive < 2
        || values.iter().any(|(v, _)| *v < 0)
}

impl Across {
    /// For `values` with their labels, ascending.
    pub fn new(section: &RunSection, parameter: &str, values: &[(i64, String)]) -> Across {
        let (scale, places) = if side_by_side(section, values) {
            (Scale::Linear, (0..).zip(values).map(|(i, (v, _))| (*v, f64::from(i))).collect())
        } else {
            (Scale::Log, by_logarithm(values))
        };
        let ends = match (scale, &places[..]) {
            (Scale::Log, [(_, low), .., (_, high)]) => with_room(*low, *high),
            _ => [-0.5, values.len().max(1) as f64 - 0.5],
        };
        let labels = values.iter().map(|(_, label)| label.replace(' ', ""));
        let ticks = places.iter().map(|(_, place)| *place).zip(labels).collect();
        Across { axis: Axis { label: parameter.into(), scale, ends, ticks }, places }
    }

    /// Where a value stands: a value measured at its place, any other between its neighbours.
    pub fn at(&self, value: f64) -> f64 {
        let above = self.places.iter().position(|(v, _)| *v as f64 >= value);
        let Some(above) = above else { return self.places.last().map_or(0.0, |(_, place)| *place) };
        let (high, to) = self.places[above];
        if above == 0 || high as f64 == value {
            return to;
        }
        let (low, from) = self.places[above - 1];
        let (low, high) = (low as f64, high as f64);
        let part =
            if low > 0.0 { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) };
        match self.axis.scale {
            Scale::Linear => from + (to - from) * part,
            Scale::Log => from * (to / from).powf(part),
        }
    }
}

/// Values of which the least may be 0, by their logarithm.
fn by_logarithm(values: &[(i64, String)]) -> Vec<(i64, f64)> {
    let positive: Vec<f64> = values.iter().filter(|(v, _)| *v > 0).map(|(v, _)| *v as f64).collect();
    let (low, high) = (positive[0], positive[positive.len() - 1]);
    let mean_step = (high / low).powf(1.0 / (positive.len() - 1) as f64);
    values.iter().map(|(v, _)| (*v, if *v > 0 { *v as f64 } else { low / mean_step })).collect()
}
