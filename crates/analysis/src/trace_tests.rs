//! Each form gives the same IOs; no text panics; the character is counted by hand.
use super::*;
use proptest::prelude::*;

const BLKPARSE: &str = "  8,0    3        1     0.000000000   697  Q   W 8 + 8 [fio]
  8,0    3        2     0.000100000   697  D   W 8 + 8 [fio]
  8,0    3        3     0.000300000     0  C   W 8 + 8 [0]
  8,0    3        4     0.000400000   697  D   R 16 + 16 [fio]
  8,0    3        5     0.000450000     0  C   R 16 + 16 [0]
CPU0 (8,0):\n Reads Queued: 1\n";
const EVENTS: &str = "# tracer: nop
 fio-697 [003] d..1. 5.000100: block_rq_issue: 8,0 W 4096 () 8 + 8 none,0,0 [fio]
 <idle>-0 [003] d..1. 5.000300: block_rq_complete: 8,0 W () 8 + 8 none,0,0 [0]
 fio-697 [003] d..1. 5.000400: block_rq_issue: 8,0 R 8192 () 16 + 16 none,0,0 [fio]
 <idle>-0 [003] d..1. 5.000450: block_rq_complete: 8,0 R () 16 + 16 none,0,0 [0]
";
const IOLOG: &str = "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x write 4096 4096\n/dev/x read 8192 8192\n/dev/x close\n";

fn write(offset: u64, size: u32) -> TraceIo {
    TraceIo { at: Nanos::ZERO, offset, size, mode: Mode::Write, response: None }
}

#[test]
fn every_form_says_the_same() {
    let plain = |text: &str| -> Vec<(u64, u32, Mode)> {
        parse(text).unwrap().iter().map(|io| (io.offset, io.size, io.mode)).collect()
    };
    let expected = [(4096, 4096, Mode::Write), (8192, 8192, Mode::Read)];
    for text in [BLKPARSE, EVENTS, IOLOG] {
        assert_eq!(plain(text), expected, "{text}");
    }
    for text in [BLKPARSE, EVENTS] {
        let responses: Vec<_> = parse(text).unwrap().iter().map(|io| io.response).collect();
        assert_eq!(responses, [Some(Nanos::from_micros(200)), Some(Nanos::from_micros(50))], "{text}");
    }
    let timed = "fio version 3 iolog\n0 /d add\n5 /d write 0 512\n7 /d read 512 512\n";
    assert_eq!(parse(timed).unwrap()[1].at, Nanos::from_micros(2));
}

/// Taken on Linux from a loop device that fio wrote to: 8 KiB writes, fdatasync
/// after four of them, then reads.
#[test]
fn real_text_of_the_kernel_and_of_blkparse_is_read() {
    let offsets = [7904u64, 97024, 110_512, 61600].map(|sector| sector * 512);
    for text in [include_str!("../fuzz-corpus/blkparse-2"), include_str!("../fuzz-corpus/blk-classic-1")] {
        let trace = parse(text).unwrap();
        let first: Vec<u64> = trace[..4].iter().map(|io| io.offset).collect();
        assert_eq!(first, offsets);
        assert!(trace[..4].iter().all(|io| (io.size, io.mode) == (8192, Mode::Write)));
        let flush = trace[4];
        assert!(flush.mode == Mode::Flush && flush.response.unwrap() > Nanos::ZERO, "{flush:?}");
        assert!(trace[..5].iter().all(|io| io.response.is_some()));
    }
    let text = include_str!("../fuzz-corpus/blkparse-2");
    let (first, last) = (parse(text).unwrap()[0], *parse(text).unwrap().last().unwrap());
    assert_eq!(first.response, Some(Nanos(116_072 - 25838)));
    assert_eq!((last.offset, last.size, last.mode), (7904 * 512, 4096, Mode::Read));
}

/// Flushes complete at sector 2^64 - 1; a request that the driver sent back was
/// issued twice.
#[test]
fn real_trace_events_are_read() {
    let text = include_str!("../fuzz-corpus/events-2");
    let trace = parse_device(text, Some("7,0")).unwrap();
    let modes: Vec<Mode> = trace.iter().map(|io| io.mode).collect();
    let (w, f, t) = (Mode::Write, Mode::Flush, Mode::Trim);
    assert_eq!(modes, [w, w, w, w, f, w, w, w, w, t, t, w, f]);
    assert_eq!(trace[4].response, Some(Nanos::from_micros(10)));
    assert_eq!(syncs(&trace).iter().map(Vec::len).collect::<Vec<_>>(), [4, 5]);
    let disk = parse_device(text, Some("254,0")).unwrap();
    assert_eq!(disk.len(), 2, "{disk:?}");
    assert_eq!((disk[1].size, disk[1].response), (405_504, Some(Nanos::from_micros(1103))));
    let issued: String = text.lines().filter(|l| l.contains("issue")).map(|l| format!("{l}\n")).collect();
    assert_eq!(parse_device(&issued, Some("254,0")).unwrap().len(), 3, "nothing says that it came back");
}

/// fio 3.33: ten IOs a second; four jobs in one log.
#[test]
fn real_iologs_have_times_in_us_and_a_header_for_each_job() {
    let trace = parse(include_str!("../fuzz-corpus/iolog-5")).unwrap();
    assert_eq!(trace.len(), 6);
    let steps: Vec<u64> = trace.windows(2).map(|w| (w[1].at.0 - w[0].at.0) / 1_000_000).collect();
    assert!(steps.iter().all(|ms| (99..=101).contains(ms)), "{steps:?}");
    let two = "fio version 2 iolog\na write 0 512\nb write 0 512\nb write 512 512\n";
    assert_eq!(parse(two).unwrap_err().line, 3, "two files are two spaces of addresses");
    assert_eq!(parse_device(two, Some("b")).unwrap().len(), 2);
    let trace = parse(include_str!("../fuzz-corpus/iolog-4")).unwrap();
    assert_eq!(trace.len(), 20);
    assert!(trace.windows(2).all(|w| w[0].at <= w[1].at));
    let c = character(&trace, Bytes(1 << 20));
    assert_eq!((c.sequential_streams, c.logical_blocks), (4, 4));
}

#[test]
fn errors_name_the_place() {
    let bad = "fio version 2 iolog\n/dev/x write 4096 x\n";
    let error = parse(bad).unwrap_err();
    assert_eq!((error.line, error.column), (2, 8));
    let error = parse("é : block_rq_issue: ").unwrap_err();
    assert_eq!((error.line, error.column), (1, 1), "characters of more than a byte before the time");
    let two =
        format!("{EVENTS} fio-697 [003] d..1. 6.0: block_rq_issue: 8,16 W 4096 () 8 + 8 none,0,0 [fio]\n");
    let error = parse(&two).unwrap_err();
    assert!(error.line == 6 && error.expected.contains("--device"), "{error}");
    assert_eq!(parse_device(&two, Some("8,16")).unwrap().len(), 1);
    assert_eq!(parse_device(&two, Some("8,0")).unwrap().len(), 2);
    assert!(parse("").is_err() && parse("hello\n").is_err());
}

#[test]
fn the_character_is_what_was_counted_by_hand() {
    // Two syncs: one in one logical block of 1 MiB, one in two of them.
    let flush = TraceIo { at: Nanos::ZERO, offset: 0, size: 0, mode: Mode::Flush, response: None };
    let trace = [write(0, 4096), write(4096, 4096), flush, write(8192, 4096), write(1 << 20, 4096), flush];
    let c = character(&trace, Bytes(1 << 20));
    assert_eq!((c.writes, c.flushes, c.syncs, c.logical_blocks), (4, 2, 2, 2));
    assert_eq!((c.sectors_per_sync, c.focal_factor), (Some(16.0), Some(0.75)));
    assert_eq!((c.sequential_share, c.aligned_share), (Some(0.5), Some(1.0)));
    // Block 0, then 1: one merge with one log block, none with two.
    assert_eq!((c.merges_by_log_blocks[&1], c.merges_by_log_blocks[&2]), (1, 0));
    let random: Vec<TraceIo> = (0..12).map(|i| write((i % 3) << 20, 512)).collect();
    let c = character(&random, Bytes(1 << 20));
    assert_eq!(c.merges_by_log_blocks[&1], 11);
    assert_eq!((c.merges_by_log_blocks[&2], c.merges_by_log_blocks[&4]), (10, 0));
    assert_eq!(c.focal_factor, Some(1.0), "without flushes each write is a sync");
}

fn lines() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        BLKPARSE,
        EVENTS,
        IOLOG,
        include_str!("../fuzz-corpus/blk-classic-1"),
        include_str!("../fuzz-corpus/events-2"),
        ": block_rq_complete: 8,0 FF () 18446744073709551615 + 0 x\n",
        "fio version 3 iolog\n",
        "8,0 3 2 0.1 6 D W 8 + 8 [x]\n",
        " ",
        "\n",
        "+",
        "18446744073709551615",
        "9,9 0 0 18446744073709551615.9 1 D W ",
        ": block_rq_issue: ",
        "é",
        "W",
        "write 1 1\n",
        "-1",
        "\u{0}",
    ]);
    prop::collection::vec(known, 0..20).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn no_text_panics(text in prop_oneof![lines(), any::<String>()], cut in 0usize..400) {
        let cut = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
        if let Ok(trace) = parse(&text[..cut]) {
            character(&trace, Bytes(1 << 20));
        }
    }
}
