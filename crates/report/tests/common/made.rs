//! Stores made for tests of the report, with known response times.
#![allow(dead_code, reason = "each test binary uses some of it")]

use crate::common::{feed, manifest, outcome, plan_with, spec};
use serde_json::{Value, json};
use std::path::Path;
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos};
use uflip_measure::run::{Belongs, PlannedPoint, RunSpec, Sink, Work};
use uflip_measure::{Curve, Pattern, Ratio};
use uflip_store::{Durability, Store};

/// A device whose name tries to get out of wherever it is put.
pub const HOSTILE: &str =
    "</script><script>window.hacked=1</script><img src=x onerror=\"window.hacked=1\">'\"&--><!--";

/// A response time with noise that does not compress, a little above 80 µs.
pub fn noisy(i: u64) -> u64 {
    let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    80_000 + (mixed >> 32) % 20_000 + if mixed.is_multiple_of(211) { 700_000 } else { 0 }
}

/// A store with a hostile target.
pub fn store(dir: &Path) -> Store {
    let mut manifest = manifest();
    manifest.target.name = Some(HOSTILE.into());
    manifest.target.warnings = vec![HOSTILE.into()];
    let host = json!({"hostname": HOSTILE});
    manifest.host = serde_json::from_value(host).expect("a host");
    manifest.options.target = HOSTILE.into();
    manifest.options.chosen = Some([(HOSTILE.into(), vec![HOSTILE.into()])].into());
    manifest.options.rest.insert("of a later version".into(), HOSTILE.into());
    let skipped = json!([
        {"micro_benchmark": "locality", "baseline": "RW", "label": HOSTILE, "reason": HOSTILE}
    ]);
    let plan = plan_with(json!([HOSTILE]), skipped);
    let mut store = Store::create(dir, &manifest, &plan).expect("a store");
    store.set_durability(Durability::RELAXED);
    store
}

/// A baseline's run.
pub fn baseline(id: u32, name: &str, ios: u64, ignore: u64) -> RunSpec {
    let mut run = spec(id, ios);
    let baseline = name.parse().expect("a baseline");
    (run.belongs, run.io_ignore) = (Belongs::Baseline { baseline, repeat: 0 }, ignore);
    run
}

/// A micro-benchmark's run.
pub fn point(id: u32, name: &str, baseline: &str, value: i64, ios: u64) -> RunSpec {
    let mut run = spec(id, ios);
    let curve = baseline.parse().expect("a curve");
    if let Curve::Pair(first, second) = curve {
        let (first, second) = (first.basic(Bytes(4096)), second.basic(Bytes(4096)));
        let ratio = Ratio::from_value(value).expect("a ratio");
        run.work = Work::Pattern(Pattern::Mix { first, second, ratio });
    }
    let micro = name.parse().expect("a micro-benchmark");
    run.belongs = Belongs::Point(PlannedPoint { micro, curve, value, repeat: 0 });
    run
}

/// Keeps a run with these response times, one after the other.
pub fn keep(store: &mut Store, run: &RunSpec, response: impl Fn(u64) -> u64) {
    store.begin(run).expect("begun");
    let name = run.curve_name().to_string();
    let (mut clock, mixed, write) = (0, name.contains('/'), name.ends_with('W'));
    let io = |i: u64| {
        let pattern = u8::from(mixed && i % 2 == 1);
        let mode = if write && (!mixed || pattern == 1) { Mode::Write } else { Mode::Read };
        let offset = Bytes(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 32_768 * 32_768);
        let (ns, at) = (response(i), clock);
        clock += ns + 150;
        let io = Io { arrival: Arrival::CONSECUTIVE, offset, size: 32_768, mode, pattern };
        IoRecord::new(&io, 0, Nanos(at), Nanos(ns))
    };
    feed(store.recorder(), (0..run.io_count).map(io));
    store.commit(run, &outcome(run.io_count)).expect("kept");
}

/// What the page has in the element of this id.
pub fn element<'a>(html: &'a str, id: &str) -> &'a str {
    let start = html.find(&format!("id=\"{id}\">")).unwrap_or_else(|| panic!("no {id}")) + id.len() + 6;
    &html[start..start + html[start..].find("</script>").expect("its end")]
}

/// The text of a compressed element.
pub fn unpack(text: &str) -> Vec<u8> {
    use base64::Engine;
    use std::io::Read;
    let packed = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("gzip");
    bytes
}

/// What the page says apart from traces.
pub fn facts(html: &str) -> Value {
    serde_json::from_slice(&unpack(element(html, "facts"))).expect("the facts")
}

/// The column `name` of the page's table of runs.
pub fn column(html: &str, name: &str) -> Vec<Value> {
    serde_json::from_value(facts(html)["table"][name].clone()).expect("a column")
}

/// A store's profile, made of its runs and written into it.
pub fn profiled(dir: &Path) -> uflip_analysis::Profile {
    let profile = uflip_analysis::profile::build(&Store::open(dir).expect("a store")).expect("a profile");
    uflip_analysis::profile::write(dir, &profile).expect("written");
    profile
}
