//! `uflip sim verify`: the papers' tables and facts beside what the measuring
//! code finds on the simulated catalogue.
//!
//! Each device goes through the commands that a user would type
//! (`verify/experiments.rs`); nothing here knows a model's parameters. Its figures are
//! read from the results, and compared, by `analysis/src/verification.rs`.

mod experiments;

use crate::args::VerifyArgs;
use crate::command::{print, print_json};
use crate::private::PrivateFolder;
use crate::usage;
use anyhow::Context;
use experiments::{Experiment, How};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use uflip_analysis::verification::{Figures, PaperTable, compare, summed_up, tables};
use uflip_report::verification::text;

/// Runs the command.
///
/// # Errors
/// Where a device cannot be measured.
pub fn verify(args: VerifyArgs) -> anyhow::Result<()> {
    let tables = tables().context("the built-in tables")?;
    let known: BTreeSet<&String> = tables.values().flat_map(BTreeMap::keys).collect();
    if let Some(unknown) = args.devices.iter().find(|name| !known.contains(name)) {
        let names: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
        return Err(usage(format!("no paper has figures of {unknown}; type {}", names.join(", "))));
    }
    let wanted = |name: &String| args.devices.is_empty() || args.devices.contains(name);
    let names: Vec<&String> = known.into_iter().filter(|name| wanted(name)).collect();
    let found = measure_all(&names, &tables, How { seed: args.seed, method: args.method })?;
    let verification = summed_up(compare(&tables, &found));
    if args.json { print_json(&verification) } else { print(&text(&verification)) }
}

/// What has to be measured for the cells that `device` has.
fn experiments_for(device: &str, tables: &BTreeMap<String, PaperTable>) -> Vec<Experiment> {
    let row = |table: &str| tables.get(table).and_then(|t| t.get(device));
    let says = |cell: &str| row("text").is_some_and(|row| row.cells.contains_key(cell));
    let all = [
        (Experiment::Standard, row("table3").is_some()),
        (Experiment::Lasting, says("lasting_reads")),
        (Experiment::New, says("new_rw_16k_ms")),
        (Experiment::LogicalBlock, row("logical_block").is_some()),
        (Experiment::Job, row("table31").is_some() || row("recovery").is_some()),
    ];
    all.into_iter().filter(|(_, needed)| *needed).map(|(experiment, _)| experiment).collect()
}

/// Does the experiments, two at a time: one a core of a small machine.
fn measure_all(
    names: &[&String],
    tables: &BTreeMap<String, PaperTable>,
    how: How,
) -> anyhow::Result<BTreeMap<String, Figures>> {
    let of =
        |name: &&String| experiments_for(name, tables).into_iter().map(|e| ((*name).clone(), e)).collect();
    let todo: Vec<(String, Experiment)> = names.iter().flat_map(|name| -> Vec<_> { of(name) }).collect();
    let next = Mutex::new(todo.into_iter());
    let all = Mutex::new(BTreeMap::<String, Figures>::new());
    let work = || -> anyhow::Result<()> {
        loop {
            let Some((name, experiment)) = next.lock().expect("no worker panicked").next() else {
                return Ok(());
            };
            let found = measure(experiment, &name, how).with_context(|| format!("sim:{name}"))?;
            all.lock().expect("no worker panicked").entry(name).or_default().join(found);
        }
    };
    std::thread::scope(|scope| {
        // Where no thread is to be had it takes longer.
        let other = std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let own = work();
        other.map_or(Ok(()), |w| w.join().expect("no worker panicked")).and(own)
    })?;
    Ok(all.into_inner().expect("no worker panicked"))
}

fn measure(experiment: Experiment, name: &str, how: How) -> anyhow::Result<Figures> {
    let folder = PrivateFolder::new("uflip-verify")?;
    experiments::measure(experiment, name, how, &folder.path().join("out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_name_devices_of_the_catalogue_that_can_be_measured() {
        let tables = tables().unwrap();
        for name in tables.values().flat_map(BTreeMap::keys) {
            assert!(uflip_sim::catalogue::names().any(|n| n == name), "{name}");
            assert!(!experiments_for(name, &tables).is_empty(), "{name}");
        }
    }
}
