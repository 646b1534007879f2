//! What several requests under way gain, and from which depth on nothing more.

use super::{Maker, TABLE_3, device, near};
use uflip_measure::Baseline;

fn with(points: &[(i64, f64)]) -> Maker {
    let mut made = device(&TABLE_3[1]);
    made.curve("queue-depth", "RR", points.iter().copied());
    made
}

#[test]
fn throughput_is_the_depth_over_the_mean_and_is_enough_where_it_stops_growing() {
    // 2,000 IOs a second, 16,000 from a depth of 8 on.
    let found = with(&[(1, 0.5), (2, 0.5), (8, 0.5), (32, 2.0), (128, 8.0)]).profile().queue_depth;
    let rates: Vec<f64> = found.curves[&Baseline::Rr].iter().map(|p| p.ios_per_s).collect();
    for (rate, is) in rates.iter().zip([2e3, 4e3, 16e3, 16e3, 16e3]) {
        assert!(near(Some(*rate), is, 0.02), "{rates:?}");
    }
    assert!(near(found.gain.rr, 8.0, 0.02), "{:?}", found.gain);
    assert_eq!((found.enough.rr, found.enough.sr), (Some(8), None));
    let evidence = &found.gain.evidence[&Baseline::Rr];
    assert!(evidence.ci95.is_some_and(|[low, high]| low < 8.1 && high > 7.9) && evidence.runs.len() == 2);
    assert!(found.curves[&Baseline::Rr].iter().all(|p| p.ci95.is_some_and(|[low, high]| low < high)));
}

#[test]
fn what_still_grows_has_no_depth_that_is_enough() {
    let found = with(&[(1, 0.5), (8, 0.5), (32, 0.5)]).profile().queue_depth;
    assert!(near(found.gain.rr, 32.0, 0.02), "{found:?}");
    assert_eq!(found.enough.rr, None);
    assert_eq!(found.enough.evidence[&Baseline::Rr].runs.len(), 3, "it was looked for");
}

#[test]
fn without_depth_one_there_is_throughput_and_no_gain() {
    let found = with(&[(2, 0.5), (8, 2.0)]).profile().queue_depth;
    assert_eq!((found.gain.rr, found.enough.rr), (None, Some(2)));
    assert!(found.curves[&Baseline::Rr].iter().all(|p| p.gain.is_none()));
}

#[test]
fn the_card_says_it_where_it_was_measured() {
    let card = |made: &Maker| super::card::render(&made.profile());
    let measured = card(&with(&[(1, 0.5), (8, 0.5), (32, 2.0)]));
    assert!(measured.contains("Queue depth") && measured.contains("no more from 8 on"), "{measured}");
    assert!(!card(&device(&TABLE_3[1])).contains("Queue depth"));
}
