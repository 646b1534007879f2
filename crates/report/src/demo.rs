//! The demonstration of `uflip demo` in words, at 80 columns: several results for one
//! and the same thing, with parameters too small and with those that were found.

use uflip_analysis::demo::{Demo, DemoExperiment, DemoVerdict, Results};
use uflip_device::Nanos;
use uflip_measure::Baseline;
use uflip_measure::auto::findings::Calibration;

/// Columns of a line.
const WIDTH: usize = 78;
/// Rising heights.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

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
fn verdict(e: &DemoExperiment) -> &'static str {
    match e.verdict() {
        DemoVerdict::RepeatableNow => "repeatable now",
        DemoVerdict::RepeatableEitherWay => "repeatable either way",
        DemoVerdict::Better => "better, over 5 %",
        DemoVerdict::NotBetter => "not better: it varies by itself",
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
        if e.bad.is_suspect() {
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
