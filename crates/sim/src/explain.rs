//! A description as a person reads it: geometry, how an IO travels, and the
//! figures that follow from the numbers.

use crate::describe::{
    Description, Destage, Disk, Energy, FlashArray, FlashTiming, FtlKind, FtlOptions, GcPolicy, PageOptions,
    WearLevelling,
};
use crate::ftl::physical_sbs;
use crate::nand::{ArrayShape, Nand};
use std::fmt::Write as _;
use uflip_device::{Bytes, Nanos};

/// Draws a device and tells its derived figures.
pub fn explain(d: &Description) -> String {
    let mut out = format!("{}\n{}\n\n", d.name, d.about);
    let _ =
        writeln!(out, "capacity    {} in sectors of {}", Bytes(d.capacity_mib << 20), Bytes(d.sector_bytes));
    let _ = writeln!(
        out,
        "link        read {} us + {} MB/s, write {} us + {} MB/s, {} command(s) at once",
        d.link.read_latency_us,
        d.link.read_mb_s,
        d.link.write_latency_us,
        d.link.write_mb_s,
        d.link.queue_depth
    );
    match (&d.geometry, &d.timing, &d.ftl, &d.disk) {
        (Some(g), Some(t), Some(f), _) => flash(&mut out, d, g, t, f),
        (_, _, _, Some(disk)) => platter(&mut out, disk),
        _ => {}
    }
    provenance(&mut out, d);
    out
}

/// The IO whose way is told: the papers' size.
const IO_BYTES: u64 = 32 << 10;

/// A line with its key.
fn row(out: &mut String, key: &str, text: &str) {
    let _ = writeln!(out, "{key:<12}{text}");
}

fn flash(out: &mut String, d: &Description, g: &FlashArray, t: &FlashTiming, f: &FtlOptions) {
    let shape = ArrayShape::new(d, g, f);
    let physical = physical_sbs(&shape, f, g.spare_blocks);
    let nand = Nand::new(shape, t, 1);
    drawing(out, g, &shape);
    write_travels(out, d, f, &nand);
    read_travels(out, d, t, f, &nand);
    let _ = writeln!(out, "\nwhat follows from the numbers");
    let (lanes, rows) = (shape.lanes, shape.rows);
    let sb = Bytes(shape.sb_bytes());
    row(out, "superblock", &format!("{sb} = {lanes} lanes x {rows} pages x {}", Bytes(shape.unit_bytes)));
    let banks = match shape.banks {
        1 => "1: a superblock lies in all dies".to_string(),
        n => format!("{n} that work independently; superblock s lies in bank s mod {n}"),
    };
    row(out, "banks", &banks);
    let spare = physical.saturating_sub(u64::from(shape.logical_sbs));
    let share = spare as f64 * 100.0 / f64::from(shape.logical_sbs);
    let filled = shape.logical_sbs;
    row(
        out,
        "spare",
        &format!("{spare} superblocks beyond the {filled} that the capacity fills ({share:.2} %)"),
    );
    match f.kind.pages() {
        Some(_) => reclamation(out, t, f, &nand, physical),
        None => merges(out, t, &nand),
    }
    log_space(out, f, &shape);
    wear(out, f);
    energy(out, d);
}

/// Times of a page moved and of an erase, and the write amplification to expect.
fn reclamation(out: &mut String, t: &FlashTiming, f: &FtlOptions, nand: &Nand, physical: u64) {
    let shape = &nand.shape;
    let bus_us = shape.unit_bytes as f64 / t.bus_mb_s;
    let page_us = t.read_us + t.program_us + 2.0 * bus_us;
    row(
        out,
        "reclaiming",
        &format!(
            "{} for each valid page that is moved, {} lanes at once; an erase {}",
            us(page_us),
            shape.lanes * shape.banks,
            us(t.erase_us)
        ),
    );
    if let FtlKind::Page(PageOptions { gc: GcPolicy::Greedy, hot_cold: false, .. }) = f.kind {
        // One superblock a bank and one more are kept free, one a bank is open.
        let closed = physical as f64 - 1.5 * f64::from(shape.banks) - 1.0;
        let valid = shape.units as f64 / (closed * f64::from(shape.units_per_sb));
        let programs = crate::amplification::greedy(shape.units_per_sb, valid);
        row(
            out,
            "random",
            &format!("writes of pages all over a full device cost {programs:.2} programs each (computed)"),
        );
    }
    let bytes = 4 * shape.units + physical * u64::from(shape.units_per_sb) * 33 / 8;
    row(out, "memory", &format!("{} of this machine's for the simulated map", Bytes(bytes)));
}

/// What each kind of merge costs.
fn merges(out: &mut String, t: &FlashTiming, nand: &Nand) {
    let copy = |units: u32| nand.copy_rows_ns(u64::from(units));
    let (erase, map) = ((t.erase_us * 1e3) as u64, (t.map_update_us * 1e3) as u64);
    let all = nand.shape.units_per_sb;
    let full = copy(all) + 2 * erase + map;
    row(
        out,
        "full merge",
        &format!("{} = {} of copying, two erases of {}", Nanos(full), Nanos(copy(all)), Nanos(erase)),
    );
    let half = Nanos(copy(all / 2) + erase + map);
    row(out, "partial", &format!("{half} for a log block in order and half full: the other half is copied"));
    row(out, "switch", &format!("{} for one that is in order and full", Nanos(erase + map)));
}

fn wear(out: &mut String, f: &FtlOptions) {
    let how = match f.wear_levelling {
        WearLevelling::None => "none: free superblocks are taken in the order they were freed",
        WearLevelling::Dynamic => "the least worn free superblock is taken",
        WearLevelling::Static => {
            "the least worn free superblock is taken, and cold content moved to worn ones"
        }
    };
    row(out, "wear", how);
}

fn energy(out: &mut String, d: &Description) {
    let e = &d.energy;
    if *e == Energy::default() {
        return;
    }
    let joules = format!(
        "read {} uJ, program {} uJ, erase {} uJ, link {} nJ/B, {} mW at rest and {} mW more in service",
        e.read_uj, e.program_uj, e.erase_uj, e.link_nj_per_byte, e.idle_mw, e.active_mw
    );
    row(out, "energy", &joules);
}

fn us(us: f64) -> Nanos {
    Nanos((us * 1e3) as u64)
}

fn drawing(out: &mut String, g: &FlashArray, shape: &ArrayShape) {
    let die = format!("[{}x{}p]", g.planes_per_die, g.pages_per_block);
    let chip = die.repeat(g.dies_per_chip.min(4) as usize);
    let shown = g.chips_per_channel.min(4);
    let more = if g.chips_per_channel > shown {
        format!(" ... {} chips", g.chips_per_channel)
    } else {
        String::new()
    };
    let _ = writeln!(out, "\nhost === link === controller");
    for channel in 0..g.channels.min(8) {
        let chips = vec![chip.clone(); shown as usize].join("-");
        let _ = writeln!(out, "                     |-- channel {channel} --{chips}{more}");
    }
    if g.channels > 8 {
        let _ = writeln!(out, "                     ... {} channels", g.channels);
    }
    let _ = writeln!(
        out,
        "  [planes x pages of a block]; pages of {}, blocks of {}",
        Bytes(shape.unit_bytes),
        Bytes(shape.unit_bytes * u64::from(shape.rows))
    );
}

/// How a write of 32 KiB comes to flash.
fn write_travels(out: &mut String, d: &Description, f: &FtlOptions, nand: &Nand) {
    let _ = writeln!(out, "\na write of {}", Bytes(IO_BYTES));
    let shape = &nand.shape;
    row(
        out,
        "  link",
        &format!("{} + {}", us(d.link.write_latency_us), us(IO_BYTES as f64 / d.link.write_mb_s)),
    );
    let buffer = match &d.buffer {
        None => "none: done when programmed".to_string(),
        Some(b) => {
            let when = match b.destage {
                Destage::Immediate => "handed to the flash at once",
                Destage::Lazy => "handed to the flash when all are full, and the write waits",
                Destage::Async => "handed to the flash when nearly all are full, or in idle time",
                Destage::Run => "of one contiguous run, handed to the flash when it is broken or full",
            };
            let (size, line, lines) = (Bytes(b.kib << 10), Bytes(b.line_kib << 10), b.kib / b.line_kib);
            let batch =
                if b.batch_lines > 1 { format!(", {} together", b.batch_lines) } else { String::new() };
            format!("{size}; done here while a line is free; {lines} lines of {line} {when}{batch}")
        }
    };
    row(out, "  buffer", &buffer);
    let to = match f.kind {
        FtlKind::Page(_) => "page map: to the next free pages, bank by bank",
        FtlKind::Dftl(_) => {
            "page map on flash (DFTL): its part is read where not cached; to the next free pages"
        }
        FtlKind::Bast(_) => {
            "BAST: to the next pages of its superblock's log block; a merge where all are taken"
        }
        FtlKind::Fast(_) => {
            "FAST: to a sequential log block, or to the shared log, whose other half is merged"
        }
        FtlKind::Block(_) => {
            "block map: to the same pages of a replacement block; a merge where they are taken"
        }
    };
    row(out, "  FTL", to);
    let pages = IO_BYTES.div_ceil(shape.unit_bytes);
    let program = Nanos(nand.program_rows_ns(0, pages));
    let slc = d.slc.as_ref().map(|s| {
        format!("; {} with one bit a cell while {} last", us(s.program_us), Bytes(s.cache_mib << 20))
    });
    let text = format!("{program} to program {pages} page(s) in one superblock{}", slc.unwrap_or_default());
    row(out, "  flash", &text);
}

/// How a read of 32 KiB comes back.
fn read_travels(out: &mut String, d: &Description, t: &FlashTiming, f: &FtlOptions, nand: &Nand) {
    let _ = writeln!(out, "a read of {}", Bytes(IO_BYTES));
    let pages = IO_BYTES.div_ceil(nand.shape.unit_bytes);
    let map = match f.kind {
        FtlKind::Dftl(_) => format!("{} more where its part of the map is not cached", us(t.read_us)),
        _ if d.link.seek_read_us > 0.0 => {
            format!("{} where it does not continue the read before", us(d.link.seek_read_us))
        }
        _ => "in RAM".to_string(),
    };
    row(out, "  map", &map);
    let ahead = if d.link.read_ahead_kib > 0 { ", read ahead of a sequential reader" } else { "" };
    row(out, "  flash", &format!("{} for {pages} page(s){ahead}", Nanos(nand.read_rows_ns(0, pages))));
    let link = (us(d.link.read_latency_us), us(IO_BYTES as f64 / d.link.read_mb_s));
    row(out, "  link", &format!("{} + {}", link.0, link.1));
}

fn log_space(out: &mut String, f: &FtlOptions, shape: &ArrayShape) {
    match &f.kind {
        FtlKind::Bast(options) => {
            let logs = u64::from(options.log_blocks);
            let _ = writeln!(
                out,
                "log space   {logs} log blocks: random writes within {} stay cheap",
                Bytes(logs * shape.sb_bytes())
            );
        }
        FtlKind::Fast(options) => {
            let _ = writeln!(
                out,
                "log space   two halves of {}, and {} sequential log block(s)",
                Bytes(options.log_kib << 10),
                options.sequential_logs
            );
        }
        FtlKind::Block(options) => {
            let _ =
                writeln!(out, "log space   {} replacement block(s), filled in order", options.open_blocks);
        }
        FtlKind::Page(_) | FtlKind::Dftl(_) => {}
    }
}

fn platter(out: &mut String, disk: &Disk) {
    let turn = 60e3 / disk.rpm;
    let _ = writeln!(
        out,
        "\nhost === link === buffer === head -> {} surfaces, {} tracks, {} zones",
        disk.surfaces, disk.tracks, disk.zones
    );
    let _ = writeln!(out, "rotation    {turn:.2} ms, half of it {:.2} ms", turn / 2.0);
    let _ = writeln!(
        out,
        "random      {:.2} ms = mean seek {} ms and half a turn",
        disk.mean_seek_ms + turn / 2.0,
        disk.mean_seek_ms
    );
}

fn provenance(out: &mut String, d: &Description) {
    if d.provenance.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nwhere the numbers come from");
    for (key, from) in &d.provenance {
        let _ = writeln!(out, "  {key:32} {from:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_is_explained_with_its_own_figures() {
        for name in crate::catalogue::names() {
            let d = crate::catalogue::get(name).unwrap();
            let text = explain(&d);
            println!("{text}");
            assert!(text.contains(&d.name) && text.lines().count() > 6, "{text}");
        }
        let mtron = explain(&crate::catalogue::get("mtron").unwrap());
        assert!(mtron.contains("superblock  2M") && mtron.contains("within 8M stay cheap"), "{mtron}");
    }
}
