//! Whether a description can be built, and what to type where it cannot.

use crate::describe::without_effect;
use crate::describe::{
    DescribeError, Description, Disk, FlashArray, FlashTiming, FtlKind, FtlOptions, GcPolicy,
};
use crate::nand::ArrayShape;

/// What is wrong with the value of a key.
struct Problem {
    /// Dotted name; the table's alone where the whole table is meant.
    key: String,
    message: String,
}

type Checked = Result<(), Problem>;

fn problem(key: &str, message: impl Into<String>) -> Checked {
    Err(Problem { key: key.to_string(), message: message.into() })
}

/// Reads a description and makes sure that it can be built.
///
/// # Errors
/// [`DescribeError`] with the line and what to type instead.
pub fn check(text: &str) -> Result<Description, DescribeError> {
    let d: Description = toml::from_str(text).map_err(|e| {
        let start = e.span().map_or(0, |s| s.start.min(text.len()));
        let line = 1 + text.as_bytes()[..start].iter().filter(|b| **b == b'\n').count();
        let message = e.message().to_string();
        // An option without effect is refused after its whole table was read, and
        // named at the message's beginning.
        let named = message.split_once(": ").filter(|(key, _)| key.starts_with("ftl."));
        DescribeError { line: named.map_or(line, |(key, _)| line_of(text, key)), message }
    })?;
    all(&d).map_err(|p| DescribeError {
        line: line_of(text, &p.key),
        message: format!("{}: {}", p.key, p.message),
    })?;
    provenance(&d, text)?;
    Ok(d)
}

/// Makes sure that a description can be built.
///
/// # Errors
/// [`DescribeError`] that names the key; its line is 1, as there is no text.
pub fn validate(d: &Description) -> Result<(), DescribeError> {
    all(d).map_err(|p| DescribeError { line: 1, message: format!("{}: {}", p.key, p.message) })
}

/// The line of `key` in a TOML text, or of its table, or 1.
fn line_of(text: &str, key: &str) -> usize {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    line_in(text, table, name)
}

/// The line of `name` in `table` of a TOML text, or the table's, or 1.
fn line_in(text: &str, table: &str, name: &str) -> usize {
    let mut here = String::new();
    let mut table_line = None;
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
            here = header.trim().to_string();
            if here == table || table.is_empty() && here == name {
                table_line.get_or_insert(i + 1);
            }
        } else if here == table && line.split('=').next().is_some_and(|k| k.trim().trim_matches('"') == name)
        {
            return i + 1;
        }
    }
    table_line.unwrap_or(1)
}

/// Every name under `[provenance]` must be a key or table of the description.
fn provenance(d: &Description, text: &str) -> Result<(), DescribeError> {
    let Ok(root) = toml::from_str::<toml::Table>(text) else { return Ok(()) };
    for key in d.provenance.keys().filter(|k| *k != "default") {
        let mut value = root.get(key.split('.').next().unwrap_or_default());
        for part in key.split('.').skip(1) {
            value = value.and_then(|v| v.get(part));
        }
        if value.is_none() {
            return Err(DescribeError {
                line: line_in(text, "provenance", key),
                message: format!(
                    "provenance of '{key}', which the description does not have; \
                     type a table's name, a key such as timing.read_us in quotes, or default"
                ),
            });
        }
    }
    Ok(())
}

fn within(key: &str, value: f64, least: f64, most: f64) -> Checked {
    if value.is_finite() && (least..=most).contains(&value) {
        return Ok(());
    }
    problem(key, format!("{value} is not possible; type a number from {least} to {most}"))
}

fn count(key: &str, value: u64, least: u64, most: u64) -> Checked {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    problem(key, format!("{value} is not possible; type a whole number from {least} to {most}"))
}

fn power_of_two(key: &str, value: u64, least: u64, most: u64) -> Checked {
    if value.is_power_of_two() && (least..=most).contains(&value) {
        return Ok(());
    }
    problem(key, format!("{value} is not possible; type a power of two from {least} to {most}"))
}

fn all(d: &Description) -> Checked {
    count("capacity_mib", d.capacity_mib, 1, 16 << 20)?;
    power_of_two("sector_bytes", d.sector_bytes, 512, 4096)?;
    link(d)?;
    energy(d)?;
    within("noise.share", d.noise.share, 0.0, 1.0)?;
    kinds(d)?;
    without_effect(d).map_or(Ok(()), |option| problem(option.key, option.message))
}

fn kinds(d: &Description) -> Checked {
    match (&d.disk, &d.geometry, &d.timing, &d.ftl) {
        (Some(disk), None, None, None) => check_disk(d, disk),
        (Some(_), ..) => {
            problem("disk", "a device has either [disk] or [geometry], [timing] and [ftl]; remove one")
        }
        (None, Some(g), Some(t), Some(f)) => check_flash(d, g, t, f),
        (None, None, _, _) => problem("geometry", "missing; add [geometry], or [disk] for a disk"),
        (None, _, None, _) => {
            problem("timing", "missing; add [timing] with read_us, program_us, erase_us, bus_mb_s")
        }
        (None, _, _, None) => problem(
            "ftl",
            "missing; add [ftl] with kind = \"page\", \"dftl\", \"bast\", \"fast\" or \"block\"",
        ),
    }
}

fn link(d: &Description) -> Checked {
    within("link.read_latency_us", d.link.read_latency_us, 0.0, 1e7)?;
    within("link.write_latency_us", d.link.write_latency_us, 0.0, 1e7)?;
    within("link.seek_read_us", d.link.seek_read_us, 0.0, 1e7)?;
    within("link.read_mb_s", d.link.read_mb_s, 0.01, 1e6)?;
    within("link.write_mb_s", d.link.write_mb_s, 0.01, 1e6)?;
    count("link.read_ahead_kib", d.link.read_ahead_kib, 0, 1 << 20)?;
    count("link.read_streams", u64::from(d.link.read_streams), 1, 64)?;
    count("link.queue_depth", u64::from(d.link.queue_depth), 1, 4096)
}

fn energy(d: &Description) -> Checked {
    let e = &d.energy;
    let costs = [
        ("energy.read_uj", e.read_uj),
        ("energy.program_uj", e.program_uj),
        ("energy.erase_uj", e.erase_uj),
        ("energy.link_nj_per_byte", e.link_nj_per_byte),
        ("energy.idle_mw", e.idle_mw),
        ("energy.active_mw", e.active_mw),
    ];
    costs.iter().try_for_each(|(key, value)| within(key, *value, 0.0, 1e9))
}

fn check_flash(d: &Description, g: &FlashArray, t: &FlashTiming, f: &FtlOptions) -> Checked {
    count("geometry.channels", u64::from(g.channels), 1, 64)?;
    count("geometry.chips_per_channel", u64::from(g.chips_per_channel), 1, 64)?;
    count("geometry.dies_per_chip", u64::from(g.dies_per_chip), 1, 16)?;
    count("geometry.planes_per_die", u64::from(g.planes_per_die), 1, 8)?;
    count("geometry.pages_per_block", u64::from(g.pages_per_block), 2, 4096)?;
    count("geometry.spare_blocks", u64::from(g.spare_blocks), 0, 1 << 16)?;
    power_of_two("geometry.page_bytes", g.page_bytes, d.sector_bytes, 1 << 18)?;
    within("timing.read_us", t.read_us, 0.0, 1e6)?;
    within("timing.program_us", t.program_us, 0.0, 1e6)?;
    within("timing.erase_us", t.erase_us, 0.0, 1e6)?;
    within("timing.bus_mb_s", t.bus_mb_s, 0.01, 1e6)?;
    within("timing.copy_back_us", t.copy_back_us.unwrap_or(0.0), 0.0, 1e6)?;
    within("timing.map_update_us", t.map_update_us, 0.0, 1e6)?;
    within("timing.log_switch_us", t.log_switch_us, 0.0, 1e6)?;
    let dies = g.channels * g.chips_per_channel * g.dies_per_chip;
    let stripe = f.superblock_dies.unwrap_or(dies);
    if stripe == 0 || !dies.is_multiple_of(stripe) {
        return problem(
            "ftl.superblock_dies",
            format!("{stripe} does not divide the {dies} dies; type a divisor"),
        );
    }
    let shape = ArrayShape::new(d, g, f);
    count("geometry.pages_per_block", u64::from(shape.units_per_sb), 2, 1 << 20).map_err(|mut p| {
        p.message.push_str(" pages of a superblock (pages_per_block x dies x planes)");
        p
    })?;
    check_ftl(&f.kind)?;
    check_buffer(d)?;
    if let Some(s) = &d.slc {
        if f.kind.pages().is_none() {
            return problem(
                "slc",
                "only page mapping has a one-bit region; remove [slc] or type kind = \"page\"",
            );
        }
        count("slc.cache_mib", s.cache_mib, 1, d.capacity_mib)?;
        within("slc.program_us", s.program_us, 0.0, 1e7)?;
        within("slc.fold_mb_s", s.fold_mb_s, 0.01, 1e6)?;
    }
    merge_time(&shape, t)?;
    let physical = crate::ftl::physical_sbs(&shape, f, g.spare_blocks);
    if physical * u64::from(shape.units_per_sb) >= u64::from(u32::MAX) {
        return problem("capacity_mib", "more than 2^32 pages; type less, or a larger page_bytes");
    }
    Ok(())
}

/// Copying a superblock page by page must end within an hour, so that times
/// stay far from the end of the clock.
fn merge_time(shape: &ArrayShape, t: &FlashTiming) -> Checked {
    let page_us = t.read_us + t.program_us + 2.0 * shape.unit_bytes as f64 / t.bus_mb_s;
    let hours = f64::from(shape.units_per_sb) * page_us / 3.6e9;
    if hours <= 1.0 {
        return Ok(());
    }
    problem(
        "timing",
        format!(
            "copying the {} pages of a superblock takes {hours:.1} hours; \
             type a larger bus_mb_s, shorter times or fewer pages",
            shape.units_per_sb
        ),
    )
}

fn check_buffer(d: &Description) -> Checked {
    let Some(b) = &d.buffer else { return Ok(()) };
    count("buffer.line_kib", b.line_kib, d.sector_bytes.div_ceil(1024), 1 << 20)?;
    if !(b.line_kib << 10).is_multiple_of(d.sector_bytes) {
        return problem("buffer.line_kib", "not a multiple of the sector; type a larger one");
    }
    count("buffer.kib", b.kib, b.line_kib, 1 << 24)?;
    let lines = b.kib / b.line_kib;
    count("buffer.kib", lines, 1, 1 << 22)?;
    count("buffer.batch_lines", u64::from(b.batch_lines), 1, lines)?;
    count("buffer.destage_from_kib", b.destage_from_kib.unwrap_or(b.kib), b.line_kib, b.kib)?;
    within("buffer.background_share", b.background_share, 0.0, 0.95)?;
    within("buffer.idle_delay_us", b.idle_delay_us, 0.0, 1e9)
}

fn check_ftl(kind: &FtlKind) -> Checked {
    if let Some(f) = kind.pages() {
        within("ftl.over_provisioning", f.over_provisioning, 0.0, 10.0)?;
        count("ftl.idle_free_superblocks", u64::from(f.idle_free_superblocks), 0, 1 << 20)?;
        if let GcPolicy::DChoices { gc_choices } = f.gc {
            count("ftl.gc_choices", u64::from(gc_choices), 1, 1000)?;
        }
    }
    match kind {
        FtlKind::Page(_) => Ok(()),
        FtlKind::Dftl(f) => count("ftl.map_cache_kib", f.map_cache_kib, 4, 1 << 24),
        FtlKind::Bast(f) => {
            let logs = u64::from(f.log_blocks);
            count("ftl.log_blocks", logs, 1, 4096)?;
            count("ftl.merge_batch", u64::from(f.merge_batch), 1, logs)?;
            count("ftl.random_logs", f.random_logs.map_or(logs, u64::from), 1, logs)?;
            power_of_two("ftl.unit_kib", f.unit_kib.unwrap_or(1), 1, 1 << 10)
        }
        FtlKind::Fast(f) => {
            count("ftl.log_superblocks", u64::from(f.log_superblocks.unwrap_or(1)), 1, 1 << 20)?;
            count("ftl.log_kib", f.log_kib, 1, 1 << 24)?;
            count("ftl.sequential_logs", u64::from(f.sequential_logs), 0, 4096)
        }
        FtlKind::Block(f) => count("ftl.open_blocks", u64::from(f.open_blocks), 1, 4096),
    }
}

fn check_disk(d: &Description, disk: &Disk) -> Checked {
    if d.buffer.is_some() || d.slc.is_some() {
        return problem("buffer", "a disk's buffer is disk.write_buffer_kib; remove [buffer] and [slc]");
    }
    within("disk.rpm", disk.rpm, 60.0, 1e6)?;
    within("disk.track_seek_ms", disk.track_seek_ms, 0.0, 1e4)?;
    within("disk.mean_seek_ms", disk.mean_seek_ms, disk.track_seek_ms, 1e4)?;
    within("disk.full_seek_ms", disk.full_seek_ms, disk.mean_seek_ms, 1e4)?;
    count("disk.surfaces", u64::from(disk.surfaces), 1, 256)?;
    count("disk.tracks", disk.tracks, u64::from(disk.surfaces), (d.capacity_mib << 20) / 512)?;
    count("disk.zones", u64::from(disk.zones), 1, disk.tracks.min(10_000))?;
    within("disk.inner_outer_ratio", disk.inner_outer_ratio, 0.1, 1.0)?;
    count("disk.read_buffer_kib", disk.read_buffer_kib, 0, 1 << 20)?;
    count("disk.write_buffer_kib", disk.write_buffer_kib, 0, 1 << 20)?;
    count("disk.write_queue", u64::from(disk.write_queue), 1, 1024)
}
