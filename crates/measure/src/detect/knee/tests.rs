//! The rules on all rows of Table 3 of paper 001, the curves sketched from the
//! table and the text, and on curves that have no knee.

use super::*;

const MS: f64 = 1e6;
const MIB: i64 = 1 << 20;

/// A row of Table 3: ms, MB, factors; None where the table has no entry.
struct Row {
    name: &'static str,
    sw_ms: f64,
    rw_ms: f64,
    pause_ms: Option<f64>,
    locality: Option<(i64, f64)>,
    partitions: (i64, f64),
    in_place: f64,
}

#[rustfmt::skip]
const TABLE_3: [Row; 7] = [
    Row { name: "Memoright", sw_ms: 0.3, rw_ms: 5.0, pause_ms: Some(5.0), locality: Some((8, 1.0)), partitions: (8, 1.0), in_place: 1.0 },
    Row { name: "Mtron", sw_ms: 0.4, rw_ms: 9.0, pause_ms: Some(9.0), locality: Some((8, 2.0)), partitions: (4, 1.5), in_place: 1.0 },
    Row { name: "Samsung", sw_ms: 0.6, rw_ms: 18.0, pause_ms: None, locality: Some((16, 1.5)), partitions: (4, 2.0), in_place: 0.6 },
    Row { name: "Transcend Module", sw_ms: 1.7, rw_ms: 18.0, pause_ms: None, locality: Some((4, 2.0)), partitions: (4, 2.0), in_place: 2.0 },
    Row { name: "Transcend MLC", sw_ms: 2.6, rw_ms: 233.0, pause_ms: None, locality: Some((4, 1.0)), partitions: (4, 2.0), in_place: 2.0 },
    Row { name: "Kingston DTHX", sw_ms: 1.8, rw_ms: 270.0, pause_ms: None, locality: Some((16, 20.0)), partitions: (8, 20.0), in_place: 6.0 },
    Row { name: "Kingston DTI", sw_ms: 2.9, rw_ms: 256.0, pause_ms: None, locality: None, partitions: (4, 5.0), in_place: 40.0 },
];

/// A mean with an interval of 4 % either way.
fn ms(mean: f64) -> Level {
    Level { mean_ns: mean * MS, low_ns: mean * 0.96 * MS, high_ns: mean * 1.04 * MS }
}

fn curve(points: impl IntoIterator<Item = (i64, f64)>) -> Vec<KneePoint> {
    points.into_iter().map(|(value, mean)| KneePoint { value, cost: ms(mean) }).collect()
}

/// Random writes over areas of 1 to 2^16 IOs of 32 KiB: in place, then growing
/// to the table's cost at the area, then towards RW (figure 8).
fn locality_curve(row: &Row) -> Vec<KneePoint> {
    let cost = |size: i64| match row.locality {
        _ if size == 32 << 10 => row.sw_ms * row.in_place,
        Some((area, factor)) if size <= area * MIB => {
            row.sw_ms * factor.powf(0.5 + 0.5 * size as f64 / (area * MIB) as f64)
        }
        Some((area, _)) => row.rw_ms * (1.0 - 0.6 * (area * MIB) as f64 / size as f64),
        None => row.rw_ms,
    };
    curve((0..=16).map(|k| ((32 << 10) << k, cost((32 << 10) << k))))
}

#[test]
fn locality_holds_on_table_3() {
    for row in &TABLE_3 {
        let found = locality(&locality_curve(row), &ms(row.rw_ms), &ms(row.sw_ms));
        let Some((area, factor)) = row.locality else {
            assert_eq!(found, None, "{}", row.name);
            continue;
        };
        let found = found.expect(row.name);
        assert_eq!(found.value, area * MIB, "{}", row.name);
        assert!(
            (found.factor.ratio - factor).abs() < 1e-6
                && found.factor.low < factor
                && factor < found.factor.high
        );
        assert_eq!((found.at_least, found.at_most), (Some(area * MIB), area * MIB), "{}", row.name);
        assert_eq!(found.rests_on, [area * MIB, 2 * area * MIB]);
    }
}

#[test]
fn partitions_hold_on_table_3() {
    for row in &TABLE_3 {
        let (count, factor) = row.partitions;
        let cost = |n: i64| {
            if n <= count {
                row.sw_ms * factor.powf((n as f64).log2() / (count as f64).log2())
            } else {
                row.rw_ms * (1.0 - 0.6 * count as f64 / n as f64)
            }
        };
        let found =
            partitions(&curve((0..=8).map(|k| (1 << k, cost(1 << k)))), &ms(row.sw_ms), &ms(row.rw_ms));
        let found = found.expect(row.name);
        assert_eq!(found.value, count, "{}", row.name);
        assert!((found.factor.ratio - factor).abs() < 1e-6, "{}", row.name);
    }
}

#[test]
fn pause_holds_on_table_3() {
    for row in &TABLE_3 {
        // The work put off is done in the pauses; nothing is saved in total.
        let cost = |pause: f64| match row.pause_ms {
            Some(full) => (row.rw_ms - pause * (row.rw_ms - row.sw_ms) / full).max(row.sw_ms),
            None => row.rw_ms,
        };
        let points = (0..=8).map(|k| (100_000i64 << k, cost(0.1 * f64::from(1 << k))));
        let found = pause_rw(&curve(points), &ms(row.rw_ms), &ms(row.sw_ms));
        let Some(full) = row.pause_ms else {
            assert_eq!(found, None, "{}", row.name);
            continue;
        };
        let found = found.expect(row.name);
        assert!(
            (found.above_ns.unwrap() as f64) < full * MS && full * MS <= found.pause_ns as f64,
            "{found:?}"
        );
    }
}

/// Samsung: 18 ms aligned to 16 KB, 32 ms otherwise.
#[test]
fn samsungs_alignment_unit_is_16_kib() {
    let shifts = (0..=6).map(|k| 512i64 << k);
    let points = curve(shifts.map(|s| (s, if s % (16 << 10) == 0 { 18.0 } else { 32.0 })));
    let found = alignment(&points, &ms(18.0)).expect("a penalty");
    assert_eq!(found.unit_bytes, Some(16 << 10));
    assert!((found.penalty.ratio - 32.0 / 18.0).abs() < 1e-9);
    assert_eq!(found.rests_on, [512, 1024, 2048, 4096, 8192]);
    assert_eq!(alignment(&curve([(512, 18.4), (1024, 18.0)]), &ms(18.0)), None);
    assert_eq!(alignment(&curve([(512, 30.0), (1024, 30.0)]), &ms(18.0)).unwrap().unit_bytes, None);
}

/// A page of 2 KiB and a row of 8 KiB; a unit of 4 KiB and one of 32 KiB: the advice is the
/// unit that takes most of the penalty, not the last that has any.
#[test]
fn each_unit_has_its_own_penalty_and_the_advice_is_the_one_that_takes_most() {
    for (small, large, below, rest) in [(2048, 8192, 3.2, 1.17), (4096, 32768, 2.8, 1.33)] {
        let cost = |s: i64| match s {
            _ if s % small != 0 => below,
            _ if s % large != 0 => rest,
            _ => 1.0,
        };
        let found = alignment(&curve((0..=6).map(|k| (512i64 << k, cost(512 << k)))), &ms(1.0)).unwrap();
        assert_eq!(found.unit_bytes, Some(small));
        assert!((found.penalty.ratio - below).abs() < 1e-9);
        let levels: Vec<(i64, f64)> = found.levels.iter().map(|l| (l.unit_bytes, l.penalty.ratio)).collect();
        assert_eq!(levels, [(small, below), (large, rest)]);
        assert!(
            found.levels.iter().all(|l| l.penalty.low < l.penalty.ratio && l.penalty.ratio < l.penalty.high)
        );
    }
    // Where less than half is gone below, the larger one is the advice.
    let cost = |s: i64| {
        if s % 2048 != 0 {
            2.0
        } else if s % 8192 != 0 {
            1.7
        } else {
            1.0
        }
    };
    let found = alignment(&curve((0..=6).map(|k| (512i64 << k, cost(512 << k)))), &ms(1.0)).unwrap();
    assert_eq!(found.unit_bytes, Some(8192));
}

/// Random writes of 1.05 ms up to 8 MB, SW 1.01, RW 3.31: a quarter of RW is less than SW.
#[test]
fn small_areas_help_where_random_writes_cost_a_few_times_sequential_ones() {
    for ratio in [1.6, 2.0, 3.0, 3.28, 4.0, 4.4, 6.0, 12.0] {
        let (sw, rw) = (1.01, 1.01 * ratio);
        let cost = |size: i64| {
            if size <= 8 * MIB { 1.05 } else { rw * (1.0 - 0.1 * (8 * MIB) as f64 / size as f64) }
        };
        let found =
            locality(&curve((0..=11).map(|k| ((32 << 10) << k, cost((32 << 10) << k)))), &ms(rw), &ms(sw));
        assert_eq!(found.map(|k| k.value), Some(8 * MIB), "x{ratio}");
        let cost = |n: i64| if n <= 4 { 1.05 } else { rw };
        let found = partitions(&curve((0..=8).map(|k| (1 << k, cost(1 << k)))), &ms(sw), &ms(rw));
        assert_eq!(found.map(|k| k.value), Some(4), "x{ratio}");
    }
}

/// Memoright: 70 us for SR and SW, 115 us for RR, and 0.3 to 0.4 ms at 32 KiB.
#[test]
fn granularity_lines_give_latency_and_cost() {
    // By hand: 64 KiB have 90.6 % of the throughput of 256 KiB, and 87.5 %.
    for (latency_us, us_per_kib, saturation_kib) in [(70.0, 7.6, 64), (115.0, 8.9, 128)] {
        let wobble = |k: i64| 1.0 + if k % 2 == 0 { 0.01 } else { -0.01 };
        let cost = |k: i64| (latency_us + us_per_kib * 0.5 * (1 << k) as f64) * wobble(k) / 1e3;
        let found = granularity(&curve((0..=9).map(|k| (512 << k, cost(k))))).expect("a line");
        assert!(found.latency_us.low < latency_us && latency_us < found.latency_us.high, "{found:?}");
        assert!(found.us_per_kib.low < us_per_kib && us_per_kib < found.us_per_kib.high, "{found:?}");
        assert!((found.latency_us.value / latency_us - 1.0).abs() < 0.03 && found.linear, "{found:?}");
        assert_eq!(found.saturation_bytes, saturation_kib << 10);
    }
    // Kingston DTI: writes under 32 KB cost as much as one of 32 KB.
    let bent =
        granularity(&curve((0..=9).map(|k| (512 << k, 3.0 * (((1 << k) as f64) / 64.0).max(1.0))))).unwrap();
    assert!(!bent.linear && bent.saturation_bytes == 32 << 10, "{bent:?}");
    assert_eq!(granularity(&curve([(512, 1.0), (1024, 2.0)])), None);
    assert_eq!(granularity(&curve([(512, 1.0), (512, 2.0), (512, 3.0)])), None);
}

#[test]
fn where_random_writes_are_cheap_there_is_no_locality_and_partitions_compare_with_sw() {
    // A newer device: random writes cost as sequential ones.
    let flat = curve((0..=8).map(|k| (1 << k, if k <= 5 { 1.0 } else { 3.0 })));
    assert_eq!(locality(&flat, &ms(1.1), &ms(1.0)), None);
    assert_eq!(partitions(&flat, &ms(1.0), &ms(1.1)).map(|k| k.value), Some(32));
    assert_eq!(pause_rw(&flat, &ms(1.1), &ms(1.0)), None);
}

#[test]
fn a_cost_about_the_limit_makes_the_knee_uncertain() {
    // RW / 4 is 25: 24 at 4 is cheap by its mean only, 25.5 at 8 only may be.
    let found =
        locality(&curve([(1, 10.0), (2, 10.0), (4, 24.0), (8, 25.5), (16, 60.0)]), &ms(100.0), &ms(5.0));
    let found = found.expect("a knee");
    assert_eq!((found.at_least, found.value, found.at_most), (Some(2), 4, 8));
    // A point that may be cheap does not end the stretch.
    let gap = locality(&curve([(1, 10.0), (2, 25.5), (4, 10.0), (8, 60.0)]), &ms(100.0), &ms(5.0)).unwrap();
    assert_eq!((gap.at_least, gap.value), (Some(1), 4));
}

#[test]
fn costs_of_zero_have_no_knee() {
    let zero = Level { mean_ns: 0.0, low_ns: 0.0, high_ns: 0.0 };
    let points = vec![KneePoint { value: 1, cost: zero }; 4];
    assert_eq!(locality(&points, &ms(1.0), &ms(1.0)), None);
    assert_eq!(partitions(&[], &ms(1.0), &ms(9.0)), None);
    assert_eq!(alignment(&points, &ms(1.0)), None);
    assert_eq!(granularity(&points), None);
}
