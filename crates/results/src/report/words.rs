//! What a micro-benchmark's curves show, in a sentence.
//!
//! Method: for each baseline the ratio of its largest to its smallest mean over
//! the values. The one with the largest ratio is told with its extremes, the
//! others with their ratios; below [`HARDLY`] a value does not matter.

use crate::view::{CurvePoint, Section};

/// A ratio of means below which a parameter hardly matters.
const HARDLY: f64 = 1.25;

/// A curve's extremes.
struct Range<'a> {
    baseline: &'a str,
    low: (&'a CurvePoint, f64),
    high: (&'a CurvePoint, f64),
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
pub(crate) fn sentence(section: &Section) -> Option<String> {
    let mut ranges: Vec<Range<'_>> = section.series.iter().filter_map(range).collect();
    ranges.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    let (first, others) = ranges.split_first()?;
    let name = &section.parameter;
    if first.ratio() < HARDLY {
        let most = factor(first.ratio());
        return Some(format!(
            "{name} hardly matters: the means of each curve stay within a factor of {most}."
        ));
    }
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
    let some: Vec<String> = others
        .iter()
        .filter(|r| r.ratio() >= HARDLY)
        .map(|r| format!("{} {}", r.baseline, factor(r.ratio())))
        .collect();
    let hardly: Vec<&str> = others.iter().filter(|r| r.ratio() < HARDLY).map(|r| r.baseline).collect();
    if !some.is_empty() {
        text += &format!("; {} times", some.join(", "));
    }
    if !hardly.is_empty() {
        text += &format!("; {} hardly", hardly.join(", "));
    }
    if first.repeats_overlap() {
        text += "; its repeats differ by as much, so this may be noise";
    }
    Some(text + ".")
}

fn range(series: &crate::view::Series) -> Option<Range<'_>> {
    let means = || series.points.iter().filter_map(|p| p.mean_ns.filter(|ns| *ns > 0.0).map(|ns| (p, ns)));
    let low = means().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let high = means().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (means().count() > 1).then_some(Range { baseline: &series.baseline, low, high })
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
    use crate::view::Series;

    fn section(curves: &[(&str, &[f64])]) -> Section {
        let point = |(at, ns): (usize, &f64)| CurvePoint {
            value: at as i64,
            label: format!("{}K", 1 << at),
            mean_ns: (*ns > 0.0).then_some(*ns),
            min_ns: None,
            max_ns: None,
            runs: vec![],
        };
        let series = curves.iter().map(|(baseline, means)| Series {
            baseline: (*baseline).into(),
            points: means.iter().enumerate().map(point).collect(),
        });
        Section {
            micro_benchmark: "granularity".into(),
            title: String::new(),
            parameter: "IOSize".into(),
            series: series.collect(),
            skipped: vec![],
        }
    }

    #[test]
    fn extremes_are_told_and_what_does_not_matter() {
        let text =
            sentence(&section(&[("SR", &[1e5, 1.1e5]), ("RW", &[5e6, 0.0, 4.5e4]), ("RR", &[1e3, 2e3])]));
        assert_eq!(
            text.as_deref(),
            Some(
                "RW depends most on IOSize: 45.0 µs at 4K, 5.00 ms at 1K (111 times); RR 2.0 times; SR hardly."
            )
        );
        let flat = sentence(&section(&[("SR", &[1e5, 1.1e5])]));
        assert_eq!(
            flat.as_deref(),
            Some("IOSize hardly matters: the means of each curve stay within a factor of 1.1.")
        );
        assert_eq!(sentence(&section(&[("SR", &[1e5])])), None);
        let mut noisy = section(&[("SR", &[1e5, 1e6])]);
        for (point, (min, max)) in noisy.series[0].points.iter_mut().zip([(5e4, 2e5), (1e5, 2e6)]) {
            (point.min_ns, point.max_ns, point.runs) = (Some(min), Some(max), vec![1, 2]);
        }
        assert!(
            sentence(&noisy)
                .unwrap()
                .ends_with("(10 times); its repeats differ by as much, so this may be noise.")
        );
        noisy.series[0].points[1].min_ns = Some(2.1e5);
        assert!(sentence(&noisy).unwrap().ends_with("(10 times)."));
    }
}
