//! Record files keep every record, and nothing that is damaged is believed.

use proptest::prelude::*;
use std::path::Path;
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos};
use uflip_store::records::{ROW_GROUP_ROWS, RecordScratch, RecordWriter, read_records, read_row_groups};

fn encode(run: u32, records: &[IoRecord]) -> Vec<u8> {
    let scratch = RecordScratch::new().unwrap();
    let mut writer = RecordWriter::new(Vec::new(), Path::new("memory"), scratch).unwrap();
    writer.push(run, records).unwrap();
    writer.finish().unwrap().0
}

fn encode_open(run: u32, records: &[IoRecord]) -> Vec<u8> {
    let scratch = RecordScratch::new().unwrap();
    let mut writer = RecordWriter::of(Vec::new(), Path::new("memory"), scratch, true).unwrap();
    writer.push(run, records).unwrap();
    writer.finish().unwrap().0
}

fn back(bytes: &[u8]) -> Result<Vec<IoRecord>, uflip_store::error::StoreError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    read_records(file.path())
}

fn record(offset: u64, size: u32, stream: u16, submit: u64, response: u64, kind: u8) -> IoRecord {
    let mode = [Mode::Read, Mode::Write, Mode::Flush, Mode::Trim][usize::from(kind) % 4];
    let io = Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(offset), size, mode, pattern: kind / 4 };
    IoRecord::new(&io, stream, Nanos(submit), Nanos(response))
}

fn any_record() -> impl Strategy<Value = IoRecord> {
    (0..1u64 << 52, 0..=IoRecord::MAX_SIZE, 0..4096u16, 0..1u64 << 52, 0..1u64 << 40, 0..64u8)
        .prop_map(|(o, z, s, t, r, k)| record(o, z, s, t, r, k))
}

/// Of an open loop, and as often of a closed one beside it.
fn open_or_closed() -> impl Strategy<Value = IoRecord> {
    let times = (0..1u64 << 50, 0..1u64 << 38, 0..1u64 << 38, prop::bool::weighted(0.2));
    let open =
        (0..1u64 << 43, 0..1u32 << 19, 0..4096u16, times, 0..64u8).prop_map(|(o, z, stream, times, kind)| {
            let mode = [Mode::Read, Mode::Write, Mode::Flush, Mode::Trim][usize::from(kind) % 4];
            let arrival = Arrival::At(Nanos(times.0));
            let io = Io { arrival, offset: Bytes(o << 9), size: z << 9, mode, pattern: kind / 4 };
            let submit = times.0 + if times.3 { 0 } else { times.1 };
            IoRecord::measured(&io, stream, Nanos(submit), Nanos(submit + times.2))
        });
    prop_oneof![open, any_record()]
}

/// Runs of equal and of changing values, as mixes and parallel streams give.
fn runs_of_records() -> impl Strategy<Value = Vec<IoRecord>> {
    prop::collection::vec((any_record(), 1..40usize), 0..60)
        .prop_map(|runs| runs.into_iter().flat_map(|(r, n)| std::iter::repeat_n(r, n)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_is_lost(records in prop::collection::vec(any_record(), 0..700)) {
        prop_assert_eq!(back(&encode(3, &records)).unwrap(), records);
    }

    #[test]
    fn instants_and_lateness_of_an_open_loop_are_kept(records in prop::collection::vec(open_or_closed(), 0..700)) {
        let read = back(&encode_open(3, &records)).unwrap();
        prop_assert!(read.iter().map(IoRecord::late).eq(records.iter().map(IoRecord::late)));
        prop_assert_eq!(read, records);
    }

    #[test]
    fn nothing_is_lost_of_repeating_values(records in runs_of_records()) {
        prop_assert_eq!(back(&encode(3, &records)).unwrap(), records);
    }

    #[test]
    fn a_damaged_file_is_an_error_or_other_records_but_never_a_panic(
        at in 0.0..1.0f64, byte in 1..=255u8,
    ) {
        let records: Vec<_> = (0..300).map(|i| record(i * 4096, 4096, 0, i * 90, 80 + i % 7, 0)).collect();
        let mut bytes = encode(0, &records);
        let at = (at * bytes.len() as f64) as usize;
        bytes[at] ^= byte;
        let _ = back(&bytes);
    }
}

#[test]
fn every_cut_of_a_file_is_refused() {
    let records: Vec<_> = (0..300).map(|i| record(i * 4096, 4096, 0, i * 90, 80 + i % 7, 0)).collect();
    let bytes = encode(0, &records);
    for cut in 0..bytes.len() {
        let text = back(&bytes[..cut]).expect_err("a cut file was read").to_string();
        assert!(text.contains("damaged"), "{text}");
    }
}

#[test]
fn row_groups_are_read_one_at_a_time() {
    let n = ROW_GROUP_ROWS as u64 + 77;
    let records: Vec<_> = (0..n).map(|i| record(i * 512 % 65536, 512, 0, i * 90, 80 + i % 7, 0)).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), encode(9, &records)).unwrap();
    let (mut sizes, mut all) = (vec![], vec![]);
    read_row_groups(file.path(), |run, some| {
        assert_eq!(run, 9);
        sizes.push(some.len());
        all.extend_from_slice(some);
        Ok(())
    })
    .unwrap();
    assert_eq!(sizes, [ROW_GROUP_ROWS, 77]);
    assert_eq!(all, records);
}

#[test]
fn a_baseline_of_1024_ios_takes_at_most_8_bytes_an_io() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    let mut clock = 0;
    let records: Vec<_> = (0..1024)
        .map(|_| {
            // About 80 us with a spread of 20 us and now and then a spike.
            let mut response = 40_000 + (0..4).map(|_| random() % 20_000).sum::<u64>();
            if random() % 100 == 0 {
                response *= 15;
            }
            clock += response + 200;
            record((random() % 32768) * 32768, 32768, 0, clock, response, 1)
        })
        .collect();
    let bytes = encode(12, &records).len();
    assert!(bytes <= 8 * 1024, "{bytes} bytes for 1024 IOs");
}

#[test]
fn a_file_of_closed_loops_is_as_it_was_and_takes_no_open_one() {
    let closed: Vec<_> = (0..300).map(|i| record(i * 4096, 4096, 0, i * 90, 80 + i % 7, 0)).collect();
    let columns = |bytes: &[u8]| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        uflip_store::records::is_of_open_loop(file.path()).unwrap()
    };
    assert!(!columns(&encode(1, &closed)) && columns(&encode_open(1, &closed)));
    assert_eq!(back(&encode_open(1, &closed)).unwrap(), closed);
    let io = Io { arrival: Arrival::At(Nanos(9)), offset: Bytes(0), size: 512, mode: Mode::Read, pattern: 0 };
    let open = IoRecord::measured(&io, 0, Nanos(9), Nanos(10));
    let mut writer =
        RecordWriter::new(Vec::new(), Path::new("memory"), RecordScratch::new().unwrap()).unwrap();
    let refused = writer.push(1, &[open]).unwrap_err().to_string();
    assert!(refused.contains("no place for the lateness"), "{refused}");
}
