//! The language, its errors, what it expands to, and no panic from any text.
use super::*;
use crate::plan::Step;
use proptest::prelude::*;
use uflip_device::Geometry;

const GEOMETRY: Geometry = Geometry { capacity: Bytes(64 << 20), sector: Bytes(512) };

const EXAMPLE: &str = "\
set  seed=7   # the issue's own example
std  sr,rr,sw,rw  bs=512..8M*2  time=30s reps=3  until=2.5%  before=fill(1M)
mis  rw           bs=4K..1M*2   shift=2K,16K,32K  time=30s reps=3
rec  sw           bs=512..8M*2  time=120s window=4s  before=fill(1M),rw(bs=same|2K,time=5s|30s|60s)
end  sw           bs=1M passes=1000 rounds=60 then=std
";

fn error(text: &str) -> (usize, usize, String) {
    let error = parse(text).unwrap_err();
    (error.line, error.column, error.expected)
}

#[test]
fn the_example_is_read_as_meant() {
    let job = parse(EXAMPLE).unwrap();
    assert_eq!((job.seed, job.lines.len()), (Some(7), 4));
    let [std, mis, rec, end] = &job.lines[..] else { panic!("four lines") };
    assert_eq!(std.block_sizes, (9..=23).map(|e| Bytes(1 << e)).collect::<Vec<_>>());
    assert_eq!((std.repeats, std.until_percent, std.time), (3, Some(2.5), Some(Nanos::from_secs(30))));
    assert_eq!(std.each, Each::Size);
    assert_eq!(mis.shifts, [Bytes(2048), Bytes(16 << 10), Bytes(32 << 10)]);
    assert_eq!((rec.window, rec.each), (Some(Nanos::from_secs(4)), Each::Run));
    let Before::Burst { baseline, blocks, lengths } = &rec.before[1] else { panic!("a burst") };
    assert_eq!((*baseline, &blocks[..]), (Baseline::Rw, &[None, Some(Bytes(2048))][..]));
    assert_eq!(lengths.len(), 3);
    let endurance = Endurance { passes: 1000, rounds: 60, then: Some("std".into()) };
    assert_eq!(end.endurance, Some(endurance));
}

#[test]
fn what_is_printed_is_read_back() {
    for text in [EXAMPLE].into_iter().chain(suite::SUITES.map(|(_, text)| text)) {
        let job = parse(text).unwrap();
        let again = parse(&job.to_string()).unwrap();
        let plain = |job: &Job| {
            let mut job = job.clone();
            job.lines.iter_mut().for_each(|line| line.number = 0);
            job
        };
        assert_eq!(plain(&again), plain(&job), "{job}");
    }
}

#[test]
fn errors_name_line_column_and_what_to_type() {
    let cases = [
        ("", 1, 1, "an experiment"),
        ("std", 1, 4, "patterns after the name"),
        ("std sx time=1s", 1, 5, "patterns after"),
        ("std sr,sr time=1s", 1, 5, "each value only once"),
        ("std sr bs=12Q time=1s", 1, 11, "a block size"),
        ("std sr bs=4K,1X time=1s", 1, 14, "a block size"),
        ("std sr bs=8K..4K time=1s", 1, 11, "a range that goes upwards"),
        ("std sr bs=4K..8K*1 time=1s", 1, 11, "a factor from 2"),
        ("std sr bs=0 time=1s", 1, 11, "a block size"),
        ("std sr bs=4K", 1, 13, "a length"),
        ("std sr time=0s", 1, 13, "a time"),
        ("std sr size=4K time=9999h", 1, 21, "a time"),
        ("std sr time=1s time=2s", 1, 16, "time only once"),
        ("std sr tme=1s", 1, 8, "bs, shift"),
        ("# nothing\n\nstd sr time=1s\nstd rr time=1s", 4, 1, "a name that no other"),
        ("set seed=-1", 1, 10, "a whole number"),
        ("set sed=1", 1, 5, "seed, data"),
        ("a sw time=1s before=fil(1M)", 1, 21, "fill(1M)"),
        ("a sw time=1s before=fill(1M),rw(bs=2K)", 1, 33, "the burst's length"),
        ("a sw time=1s before=rw(bs=9Q,time=1s)", 1, 27, "same, or a block size"),
        ("a sw time=1s window=4s", 1, 21, "a window no longer"),
        ("a sw rounds=3", 1, 6, "rounds and then only together"),
        ("a rw passes=3", 1, 6, "passes only with sw"),
        ("a sw passes=3 then=b", 1, 20, "the name of a line"),
        ("a sr time=1s sync=4", 1, 14, "sync only with sw and rw"),
        ("a sw time=1s sync=0", 1, 19, "a number from 1"),
        ("a sw bytes=most", 1, 12, "all, or a size"),
        ("a sw passes=3 sync=4", 1, 6, "passes only with sw"),
        ("é sw time=1s", 1, 1, "the experiment's name"),
    ];
    for (text, line, column, start) in cases {
        let (l, c, expected) = error(text);
        assert!((l, c) == (line, column) && expected.starts_with(start), "{text}: {l}:{c} {expected}");
    }
}

/// Labels of the runs in order: role, pattern, block size, repeat.
fn runs(text: &str) -> Vec<String> {
    let planned = expand(&parse(text).unwrap(), "t", GEOMETRY, 1).unwrap();
    let one = |(_, run): (u32, &JobRun)| {
        let role = match run.role {
            Role::Before => "before ",
            Role::Measured => "",
            Role::Passes => "passes ",
        };
        format!("{role}{} {} {}", run.baseline, run.block.exact(), run.repeat)
    };
    planned.runs().map(one).collect()
}

#[test]
fn lists_multiply_in_the_papers_order() {
    assert_eq!(
        runs("a sr,rw bs=4K,8K count=5 reps=2 before=fill(1M)"),
        [
            "before SW 1M 0",
            "SR 4K 0",
            "SR 4K 1",
            "RW 4K 0",
            "RW 4K 1",
            "before SW 1M 0",
            "SR 8K 0",
            "SR 8K 1",
            "RW 8K 0",
            "RW 8K 1",
        ]
    );
    assert_eq!(
        runs("a sw bs=4K count=5 before=fill(1M),rw(bs=same|8K,count=3)"),
        ["before SW 1M 0", "before RW 4K 0", "SW 4K 0", "before SW 1M 0", "before RW 8K 0", "SW 4K 0"]
    );
    assert_eq!(
        runs("a sr bs=4K count=5\nb sw bs=1M passes=2 rounds=2 then=a"),
        ["SR 4K 0", "passes SW 1M 0", "SR 4K 0", "passes SW 1M 0", "SR 4K 0"]
    );
}

#[test]
fn runs_are_what_the_line_says() {
    let job = parse("a sw,rw bs=4K shift=512 bytes=1M time=2s\nb sw bs=1M passes=3 rounds=1").unwrap();
    let planned = expand(&job, "t", GEOMETRY, 9).unwrap();
    let specs: Vec<_> = planned.plan.runs().collect();
    assert_eq!((specs[0].io_count, specs[0].time_limit), (256, Some(Nanos::from_secs(2))));
    let text = specs[1].work.to_string();
    assert_eq!(text, "RW(io_size=4K, io_shift=512B, target_offset=0B, target_size=64M, repeat=no)");
    assert!(specs[0].work.to_string().contains("start="), "{}", specs[0].work);
    assert_eq!(
        (specs[2].io_count, specs[2].work.to_string()),
        (192, "SW(io_size=1M, target_offset=0B, target_size=64M)".into())
    );
    assert_eq!(specs.len(), planned.runs().count());
    assert_eq!(expand(&job, "t", GEOMETRY, 9).unwrap(), planned);
}

#[test]
fn syncs_multiply_and_all_is_the_target_space() {
    let job =
        parse("set logical=1M data=cyclic\na rw bs=4K sync=1,4 count=8\nb sw bs=1M offset=4M bytes=all")
            .unwrap();
    assert_eq!(
        job.to_string(),
        "set data=cyclic logical=1M\na rw bs=4K count=8 sync=1,4\nb sw bs=1M bytes=all offset=4M\n"
    );
    let planned = expand(&job, "t", GEOMETRY, 9).unwrap();
    let specs: Vec<_> = planned.plan.runs().collect();
    assert_eq!(specs.iter().map(|s| s.io_count).collect::<Vec<_>>(), [16, 10, 60], "with their flushes");
    assert_eq!(planned.runs().map(|(_, r)| r.sync).collect::<Vec<_>>(), [Some(1), Some(4), None]);
    assert!(specs[1].work.to_string().ends_with(", repeat=no, sync=4)"), "{}", specs[1].work);
    assert_eq!(drive::bytes_of(specs[1], 10), 8 * 4096);
    let costs = costs(&job, &planned, Assumed::default());
    assert_eq!((costs[0].write_bytes, costs[1].write_bytes), (Bytes(16 * 4096), Bytes(60 << 20)));
}

#[test]
fn what_does_not_fit_is_left_out_with_a_reason() {
    let geometry = Geometry { capacity: Bytes(1 << 20), sector: Bytes(4096) };
    let planned = expand(&parse("a sr bs=512,4K,2M count=1").unwrap(), "t", geometry, 1).unwrap();
    assert_eq!((planned.runs().count(), planned.plan.skipped.len()), (1, 2));
    assert!(planned.plan.skipped[0].reason.contains("sector"), "{:?}", planned.plan.skipped);
    assert!(matches!(
        expand(&parse("a sr bs=512 count=1").unwrap(), "t", geometry, 1),
        Err(ExpandError::Nothing(_))
    ));
    let many = parse("a sr,rr bs=512..8M count=1 reps=100000").unwrap();
    assert!(matches!(expand(&many, "t", GEOMETRY, 1), Err(ExpandError::TooMany { line: 1, .. })));
}

#[test]
fn self_scaling_adds_segments_that_may_be_left_out() {
    let job = parse("a sr bs=4K..1M count=1 until=2.5%").unwrap();
    let planned = expand(&job, "t", GEOMETRY, 1).unwrap();
    let optional: Vec<Bytes> =
        planned.segments.iter().filter(|s| s.if_grown_percent.is_some()).map(|s| s.block).collect();
    assert_eq!(optional, [2, 4, 8].map(|mb| Bytes(mb << 20)));
    let steps: usize = planned.segments.iter().map(|s| s.steps.len()).sum();
    assert_eq!(steps, planned.plan.steps.len());
    assert!(planned.plan.steps.iter().all(|s| matches!(s, Step::Run(_))));
}

#[test]
fn costs_are_sums_of_what_is_known() {
    let job = parse("a sr time=3s reps=2 bs=4K\nb sw bytes=8M bs=1M before=fill(1M)").unwrap();
    let planned = expand(&job, "t", GEOMETRY, 1).unwrap();
    let assumed = Assumed { latency: Nanos::ZERO, bytes_per_s: f64::from(1 << 20) };
    let costs = costs(&job, &planned, assumed);
    assert_eq!((costs[0].runs, costs[0].time, costs[0].read_bytes), (2, Nanos::from_secs(6), Bytes(6 << 20)));
    assert_eq!((costs[1].runs_before, costs[1].write_bytes), (1, Bytes(72 << 20)));
    assert_eq!(costs[1].time, Nanos::from_secs(72));
}

/// Words of the language, so that random texts get past the first error.
fn words() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "set ",
        "std ",
        "sr,rw ",
        "sw ",
        "bs=",
        "512..8M*2",
        "4K",
        ",",
        "|",
        "shift=",
        "time=",
        "30s",
        "reps=3 ",
        "until=2.5% ",
        "before=",
        "fill(1M)",
        "rw(bs=same|2K,time=5s)",
        "idle(1s)",
        "window=4s ",
        "passes=2 ",
        "rounds=3 ",
        "then=std ",
        "\n",
        " ",
        "(",
        ")",
        "=",
        "..",
        "*",
        "#",
        "count=9 ",
        "bytes=1M ",
        "é",
        "\u{0}",
        "18446744073709551615",
        "0",
        "-1",
        "1e309%",
        "each=run ",
        "start=0 ",
        "seed=7 ",
        "data=age ",
        "size=1M ",
        "sync=1,4 ",
        "bytes=all ",
        "logical=4M ",
        "data=cyclic ",
    ]);
    prop::collection::vec(known, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_text_panics_and_what_is_read_is_printed(text in prop_oneof![words(), any::<String>()]) {
        if let Ok(job) = parse(&text) {
            let again = parse(&job.to_string());
            prop_assert_eq!(again.unwrap().lines.len(), job.lines.len());
            if let Ok(planned) = expand(&job, "t", GEOMETRY, 1) {
                prop_assert!(planned.runs().count() <= expand::MAX_RUNS);
                costs(&job, &planned, Assumed::default());
            }
        }
    }
}

#[test]
fn fio_jobs_of_the_simple_kind_are_read() {
    let told = |text: &str| fio::from_fio(text).unwrap().to_string();
    assert_eq!(
        told("[a]\nrw=randwrite\nbs=4k\nfdatasync=8\nnumber_ios=64\n"),
        "set buffering=buffered\na rw bs=4K count=64 sync=8\n",
        "fio's default is the page cache"
    );
    assert_eq!(
        told(
            "; a comment\n[global]\ndirect=1\nsync=1\nbs=8k\n[a]\nrw=randwrite\nsize=1g\nruntime=30\n\n[sw]\nstonewall\nrw=write\nbs=1m\nnumber_ios=100\n"
        ),
        "set buffering=dsync\na rw bs=8K bytes=1G time=30s size=1G\nsw_11 sw bs=1M count=100 start=0\n"
    );
    for (length, line) in [
        ("size=4m\nruntime=3", "bytes=4M time=3s size=4M"),
        ("size=4m\nruntime=3\ntime_based", "time=3s size=4M"),
        ("size=4m\nruntime=3\ntime_based=0", "bytes=4M time=3s size=4M"),
        ("runtime=3", "bytes=all time=3s"),
        ("size=4m\nnumber_ios=5000", "count=1024 size=4M"),
        ("size=4m\nio_size=8m\nnumber_ios=1500", "count=1500 size=4M"),
        ("size=4m\nloops=3", "bytes=4M reps=3 size=4M"),
        ("size=4m\nbuffered=0\nnorandommap=0\nend_fsync=0", "bytes=4M size=4M"),
    ] {
        let job = told(&format!("[j]\nrw=randread\nbs=4k\ndirect=1\n{length}\n"));
        assert_eq!(job, format!("set buffering=direct\nj rr bs=4K {line}\n"));
    }
    for (bad, line, start) in [
        ("[a]\nrw=randrw\nsize=1g", 2, "rw=read"),
        ("[a]\nnumjobs=4\nsize=1g", 2, "numjobs=1"),
        ("[a]\nrwmixread=3\nsize=1g", 2, "a key of a simple job"),
        ("[a]\nrw=read", 1, "size, io_size"),
        ("", 1, "a job"),
        ("[a\n", 1, "[NAME]"),
        ("[a]\nsize=1g\n[b]\nsize=1g", 3, "stonewall in every job after the first"),
        ("[a]\nsize=1g\ndirect=1\n[b]\nstonewall\nsize=1g", 4, "the same direct="),
        ("[a]\nsize=1g\nsync=1", 1, "direct=1 beside sync="),
        ("[a]\nsize=1g\nfilename=x\n[b]\nstonewall\nsize=1g\nfilename=y", 4, "one filename"),
        ("[a]\nsize=1g\nfilename=x:y", 3, "one filename"),
        ("[a]\nsize=1g\nexitall\n[b]\nstonewall\nsize=1g", 1, "a file without exitall"),
        ("[a]\nrw=randread\nsize=1g\nnorandommap", 1, "norandommap=0"),
        ("[a]\nrw=write\nsize=1g\nend_fsync=1", 1, "end_fsync=0"),
        ("[a]\nsize=1g\ntime_based", 1, "runtime= beside time_based"),
        ("[a]\nsize=1g\nloops=2\nruntime=9", 1, "loops= without"),
        ("[a]\nsize=1g\nloops=2\nio_size=2g", 1, "loops= without"),
        ("[a]\nsize=1g\ndirect=yes", 3, "0 or 1"),
    ] {
        let error = fio::from_fio(bad).unwrap_err();
        assert!(error.line == line && error.expected.starts_with(start), "{bad}: {error}");
    }
}

#[test]
fn a_plan_as_fio_says_what_is_missing() {
    let job = parse("a rw bs=4K count=5 sync=2 until=2%\nb sw bs=1M time=1s window=100ms start=0\nc rr,sr bs=4K count=9 time=2s").unwrap();
    let planned = expand(&job, "t", GEOMETRY, 1).unwrap();
    let text = fio::to_fio(&job, &planned, "/dev/x", Buffering::Direct);
    for part in [
        "a: until=",
        "b: window=",
        "rw=randwrite\nbs=4096\n",
        "io_size=20480\nfdatasync=2\n",
        "time_based\nruntime=1000000us\n",
        "io_size=36864\nruntime=2000000us\n",
        "c: start=random",
        "filename=/dev/x\n",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("a: start=random"), "random addresses have no wrap:\n{text}");
}

/// Reads and writes that fio issued in each of its jobs; `None` without fio. Its flushes are not held
/// against ours: fio 3.33 does one less at the end, and one more where it goes round.
fn fio_issued(folder: &std::path::Path, text: &str) -> Option<Vec<[u64; 2]>> {
    let file = folder.join("x.fio");
    std::fs::write(&file, text).unwrap();
    let run = std::process::Command::new("fio").arg("--output-format=json").arg(&file).output();
    let Ok(out) = run else {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: fio is not installed\n");
        return None;
    };
    let told: serde_json::Value = serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)));
    let of = |job: &serde_json::Value| ["read", "write"].map(|mode| job[mode]["total_ios"].as_u64().unwrap());
    Some(told["jobs"].as_array().unwrap().iter().map(of).collect())
}

/// A target of 4 MiB for fio, and its geometry.
fn fio_target(folder: &std::path::Path) -> (String, Geometry) {
    let path = folder.join("f.img");
    std::fs::write(&path, vec![1; 4 << 20]).unwrap();
    (path.display().to_string(), Geometry { capacity: Bytes(4 << 20), ..GEOMETRY })
}

/// Reads and writes of each of a plan's runs.
fn planned_ios(planned: &JobPlan) -> Vec<[u64; 2]> {
    let of = |spec: &crate::run::RunSpec| {
        let basic = spec.pattern().unwrap().basics()[0];
        let data = basic.timing.without_flushes(spec.io_count);
        let reads = basic.baseline().mode() == crate::pattern::PatternMode::Read;
        if reads { [data, 0] } else { [0, data] }
    };
    let steps = planned.plan.steps.iter();
    steps.filter_map(|step| if let Step::Run(spec) = step { Some(of(spec)) } else { None }).collect()
}

#[test]
fn fio_does_as_many_ios_as_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let (name, geometry) = fio_target(folder.path());
    let text = "b sw bs=32K count=250 sync=4 start=0\nd rr bs=32K count=380\ng rw bs=256K bytes=16M time=60s\n\
                s sr bs=64K count=100 shift=2K\ne sw bs=1M passes=3";
    let planned = expand(&parse(text).unwrap(), "t", geometry, 5).unwrap();
    let fio = fio::to_fio(&parse(text).unwrap(), &planned, &name, Buffering::Buffered);
    let Some(issued) = fio_issued(folder.path(), &fio) else { return };
    let expected = [[0, 250], [380, 0], [0, 64], [100, 0], [0, 12]];
    assert_eq!(planned_ios(&planned), expected);
    assert_eq!(issued, expected, "{fio}");
}

#[test]
fn a_job_does_as_many_ios_as_fio() {
    let folder = tempfile::tempdir().unwrap();
    let (name, geometry) = fio_target(folder.path());
    let text = format!(
        "[global]\nfilename={name}\nioengine=psync\nthread\nbs=4k\nstonewall\n\
         [a]\nrw=randread\nsize=1m\noffset=1m\nruntime=60\n[b]\nrw=read\nsize=1m\nnumber_ios=5000\n\
         [c]\nrw=randwrite\nsize=1m\nio_size=3m\nfdatasync=8\n[d]\nrw=write\nsize=1m\nnumber_ios=100\n\
         [e]\nrw=randread\nruntime=60\n"
    );
    let planned = expand(&fio::from_fio(&text).unwrap(), "t", geometry, 5).unwrap();
    let Some(issued) = fio_issued(folder.path(), &text) else { return };
    let expected = [[256, 0], [256, 0], [0, 768], [0, 100], [1024, 0]];
    assert_eq!(issued, expected);
    assert_eq!(planned_ios(&planned), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn no_fio_text_panics(text in prop::collection::vec(prop::sample::select(vec![
        "[global]\n", "[a]\n", "[", "]\n", "rw=read\n", "rw=", "bs=4k\n", "bs=", "0", "size=1g\n", "runtime=3\n", "runtime=", "18446744073709551615h\n",
        "loops=9\n", "numjobs=1\n", "é", "=", "\n", "number_ios=0\n", "io_size=", "%",
    ]), 0..30)) {
        let text = text.concat();
        if let Ok(job) = fio::from_fio(&text) {
            let again = parse(&job.to_string());
            prop_assert!(again.is_ok(), "{text}\n{job}\n{again:?}");
        }
    }
}

/// Every example of the documentation is a job.
#[test]
fn the_documentation_is_true() {
    let text = include_str!("../../../../docs/job-files.md");
    let examples: Vec<&str> =
        text.split("```job\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 2);
    for example in examples {
        parse(example).unwrap_or_else(|error| panic!("{example}{error}"));
    }
    for key in parse::KEYS.split([',', ' ']).filter(|key| !key.is_empty() && *key != "or") {
        assert!(text.contains(&format!("`{key}=")), "{key} is not documented");
    }
}

/// What the runs stand for is in the plan: nobody needs the job to tell.
#[test]
fn a_stored_plan_says_what_its_runs_stand_for() {
    for text in suite::SUITES.iter().map(|(_, text)| *text).chain([
        "a sw bs=4K,8K shift=0,2K count=4 reps=2 each=run pause=1ms before=idle(1ms),rw(bs=same|2K,count=3|5)",
        "a sr bs=4K count=1 until=2.5%\nb sw bs=1M passes=1 rounds=2 then=a\nc rw bs=4K sync=1,4 count=8",
    ]) {
        let planned = expand(&parse(text).unwrap(), "t", GEOMETRY, 3).unwrap();
        let text = serde_json::to_string(&planned.plan).unwrap();
        let stored = JobPlan::stored(serde_json::from_str(&text).unwrap()).unwrap();
        // All but which line a value that was left out is of.
        assert_eq!((stored.plan, stored.segments), (planned.plan, planned.segments));
    }
}
