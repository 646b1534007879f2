//! `docs/device-file.md` says what the code does: every option with its default, no
//! other, each kind of FTL with its own, and a reason for what one device only asks for.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use uflip_sim::{Description, catalogue, check};

const DOCUMENT: &str = include_str!("../../../docs/device-file.md");

/// What has to be said of every part of a device, and no more.
const HEAD: &str = "name = \"x\"\ncapacity_mib = 64\n\
    [link]\nread_latency_us = 1\nwrite_latency_us = 1\nread_mb_s = 1\nwrite_mb_s = 1\n";
const FLASH: &str = "[geometry]\nchannels = 1\nchips_per_channel = 1\npages_per_block = 16\npage_bytes = 2048\n\
    [timing]\nread_us = 1\nprogram_us = 1\nerase_us = 1\nbus_mb_s = 1\n\
    [buffer]\nkib = 4\nline_kib = 2\ndestage = \"lazy\"\n";
const SLC: &str = "[slc]\ncache_mib = 1\nprogram_us = 1\nfold_mb_s = 1\n";
const DISK: &str = "[disk]\nrpm = 7200\ntrack_seek_ms = 1\nmean_seek_ms = 2\nfull_seek_ms = 3\ntracks = 9\n\
    surfaces = 1\nzones = 1\ninner_outer_ratio = 1\nread_buffer_kib = 0\nwrite_buffer_kib = 0\n";
const KINDS: [&str; 5] = ["page", "dftl", "bast", "fast", "block"];

fn flash(kind: &str, more: &str) -> String {
    let slc = if matches!(kind, "page" | "dftl") { SLC } else { "" };
    format!("{HEAD}{FLASH}{slc}[ftl]\nkind = \"{kind}\"\n{more}")
}

fn disk() -> String {
    format!("{HEAD}{DISK}")
}

fn built(text: &str) -> Description {
    check(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn json(text: &str) -> Value {
    serde_json::to_value(built(text)).unwrap()
}

/// The documented options of each heading, with their defaults.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let (mut all, mut heading) = (BTreeMap::<_, BTreeMap<_, _>>::new(), String::new());
    for line in DOCUMENT.lines() {
        if let Some(title) = line.strip_prefix("## ").or(line.strip_prefix("### ")) {
            let quoted = title.split('`').nth(1).unwrap_or(title);
            heading = quoted.trim_matches(['[', ']']).replace("kind = ", "").replace('"', "");
        } else if let Some(row) = line.strip_prefix("| `") {
            let cells: Vec<&str> = row.split(" | ").collect();
            let (name, default) = (cells[0].trim_end_matches('`'), cells[2]);
            let old = all.entry(heading.clone()).or_default().insert(name.to_string(), default.to_string());
            assert_eq!(old, None, "{heading}: {name} is there twice");
        }
    }
    all
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap_or_else(|| panic!("a table instead of {value}")).keys().cloned().collect()
}

/// The options that the code has under each heading, with the values of a
/// description that says no more than it must.
fn in_code() -> BTreeMap<String, BTreeMap<String, Value>> {
    let mut all = BTreeMap::<String, BTreeMap<String, Value>>::new();
    let mut put = |heading: &str, value: &Value| {
        let table = value.as_object().unwrap_or_else(|| panic!("{heading}: {value}"));
        let here = all.entry(heading.to_string()).or_default();
        table.iter().for_each(|(key, value)| {
            here.entry(key.clone()).or_insert_with(|| value.clone());
        });
    };
    let (page, platter) = (json(&flash("page", "")), json(&disk()));
    put("The device", &platter);
    for table in ["link", "geometry", "timing", "buffer", "slc", "energy", "noise"] {
        put(table, &page[table]);
    }
    put("disk", &platter["disk"]);
    let common = ["kind", "superblock_dies", "wear_levelling"];
    for kind in KINDS {
        let paged = matches!(kind, "page" | "dftl");
        // The last says what the policy with an option of its own has.
        let texts: &[&str] = if paged { &["", "gc = \"d-choices\"\n"] } else { &[""] };
        for text in texts {
            let ftl = json(&flash(kind, text))["ftl"].clone();
            let of_pages = keys(&json(&flash("page", "gc = \"d-choices\"\n"))["ftl"]);
            let own =
                |key: &String| !(common.contains(&key.as_str()) || kind == "dftl" && of_pages.contains(key));
            let (own, shared): (Vec<_>, Vec<_>) =
                ftl.as_object().unwrap().clone().into_iter().partition(|(key, _)| own(key));
            put(kind, &Value::Object(own.into_iter().collect()));
            let shared = shared.into_iter().filter(|(key, _)| common.contains(&key.as_str()));
            put("ftl", &Value::Object(shared.collect()));
        }
    }
    all
}

#[test]
fn every_option_is_in_the_document_and_none_that_does_not_exist() {
    let mut written = documented();
    assert!(written.remove("Options that one device asks for").is_some());
    let names = |tables: Vec<(&String, Vec<&String>)>| {
        tables.iter().map(|(heading, keys)| format!("{heading}: {keys:?}\n")).collect::<String>()
    };
    let code = in_code();
    let code_names = names(code.iter().map(|(heading, keys)| (heading, keys.keys().collect())).collect());
    let doc_names = names(written.iter().map(|(heading, keys)| (heading, keys.keys().collect())).collect());
    assert_eq!(code_names, doc_names);
}

#[test]
fn defaults_are_those_of_the_document() {
    let (code, written) = (in_code(), documented());
    for (heading, options) in &code {
        for (name, value) in options {
            let said = written[heading][name].as_str();
            let same = match (said, value) {
                // Held against the code by leaving it out, below.
                ("required", _) => true,
                ("none", Value::Null) | ("\"\"", Value::String(_)) => true,
                ("all 0" | "none of it" | "empty", Value::Object(table)) => {
                    table.values().all(|v| v.as_f64() == Some(0.0))
                }
                // Absent in the disk that the head was taken of.
                ("none", Value::Object(_)) => heading == "The device" && name == "disk",
                (said, Value::String(text)) => said == format!("\"{text}\""),
                (said, Value::Bool(yes)) => said == yes.to_string(),
                (said, Value::Number(n)) => said.parse::<f64>().ok() == n.as_f64(),
                _ => false,
            };
            assert!(same, "{heading}.{name}: {value} in the code, {said} in the document");
        }
    }
}

#[test]
fn what_is_required_cannot_be_left_out_and_the_rest_can() {
    let mut required = BTreeSet::new();
    for text in [flash("page", ""), disk()] {
        let mut heading = "The device".to_string();
        for line in text.lines() {
            if let Some(table) = line.strip_prefix('[') {
                heading = table.trim_end_matches(']').to_string();
                continue;
            }
            // The text has nothing but what it must.
            let without = text.replacen(&format!("{line}\n"), "", 1);
            assert!(check(&without).is_err(), "{heading}: {line} can be left out");
            required.insert(format!("{heading}.{}", line.split(' ').next().unwrap()));
        }
    }
    required.insert("The device.link".to_string());
    let said: BTreeSet<String> = documented()
        .iter()
        .flat_map(|(heading, options)| options.iter().map(move |(name, default)| (heading, name, default)))
        .filter(|(_, _, default)| *default == "required")
        .map(|(heading, name, _)| format!("{heading}.{name}"))
        .collect();
    assert_eq!(required, said);
}

#[test]
fn each_kind_refuses_what_the_document_gives_to_others() {
    let code = in_code();
    for kind in KINDS {
        for of in KINDS {
            for (option, value) in &code[of] {
                let has = kind == of || kind == "dftl" && of == "page";
                let value = if value.is_null() { Value::from(1) } else { value.clone() };
                let gc = if option == "gc_choices" && matches!(kind, "page" | "dftl") {
                    "gc = \"d-choices\"\n"
                } else {
                    ""
                };
                let unit = if option == "loses_order" && kind == "bast" { "unit_kib = 4\n" } else { "" };
                let result = check(&flash(kind, &format!("{gc}{unit}{option} = {value}\n")));
                match result {
                    Ok(_) => assert!(has, "{kind} takes {option}"),
                    Err(error) => {
                        let message = error.to_string();
                        assert!(!has, "{kind}: {message}");
                        let says = format!("ftl.{option}: has no effect with kind = \"{kind}\"");
                        assert!(message.contains(&says) && message.contains(of), "{message}");
                    }
                }
            }
        }
    }
}

/// The options of `[link]`, `[timing]`, `[ftl]` and `[buffer]` that a description sets
/// to other than their defaults.
fn set(d: &Value, defaults: &BTreeMap<String, BTreeMap<String, Value>>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for table in ["link", "timing", "ftl", "buffer"] {
        let Some(options) = d[table].as_object() else { continue };
        let kind = d["ftl"]["kind"].as_str().unwrap_or_default();
        for (name, value) in options {
            let default = defaults[table].get(name).or_else(|| defaults.get(kind)?.get(name));
            let optional = documented().iter().any(|(heading, of)| {
                (heading == table || heading == kind) && of.get(name).is_some_and(|d| d != "required")
            });
            let same =
                default.is_some_and(|d| d == value || d.as_f64().is_some() && d.as_f64() == value.as_f64());
            if optional && !same {
                all.insert(format!("{table}.{name}"));
            }
        }
    }
    all
}

/// Of the devices that somebody measured: those that are assumed copy one, the generic
/// one stands for its kind.
#[test]
fn an_option_of_one_device_is_argued_for() {
    let defaults = in_code();
    let mut devices = BTreeMap::<String, Vec<&str>>::new();
    for name in catalogue::names().filter(|name| *name != "nvme-tlc") {
        let d = serde_json::to_value(catalogue::get(name).unwrap()).unwrap();
        if d["provenance"]["default"] == "assumed" {
            continue;
        }
        for option in set(&d, &defaults) {
            devices.entry(option).or_default().push(name);
        }
    }
    let alone: BTreeMap<String, String> = devices
        .into_iter()
        .filter(|(_, of)| of.len() == 1)
        .map(|(option, of)| (option, of[0].to_string()))
        .collect();
    let section = DOCUMENT.split("## Options that one device asks for").nth(1).unwrap();
    let argued: BTreeMap<String, String> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| row.split(" | ").collect::<Vec<_>>())
        .map(|cells| (cells[0].trim_end_matches('`').to_string(), cells[1].to_string()))
        .collect();
    assert_eq!(alone, argued);
    for (option, device) in &alone {
        let name = option.split('.').nth(1).unwrap();
        let text = catalogue::text(device).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains('#'), "{device}: {option} has no word of why");
    }
}
