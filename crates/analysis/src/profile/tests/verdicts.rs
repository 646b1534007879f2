//! What the intervals leave open is said to be open, everywhere.

use super::*;
use crate::profile::verdicts::{answer, verdict};
use uflip_measure::detect::verdict::Decision;

/// Runs of one pattern that differ by `sd` from one to the next; random writes cost 1.2
/// times sequential ones, all else as much as aligned, alone and apart.
fn shifting(shifts: [f64; 3]) -> Maker {
    let mut made = Maker::default();
    for shift in shifts {
        BASELINES.iter().zip([0.1, 0.1, 0.1, 0.12]).for_each(|(b, mean)| made.run(b, None, mean * shift));
    }
    made.curve("alignment", "RW", [(512, 0.13), (32768, 0.12)]);
    made.curve("parallelism", "RR", [(1, 0.1), (2, 0.2), (4, 0.4)]);
    made.curve("mix", "SR/RW", [(1, 0.12)]);
    made.curve("partitioning", "SW", [(1, 0.1), (2, 0.1), (4, 0.11)]);
    made.curve("locality", "RW", [(KIB << 15, 0.11), (KIB << 17, 0.12)]);
    made.curve("pause", "RW", [(100_000, 0.12)]);
    made.curve("order", "SW", [(-1, 0.1), (0, 0.1), (1, 0.1)]);
    made
}

#[test]
fn runs_that_shift_leave_everything_open() {
    let profile = shifting([0.7, 1.0, 1.5]).profile();
    assert_eq!(profile.device_class.class, Class::Unknown);
    assert_eq!(profile.device_class.verdict, Some(Decision::NotDecided));
    assert!(profile.device_class.statement.contains("not decided by this run"), "{:?}", profile.device_class);
    assert!(profile.device_class.failing.is_empty(), "{:?}", profile.device_class.failing);
    for (id, (said, statement)) in verdicts(&profile) {
        if !["larger_ios", "block_size"].contains(&id) {
            assert_eq!(said, Verdict::NotDecided, "{id}: {statement}");
            assert!(statement.starts_with("Not decided by this run: d"), "{id}: {statement}");
        }
    }
    assert_eq!((profile.parallelism.gain, profile.mix.gain), (None, None), "a null interval is no '='");
    assert!(!profile.parallelism.evidence["gain"].runs.is_empty(), "it was measured");
    let card = card::render(&profile);
    assert!(card.contains("reverse ?, in place ?") && card.contains("not decided"), "{card}");
}

#[test]
fn runs_that_do_not_shift_decide_the_same_questions() {
    let profile = shifting([1.0; 3]).profile();
    assert_eq!(profile.device_class.class, Class::Modern, "{:?}", profile.device_class);
    let says = |id: &str| verdict(&profile.verdicts, id);
    for id in ["random_writes", "alignment", "partitions", "order.reverse", "mix.loss", "parallelism.gain"] {
        assert_eq!(says(id), Some(Decision::No), "{id}: {:?}", answer(&profile.verdicts, id));
    }
    assert!(near(profile.parallelism.gain, 1.0, 0.01), "{:?}", profile.parallelism);
    assert_eq!(says("queue_depth.RR"), None, "not asked");
}

/// What would decide: four times the runs for half of the width.
#[test]
fn an_open_question_says_how_many_repeats_would_decide_it() {
    let mut made = Maker::default();
    for shift in [0.8, 1.0, 1.25] {
        BASELINES.iter().zip([0.1, 0.1, 0.1, 0.16]).for_each(|(b, mean)| made.run(b, None, mean * shift));
    }
    let profile = made.profile();
    let asked = answer(&profile.verdicts, "random_writes").expect("it was asked");
    assert_eq!(asked.verdict, Decision::NotDecided);
    let [low, _] = asked.interval.expect("an interval");
    let wanted = (3.0 * ((1.6f64 / low).ln() / (1.6f64 / 1.25).ln()).powi(2) * 1.1).ceil();
    let says = format!("--repeats {wanted:.0} would decide it (");
    assert!(asked.would_decide.as_ref().is_some_and(|text| text.starts_with(&says)), "{says} {asked:?}");
    assert_eq!(asked.comparisons, 1);
    assert!(serde_json::to_string(asked).expect("JSON").contains("\"verdict\":\"not_decided\""));
}
