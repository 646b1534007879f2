//! The rows against Table 1.
use super::*;

const IO: Bytes = Bytes(32 << 10);
const SR: Curve = Curve::One(Baseline::Sr);
const RW: Curve = Curve::One(Baseline::Rw);

fn values(m: MicroBenchmark, curve: Curve) -> Vec<i64> {
    (m.row().values)(Preset::Standard, curve, IO)
}

#[test]
fn standard_values_are_those_of_table_1() {
    let pow2 = |n: u32, unit: i64| (0..=n).map(|e| unit << e).collect::<Vec<_>>();
    let granularity = values(MicroBenchmark::Granularity, SR);
    let (powers, others): (Vec<i64>, Vec<i64>) = granularity.iter().partition(|v| v.count_ones() == 1);
    assert_eq!(powers, pow2(9, 512));
    assert!(others.len() >= 3 && others.iter().all(|v| v % 512 == 0), "{others:?}");
    assert_eq!(values(MicroBenchmark::Alignment, SR), [512, 1024, 2048, 4096, 8192, 16384, 32768]);
    assert_eq!(values(MicroBenchmark::Locality, SR), pow2(8, 32768));
    assert_eq!(values(MicroBenchmark::Locality, RW), pow2(16, 32768));
    assert_eq!(values(MicroBenchmark::Partitioning, SR), pow2(8, 1));
    assert_eq!(values(MicroBenchmark::Order, SR), [-1, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256]);
    assert_eq!(values(MicroBenchmark::Parallelism, SR), [1, 2, 4, 8, 16]);
    assert_eq!(values(MicroBenchmark::Mix, SR), [1, 2, 4, 8, 16, 32, 64]);
    assert_eq!(values(MicroBenchmark::Pause, SR), pow2(8, 100_000));
    assert_eq!(values(MicroBenchmark::Bursts, SR), [10, 20, 40, 80, 160, 320, 640]);
}

#[test]
fn quick_keeps_the_ends_and_full_has_all_of_standard() {
    for m in MicroBenchmark::ALL.iter().copied() {
        for &curve in m.row().curves {
            let of = |preset| (m.row().values)(preset, curve, IO);
            let (quick, standard, full) = (of(Preset::Quick), of(Preset::Standard), of(Preset::Full));
            assert!(quick.len() < standard.len() && standard.len() < full.len(), "{m}");
            assert_eq!((quick.first(), quick.last()), (standard.first(), standard.last()), "{m}");
            assert!(quick.iter().all(|v| standard.contains(v)) && standard.iter().all(|v| full.contains(v)));
        }
    }
}

#[test]
fn names_parse_and_a_wrong_one_lists_the_nine() {
    for m in MicroBenchmark::ALL.iter().copied() {
        assert_eq!(m.name().parse(), Ok(m));
        assert_eq!(serde_json::to_string(&m).unwrap(), format!("\"{}\"", m.name()));
    }
    let error = "speed".parse::<MicroBenchmark>().unwrap_err().to_string();
    assert!(MicroBenchmark::ALL.iter().all(|m| error.contains(m.name())), "{error}");
    assert!("SR/XX".parse::<Curve>().is_err());
    assert_eq!("sr/rw".parse(), Ok(Curve::Pair(Baseline::Sr, Baseline::Rw)));
}

#[test]
fn every_value_makes_a_pattern_and_its_label_parses() {
    for m in MicroBenchmark::ALL.iter().copied() {
        let row = m.row();
        for &curve in row.curves {
            for value in (row.values)(Preset::Full, curve, IO) {
                let pattern = (row.pattern)(curve, value, IO).unwrap();
                assert_eq!(pattern.to_string().parse(), Ok(pattern));
                let text = (row.label)(value).replace(' ', "");
                assert_eq!((row.parse)(&text), Some(value), "{m} {text}");
            }
        }
    }
}

#[test]
fn what_a_row_cannot_do_is_said() {
    let order = (MicroBenchmark::Order.row().pattern)(RW, 1, IO).unwrap_err();
    assert!(order.contains("sequential"), "{order}");
    let mix = (MicroBenchmark::Mix.row().pattern)(SR, 1, IO).unwrap_err();
    assert!(mix.contains("pair"), "{mix}");
    assert!((MicroBenchmark::Parallelism.row().pattern)(SR, 0, IO).is_err());
    assert!((MicroBenchmark::Granularity.row().pattern)(SR, -1, IO).is_err());
}
