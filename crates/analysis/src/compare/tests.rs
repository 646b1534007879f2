//! Known answers: the verdicts, their widening, the rules.

use super::rule::{Bound, Dimension, Op, Rule, check};
use super::*;

fn value(value: f64, low: f64, high: f64) -> Value {
    Value {
        value: Some(value),
        measured: true,
        interval: Some([low, high]),
        runs: vec![1],
        ..Value::default()
    }
}

fn verdict(from: &Value, to: &Value) -> ChangeVerdict {
    change(from, to, false, 1).verdict
}

#[test]
fn a_difference_is_marked_where_the_interval_of_the_ratio_excludes_one() {
    let a = value(100.0, 98.0, 102.0);
    let change = change(&a, &value(150.0, 147.0, 153.0), false, 1);
    assert_eq!((change.ratio, change.verdict), (Some(1.5), ChangeVerdict::Differs));
    let [low, high] = change.ci95.expect("an interval");
    assert!((1.45..1.5).contains(&low) && (1.5..1.55).contains(&high), "{low} {high}");
    assert_eq!(verdict(&a, &value(101.5, 99.5, 103.5)), ChangeVerdict::Noise);
    assert_eq!(verdict(&a, &value(100.0, 98.0, 102.0)), ChangeVerdict::Noise);
    assert_eq!(verdict(&value(100.0, 100.0, 100.0), &value(100.5, 100.5, 100.5)), ChangeVerdict::Alike);
    assert_eq!(verdict(&value(100.0, 100.0, 100.0), &value(102.0, 102.0, 102.0)), ChangeVerdict::Differs);
}

#[test]
fn many_comparisons_need_more_to_be_marked() {
    let (a, b) = (value(100.0, 98.0, 102.0), value(104.0, 102.0, 106.0));
    assert_eq!(change(&a, &b, false, 1).verdict, ChangeVerdict::Differs);
    // Bonferroni's quantile of 200 comparisons is 3.66, 1.87 times that of one.
    assert_eq!(change(&a, &b, false, 200).verdict, ChangeVerdict::Noise);
    // Of eight comparisons it is 2.73, 1.40 times; with four degrees of freedom 2.09 times.
    assert_eq!(change(&a, &b, false, 8).verdict, ChangeVerdict::Differs);
    let few = |v: &Value| Value { freedom: Some(4.0), ..v.clone() };
    assert_eq!(change(&few(&a), &few(&b), false, 8).verdict, ChangeVerdict::Noise);
}

#[test]
fn what_is_as_good_as_the_same_is_decided_or_not() {
    let a = value(100.0, 98.0, 102.0);
    let says = |low: f64, mean: f64, high: f64| change(&a, &value(mean, low, high), false, 1).matters;
    assert_eq!(says(140.0, 150.0, 160.0), Decision::Yes);
    assert_eq!(says(60.0, 70.0, 75.0), Decision::Yes, "either way");
    assert_eq!(says(95.0, 105.0, 115.0), Decision::No);
    assert_eq!(says(80.0, 105.0, 140.0), Decision::NotDecided, "noise is no sameness");
    assert_eq!(change(&a, &Value { interval: None, ..a.clone() }, false, 1).matters, Decision::NotDecided);
}

#[test]
fn what_was_not_measured_is_neither_noise_nor_a_difference() {
    let a = value(100.0, 98.0, 102.0);
    let none = Value::default();
    assert_eq!(verdict(&a, &none), ChangeVerdict::NotMeasured);
    assert_eq!(verdict(&none, &none), ChangeVerdict::NotMeasured);
    let no_effect = Value { measured: true, ..Value::default() };
    assert_eq!(verdict(&no_effect, &no_effect), ChangeVerdict::Noise);
    assert_eq!(verdict(&a, &no_effect), ChangeVerdict::NoInterval);
    let bare = Value { interval: None, ..a.clone() };
    assert_eq!(verdict(&a, &bare), ChangeVerdict::Noise, "the same value");
    assert_eq!(verdict(&a, &Value { value: Some(200.0), ..bare }), ChangeVerdict::NoInterval);
}

#[test]
fn stepped_figures_are_marked_where_their_ranges_do_not_meet() {
    let stepped = |a: &Value, b: &Value| change(a, b, true, 3).verdict;
    let eight = value(8.0, 8.0, 8.0);
    assert_eq!(stepped(&eight, &value(4.0, 4.0, 4.0)), ChangeVerdict::Differs);
    assert_eq!(stepped(&eight, &value(4.0, 4.0, 8.0)), ChangeVerdict::Noise);
}

#[test]
fn rules_are_read() {
    let rule = |text: &str| text.parse::<Rule>();
    let parsed = rule(" RW >1.2 x").expect("a rule");
    assert_eq!((parsed.figure.as_str(), parsed.op, parsed.bound), ("RW", Op::Above, Bound::Relative(1.2)));
    let bound = |text: &str| rule(text).expect("a rule").bound;
    assert_eq!(bound("RW.p99 >= 5ms"), Bound::Absolute(5e6, Dimension::Time));
    assert_eq!(bound("locality.area_bytes < 8M"), Bound::Absolute(8_388_608.0, Dimension::Size));
    assert_eq!(bound("partitions.count<4"), Bound::Absolute(4.0, Dimension::Number));
    assert_eq!(bound("SW > 10%"), Bound::Relative(1.1));
    assert_eq!(rule("mix.SR/RW@4:1 <= 2x").expect("a rule").op, Op::AtMost);
    for (text, says) in [
        ("RW", "none of > >= < <="),
        ("> 1.2x", "names no figure"),
        ("RW >", "has no bound"),
        ("RW > fast", "'fast'"),
        ("RW > -1x", "no factor above 0"),
        ("RW => 1.2x", "'=' before the sign"),
        ("RW > 1.2y", "'1.2y'"),
    ] {
        let error = rule(text).map(|r| r.figure).expect_err(text);
        assert!(error.contains(says), "{text}: {error}");
        assert!(error.contains("such as 'RW > 1.2x'"), "{text}: {error}");
    }
}

fn made(values: Vec<Value>) -> Comparison {
    let subjects = (0..values.len()).map(|i| SubjectFacts {
        letter: letter(i),
        name: format!("dir{i}"),
        target: "made".into(),
        runs: 1,
        alerts: Vec::new(),
        soundness: Vec::new(),
    });
    let figure = ComparedFigure {
        name: "RW".into(),
        group: "Response time".into(),
        title: "RW".into(),
        unit: Unit::Ns,
        better: Better::Lower,
        stepped: false,
        values,
    };
    Comparison {
        format: FORMAT,
        subjects: subjects.collect(),
        circumstances: Vec::new(),
        figures: vec![figure],
        curves: Vec::new(),
        rules: Vec::new(),
    }
}

fn outcome(text: &str, values: Vec<Value>) -> rule::Outcome {
    let mut made = made(values);
    judge(&mut made.figures[0].values, false, 1);
    let rule: Rule = text.parse().expect("a rule");
    check(&rule, &made).expect("a figure");
    rule::apply(&rule, &made)
}

#[test]
fn rules_hold_or_fail_by_the_figure() {
    let pair = || vec![value(1e6, 0.99e6, 1.01e6), value(1.5e6, 1.48e6, 1.52e6)];
    assert!(outcome("RW > 1.2x", pair()).failed);
    assert!(!outcome("RW > 1.6x", pair()).failed);
    assert!(outcome("RW > 1.4ms", pair()).failed && !outcome("RW > 1.6ms", pair()).failed);
    // An absolute bound is for what is compared, not for the reference.
    assert!(!outcome("RW < 1.2ms", pair()).failed);
    assert!(outcome("RW > 0.9ms", vec![pair().remove(0)]).failed, "a single one is looked at itself");
    let three = vec![pair().remove(0), pair().remove(0), pair().remove(1)];
    assert!(outcome("RW > 1.2x", three).failed, "any of the others breaks it");
}

#[test]
fn what_was_not_measured_breaks_a_rule() {
    let known = || value(1e6, 0.99e6, 1.01e6);
    for values in [vec![known(), Value::default()], vec![Value::default(), known()]] {
        let outcome = outcome("RW > 1.2x", values);
        assert!(outcome.failed && outcome.statements[0].contains("not measured"), "{outcome:?}");
    }
    let absolute = outcome("RW > 5ms", vec![known(), Value::default()]);
    assert!(absolute.failed && absolute.statements[0].contains("not measured"), "{absolute:?}");
}

#[test]
fn rules_that_make_no_sense_are_refused_with_what_to_type() {
    let of = |text: &str| check(&text.parse().expect("a rule"), &made(vec![value(1.0, 1.0, 1.0); 2]));
    assert!(of("XW > 1.2x").expect_err("no such figure").contains("there are RW"));
    assert!(of("RW > 5M").expect_err("a size").contains("a time such as 5ms"));
    assert!(of("RW > 5").expect_err("a number").contains("a time such as 5ms"));
    assert_eq!(of("SW > 1.2x"), Ok(()), "a known name that was not measured fails later, loudly");
    for name in [
        "queue_depth.gain.SR",
        "queue_depth.enough.RW",
        "device_work.write_amplification.RW",
        "device_work.energy_uj_per_io.SW",
        "device_work.write_amplification_of_all",
        "device_work.energy_j",
        "granularity.saturation_bytes.SR",
    ] {
        assert_eq!(of(&format!("{name} > 1.2x")), Ok(()), "of profile.json");
    }
    let single = check(&"RW > 1.2x".parse().expect("a rule"), &made(vec![value(1.0, 1.0, 1.0)]));
    assert!(single.expect_err("one").contains("second folder"));
}
