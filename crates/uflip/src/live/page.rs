//! The page: the plan with what is done, the run in progress, its trace and its
//! histogram. Plain ANSI; every page is written whole, so that a resized or
//! scribbled terminal is right again a fifth of a second later.

use super::picture::LivePicture;
use crate::describe::round_time;
use std::fmt::Write;
use std::time::{Duration, Instant};
use uflip_device::{IoRecord, Nanos};
use uflip_measure::run::{RunSpec, RunStats};
use uflip_store::recorder::Seen;

/// Columns left of the trace: a time and the axis.
const MARGIN: usize = 9;

/// A micro-benchmark (or the baselines) of the plan.
struct Group {
    name: String,
    runs: u64,
    done: u64,
    mean: Option<f64>,
}

/// The run in progress.
struct Current {
    id: u32,
    what: String,
    planned: u64,
    picture: LivePicture,
}

/// Everything that the page shows.
pub struct Board {
    title: String,
    groups: Vec<Group>,
    active: String,
    current: Option<Current>,
    /// The run before, in a line.
    last: Option<String>,
    began: Instant,
    budget: Option<Duration>,
    /// What happens besides runs.
    pub note: String,
}

impl Board {
    pub fn new(title: String, budget: Option<Nanos>) -> Board {
        Board {
            title,
            groups: Vec::new(),
            active: String::new(),
            current: None,
            last: None,
            began: Instant::now(),
            budget: budget.map(Duration::from),
            note: String::new(),
        }
    }

    /// More runs of these groups are planned.
    pub fn expect<'a>(&mut self, groups: impl Iterator<Item = (&'a str, u64)>) {
        for (name, runs) in groups {
            match self.groups.iter_mut().find(|g| g.name == name) {
                Some(group) => group.runs += runs,
                None => self.groups.push(Group { name: name.to_string(), runs, done: 0, mean: None }),
            }
        }
    }

    pub fn started(&mut self, group: &str, what: String, spec: &RunSpec) {
        let streams = spec.work.stream_count().max(1) as u64;
        let planned = spec.io_count.saturating_mul(streams);
        let picture = LivePicture::new(planned, spec.io_ignore.saturating_mul(streams));
        self.active = group.to_string();
        self.current = Some(Current { id: spec.id, what, planned, picture });
        self.note.clear();
    }

    pub fn finished(&mut self, group: &str, what: &str, stats: &RunStats) {
        let s = &stats.running;
        let whole = |ns: Option<u64>| time(ns.map(|ns| ns as f64));
        self.last = Some(format!(
            "before: {what}, {} IOs, mean {}, p50 {}, p99 {}, slowest {}",
            s.n,
            time(s.mean_ns),
            whole(s.p50_ns),
            whole(s.p99_ns),
            whole(s.max_ns)
        ));
        if let Some(group) = self.groups.iter_mut().find(|g| g.name == group) {
            group.done += 1;
            group.mean = stats.running.mean_ns;
        }
    }

    /// Takes what the loops handed over.
    pub fn see(&mut self, seen: Seen, records: &[IoRecord]) {
        if let Some(current) = self.current.as_mut().filter(|c| c.id == seen.run) {
            current.picture.missed |= seen.missed;
            current.picture.add(records);
        }
    }

    fn time_left(&self) -> String {
        let (done, runs) = self.groups.iter().fold((0, 0), |(d, r), g| (d + g.done, r + g.runs));
        if done == 0 {
            return "time left not known yet".into();
        }
        let spent = self.began.elapsed();
        let even = spent.mul_f64(runs.saturating_sub(done) as f64 / done as f64);
        let left = self.budget.map_or(even, |b| even.min(b.saturating_sub(spent)));
        format!("{done} of {runs} runs, about {} left", round_time(left))
    }

    /// The whole page with its ANSI codes, for a terminal of this size.
    pub fn draw(&mut self, columns: usize, rows: usize, stopping: bool) -> String {
        let (columns, rows) = (columns.max(40), rows.max(10));
        let mut lines = self.lines(columns, rows, stopping);
        lines.truncate(rows);
        let mut out = "\x1b[H".to_string();
        let last = lines.len().saturating_sub(1);
        for (at, line) in lines.iter().enumerate() {
            let cut: String = crate::printable::line(line).chars().take(columns).collect();
            let _ = write!(out, "{cut}\x1b[K{}", if at < last { "\r\n" } else { "" });
        }
        out + "\x1b[J"
    }

    fn lines(&mut self, columns: usize, rows: usize, stopping: bool) -> Vec<String> {
        let spent = round_time(self.began.elapsed());
        let mut lines = vec![self.title.clone(), format!("{spent} gone, {}", self.time_left())];
        lines.push(match stopping {
            true => "ending after the run in progress; Ctrl-C again gives that run up".into(),
            false => "Ctrl-C ends after the run in progress; --resume goes on later".into(),
        });
        lines.extend(self.plan(columns));
        lines.push(String::new());
        lines.extend([&self.note].into_iter().filter(|note| !note.is_empty()).cloned());
        lines.extend(self.last.clone());
        let room = rows.saturating_sub(lines.len());
        if let Some(current) = &mut self.current {
            lines.extend(current.lines(columns, room));
        }
        lines
    }

    /// The groups in as many columns as there is room for.
    fn plan(&self, columns: usize) -> Vec<String> {
        const WIDE: usize = 39;
        let across = (columns / WIDE).clamp(1, 3);
        let down = self.groups.len().div_ceil(across);
        let cell = |group: &Group| {
            let full = (group.done * 8).checked_div(group.runs).unwrap_or(8) as usize;
            let bar = "━".repeat(full.min(8)) + &"·".repeat(8 - full.min(8));
            let sign = if group.name == self.active && group.done < group.runs { '>' } else { ' ' };
            let mean = group.mean.map_or_else(String::new, |ns| time(Some(ns)));
            let count = format!("{}/{}", group.done, group.runs);
            format!("{sign}{:<12} {bar} {count:>7} {mean:>8}", group.name)
        };
        let line = |row: usize| {
            let cells = (0..across).filter_map(|c| self.groups.get(c * down + row));
            cells.map(|g| format!("{:<WIDE$}", cell(g))).collect::<String>().trim_end().to_string()
        };
        (0..down).map(line).collect()
    }
}

/// Three significant digits: a line of five times fits 80 columns.
fn time(ns: Option<f64>) -> String {
    let Some(ns) = ns else { return "-".into() };
    let step = 10f64.powf(ns.max(1.0).log10().floor() - 2.0).max(1.0);
    Nanos(((ns / step).round() * step) as u64).to_string()
}

impl Current {
    fn lines(&mut self, columns: usize, room: usize) -> Vec<String> {
        let picture = &mut self.picture;
        let interval = picture.interval().map_or_else(String::new, |[low, high]| {
            format!(" ({} to {})", time(Some(low)), time(Some(high)))
        });
        let missed = if picture.missed { ", not all of them shown" } else { "" };
        let slowest = (picture.slowest > 0).then_some(picture.slowest as f64);
        let mut lines = vec![
            format!("run {}: {}, {} of {} IOs{missed}", self.id, self.what, picture.seen, self.planned),
            format!(
                "mean {}{interval}, p50 {}, p99 {}, slowest {}",
                time(picture.mean()),
                time(picture.quantile(0.5)),
                time(picture.quantile(0.99)),
                time(slowest)
            ),
        ];
        let Some((low, high)) = picture.ends() else {
            lines.push("no IOs handed over yet".into());
            return lines;
        };
        let high = high.max(low * 2.0);
        let bars = if room >= 14 { 3 } else { 0 };
        let height = room.saturating_sub(lines.len() + bars + 3).clamp(2, 24);
        lines.extend(trace(picture, columns - MARGIN, height, low, high));
        if bars > 0 {
            lines.extend(histogram(picture, columns - MARGIN, bars, low, high));
        }
        lines
    }
}

/// Response time up (log), IO number across: a bar from the smallest to the
/// largest of a column, a dot at its mean.
fn trace(picture: &LivePicture, columns: usize, height: usize, low: f64, high: f64) -> Vec<String> {
    let row_of = |ns: f64| {
        let part = (ns / low).ln() / (high / low).ln();
        height - 1 - ((part.clamp(0.0, 1.0) * (height - 1) as f64).round() as usize)
    };
    let mut grid = vec![vec![' '; columns]; height];
    for (at, column) in picture.trace(columns).iter().enumerate().filter(|(_, c)| c.n > 0) {
        let (top, bottom) = (row_of(column.high as f64), row_of(column.low.max(1) as f64));
        grid[top..=bottom].iter_mut().for_each(|row| row[at] = '│');
        grid[row_of(column.sum as f64 / column.n as f64)][at] = '•';
    }
    let label = |row: usize| match row {
        0 => time(Some(high)),
        r if r == height - 1 => time(Some(low)),
        _ => String::new(),
    };
    let line = |(row, cells): (usize, &Vec<char>)| {
        format!("{:>7} │{}", label(row), cells.iter().collect::<String>())
    };
    let mut lines: Vec<String> = grid.iter().enumerate().map(line).collect();
    lines.push(format!("{:7} └{}", "", "─".repeat(columns)));
    lines
}

/// How many IOs took how long, response time across (log).
fn histogram(picture: &LivePicture, columns: usize, height: usize, low: f64, high: f64) -> Vec<String> {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let counts = picture.histogram(columns, low, high);
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let row = |from_top: usize| {
        let below = (height - 1 - from_top) * 8;
        let cell = |n: &u64| {
            // What is there at all is seen.
            let eighths = ((n * 8 * height as u64).div_ceil(most)) as usize;
            EIGHTHS[eighths.saturating_sub(below).min(8)]
        };
        let label = if from_top + 1 == height { "IOs" } else { "" };
        format!("{label:>7} │{}", counts.iter().map(cell).collect::<String>())
    };
    let mut lines: Vec<String> = (0..height).map(row).collect();
    let right = time(Some(high));
    let room = columns.saturating_sub(right.chars().count());
    lines.push(format!("{:MARGIN$}{:<room$}{right}", "", time(Some(low))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_device::{Arrival, Bytes, Io, Mode};

    fn spec() -> RunSpec {
        serde_json::from_value(serde_json::json!({
            "id": 7, "purpose": "baseline", "baseline": "RW", "point": null, "repeat": 0,
            "pattern": "RW(io_size=32K)", "io_count": 1000, "io_ignore": 0, "seed": 1, "time_limit": null,
        }))
        .expect("a spec")
    }

    #[test]
    fn a_page_fits_its_terminal_and_tells_the_run() {
        let groups = ["baselines", "granularity", "locality"].map(|name| (name, 12));
        let mut board = Board::new("sim:mtron, preset standard, seed 1".into(), None);
        board.expect(groups.into_iter());
        board.started("baselines", "RW".into(), &spec());
        let io =
            Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(0), size: 512, mode: Mode::Write, pattern: 0 };
        let ns = |i: u64| if i == 250 { 27_000_000 } else { 400_000 };
        let records: Vec<_> = (0..500).map(|i| IoRecord::new(&io, 0, Nanos(i), Nanos(ns(i)))).collect();
        let seen = Seen { run: 7, fresh: true, missed: false };
        board.see(seen, &records);
        // What is of another run is not mixed in.
        board.see(Seen { run: 8, ..seen }, &records);
        for (columns, rows) in [(80, 24), (200, 60), (40, 10), (0, 0)] {
            let page = board.draw(columns, rows, false);
            let lines: Vec<&str> = page.split("\r\n").collect();
            assert!(lines.len() <= rows.max(10), "{columns}x{rows}: {} lines", lines.len());
            for line in lines {
                let plain = line.replace("\x1b[H", "").replace("\x1b[K", "").replace("\x1b[J", "");
                assert!(plain.chars().count() <= columns.max(40), "{columns}x{rows}: {plain:?}");
            }
        }
        let page = board.draw(80, 24, false);
        for part in ["run 7: RW, 500 of 1000 IOs", "slowest 27 ms", "27 ms │", ">baselines", "0/12"] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        assert!(board.draw(80, 24, true).contains("ending after the run"));
    }
}
