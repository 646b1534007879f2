//! Options of a description, outside of `[ftl]`, that have no effect beside the
//! others.
//!
//! How: each is listed with whether it is given, whether anything of the device
//! looks at it, and what to do instead. An option at its default says nothing:
//! descriptions written by programs have all of them. `[ftl]` looks after itself
//! (`describe/ftl.rs`).

use super::{Buffer, Description, Destage, Disk, Energy, FlashTiming, FtlKind, Link};

/// An option that may have no effect.
pub struct NamedOption {
    /// Its dotted name.
    pub key: &'static str,
    given: bool,
    looked_at: bool,
    /// What it has no effect with, and what to type instead.
    pub message: &'static str,
}

const fn effect(key: &'static str, given: bool, looked_at: bool, message: &'static str) -> NamedOption {
    NamedOption { key, given, looked_at, message }
}

/// The first option of `d` that has no effect.
pub fn without_effect(d: &Description) -> Option<NamedOption> {
    let mut all = Vec::from(of_link(&d.link, d.disk.is_some()));
    all.extend(d.timing.iter().zip(&d.ftl).flat_map(|(timing, ftl)| of_timing(timing, &ftl.kind)));
    all.extend(d.buffer.iter().flat_map(of_buffer));
    all.extend(d.disk.iter().flat_map(|disk| of_disk(disk, &d.energy)));
    all.into_iter().find(|option| option.given && !option.looked_at)
}

fn of_link(link: &Link, disk: bool) -> [NamedOption; 3] {
    let a_disk = "has no effect on a disk, which has disk.read_buffer_kib for it; remove it";
    let (ahead, seek) = (link.read_ahead_kib > 0, link.seek_read_us > 0.0);
    let alone = "has no effect where sequential readers are not treated otherwise; give link.read_ahead_kib or \
                 link.seek_read_us, or remove it";
    let streams = if disk { a_disk } else { alone };
    [
        effect("link.read_ahead_kib", ahead, !disk, a_disk),
        effect(
            "link.seek_read_us",
            seek,
            !disk,
            "has no effect on a disk, which has seeks of its own; remove it",
        ),
        effect("link.read_streams", link.read_streams != 1, !disk && (ahead || seek), streams),
    ]
}

fn of_timing(timing: &FlashTiming, kind: &FtlKind) -> [NamedOption; 3] {
    let merges = kind.pages().is_none();
    let maps = matches!(kind, FtlKind::Bast(_) | FtlKind::Fast(_));
    let logs = match kind {
        FtlKind::Fast(fast) => fast.sequential_logs > 0,
        FtlKind::Bast(_) | FtlKind::Block(_) => true,
        FtlKind::Page(_) | FtlKind::Dftl(_) => false,
    };
    let copy = "has no effect with page mapping, which copies page by page; remove it, or type ftl.kind = \
                \"bast\", \"fast\" or \"block\"";
    let map =
        "has no effect where no merge updates the map; remove it, or type ftl.kind = \"bast\" or \"fast\"";
    let switch = "has no effect where there is no log or replacement block; remove it, or type ftl.kind = \
                  \"bast\", \"fast\" with sequential_logs, or \"block\"";
    [
        effect("timing.copy_back_us", timing.copy_back_us.is_some(), merges, copy),
        effect("timing.map_update_us", timing.map_update_us > 0.0, maps, map),
        effect("timing.log_switch_us", timing.log_switch_us > 0.0, logs, switch),
    ]
}

fn of_buffer(buffer: &Buffer) -> [NamedOption; 6] {
    let immediate = buffer.destage == Destage::Immediate;
    let beside = buffer.destage == Destage::Async;
    let waits =
        "has no effect with destage = \"immediate\", by which no line waits; remove it, or type another";
    let only_async = "has an effect with destage = \"async\" only; type that or remove it";
    [
        effect("buffer.batch_lines", buffer.batch_lines != 1, !immediate, waits),
        effect("buffer.pipelined", buffer.pipelined, !immediate, waits),
        effect("buffer.background_share", buffer.background_share > 0.0, !immediate, waits),
        effect("buffer.idle_delay_us", buffer.idle_delay_us > 0.0, beside, only_async),
        effect("buffer.destage_from_kib", buffer.destage_from_kib.is_some(), beside, only_async),
        effect(
            "buffer.locks_lines",
            buffer.locks_lines,
            immediate,
            "has an effect with destage = \"immediate\" only; type that or remove it",
        ),
    ]
}

fn of_disk(disk: &Disk, energy: &Energy) -> [NamedOption; 4] {
    let no_flash = "has no effect on a disk, which has no flash; type energy.idle_mw and energy.active_mw, or \
                    remove it";
    let through =
        "has no effect where each write goes to the platter; give disk.write_buffer_kib or remove it";
    [
        effect("disk.write_queue", disk.write_queue > 1, disk.write_buffer_kib > 0, through),
        effect("energy.read_uj", energy.read_uj > 0.0, false, no_flash),
        effect("energy.program_uj", energy.program_uj > 0.0, false, no_flash),
        effect("energy.erase_uj", energy.erase_uj > 0.0, false, no_flash),
    ]
}
