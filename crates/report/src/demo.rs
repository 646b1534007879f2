//! The demonstration of `uflip demo` in words, at 80 columns: several results for one
//! and the same thing, with parameters too small and with those that were found.

use serde::Serialize;
use uflip_device::Nanos;
use uflip_measure::Baseline;
use uflip_measure::auto::findings::Calibration;

/// Columns of a line.
const WIDTH: usize = 78;
/// Rising heights.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Spreads up to this are those of repeatable results (paper 001, section 4.3).
const GOOD: f64 = 0.05;

/// Several results for the same thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// Each in milliseconds.
    pub ms: Vec<f64>,
}

impl Results {
    /// How far apart they are, relative to their mean; None for none.
    pub fn spread(&self) -> Option<f64> {
        let mean = self.ms.iter().sum::<f64>() / self.ms.len().max(1) as f64;
        let low = self.ms.iter().copied().reduce(f64::min)?;
        let high = self.ms.iter().copied().reduce(f64::max)?;
        (mean > 0.0).then(|| (high - low) / mean)
    }
}

/// One experiment, done badly and well.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DemoExperiment {
    /// The parameter that is too small.
    pub parameter: &'static str,
    /// What is measured.
    pub what: &'static str,
    /// What the paper found to make results differ.
    pub why: &'static str,
    /// With a parameter too small.
    pub bad: Results,
    /// With the parameter set.
    pub good: Results,
}

/// The whole demonstration.
#[derive(Clone, Debug, Serialize)]
pub struct Demo {
    /// The device in a line.
    pub device: String,
    /// The seed.
    pub seed: u64,
    /// Response times of random writes after a rest, in milliseconds.
    pub first_writes_ms: Vec<f64>,
    /// The three experiments.
    pub experiments: Vec<DemoExperiment>,
    /// What the automatic method found between the two.
    pub calibration: Calibration,
    /// What befell runs from outside: their figures are not the device's alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub befell: Vec<String>,
}

/// `text` in lines of at most [`WIDTH`], each begun with `indent` blanks.
fn wrapped(text: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut line = " ".repeat(indent);
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += line.trim_end();
            out.push('\n');
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    out + line.trim_end() + "\n"
}

/// Response times as bars on a logarithmic scale, the largest of some IOs each.
fn picture(ms: &[f64]) -> String {
    let columns = WIDTH - 6;
    let each = ms.len().div_ceil(columns).max(1);
    let tops: Vec<f64> = ms.chunks(each).map(|c| c.iter().copied().fold(0.0, f64::max)).collect();
    let least = tops.iter().copied().fold(f64::INFINITY, f64::min).max(1e-6);
    let most = tops.iter().copied().fold(least, f64::max);
    let bar = |top: &f64| {
        let share = if most > least { (top / least).ln() / (most / least).ln() } else { 0.0 };
        BARS[((share * 7.0).round() as usize).min(7)]
    };
    let bars: String = tops.iter().map(bar).collect();
    format!(
        "  {bars}\n  one column: {each} IOs, the slowest of them; from {} to {} ms\n",
        short(least),
        short(most)
    )
}

/// Three digits.
fn short(ms: f64) -> String {
    match ms {
        _ if ms >= 100.0 => format!("{ms:.0}"),
        _ if ms >= 10.0 => format!("{ms:.1}"),
        _ if ms >= 1.0 => format!("{ms:.2}"),
        _ => format!("{ms:.3}"),
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_string(), |s| format!("{:.0} %", 100.0 * s))
}

fn results(results: &Results) -> String {
    let values: Vec<String> = results.ms.iter().map(|ms| short(*ms)).collect();
    format!("     {} ms\n     spread {}\n", values.join("  "), percent(results.spread()))
}

/// What came of setting the parameter.
fn verdict(e: &DemoExperiment) -> String {
    match (e.bad.spread(), e.good.spread()) {
        (Some(bad), Some(good)) if good <= GOOD && bad > GOOD => "repeatable now".to_string(),
        (_, Some(good)) if good <= GOOD => "repeatable either way".to_string(),
        (Some(bad), Some(good)) if good < bad => "better, over 5 %".to_string(),
        _ => "not better: it varies by itself".to_string(),
    }
}

fn setting(found: &Calibration) -> String {
    let mut text = String::new();
    if let Some(rw) = found.baselines.get(&Baseline::Rw) {
        let start = rw.start_up.map_or("no start-up phase".to_string(), |s| {
            format!("{} IOs of start-up at {} ms", s.ios, short(s.before_mean_ns / 1e6))
        });
        let period = rw.period.map_or("no period".to_string(), |p| format!("a period of {:.1} IOs", p.ios));
        text += &wrapped(&format!("RW, {} IOs long: {start}, then {period}.", rw.ios), 2);
        text += &format!("    IOIgnore  {:>7}\n    IOCount   {:>7}\n", rw.io_ignore, rw.io_count);
    }
    if let Some(pause) = &found.pause {
        for test in &pause.tests {
            let what = test.found.map_or("no lasting effect found".to_string(), |l| {
                format!("{} reads are slow for {}", l.affected_ios, Nanos(l.affected_ns))
            });
            text += &wrapped(&format!("SR, {}, SR: {what}.", test.batch), 2);
        }
        text += &format!("    Pause     {:>7}\n", pause.between_runs.to_string());
    }
    for note in &found.notes {
        text += &wrapped(note, 2);
    }
    text
}

/// The whole story.
pub fn story(demo: &Demo) -> String {
    let mut text = wrapped(&format!("{} (seed {})", demo.device, demo.seed), 0);
    text += "\nRandom writes of 32 KiB after a rest, one by one:\n";
    text += &picture(&demo.first_writes_ms);
    text += "\n1. Bad measurements: each of the three parameters too small\n";
    for (letter, e) in ('a'..).zip(&demo.experiments) {
        text += &format!("\n  {letter}) {}: {} too small\n", e.what, e.parameter);
        text += &results(&e.bad);
        if e.bad.spread().is_some_and(|s| s > GOOD) {
            text += &wrapped(&format!("Suspect: {}.", e.why), 5);
        }
    }
    text += "\n2. Setting the parameters, by the automatic method\n\n";
    text += &setting(&demo.calibration);
    text += "\n3. Good measurements: the same with the parameters set\n";
    for (letter, e) in ('a'..).zip(&demo.experiments) {
        text += &format!("\n  {letter}) {}\n", e.what);
        text += &results(&e.good);
    }
    text += "\nSpread of results for the same thing, (largest - smallest) / mean\n\n";
    text += &format!("  {:<28}{:<10}{:>9}{:>9}   {}\n", "", "parameter", "before", "after", "");
    for e in &demo.experiments {
        let (bad, good) = (percent(e.bad.spread()), percent(e.good.spread()));
        text += &format!("  {:<28}{:<10}{bad:>9}{good:>9}   {}\n", e.what, e.parameter, verdict(e));
    }
    if !demo.befell.is_empty() {
        let runs = demo.befell.len();
        let told = format!("{runs} runs were not left alone, so that this says little; play it again:");
        text += &format!("\n{}", wrapped(&told, 0));
        demo.befell.iter().for_each(|what| text += &wrapped(what, 2));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict is by the figures, whatever they are.
    #[test]
    fn a_spread_that_does_not_fall_is_said() {
        let results = |ms: &[f64]| Results { ms: ms.to_vec() };
        assert_eq!(results(&[1.0, 2.0, 3.0]).spread(), Some(1.0));
        assert_eq!(results(&[]).spread(), None);
        let same = DemoExperiment {
            parameter: "Pause",
            what: "",
            why: "",
            bad: results(&[1.0, 1.1]),
            good: results(&[1.0, 2.0]),
        };
        assert!(verdict(&same).contains("not"), "{}", verdict(&same));
    }
}
