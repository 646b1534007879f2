//! A description as a person reads it: geometry, how an IO travels, and the
//! figures that follow from the numbers.

use crate::describe::{Description, Destage, Disk, Ftl, FtlKind, Geometry, Timing};
use crate::ftl::physical_sbs;
use crate::nand::{Nand, Shape};
use std::fmt::Write as _;
use uflip_device::{Bytes, Nanos};

/// Draws a device and tells its derived figures.
pub fn explain(d: &Description) -> String {
    let mut out = format!("{}\n{}\n\n", d.name, d.about);
    let _ =
        writeln!(out, "capacity   {} in sectors of {}", Bytes(d.capacity_mib << 20), Bytes(d.sector_bytes));
    let _ = writeln!(
        out,
        "link       read {} us + {} MB/s, write {} us + {} MB/s, {} command(s) at once",
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

fn flash(out: &mut String, d: &Description, g: &Geometry, t: &Timing, f: &Ftl) {
    let shape = Shape::new(d, g, f);
    let physical = physical_sbs(&shape, f, g.spare_blocks);
    drawing(out, g, &shape);
    travel(out, d, f);
    let nand = Nand::new(shape, t, 1);
    let rows = Nanos(nand.copy_rows_ns(u64::from(shape.units_per_sb)));
    let erase = Nanos((t.erase_us * 1e3) as u64);
    let _ = writeln!(
        out,
        "\nsuperblock {} = {} lanes x {} pages x {}",
        Bytes(shape.sb_bytes()),
        shape.lanes,
        shape.rows,
        Bytes(shape.unit_bytes)
    );
    let _ = writeln!(
        out,
        "banks      {} that work independently; superblock s lies in bank s mod {}",
        shape.banks, shape.banks
    );
    let spare = physical.saturating_sub(u64::from(shape.logical_sbs));
    let _ = writeln!(
        out,
        "spare      {spare} superblocks beyond the {} of the capacity ({:.2} %)",
        shape.logical_sbs,
        spare as f64 * 100.0 / f64::from(shape.logical_sbs)
    );
    let _ = writeln!(
        out,
        "32K        takes {} to program once in the controller",
        Nanos(nand.program_rows_ns(0, (32768 / shape.unit_bytes).max(1)))
    );
    match f.kind {
        FtlKind::Page | FtlKind::Dftl => {
            let bytes = 4 * shape.units + physical * u64::from(shape.units_per_sb) * 33 / 8;
            let _ = writeln!(out, "map        {} of the simulator's memory", Bytes(bytes));
        }
        FtlKind::Bast | FtlKind::Fast | FtlKind::Block => {
            let full = Nanos(rows.0 + 2 * erase.0);
            let _ = writeln!(
                out,
                "full merge {full}: {rows} of copying and two erases of {erase}; switch merge {erase}"
            );
        }
    }
    log_space(out, f, &shape);
}

fn drawing(out: &mut String, g: &Geometry, shape: &Shape) {
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

fn travel(out: &mut String, d: &Description, f: &Ftl) {
    let buffer = match &d.buffer {
        None => "no buffer: done when programmed".to_string(),
        Some(b) => {
            let when = match b.destage {
                Destage::Immediate => "programmed at once behind the host's back",
                Destage::Lazy => "destaged when full, the host waiting",
                Destage::Async => "destaged when nearly full or idle",
                Destage::Run => "one contiguous run, destaged when broken or full",
            };
            let lines = b.kib / b.line_kib;
            format!("buffer of {} in {lines} lines, {} at a time, {when}", Bytes(b.kib << 10), b.batch_lines)
        }
    };
    let _ = writeln!(out, "\na write: link -> {buffer} -> {:?} -> pages of one bank", f.kind);
    let slc = d.slc.as_ref().map(|s| format!(", first {} with one bit a cell", Bytes(s.cache_mib << 20)));
    let _ = writeln!(out, "a read:  map -> flash -> link{}", slc.unwrap_or_default());
}

fn log_space(out: &mut String, f: &Ftl, shape: &Shape) {
    match f.kind {
        FtlKind::Bast => {
            let logs = u64::from(f.log_blocks.unwrap_or(4));
            let _ = writeln!(
                out,
                "log space  {logs} log blocks: random writes within {} stay cheap",
                Bytes(logs * shape.sb_bytes())
            );
        }
        FtlKind::Fast => {
            let _ = writeln!(
                out,
                "log space  two halves of {}, and {} sequential log block(s)",
                Bytes(f.log_kib.unwrap_or(1024) << 10),
                f.sequential_logs.unwrap_or(1)
            );
        }
        FtlKind::Block => {
            let _ = writeln!(
                out,
                "log space  {} replacement block(s), filled in order",
                f.open_blocks.unwrap_or(1)
            );
        }
        FtlKind::Page | FtlKind::Dftl => {}
    }
}

fn platter(out: &mut String, disk: &Disk) {
    let turn = 60e3 / disk.rpm;
    let _ = writeln!(
        out,
        "\nhost === link === buffer === head -> {} surfaces, {} tracks, {} zones",
        disk.surfaces, disk.tracks, disk.zones
    );
    let _ = writeln!(out, "rotation   {turn:.2} ms, half of it {:.2} ms", turn / 2.0);
    let _ = writeln!(
        out,
        "random     {:.2} ms = mean seek {} ms and half a turn",
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
            assert!(text.contains(&d.name) && text.lines().count() > 6, "{text}");
        }
        let mtron = explain(&crate::catalogue::get("mtron").unwrap());
        assert!(mtron.contains("superblock 2M") && mtron.contains("within 8M stay cheap"), "{mtron}");
    }
}
