//! The runs as the page knows them: a table by columns, which compresses to a
//! third of what rows take.
//!
//! Method: texts that recur (patterns, labels) are numbered. Of very many runs
//! less is told, so that the page keeps its size: first the figures over all
//! IOs beyond their extremes are left out and the others rounded to four
//! digits ([`Detail::Lean`]), then all but the number of IOs and the mean
//! ([`Detail::Bare`]).

use super::embed::Embedded;
use super::trace::Trace;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use uflip_measure::run::RtStats;
use uflip_store::contents::{RunRow, StoreContents};

/// How much is told of each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything, exactly.
    Full,
    /// Rounded, without the figures over all IOs.
    Lean,
    /// IOs and mean.
    Bare,
}

/// The figures of each run's IOs; times in ns. Columns that are left out are
/// empty.
#[derive(Default, Serialize)]
struct Figures {
    n: Vec<u64>,
    min: Vec<Option<u64>>,
    max: Vec<Option<u64>>,
    mean: Vec<Option<f64>>,
    sd: Vec<Option<f64>>,
    /// p50, p90, p95, p99, p99.9, p99.99.
    percentiles: [Vec<Option<u64>>; 6],
}

/// Texts by number.
#[derive(Default)]
struct Texts<'a> {
    known: HashMap<Cow<'a, str>, usize>,
    list: Vec<Cow<'a, str>>,
}

impl<'a> Texts<'a> {
    fn number(&mut self, text: impl Into<Cow<'a, str>>) -> usize {
        let (text, next) = (text.into(), self.list.len());
        let number = *self.known.entry(text.clone()).or_insert(next);
        if number == next {
            self.list.push(text);
        }
        number
    }
}

/// The table.
#[derive(Serialize)]
pub(crate) struct Table<'a> {
    texts: Vec<Cow<'a, str>>,
    id: Vec<u32>,
    purpose: Vec<&'static str>,
    baseline: Vec<usize>,
    /// Micro-benchmark, parameter, value, label; null for none.
    point: Vec<Option<(usize, usize, i64, usize)>>,
    repeat: Vec<u32>,
    pattern: Vec<usize>,
    io_ignore: Vec<u64>,
    elapsed: Vec<u64>,
    time_limit_hit: Vec<u8>,
    running: Figures,
    all: Figures,
    trace: Vec<Option<&'a Trace>>,
    missing: Vec<Option<&'a str>>,
}

/// Rounded to a whole number and to four significant digits.
fn to_step(value: f64) -> f64 {
    let step = 10f64.powi((value.abs().max(1.0).log10().floor() as i32 - 3).max(0));
    (value / step).round() * step
}

impl Figures {
    fn add(&mut self, s: &RtStats, detail: Detail, own: bool) {
        let exact = detail == Detail::Full;
        let time = |ns: f64| if exact { ns } else { to_step(ns) };
        let whole = |ns: Option<u64>| ns.map(|ns| if exact { ns } else { to_step(ns as f64) as u64 });
        self.n.push(s.n);
        if own || detail != Detail::Bare {
            self.mean.push(s.mean_ns.map(time));
        }
        if detail == Detail::Bare {
            return;
        }
        self.min.push(whole(s.min_ns));
        self.max.push(whole(s.max_ns));
        self.sd.push(s.sd_ns.map(time));
        if own || exact {
            let all = [s.p50_ns, s.p90_ns, s.p95_ns, s.p99_ns, s.p999_ns, s.p9999_ns];
            self.percentiles.iter_mut().zip(all).for_each(|(column, ns)| column.push(whole(ns)));
        }
    }
}

/// The first `most` runs of a store as a table; `patterns` are their patterns'
/// texts.
pub(crate) fn table<'a>(
    contents: &'a StoreContents,
    patterns: &'a [String],
    embedded: &'a [Embedded],
    detail: Detail,
    most: usize,
) -> Table<'a> {
    let rows: Vec<(&RunRow, &String)> = contents.runs.iter().zip(patterns).take(most).collect();
    let mut texts = Texts::default();
    let (mut running, mut all) = (Figures::default(), Figures::default());
    for (row, _) in &rows {
        running.add(&row.stats.running, detail, true);
        all.add(&row.stats.all, detail, false);
    }
    let baseline = rows.iter().map(|(r, _)| texts.number(r.spec.curve_name().to_string())).collect();
    let pattern = rows.iter().map(|(_, p)| texts.number(p.as_str())).collect();
    let mut point = |r: &RunRow| {
        let section = r.spec.belongs.section()?.to_string();
        let (parameter, value, label) = r.spec.belongs.varying()?;
        let [micro, parameter, label] = [section, parameter, label].map(|text| texts.number(text));
        Some((micro, parameter, value, label))
    };
    let point = rows.iter().map(|(r, _)| point(r)).collect();
    let made = || embedded.iter().take(most);
    Table {
        id: rows.iter().map(|(r, _)| r.spec.id).collect(),
        purpose: rows.iter().map(|(r, _)| r.spec.belongs.purpose()).collect(),
        repeat: rows.iter().map(|(r, _)| r.spec.belongs.repeat()).collect(),
        io_ignore: rows.iter().map(|(r, _)| r.spec.io_ignore).collect(),
        elapsed: rows.iter().map(|(r, _)| r.outcome.end.elapsed.0).collect(),
        time_limit_hit: rows.iter().map(|(r, _)| u8::from(r.outcome.end.time_limit_hit)).collect(),
        trace: made().map(|m| m.as_ref().ok()).collect(),
        missing: made().map(|m| m.as_ref().err().map(String::as_str)).collect(),
        texts: texts.list,
        baseline,
        point,
        pattern,
        running,
        all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lean_figures_keep_four_digits() {
        assert_eq!([81_234.0, 9_999.4, 12.0, 1.234_567e9].map(to_step), [81_230.0, 9_999.0, 12.0, 1.235e9]);
    }
}
