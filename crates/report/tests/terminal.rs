//! The report as text, against kept copies. To renew them after looking at
//! the difference: `UFLIP_RENEW=1 cargo test -p uflip-report --test terminal`.

use std::path::PathBuf;
use uflip_analysis::profile::{Finding, Severity};
use uflip_measure::Baseline;
use uflip_measure::run::RtStats;
use uflip_report::terminal::{Style, render_with};
use uflip_report::view::{BaselineLevel, BaselineRow, BaselineSeries, CurvePoint, Section, View};

fn stats(n: u64, mean: f64) -> RtStats {
    let at = |f: f64| Some((mean * f) as u64);
    RtStats {
        n,
        min_ns: at(0.6),
        max_ns: at(31.0),
        mean_ns: Some(mean),
        sd_ns: Some(mean * 0.4),
        p50_ns: at(0.93),
        p90_ns: at(1.2),
        p95_ns: at(1.4),
        p99_ns: at(2.2),
        p999_ns: at(9.0),
        p9999_ns: at(30.0),
    }
}

fn point(value: i64, label: &str, mean: f64, runs: u32) -> CurvePoint {
    let (min_ns, max_ns) = (Some(mean * 0.97), Some(mean * 1.04));
    let ci95_ns = Some([mean * 0.99, mean * 1.02]);
    let (label, mean_ns) = (label.into(), Some(mean));
    let (write_amplification, energy_uj_per_io, runs) = (None, None, (0..runs).collect());
    CurvePoint { value, label, mean_ns, min_ns, max_ns, ci95_ns, write_amplification, energy_uj_per_io, runs }
}

fn curve(baseline: &str, runs: u32, points: &[(i64, &str)], f: impl Fn(i64) -> f64) -> BaselineSeries {
    let points = points.iter().map(|(v, l)| point(*v, l, f(*v), runs)).collect();
    BaselineSeries { baseline: baseline.to_string().into(), points }
}

fn section(name: &str, title: &str, parameter: &str, series: Vec<BaselineSeries>) -> Section {
    Section {
        micro_benchmark: name.to_string().into(),
        title: title.into(),
        parameter: parameter.into(),
        series,
        sentences: vec![format!(
            "What {name} shows, in words that take more than the eighty columns of a terminal."
        )],
        marks: vec![],
        skipped: vec![],
    }
}

fn view() -> View {
    let sizes: Vec<(i64, String)> =
        (0..11).map(|i| (512 << i, uflip_device::Bytes(512 << i).to_string())).collect();
    let sizes: Vec<(i64, &str)> = sizes.iter().map(|(v, l)| (*v, l.as_str())).collect();
    let line = |base: f64, per_kib: f64| move |bytes: i64| base + per_kib * bytes as f64 / 1024.0;
    let granularity = section(
        "granularity",
        "Granularity: response time by the size of the IOs",
        "IOSize",
        vec![
            curve("SR", 3, &sizes, line(65e3, 1.8e3)),
            curve("RR", 3, &sizes, line(88e3, 1.9e3)),
            curve("SW", 3, &sizes, line(31e3, 2.6e3)),
            curve("RW", 3, &sizes, line(1.9e6, 11e3)),
        ],
    );
    let ratios = [(-4, "1 : 4"), (-2, "1 : 2"), (1, "1 : 1"), (2, "2 : 1"), (4, "4 : 1")];
    let names = ["SR/RR", "SR/SW", "SR/RW", "RR/SW", "RR/RW", "SW/RW"];
    let mix = section(
        "mix",
        "Mix: two baselines interleaved",
        "Ratio",
        names
            .iter()
            .enumerate()
            .map(|(i, n)| curve(n, 1, &ratios, line(1e5 * (i + 1) as f64, 9e6)))
            .collect(),
    );
    let mut order = section(
        "order",
        "Order: steps forward, backward and in place",
        "Incr",
        vec![curve("SW", 1, &[(-1, "-1"), (0, "0"), (1, "1")], line(300e3, 0.0))],
    );
    order.series[0].points[1].mean_ns = None;
    order.skipped = vec![
        "RW 256: the target space of 64M is too small for this increment, take a target of at least 1G"
            .into(),
    ];
    View {
        target: "Example SSD 1 TB, serial S4EX, /dev/sdx, 1000204886016 bytes, 512-byte sectors".into(),
        host: Some("Linux 6.8, 2 CPUs, scheduler none".into()),
        overhead: Some("clock 25 ns, loop 310 ns an IO".into()),
        tool: "uflip 0.1.0".into(),
        created: "2026-11-21T19:04:08Z".into(),
        seed: 42,
        runs: 164,
        alerts: vec![],
        soundness: vec![Finding {
            code: "time_limit_hit".into(),
            severity: Severity::Warning,
            statement: "In 17 of 164 runs a time limit ended the run before all its IOs were done.".into(),
            runs: vec![5, 7, 9],
        }],
        notes: vec![],
        programs: vec![],
        levels: [(Baseline::Sr, 91e3, Some([88e3, 94e3])), (Baseline::Rw, 2.4e6, None)]
            .map(|(baseline, mean_ns, ci95_ns)| BaselineLevel { baseline, mean_ns, ci95_ns })
            .to_vec(),
        baselines: [
            ("SR", 0, 93e3),
            ("RR", 0, 151e3),
            ("SW", 0, 118e3),
            ("RW", 0, 2.41e6),
            ("RW", 1, 2.38e6),
        ]
        .map(|(b, repeat, mean)| BaselineRow {
            baseline: b.to_string().into(),
            repeat,
            run: 1,
            pattern: b.into(),
            stats: stats(4096, mean),
            write_amplification: None,
            energy_uj_per_io: None,
            disturbed: None,
            by_mode: Vec::new(),
            late: None,
            lateness: None,
        })
        .to_vec(),
        open_loops: Vec::new(),
        device_work: None,
        sections: vec![granularity, order, mix],
        files: vec![("runs".into(), "out/runs.ndjson".into())],
    }
}

fn golden(name: &str, style: Style) {
    let text = render_with(&view(), style);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var("UFLIP_RENEW").is_ok() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap();
    assert!(text == wanted, "{} differs; now it is\n{text}", path.display());
}

#[test]
fn eighty_columns_without_colour() {
    golden("80.txt", Style { width: 80, color: false, ascii: false });
}

#[test]
fn ascii() {
    golden("ascii.txt", Style { width: 80, color: false, ascii: true });
    assert!(render_with(&view(), Style { width: 80, color: false, ascii: true }).is_ascii());
}

#[test]
fn wide_and_coloured() {
    golden("120-colour.txt", Style { width: 120, color: true, ascii: false });
}

#[test]
fn no_line_is_wider_than_asked_for() {
    for width in [60, 80, 100, 140] {
        let text = render_with(&view(), Style { width, color: false, ascii: false });
        for line in text.lines() {
            let table = line.starts_with("  ") && width < 80;
            assert!(line.chars().count() <= width || table, "{width}: {line}");
            assert!(!line.ends_with(' '), "{line:?}");
        }
    }
}

#[test]
fn an_empty_view_is_text_too() {
    let empty = View {
        sections: vec![],
        baselines: vec![],
        levels: vec![],
        soundness: vec![],
        files: vec![],
        runs: 0,
        ..view()
    };
    assert!(render_with(&empty, Style { width: 80, color: false, ascii: false }).contains("0 runs"));
}

#[test]
fn findings_are_marked_by_severity_the_gravest_first_and_counted() {
    let mut view = view();
    let other = |severity, statement: &str| Finding {
        code: "x".into(),
        severity,
        statement: statement.into(),
        runs: vec![],
    };
    view.soundness.insert(0, other(Severity::Info, "Good to know."));
    view.soundness.push(other(Severity::Serious, "All is of memory."));
    let text = render_with(&view, Style { width: 80, color: false, ascii: false });
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    let parts = [
        "Soundness: 1 serious, 1 warning, 1 to know",
        "!! serious: All is of memory.",
        "! warning: In 17 of",
        "- note: Good to know.",
    ];
    assert!(parts.windows(2).all(|two| at(two[0]) < at(two[1])), "{text}");
}

#[test]
fn an_open_loop_flushes_and_the_devices_work_are_told_beside_a_row() {
    let mut view = view();
    let mut open = view.baselines.remove(1);
    open.lateness = Some("IOs were submitted 1.5 ms after the intended instant".into());
    view.open_loops.push(open);
    view.baselines[0].write_amplification = Some(1.25);
    view.baselines[0].energy_uj_per_io = Some(37.5);
    view.baselines[0].by_mode = vec![uflip_measure::run::ModeStats {
        mode: uflip_device::Mode::Flush,
        ios: 7,
        running: stats(7, 2e6),
    }];
    view.device_work = Some("Within 4 runs: write amplification 1.25".into());
    let text = render_with(&view, Style { width: 80, color: false, ascii: false });
    for part in [
        "write amplification 1.25, 37.5 uJ an IO",
        "7 flush: mean 2 ms",
        "Open loops: response time",
        "open loop: IOs were submitted 1.5 ms after",
        "Within 4 runs:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        !render_with(&self::view(), Style { width: 80, color: false, ascii: false }).contains("open loop")
    );
}
