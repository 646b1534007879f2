//! `uflip compare` and `uflip export --figures` as their users meet them.

use crate::support::expect;
use serde_json::Value;
use std::path::Path;

/// Runs a simulated device into `name`: baselines and order, quickly.
fn measured(folder: &Path, target: &str, seed: &str, name: &str) {
    let args = [
        "run",
        target,
        "-o",
        name,
        "--only",
        "order",
        "--repeats",
        "2",
        "--values",
        "order=-1,0,1",
        "--method",
        "fixed",
        "--seed",
        seed,
    ];
    expect(folder, 0, &args);
}

/// A catalogue device with its link half as slow again: every IO costs more.
fn slower(folder: &Path) -> String {
    let (text, _) = expect(folder, 0, &["sim", "show", "mtron", "--json"]);
    let mut device: toml::Table = serde_json::from_str::<Value>(&text)
        .map(strip_nulls)
        .and_then(serde_json::from_value)
        .expect("a description");
    let link = device.get_mut("link").and_then(toml::Value::as_table_mut).expect("a link");
    for (name, value) in link.iter_mut() {
        let Some(number) = value.as_float().or(value.as_integer().map(|n| n as f64)) else { continue };
        if name.ends_with("_us") {
            *value = toml::Value::Float(number * 1.5);
        } else if name.ends_with("_mb_s") {
            *value = toml::Value::Float(number / 1.5);
        }
    }
    std::fs::write(folder.join("slower.toml"), device.to_string()).expect("written");
    "sim:slower.toml".into()
}

fn strip_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, strip_nulls(v))).collect(),
        ),
        other => other,
    }
}

#[test]
fn two_seeds_of_a_device_are_noise_and_a_slower_one_fails_the_rule() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    measured(folder, "sim:mtron", "1", "a");
    measured(folder, "sim:mtron", "2", "b");
    let slow = slower(folder);
    measured(folder, &slow, "3", "c");
    let (out, err) =
        expect(folder, 0, &["compare", "a", "b", "--fail-if", "RW > 1.2x", "--fail-if", "SR>1.2x"]);
    assert!(out.contains("passed RW > 1.2x") && !out.contains("* slower"), "{out}");
    assert!(err.contains("compare.html") && folder.join("compare.html").is_file());
    let (out, err) = expect(folder, 1, &["compare", "a", "c", "--no-html", "--fail-if", "SR > 1.2x"]);
    assert!(out.contains("FAILED SR > 1.2x") && out.contains("* slower"), "{out}");
    assert!(err.contains("failed: SR > 1.2x"), "{err}");
    let (json, _) = expect(folder, 1, &["compare", "a", "c", "--json", "--fail-if", "SR > 1.2x"]);
    let made: Value = serde_json::from_str(&json).expect("JSON, also where a rule fails");
    assert_eq!(
        (&made["rules"][0]["failed"], made["subjects"].as_array().map(Vec::len)),
        (&Value::Bool(true), Some(2))
    );
    // What was not measured breaks its rule.
    let (out, _) =
        expect(folder, 1, &["compare", "a", "b", "--no-html", "--fail-if", "locality.factor > 1.2x"]);
    assert!(out.contains("not measured"), "{out}");
    for (rule, says) in [
        ("RW > fast", "such as 'RW > 1.2x'"),
        ("XX > 1.2x", "names no figure"),
        ("RW > 8M", "a time such as 5ms"),
    ] {
        let (_, err) = expect(folder, 2, &["compare", "a", "b", "--no-html", "--fail-if", rule]);
        assert!(err.contains(says), "{rule}: {err}");
    }
}

#[test]
fn a_simulated_device_is_measured_on_the_spot_as_the_folder_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    measured(folder, "sim:mtron", "1", "a");
    let (json, _) = expect(folder, 0, &["compare", "a", "sim:samsung", "--json"]);
    let made: Value = serde_json::from_str(&json).expect("JSON");
    let micros: Vec<&str> = made["curves"]
        .as_array()
        .expect("curves")
        .iter()
        .filter_map(|c| c["micro_benchmark"].as_str())
        .collect();
    assert!(!micros.is_empty() && micros.iter().all(|m| *m == "order"), "{micros:?}");
    let rw = made["figures"].as_array().expect("figures").iter().find(|f| f["name"] == "RW").expect("RW");
    assert_eq!(rw["values"][1]["change"]["verdict"], "differs", "another device");
    assert!(!folder.join("compare.html").exists(), "--json draws nothing unasked");
    let (_, err) = expect(folder, 1, &["compare", "a", "nowhere"]);
    assert!(err.contains("nowhere holds no measurement"), "{err}");
    let (_, err) = expect(folder, 2, &["compare", "sim:nothing"]);
    assert!(err.contains("catalogue"), "{err}");
}

#[test]
fn figures_are_written_with_their_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    measured(folder, "sim:mtron", "1", "a");
    let (out, err) = expect(folder, 0, &["export", "a", "--figures", "figures"]);
    for name in
        ["order.svg", "order.png", "order.csv", "figure3.svg", "figure4.png", "table3.tex", "table3.csv"]
    {
        assert!(
            out.contains(&format!("figures/{name}")) && folder.join("figures").join(name).is_file(),
            "{name}: {out}"
        );
    }
    assert!(err.contains("left out: figure6: granularity was not measured"), "{err}");
    let (_, err) = expect(folder, 2, &["export", "a", "a"]);
    assert!(err.contains("only --figures takes several"), "{err}");
    expect(folder, 0, &["export", "a", "a", "--figures", "both"]);
    assert!(folder.join("both/a/order.svg").is_file() && folder.join("both/a-2/order.svg").is_file());
    let table = std::fs::read_to_string(folder.join("both/table3.md")).expect("the table");
    assert_eq!(table.matches("Mtron").count(), 2, "{table}");
}
