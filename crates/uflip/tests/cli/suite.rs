//! The 2008 benchmark's experiments and the write cost model: known answers on
//! simulated devices, each through the command as a user types it.

use crate::support::{Loop, expect, skipped};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// `uflip job sim:NAME` with this job; what it came to.
fn job_on(name: &str, job: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.job"), job).unwrap();
    let target = format!("sim:{name}");
    let args = ["job", &target, "a.job", "-o", "out", "--seed", "1", "--json"];
    serde_json::from_str(&expect(folder.path(), 0, &args).0).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Appendix C: "about 30 % of the normal speed; after 30 seconds of sequential
/// writes the speed climbs back".
#[test]
fn the_toshiba_stick_recovers_after_half_a_minute() {
    let job = "std sw bs=32K time=30s before=fill(1M)\n\
               rec sw bs=32K time=120s window=4s before=fill(1M),rw(bs=same,time=5s|30s,count=20)";
    let report = job_on("toshiba-transmemory-1G", job);
    let recovery = report["recovery"].as_array().unwrap();
    let of = |burst: &str| recovery.iter().find(|r| r["burst"].as_str().unwrap().contains(burst)).unwrap();
    let half_a_minute = of("time=30s");
    let windows = half_a_minute["windows_mb_per_s"].as_array().unwrap();
    assert_eq!(windows.len(), 30);
    let (first, steady) = (number(&windows[0]), number(&half_a_minute["steady_mb_per_s"]));
    assert!((0.2..0.4).contains(&(first / steady)), "paper: 30 %, ours {first} of {steady} MB/s");
    let recovered = number(&half_a_minute["recovery_s"]);
    assert!((24.0..=40.0).contains(&recovered), "paper: 30 s, ours {recovered} s");
    // Merges are owed for each chunk taken: five seconds take them all, 20 writes do not.
    assert!((number(&of("time=5s")["recovery_s"]) - recovered).abs() <= 4.0);
    assert!(number(&of("count=20")["recovery_s"]) <= 12.0, "20 chunks are paid off sooner");
}

/// Figure C.4: 3 minutes to write the device, over 25 after small random writes;
/// it recovers only when it is rewritten.
#[test]
fn the_elite_stick_recovers_only_when_it_is_rewritten() {
    let job = "new sw bs=2M bytes=all start=0 before=fill(1M)\n\
               old sw bs=2M bytes=all start=0 reps=2 each=size before=fill(1M),rw(bs=2K,time=60s)";
    let report = job_on("kingston-dt-elite-hs-2G", job);
    let rewrite = report["rewrite"].as_array().unwrap();
    let minutes: Vec<f64> = rewrite.iter().map(|r| number(&r["minutes"])).collect();
    assert_eq!(minutes.len(), 3);
    assert!((2.0..4.0).contains(&minutes[0]), "paper: 3 min, ours {minutes:?}");
    assert!((15.0..40.0).contains(&minutes[1]), "paper: over 25 min, ours {minutes:?}");
    assert!((minutes[2] / minutes[0] - 1.0).abs() < 0.1, "as before once it is rewritten: {minutes:?}");
    assert_eq!(rewrite[0]["burst"], Value::Null);
    assert!(number(&rewrite[1]["over_normal"]) > 5.0);
}

/// Figure 3.2: spikes after 3,000 random writes and every 2,000. Each is of 8
/// bytes into a file, so a page of 4 KiB for the device.
#[test]
fn the_hama_ssd_has_its_spikes() {
    let report = job_on("hama-ssd-32G", "many rw bs=4K count=12000 size=8G before=fill(1M)");
    let spikes = &report["spikes"][0];
    assert!((2900.0..3400.0).contains(&number(&spikes["first_io"])), "paper: 3,000: {spikes}");
    assert!((1900.0..2500.0).contains(&number(&spikes["period_ios"])), "paper: 2,000: {spikes}");
    assert!((4e9..9e9).contains(&number(&spikes["height_ns"])), "paper: 5 to 8 s: {spikes}");
    assert!(number(&spikes["between_ns"]) < 1e9, "paper: 0.8 s: {spikes}");
    let batches = report["series"][0]["batch_s"].as_array().unwrap();
    assert_eq!((batches.len(), &report["series"][0]["batch_ios"]), (1000, &Value::from(12)));
    assert_eq!(batches.iter().filter(|s| number(s) > 1.0).count() as f64, number(&spikes["count"]));
}

/// Table 3.1's row of a disk.
#[test]
fn a_disk_has_its_row_of_table_3_1() {
    let report =
        job_on("ibm-deskstar-hdd-60G", "std sr,rr,sw,rw bs=512,2M time=30s before=idle(5s) each=run");
    let paper = [5.9, 0.03, 4.1, 0.03, 29.2, 22.0, 24.2, 16.2];
    for (place, paper) in paper.into_iter().enumerate() {
        let ours = number(&report["table31_mb_per_s"][place]);
        assert!((ours / paper).ln().abs() < 1.5f64.ln(), "column {place}: paper {paper}, ours {ours}");
    }
}

/// Paper 002: logical blocks of 4, 8 and 4 MB, by both rules, whatever amount
/// is written; cut off in the middle, the procedure goes on.
#[test]
fn the_logical_blocks_of_the_three_ssds_are_found() {
    for (name, megabytes) in [("sandisk", 4u64), ("samsung-64", 8), ("mtron-32", 4)] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let target = format!("sim:{name}");
        let args = ["logical-block", &target, "--bytes", "1G", "--seed", "1", "-o", "out", "--json"];
        let facts: Value = serde_json::from_str(&expect(folder, 0, &args).0).unwrap();
        for rule in ["logical_block_bytes", "by_whole_numbers", "by_statistics"] {
            assert_eq!(facts[rule], megabytes << 20, "{name} by {rule}: {facts:#}");
        }
        if megabytes == 8 {
            let runs = std::fs::read_to_string(folder.join("out/runs.ndjson")).unwrap();
            let part: String = runs.split_inclusive('\n').take(5).collect();
            std::fs::write(folder.join("out/runs.ndjson"), part).unwrap();
            let args = ["logical-block", &target, "-o", "out", "--resume", "--json"];
            let again: Value = serde_json::from_str(&expect(folder, 0, &args).0).unwrap();
            assert_eq!(again["by_statistics"], facts["by_statistics"]);
            assert_eq!(again["amounts"][0]["passes"].as_array().unwrap().len(), 12, "4K to 8M");
        }
    }
}

/// A job and the models fitted to it, in `out` of `folder`.
fn write_cost(folder: &Path, name: &str, logical: &str) -> Value {
    let job = format!(
        "set logical={logical}\ncost rw bs=4K..4M*4 sync=1,4,16 count=320 before=fill(1M)\n\
         plain rr,rw bs=4K,64K,1M count=200\n"
    );
    std::fs::write(folder.join("a.job"), job).unwrap();
    let target = format!("sim:{name}");
    let args = ["job", &target, "a.job", "-o", "out", "--seed", "1", "--json"];
    serde_json::from_str(&expect(folder, 0, &args).0).unwrap()
}

/// Equation 2 on an SSD: T_merge is told by f and R apart and predicts what was
/// held out; a trace is predicted and replayed.
#[test]
fn the_write_cost_model_holds_on_an_ssd_with_log_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let report = write_cost(folder, "mtron-32", "4M");
    let merge = &report["merge"];
    // 64 pages on each of 32 planes copied back in 250 us, and an erase of 1.5 ms: 17.5 ms.
    let t_merge_ms = number(&merge["fit"]["t_merge_ns"]) / 1e6;
    assert!((16.0..22.0).contains(&t_merge_ms), "{merge:#}");
    assert!(number(&merge["holds"]) >= 0.7 * number(&merge["predicted"]), "{merge:#}");
    let samples = merge["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 18);
    let f = |s: &Value| number(&s["focal_factor"]);
    assert!(samples.iter().any(|s| f(s) == 1.0) && samples.iter().any(|s| f(s) < 0.08));
    // 64 syncs of two writes in one logical block each, as an fio iolog.
    let mut trace = String::from("fio version 2 iolog\n/d add\n/d open\n");
    for i in 0..64u64 {
        let at = (i * 37 % 1000) * (4 << 20);
        trace += &format!("/d write {at} 65536\n/d write {} 65536\n/d sync 0 0\n", at + 65536);
    }
    std::fs::write(folder.join("t.log"), trace + "/d close\n").unwrap();
    let args = ["predict", "out", "--trace", "t.log", "--logical-block", "4M", "--sim", "mtron-32", "--json"];
    let facts: Value = serde_json::from_str(&expect(folder, 0, &args).0).unwrap();
    assert_eq!(
        (number(&facts["character"]["focal_factor"]), &facts["character"]["syncs"]),
        (1.0, &Value::from(64))
    );
    assert_eq!(facts["models"]["merge_by_syncs"], true);
    let errors: Vec<(&str, f64)> = facts["predictions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["model"].as_str().unwrap(), number(&p["simulated_error"])))
        .collect();
    let of = |model: &str| errors.iter().find(|e| e.0 == model).unwrap().1.abs();
    assert!(of("merge") < 0.35, "{errors:?}");
    assert!(of("merge") < of("em-flash-1"), "a model that knows of syncs is nearer: {errors:?}");
    let (_, err) =
        expect(folder, 2, &["predict", "out", "--trace", "t.log", "--sim", "toshiba-transmemory-1G"]);
    assert!(err.contains("--wrap"), "{err}");
}

/// Equation 1 on a disk: T_pos is a seek and half a turn.
#[test]
fn t_pos_is_found_on_a_disk() {
    let folder = tempfile::tempdir().unwrap();
    let report = write_cost(folder.path(), "seagate-barracuda-7200.11-hdd-500G", "4M");
    let fit = &report["merge"]["fit"];
    let t_pos_ms = number(&fit["t_merge_ns"]) / 1e6;
    // Half a turn of 7,200 rpm is 4.17 ms, the mean seek 3.8 ms. 500 GB on 620,000
    // tracks, each in a turn and a step to the next of 0.8 ms.
    let (described_ms, described_mb) = (3.8 + 60e3 / 7200.0 / 2.0, 500_107.0 / 620.0 / (60e3 / 7200.0 + 0.8));
    let mb_per_s = number(&fit["bytes_per_s"]) / 1e6;
    println!("T_pos {t_pos_ms:.2} ms of {described_ms:.2}, B {mb_per_s:.1} MB/s of {described_mb:.1}");
    assert!((t_pos_ms / described_ms - 1.0).abs() < 0.2, "{:#}", report["merge"]);
    assert!((mb_per_s / described_mb - 1.0).abs() < 0.2, "{mb_per_s} of {described_mb}");
    // The queue sorts what one flush waits for: a number of writes a sync has its own T_pos.
    let by_sync = report["merge"]["by_sync"].as_array().unwrap();
    let t_pos: Vec<f64> = by_sync.iter().map(|s| number(&s["fit"]["t_merge_ns"]) / 1e6).collect();
    assert_eq!(by_sync.iter().map(|s| s["ios_per_sync"].clone()).collect::<Vec<_>>(), [1, 4, 16]);
    assert!((t_pos[0] / described_ms - 1.0).abs() < 0.1 && t_pos.is_sorted_by(|a, b| a > b), "{t_pos:?}");
    assert!(by_sync.iter().all(|s| number(&s["fit"]["worst_held_out"]) < 0.1), "{by_sync:#?}");
}

#[test]
fn a_suite_runs_on_a_file_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let args = ["run", "./s.bin", "--suite", "ajwani-short", "--only", "new,old,many", "-o", "out"];
    expect(folder, 0, &[&args[..], &["--scratch-size", "16M", "--json"]].concat());
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("out/job.json")).unwrap()).unwrap();
    assert_eq!(report["rewrite"].as_array().unwrap().len(), 5);
    assert_eq!(report["series"].as_array().unwrap().len(), 1);
    for file in ["profile.json", "report.html"] {
        assert!(folder.join("out").join(file).is_file(), "{file}");
    }
    expect(folder, 0, &["run", "-o", "out", "--resume"]);
    let (_, err) =
        expect(folder, 2, &["run", "./s.bin", "--suite", "ajwani-short", "--only", "all", "-o", "x"]);
    assert!(err.contains("type --only with std, mis"), "{err}");
    let (_, err) =
        expect(folder, 2, &["run", "./s.bin", "--suite", "ajwani-short", "--only", "end", "-o", "x"]);
    assert!(err.contains("add it"), "{err}");
    let args =
        ["run", "./s.bin", "--suite", "write-cost-short", "-o", "cost", "--scratch-size", "16M", "--json"];
    let report: Value = serde_json::from_str(&expect(folder, 0, &args).0).unwrap();
    assert_eq!(report["merge"]["samples"].as_array().unwrap().len(), 6);
}

/// The two short suites as a user types them, whole, on a real target of 64 MiB.
/// The figures of paper 004, whose data are the report's.
fn figures_of(folder: &Path, report: &Value) {
    expect(folder, 0, &["export", "short", "--figures", "figures"]);
    let csv = |name: &str| -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(folder.join("figures").join(format!("{name}.csv"))).unwrap();
        text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
    };
    // JSON's reader may be off by the last bit.
    let alike =
        |value: &Value, text: &str| (number(value) / text.parse::<f64>().unwrap() - 1.0).abs() < 1e-12;
    let drawn =
        ["figure3.1-std", "figure3.2-many-RW-4K-1", "figure3.4a", "figure3.4b-RW", "figureC.3", "figureC.4"];
    for name in drawn {
        assert!(!csv(name).is_empty(), "{name}");
        for ending in ["svg", "png"] {
            assert!(folder.join(format!("figures/{name}.{ending}")).is_file(), "{name}.{ending}");
        }
    }
    let speeds = report["speeds"].as_array().unwrap();
    for row in csv("figure3.1-std") {
        let same = speeds.iter().find(|s| {
            s["line"] == "std"
                && s["baseline"] == row[0].as_str()
                && s["block_bytes"].as_u64() == row[1].parse().ok()
        });
        assert!(alike(&same.unwrap()["mb_per_s"], &row[2]), "{row:?}");
    }
    assert_eq!(csv("figure3.1-std").len(), 20, "five sizes of four patterns");
    let rewrites = report["rewrite"].as_array().unwrap();
    assert!(csv("figureC.4").iter().all(|row| rewrites.iter().any(|r| alike(&r["minutes"], &row[2]))));
    let row = &csv("table3.1")[0];
    let cells = report["table31_mb_per_s"].as_array().unwrap();
    assert!(cells.iter().zip(&row[row.len() - 8..]).all(|(cell, text)| alike(cell, text)), "{row:?}");
    assert!(!folder.join("figures/table3.csv").exists(), "a job has no Table 3");
}

fn short_suites_on(folder: &Path, target: &str, more: &[&str]) {
    let suite = |name: &str, out: &str| -> Value {
        let args = [&["run", target, "--suite", name, "-o", out, "--json"], more].concat();
        serde_json::from_str(&expect(folder, 0, &args).0).unwrap()
    };
    let count = |report: &Value, field: &str| report[field].as_array().unwrap().len();
    let report = suite("ajwani-short", "short");
    assert!(report["table31_mb_per_s"].as_array().unwrap().iter().all(|mb| number(mb) > 0.0), "{report:#}");
    // Two sizes with two offsets; a burst of either size and length; each length
    // with a second pass, and the reference.
    assert_eq!((count(&report, "misaligned"), count(&report, "recovery")), (4, 4));
    assert!(report["recovery"].as_array().unwrap().iter().all(|r| number(&r["recovery_s"]) < 1.2));
    assert_eq!(count(&report, "rewrite"), 5);
    assert!(report["rewrite"].as_array().unwrap().iter().all(|r| number(&r["over_normal"]) > 0.0));
    let series = &report["series"][0];
    assert_eq!(
        series["batch_s"].as_array().unwrap().len() as u64 * series["batch_ios"].as_u64().unwrap(),
        5000
    );
    for drift in report["drift"].as_array().unwrap() {
        assert_eq!(
            (&drift["baseline"], drift["passes"].as_array().unwrap()),
            (&Value::from("RW"), &vec![1.into(), 2.into()])
        );
    }
    assert_eq!(count(&report, "drift"), 6, "two block sizes, each aligned and with two offsets");
    figures_of(folder, &report);
    let report = suite("write-cost-short", "cost");
    assert_eq!(report["merge"]["samples"].as_array().unwrap().len(), 6);
    assert_eq!(count(&report, "speeds"), 4);
    for out in ["short", "cost"] {
        for file in ["job.json", "profile.json", "report.html"] {
            assert!(folder.join(out).join(file).is_file(), "{out}/{file}");
        }
    }
}

#[test]
fn the_short_suites_run_whole_on_a_scratch_file() {
    let folder = tempfile::tempdir().unwrap();
    short_suites_on(folder.path(), "./s.bin", &["--scratch-size", "64M"]);
}

#[test]
fn the_short_suites_run_whole_on_a_loop_device() {
    let Some(device) = Loop::new(64 << 20) else { return };
    let folder = tempfile::tempdir().unwrap();
    short_suites_on(folder.path(), device.name(), &["--erase-device", device.name()]);
}

/// What is written for fio is run by fio, as many IOs as planned, and is read
/// back; what fio logs is a trace.
#[test]
fn fio_runs_what_is_written_for_it_and_its_log_is_a_trace() {
    if Command::new("fio").arg("--version").output().is_err() {
        return skipped("no fio");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("x.bin"), vec![1u8; 8 << 20]).unwrap();
    let job = "set buffering=buffered\na rr,rw bs=4K count=20\nb sw bs=64K count=16 start=0\nc rw bs=8K count=12 sync=4\n";
    std::fs::write(folder.join("a.job"), job).unwrap();
    let (text, _) = expect(folder, 0, &["job", "./x.bin", "a.job", "--to-fio"]);
    std::fs::write(folder.join("a.fio"), &text).unwrap();
    let run = |args: &[&str]| Command::new("fio").current_dir(folder).args(args).output().unwrap();
    let fio = run(&["--output-format=json", "a.fio"]);
    assert!(fio.status.success(), "{}\n{text}", String::from_utf8_lossy(&fio.stderr));
    let out: Value = serde_json::from_slice(&fio.stdout).unwrap();
    let seen: Vec<(u64, u64)> = out["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|j| (j["read"]["total_ios"].as_u64().unwrap(), j["write"]["total_ios"].as_u64().unwrap()))
        .collect();
    assert_eq!(seen, [(20, 0), (0, 20), (0, 16), (0, 12)]);
    let (back, _) = expect(folder, 0, &["job", "./x.bin", "a.fio", "--print"]);
    for line in
        ["rr bs=4K bytes=80K", "rw bs=4K bytes=80K", "sw bs=64K bytes=1M", "rw bs=8K bytes=96K sync=4"]
    {
        assert!(back.contains(line), "{line} in\n{back}");
    }
    let trace = ["--name=t", "--filename=x.bin", "--rw=randwrite", "--bs=4k", "--size=8m", "--number_ios=10"];
    let fio = run(&[&trace[..], &["--fdatasync=2", "--write_iolog=io.log"]].concat());
    assert!(fio.status.success(), "{}", String::from_utf8_lossy(&fio.stderr));
    let job = "plain rr,rw bs=4K,64K count=50 size=8M";
    std::fs::write(folder.join("b.job"), job).unwrap();
    expect(folder, 0, &["job", "null:8M", "b.job", "-o", "out"]);
    let facts = expect(folder, 0, &["predict", "out", "--trace", "io.log", "--json"]).0;
    let facts: Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(facts["character"]["writes"], 10);
    // Whether one comes after the last write is fio's affair.
    assert!((4.0..=5.0).contains(&number(&facts["character"]["flushes"])), "{}", facts["character"]);
    assert_eq!(facts["character"]["sectors_per_sync"], 16.0);
}
