//! Other tools read a store as it is: DuckDB, pyarrow, pandas and polars, those
//! of them that python3 has; skipped visibly where it has not.

mod common;

use common::{manifest, plan, run_once, spec};
use std::path::Path;
use std::process::Command;
use uflip_device::{Arrival, Bytes, Io, IoRecord, Mode, Nanos};
use uflip_store::records::{RecordScratch, RecordWriter};
use uflip_store::{Format, Store, export};

/// Runs a Python script with `dir` as its argument; `None` without `module`.
fn python(module: &str, script: &str, dir: &Path) -> Option<String> {
    let there = Command::new("python3").args(["-c", &format!("import {module}")]).output();
    if !there.is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: python3 with {module} is not installed; what it reads is not checked");
        return None;
    }
    let out = Command::new("python3").arg("-c").arg(script).arg(dir).output().unwrap();
    assert!(out.status.success(), "{module}: {}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8(out.stdout).unwrap())
}

const SCRIPT: &str = r#"
import duckdb, sys
d = sys.argv[1]
def one(q): print(*duckdb.sql(q.replace('DIR', d)).fetchall()[0], sep='|')
one("""select count(*), count(distinct run), sum(response_ns), sum(submit_ns), sum("offset"),
       min(size), max(size), min(mode), max(mode), sum(stream), sum(pattern) from 'DIR/ios/*.parquet'""")
one("select count(*), sum(stats.running.n), min(stats.running.p99_ns), min(pattern), min(point.label) from read_json('DIR/runs.ndjson')")
one("select count(*) from read_json('DIR/runs.ndjson') r join 'DIR/ios/*.parquet' i on i.run = r.id where i.response_ns > r.stats.all.max_ns")
for f in ('runs.csv', 'runs.json', 'runs.parquet'):
    one("select count(*), sum(n), sum(mean_ns)::bigint, max(seed), count(pattern0_n), min(label) from '%s/x/%s'" % (d, f))
for f in ('ios.csv', 'ios.json', 'ios.parquet'):
    one("select count(*), sum(response_ns), max(\"offset\"), min(mode) from '%s/x/%s'" % (d, f))
print(','.join(c[0] + ' ' + c[1] for c in duckdb.sql("describe select * from '%s/ios/*.parquet'" % d).fetchall()))
"#;

#[test]
fn duckdb_reads_a_store_and_its_exports() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path();
    let mut store = Store::create(out, &manifest(), &plan()).unwrap();
    // Small runs, and one of several row groups with zone maps.
    let sizes = [300u64, 1024, 200_000];
    for (id, ios) in sizes.into_iter().enumerate() {
        run_once(&mut store, id as u32, ios).unwrap();
    }
    drop(store);
    let contents = Store::open(out).unwrap();
    std::fs::create_dir(out.join("x")).unwrap();
    let file = |name: &str| std::fs::File::create(out.join("x").join(name)).unwrap();
    for (format, end) in [(Format::Csv, "csv"), (Format::Json, "json"), (Format::Parquet, "parquet")] {
        export::runs(&contents, format, &mut file(&format!("runs.{end}"))).unwrap();
        export::records(&contents, Some(&[0, 1]), format, &mut file(&format!("ios.{end}"))).unwrap();
    }
    let Some(text) = python("duckdb", SCRIPT, out) else { return };
    let all =
        || sizes.iter().enumerate().flat_map(|(id, n)| (0..*n).map(move |i| common::record(id as u32, i)));
    let n: u64 = sizes.iter().sum();
    let response: u64 = all().map(|r| r.response().0).sum();
    let submit: u64 = all().map(|r| r.submit().0).sum();
    let offset: u64 = all().map(|r| r.offset().0).sum();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], format!("{n}|3|{response}|{submit}|{offset}|4096|4096|read|read|0|0"));
    let p99 = contents.runs.iter().map(|r| r.stats.running.p99_ns.unwrap()).min().unwrap();
    assert_eq!(lines[1], format!("3|{}|{p99}|{}|4K", n - 6, spec(0, 1).work));
    assert_eq!(lines[2], "0");
    let mean: f64 = contents.runs.iter().map(|r| r.stats.running.mean_ns.unwrap()).sum();
    for line in &lines[3..6] {
        assert_eq!(*line, format!("3|{}|{}|7|0|4K", n - 6, mean.round()));
    }
    let some: u64 = (0..2u32)
        .flat_map(|id| (0..sizes[id as usize]).map(move |i| common::record(id, i).response().0))
        .sum();
    let furthest = (0..2u32)
        .flat_map(|id| (0..sizes[id as usize]).map(move |i| common::record(id, i).offset().0))
        .max()
        .unwrap();
    for line in &lines[6..9] {
        assert_eq!(*line, format!("1324|{some}|{furthest}|read"));
    }
    assert_eq!(
        lines[9],
        "run INTEGER,stream INTEGER,pattern INTEGER,submit_ns BIGINT,response_ns BIGINT,offset BIGINT,size INTEGER,mode VARCHAR"
    );
}

/// Each prints all rows of `r.parquet`, columns in order, blanks between.
const READERS: [(&str, &str); 4] = [
    ("duckdb", "rows = duckdb.sql(f\"select * from '{path}'\").fetchall()"),
    ("pyarrow.parquet", "rows = zip(*[c.to_pylist() for c in pyarrow.parquet.read_table(path).columns])"),
    ("pandas", "rows = pandas.read_parquet(path).itertuples(index=False, name=None)"),
    ("polars", "rows = polars.read_parquet(path).iter_rows()"),
];

#[test]
fn every_reader_sees_every_row() {
    // Streams, patterns, sizes and modes that change from row to row; more
    // than one row group.
    let dir = tempfile::tempdir().unwrap();
    let records: Vec<_> = (0..140_000u64)
        .map(|i| {
            let mode = [Mode::Read, Mode::Write, Mode::Trim][(i % 7 % 3) as usize];
            let size = if i % 50 < 20 { 512 } else { 512 + (i as u32 * 37 % 900) * 512 };
            let io = Io {
                arrival: Arrival::CONSECUTIVE,
                offset: Bytes(i * i * 512),
                size,
                mode,
                pattern: (i % 5 / 4) as u8,
            };
            IoRecord::new(&io, (i / 3 % 600) as u16, Nanos(i * 3), Nanos(i % 11))
        })
        .collect();
    let mut writer =
        RecordWriter::new(Vec::new(), Path::new("memory"), RecordScratch::new().unwrap()).unwrap();
    writer.push(4, &records).unwrap();
    std::fs::write(dir.path().join("r.parquet"), writer.finish().unwrap().0).unwrap();
    for (module, read) in READERS {
        let script = format!(
            "import sys, {module}\npath = sys.argv[1] + '/r.parquet'\n{read}\n\
             sys.stdout.write(''.join(' '.join(map(str, row)) + '\\n' for row in rows))"
        );
        let Some(text) = python(module, &script, dir.path()) else { continue };
        let wanted = records.iter().map(|r| {
            let (submit, response, offset) = (r.submit().0, r.response().0, r.offset().0);
            let (stream, pattern, size, mode) = (r.stream(), r.pattern(), r.size(), r.mode().name());
            format!("4 {stream} {pattern} {submit} {response} {offset} {size} {mode}")
        });
        assert!(text.lines().map(str::to_string).eq(wanted), "{module} reads other rows");
    }
}

#[test]
fn the_queries_of_the_documentation_work() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &manifest(), &plan()).unwrap();
    (0..2).for_each(|id| run_once(&mut store, id, 300).unwrap());
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md")).unwrap();
    let sql = docs.split("```sql").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let sql = sql.replace("DIR", dir.path().to_str().unwrap());
    let script = format!(
        "import duckdb\nfor q in r\"\"\"{sql}\"\"\".split(';'):\n    if q.strip(): print(len(duckdb.sql(q).fetchall()))"
    );
    if let Some(text) = python("duckdb", &script, dir.path()) {
        assert_eq!(text.lines().collect::<Vec<_>>(), ["2", "1", "20"]);
    }
}
