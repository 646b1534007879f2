//! Record files held against their rows, before anything is concluded from them.
//!
//! Method: a record file is read once and its checksum compared with the row's.
//! A row of a version without checksums has its record file's numbers instead:
//! the run's number in every row group, the count, and the statistics, which
//! are computed again by the rules that made them (`stats.rs`) and must be the
//! same. What a row says of the run itself must be what the plan says, where the
//! plan has it and nobody edited it: a sound row of another folder is none of this one.
//! Memory is bounded by a row group and what [`StatsBuilder`] holds.

use crate::checksum::checksum_of;
use crate::contents::{RunRow, StoreContents};
use crate::damage::Damage;
use crate::error::StoreError;
use crate::files::open_regular;
use crate::records::read_row_groups;
use crate::stats::StatsBuilder;
use crate::store::record_name;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use uflip_measure::Plan;
use uflip_measure::run::{RtStats, RunSpec, RunStats};

/// Means and deviations of equal records differ by less than this part: they
/// went through decimal text.
const ROUNDING: f64 = 1e-9;

/// Takes the runs out of `contents` whose record files are not theirs, and
/// notes each as damage.
pub(crate) fn verify(contents: &mut StoreContents) {
    let planned: HashMap<u32, &RunSpec> =
        contents.plan.iter().flat_map(Plan::runs).map(|run| (run.id, run)).collect();
    let folder = contents.manifest.folder.as_deref();
    let (dir, edited) = (&contents.dir, contents.plan_edited);
    let found = in_parallel(&contents.runs, |row| wrong(dir, folder, row, judge(edited, &planned, row)));
    let mut rows = std::mem::take(&mut contents.runs).into_iter().zip(found);
    let damage = &mut contents.damage;
    contents.runs = rows
        .by_ref()
        .filter_map(|(row, wrong)| match wrong {
            None => Some(row),
            Some(what) => {
                let (file, run) = (row.records.file, Some(row.spec.id));
                damage.push(Damage { file, run, what, row: true });
                None
            }
        })
        .collect();
}

/// The plan's run to hold a row against. A plan that somebody edited since says
/// nothing against a row with a checksum: that tells itself what was run.
pub(crate) fn judge<'a>(
    edited: bool,
    planned: &HashMap<u32, &'a RunSpec>,
    row: &RunRow,
) -> Option<&'a RunSpec> {
    let judges = !edited || row.records.checksum.is_none();
    planned.get(&row.spec.id).copied().filter(|_| judges)
}

/// What is wrong with a row or its record file, if anything is.
pub(crate) fn wrong(
    dir: &Path,
    folder: Option<&str>,
    row: &RunRow,
    planned: Option<&RunSpec>,
) -> Option<String> {
    if row.records.file != record_name(row.spec.id) {
        return Some(format!("it is not the record file of run {}", row.spec.id));
    }
    if let Some(planned) = planned
        && *planned != row.spec
    {
        return Some(format!("it is not the plan's run: {}", difference(planned, &row.spec)));
    }
    if row.folder.is_some() && row.folder.as_deref() != folder {
        return Some("its line is of another folder".into());
    }
    let path = dir.join(&row.records.file);
    let read = open_regular(&path).and_then(|file| match file.metadata()?.len() {
        // Nothing that long is read to its end.
        length if length != row.records.bytes => Ok((String::new(), length)),
        _ => checksum_of(file),
    });
    let (sum, length) = match read {
        Ok(read) => read,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some("it is missing".into()),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => return Some(error.to_string()),
        Err(error) => return Some(format!("it cannot be read: {error}")),
    };
    if length != row.records.bytes {
        return Some(format!("it is {length} bytes long and was {}", row.records.bytes));
    }
    match &row.records.checksum {
        Some(kept) if *kept == sum => None,
        Some(kept) => Some(format!("its checksum is {sum} and was {kept}")),
        None => unlike(&path, row),
    }
}

/// The first field in which a row's run is another than the plan's, in words.
fn difference(planned: &RunSpec, row: &RunSpec) -> String {
    let (planned, row) = (serde_json::to_value(planned), serde_json::to_value(row));
    let (Ok(Value::Object(planned)), Ok(Value::Object(row))) = (planned, row) else {
        return "it differs".into();
    };
    let of = |from: &Map<String, Value>, key: &str| from.get(key).map_or("none".into(), Value::to_string);
    let key = planned.keys().chain(row.keys()).find(|key| planned.get(*key) != row.get(*key));
    key.map_or("it differs".into(), |key| {
        format!("its line has {key} {}, plan.json {}", of(&row, key), of(&planned, key))
    })
}

/// What of a record file differs from a row that has no checksum of it.
fn unlike(path: &Path, row: &RunRow) -> Option<String> {
    let patterns = row.spec.work.pattern_count();
    let (mut stats, mut others, mut n) = (StatsBuilder::new(row.spec.io_ignore, patterns), 0u64, 0u64);
    if row.stats.by_mode.is_empty() {
        // Of one mode, which makes no difference, or of a version that did not tell them apart.
        stats = stats.with_all_modes_together();
    }
    let read = read_row_groups(path, |run, records| {
        others += u64::from(run != row.spec.id);
        n += records.len() as u64;
        stats.push(records);
        Ok(())
    });
    match read {
        Err(StoreError::Damaged { detail, .. }) => Some(detail),
        Err(error) => Some(error.to_string()),
        Ok(()) if others > 0 => Some("it has the records of another run".into()),
        Ok(()) if n != row.outcome.end.ios => {
            Some(format!("it has {n} IOs and its line says {}", row.outcome.end.ios))
        }
        Ok(()) => (!same_stats(&stats.finish(), &row.stats))
            .then(|| "its response times are not those that its line sums up".into()),
    }
}

fn same_stats(a: &RunStats, b: &RunStats) -> bool {
    same(&a.running, &b.running)
        && same(&a.all, &b.all)
        && a.by_pattern.len() == b.by_pattern.len()
        && a.by_pattern.iter().zip(&b.by_pattern).all(|(a, b)| same(a, b))
        && a.by_mode.len() == b.by_mode.len()
        && a.by_mode
            .iter()
            .zip(&b.by_mode)
            .all(|(a, b)| (a.mode, a.ios) == (b.mode, b.ios) && same(&a.running, &b.running))
}

fn same(a: &RtStats, b: &RtStats) -> bool {
    let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= ROUNDING * a.abs().max(b.abs()),
        (None, None) => true,
        _ => false,
    };
    let whole =
        |s: &RtStats| [s.min_ns, s.max_ns, s.p50_ns, s.p90_ns, s.p95_ns, s.p99_ns, s.p999_ns, s.p9999_ns];
    a.n == b.n && whole(a) == whole(b) && close(a.mean_ns, b.mean_ns) && close(a.sd_ns, b.sd_ns)
}

/// `work` on every item, by several threads; results in the order of the items.
pub fn in_parallel<I: Sync, R: Send>(items: &[I], work: impl Fn(&I) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8).min(items.len());
    let each = || {
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        } {
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            // Without a further thread this one does the work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, each);
        }
        each();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
