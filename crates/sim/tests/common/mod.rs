//! Random descriptions and random IO for them.
#![allow(dead_code, reason = "each test uses its part")]

use proptest::prelude::*;
use std::fmt::Write as _;
use uflip_device::rng::Rng;
use uflip_device::{Arrival, Bytes, Device, Io, IoRecord, KeepAll, Mode, Nanos, RunLimits, Stop, Stream};
use uflip_sim::SimDevice;

/// As many cases as `PROPTEST_CASES` says, a few hundred where it is not set;
/// other ones in each run.
pub fn config() -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    ProptestConfig { cases: if asked { default.cases } else { 300 }, failure_persistence: None, ..default }
}

/// Draws from the seed of a case; what it makes is a line of a description.
struct Draw(Rng);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most - least + 1)
    }
    fn yes(&mut self) -> bool {
        self.0.below(2) == 1
    }
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len() as u64) as usize]
    }
    /// A line `key = value`, or nothing half of the time.
    fn maybe(&mut self, key: &str, value: String) -> String {
        if self.yes() { format!("{key} = {value}\n") } else { String::new() }
    }
    /// A time: now and then nothing, or the longest allowed.
    fn us(&mut self) -> u64 {
        let usual = self.between(1, 3000);
        match self.below(24) {
            0 => 0,
            1 => 100_000,
            _ => usual,
        }
    }
}

/// The text of a random small device: flash mostly, now and then a disk.
pub fn description() -> impl Strategy<Value = String> {
    any::<u64>().prop_map(|seed| {
        let mut draw = Draw(Rng::new(seed));
        if draw.below(16) == 0 { disk(&mut draw) } else { flash(&mut draw) }
    })
}

/// The beginning of a description, without options that have no effect there.
fn head(draw: &mut Draw, mib: u64, sector: u64, disk: bool) -> String {
    let (read, write, seek) = (draw.us(), draw.us(), draw.below(200));
    let (queue, ahead, readers) = (draw.one(&[1, 1, 2, 32]), draw.one(&[0, 0, 64]), draw.one(&[1, 4]));
    let (seek, ahead) = if disk { (0, 0) } else { (seek, ahead) };
    let readers = if seek + ahead > 0 { readers } else { 1 };
    let page_uj = if disk { "" } else { "read_uj = 1.5\n" };
    let noise = draw.one(&["0.0", "0.0", "0.1", "1.0"]);
    format!(
        "name = \"random\"\ncapacity_mib = {mib}\nsector_bytes = {sector}\n\
         [link]\nread_latency_us = {read}\nwrite_latency_us = {write}\nread_mb_s = 100\nwrite_mb_s = 80\n\
         queue_depth = {queue}\nread_ahead_kib = {ahead}\nseek_read_us = {seek}\n\
         read_streams = {readers}\n\
         [noise]\nshare = {noise}\n[energy]\n{page_uj}idle_mw = 0.5\n"
    )
}

fn disk(draw: &mut Draw) -> String {
    let mib = draw.between(1, 4);
    let (surfaces, zones, queue) = (draw.between(1, 4), draw.between(1, 3), draw.between(1, 8));
    let (tracks, read, write) = (draw.between(4, 200), draw.one(&[0, 64, 512]), draw.one(&[0, 4, 256]));
    let rpm = draw.one(&[60, 4200, 7200, 1_000_000]);
    let queue = if write > 0 { queue } else { 1 };
    head(draw, mib, 512, true)
        + &format!(
            "[disk]\nrpm = {rpm}\ntrack_seek_ms = 1.0\nmean_seek_ms = 9.0\nfull_seek_ms = 17.0\n\
             tracks = {tracks}\nsurfaces = {surfaces}\nzones = {zones}\ninner_outer_ratio = 0.5\n\
             read_buffer_kib = {read}\nwrite_buffer_kib = {write}\nwrite_queue = {queue}\n"
        )
}

fn flash(draw: &mut Draw) -> String {
    let sector = draw.one(&[512, 512, 4096]);
    let mib = draw.between(1, 3);
    let (channels, chips, dies, planes) =
        (draw.between(1, 3), draw.between(1, 2), draw.between(1, 2), draw.between(1, 2));
    let all = channels * chips * dies;
    let stripes: Vec<u64> = (1..=all).filter(|n| all.is_multiple_of(*n)).collect();
    let stripe = draw.one(&stripes);
    let pages = draw.one(&[2, 3, 8, 9, 16, 64]);
    let page = draw.one(&[512, 2048, 4096, 16384]).max(sector);
    let mut text = head(draw, mib, sector, false);
    let _ = write!(
        text,
        "[geometry]\nchannels = {channels}\nchips_per_channel = {chips}\ndies_per_chip = {dies}\n\
         planes_per_die = {planes}\npages_per_block = {pages}\npage_bytes = {page}\nspare_blocks = {}\n\
         [timing]\nread_us = {}\nprogram_us = {}\nerase_us = {}\nbus_mb_s = {}\n",
        draw.one(&[0, 0, 1, 3]),
        draw.us(),
        draw.us(),
        draw.us(),
        draw.one(&["40", "400", "0.1"]),
    );
    let of_merges = ["copy_back_us", "map_update_us", "log_switch_us"].map(|key| {
        let us = draw.us();
        draw.maybe(key, us.to_string())
    });
    let buffer = buffer(draw, sector);
    let kind = draw.one(&["page", "page", "dftl", "bast", "bast", "fast", "fast", "block"]);
    let mut slc = String::new();
    if matches!(kind, "page" | "dftl") && draw.below(4) == 0 {
        let (program, fold) = (draw.us(), draw.one(&["0.01", "100"]));
        let _ = write!(slc, "[slc]\ncache_mib = 1\nprogram_us = {program}\nfold_mb_s = {fold}\n");
    }
    let levelling = draw.one(&["none", "dynamic", "static"]);
    let ftl = ftl(draw, kind);
    let effective = match kind {
        "page" | "dftl" => [false; 3],
        "block" => [true, false, true],
        _ => [true, true, !ftl.contains("sequential_logs = 0")],
    };
    text.extend(of_merges.into_iter().zip(effective).filter(|(_, effective)| *effective).map(|(key, _)| key));
    let kind =
        format!("[ftl]\nkind = \"{kind}\"\nwear_levelling = \"{levelling}\"\nsuperblock_dies = {stripe}\n");
    text + &buffer + &slc + &kind + &ftl
}

fn buffer(draw: &mut Draw, sector: u64) -> String {
    if draw.yes() {
        return String::new();
    }
    let line = draw.between(1, 8).max(sector / 1024).next_multiple_of((sector / 1024).max(1));
    let lines = draw.between(1, 16);
    let (batch, share) = (draw.between(1, lines), draw.one(&["0", "0.2", "0.95"]));
    let when = draw.one(&["immediate", "lazy", "async", "run"]);
    let (pipelined, delay) = (draw.yes(), draw.one(&[0, 0, 500, 1_000_000_000]));
    let (locks, from) = (draw.yes(), line * draw.between(1, lines));
    let from = draw.maybe("destage_from_kib", from.to_string());
    let head = format!("[buffer]\nkib = {}\nline_kib = {line}\ndestage = \"{when}\"\n", line * lines);
    let waits = format!("batch_lines = {batch}\nbackground_share = {share}\npipelined = {pipelined}\n");
    head + &match when {
        "immediate" => format!("locks_lines = {locks}\n"),
        "async" => waits + &format!("idle_delay_us = {delay}\n{from}"),
        _ => waits,
    }
}

fn ftl(draw: &mut Draw, kind: &str) -> String {
    let logs = draw.between(1, 5);
    match kind {
        "page" | "dftl" => {
            let gc = draw.one(&["greedy", "cost-benefit", "d-choices"]);
            let mut text = format!("gc = \"{gc}\"\nhot_cold = {}\n", draw.yes());
            let (op, idle, choices) = (draw.below(41), draw.below(12), draw.between(1, 20));
            text += &draw.maybe("over_provisioning", format!("0.{op:02}"));
            text += &draw.maybe("idle_free_superblocks", idle.to_string());
            if gc == "d-choices" {
                text += &draw.maybe("gc_choices", choices.to_string());
            }
            let cache = draw.between(4, 8);
            if kind == "dftl" { text + &format!("map_cache_kib = {cache}\n") } else { text }
        }
        "bast" => {
            let batch = draw.between(1, logs);
            let mut text = format!("log_blocks = {logs}\nmerge_batch = {batch}\n");
            for key in ["permuted_switch", "restart_merges", "repay_merges", "page_wise_log_copy"] {
                let on = draw.yes();
                text += &draw.maybe(key, on.to_string());
            }
            let (random, unit) = (draw.between(1, logs), draw.one(&[1, 4, 16]));
            text += &draw.maybe("random_logs", random.to_string());
            let unit = draw.maybe("unit_kib", unit.to_string());
            let loses = draw.yes().to_string();
            let loses = if unit.is_empty() { String::new() } else { draw.maybe("loses_order", loses) };
            text + &unit + &loses
        }
        "fast" => {
            let logs = draw.maybe("log_superblocks", logs.to_string());
            format!("log_kib = {}\nsequential_logs = {}\n{logs}", draw.between(1, 96), draw.below(4))
        }
        _ => format!("open_blocks = {logs}\n"),
    }
}

/// What kind of IO a device gets.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub seed: u64,
    pub ios: u64,
    /// Share of the device written to, in sixteenths.
    pub space: u64,
    pub sequential: u64,
    pub trims: u64,
}

pub fn shape() -> impl Strategy<Value = Workload> {
    (any::<u64>(), 50u64..600, 1u64..=16, 0u64..=4, 0u64..=1)
        .prop_map(|(seed, ios, space, sequential, trims)| Workload { seed, ios, space, sequential, trims })
}

/// Random IOs of whole sectors, now and then sequential, with pauses.
pub fn ios(shape: Workload, capacity: u64, sector: u64) -> Vec<Io> {
    let mut rng = Rng::new(shape.seed);
    let sectors = (capacity / sector * shape.space / 16).max(128);
    let mut next = 0;
    (0..shape.ios)
        .map(|_| {
            let length = if rng.below(4) == 0 { rng.below(128) + 1 } else { 1 << rng.below(7) };
            let follow = rng.below(4) < shape.sequential && next + length <= sectors;
            let at = if follow { next } else { rng.below(sectors - length + 1) };
            next = at + length;
            let mode = match rng.below(16) {
                0..=2 => Mode::Read,
                3 if shape.trims > 0 => Mode::Trim,
                4 if rng.below(8) == 0 => Mode::Flush,
                _ => Mode::Write,
            };
            let (at, length) = if mode == Mode::Flush { (0, 0) } else { (at, length) };
            let wait = Nanos(if rng.below(8) == 0 { rng.below(30_000_000) } else { 0 });
            Io {
                arrival: Arrival::After(wait),
                offset: Bytes(at * sector),
                size: (length * sector) as u32,
                mode,
                pattern: 0,
            }
        })
        .collect()
}

/// Runs streams of IOs; gives the records, stream by stream.
pub fn run(device: &mut SimDevice, streams: Vec<Vec<Io>>) -> Vec<IoRecord> {
    let keep = KeepAll::new(1 << 10);
    let streams = streams.into_iter().map(|ios| Box::new(ios.into_iter()) as Stream).collect();
    let stop = Stop::new();
    device.run(streams, &keep, RunLimits { time: None, stop: &stop, sequence: None }).unwrap();
    keep.records()
}
