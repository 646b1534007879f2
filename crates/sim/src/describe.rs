//! A device as a person describes it: one commented TOML file.
//!
//! Every number carries its unit in its name and, under `[provenance]`, where
//! it comes from: `datasheet`, `paper` or `fitted`. [`check`] turns text into a
//! [`Description`] or an error that names the line and what to type instead.
//! The reference of the file, with units, defaults and sources: `docs/device-file.md`.

mod effect;
mod ftl;

pub(crate) use effect::without_effect;
pub use ftl::{BastOptions, BlockOptions, DftlOptions, FastOptions, FtlKind, FtlOptions, PageOptions};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was wrong with a description, where, and what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct DescribeError {
    /// Line of the text, from 1; 1 where the whole text is meant.
    pub line: usize,
    /// What is wrong and what to type instead.
    pub message: String,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// A vendor's data sheet, or the usual figure for that kind of chip.
    Datasheet,
    /// Said or printed in the paper that measured the device.
    Paper,
    /// Chosen so that the simulated device shows the paper's figures.
    Fitted,
    /// Said nowhere: taken from a like device, so that there is one.
    Assumed,
}

/// A device: either flash (with `geometry`, `timing` and `ftl`) or a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Vendor and model, or what it stands for.
    pub name: String,
    /// Which paper or kind of device, in a sentence.
    #[serde(default)]
    pub about: String,
    /// Usable MiB.
    pub capacity_mib: u64,
    /// Smallest unit of offset and size, in bytes.
    #[serde(default = "defaults::sector_bytes")]
    pub sector_bytes: u64,
    /// Host interface.
    pub link: Link,
    /// The flash array; absent for a disk.
    pub geometry: Option<FlashArray>,
    /// Flash operation times; absent for a disk.
    pub timing: Option<FlashTiming>,
    /// The flash translation layer; absent for a disk.
    pub ftl: Option<FtlOptions>,
    /// The write buffer; none where absent.
    pub buffer: Option<Buffer>,
    /// Part of the flash written in one-bit mode first; none where absent.
    pub slc: Option<Slc>,
    /// The mechanics of a disk; absent for flash.
    pub disk: Option<Disk>,
    /// Energy of operations and at rest.
    #[serde(default)]
    pub energy: Energy,
    /// Random timing noise.
    #[serde(default)]
    pub noise: Noise,
    /// Where the numbers come from, by dotted name (`timing.read_us`), by
    /// section (`timing`), or `default` for the rest.
    #[serde(default)]
    pub provenance: BTreeMap<String, Provenance>,
}

/// The host interface: latency and bandwidth per direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Fixed cost of a read command, in microseconds.
    pub read_latency_us: f64,
    /// Fixed cost of a write command, in microseconds.
    pub write_latency_us: f64,
    /// Device to host, in 10^6 bytes a second.
    pub read_mb_s: f64,
    /// Host to device, in 10^6 bytes a second.
    pub write_mb_s: f64,
    /// Commands served at once: 1 for a device without command queueing.
    #[serde(default = "defaults::one")]
    pub queue_depth: u32,
    /// Read ahead of a sequential reader, in KiB; 0 for none.
    #[serde(default)]
    pub read_ahead_kib: u64,
    /// Extra time of a read that does not continue the one before it (look-up
    /// of the map and of the buffer's directory), in microseconds.
    #[serde(default)]
    pub seek_read_us: f64,
    /// Sequential readers followed at once. One that follows a single reader
    /// loses it to any other read or write.
    #[serde(default = "defaults::one")]
    pub read_streams: u32,
}

/// The flash array (paper 001, section 2.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashArray {
    /// Buses between controller and chips.
    pub channels: u32,
    /// Chips (ways) on each channel.
    pub chips_per_channel: u32,
    /// Dies in a chip.
    #[serde(default = "defaults::one")]
    pub dies_per_chip: u32,
    /// Planes of a die that work at once.
    #[serde(default = "defaults::one")]
    pub planes_per_die: u32,
    /// Pages in an erase block.
    pub pages_per_block: u32,
    /// Data bytes of a page.
    pub page_bytes: u64,
    /// Spare erase blocks of each plane beyond what the FTL needs.
    #[serde(default)]
    pub spare_blocks: u32,
}

/// Flash operation times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashTiming {
    /// Page from cells to register, in microseconds.
    pub read_us: f64,
    /// Page from register to cells, in microseconds.
    pub program_us: f64,
    /// Block erase, in microseconds.
    pub erase_us: f64,
    /// One channel's bandwidth, in 10^6 bytes a second.
    pub bus_mb_s: f64,
    /// Page copied inside its plane without the bus, in microseconds; where
    /// absent, copies go over the bus.
    pub copy_back_us: Option<f64>,
    /// Writing one record of the map (after a merge or a switch), in microseconds.
    #[serde(default)]
    pub map_update_us: f64,
    /// Going on in another log or replacement block than the last (BAST, FAST's
    /// sequential logs, Block): the controller holds the page map of one of
    /// them and stores and loads the others', in microseconds.
    #[serde(default)]
    pub log_switch_us: f64,
}

/// How page mapping chooses the superblock to reclaim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "gc", rename_all = "kebab-case")]
pub enum GcPolicy {
    /// The fewest valid pages.
    #[default]
    Greedy,
    /// The largest (1 - u) * age / 2u.
    CostBenefit,
    /// The fewest valid pages of as many drawn at random.
    DChoices {
        /// How many are drawn.
        gc_choices: u32,
    },
}

/// Wear levelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WearLevelling {
    /// Free blocks are taken as they come.
    None,
    /// The least worn free block is taken.
    #[default]
    Dynamic,
    /// And cold data is moved off blocks that lag behind.
    Static,
}

/// When the write buffer's lines go to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Destage {
    /// As soon as the array takes them; the buffer hides the program time.
    Immediate,
    /// When the buffer is full, and the write that found it full waits.
    Lazy,
    /// When nearly full or idle, beside the host's IOs.
    Async,
    /// The buffer collects one contiguous run; a write that does not adjoin it
    /// or finds it full waits for it to be destaged. A run that grows upwards is
    /// destaged line by line as it grows.
    Run,
}

/// The write buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Its size in KiB.
    pub kib: u64,
    /// Its line in KiB: the unit it is filled and destaged in.
    pub line_kib: u64,
    /// When lines go to flash.
    pub destage: Destage,
    /// Lines destaged at once.
    #[serde(default = "defaults::one")]
    pub batch_lines: u32,
    /// Lines go to the array one by one with up to `batch_lines` on their way,
    /// each waiting for its own bank only; otherwise batch by batch.
    #[serde(default)]
    pub pipelined: bool,
    /// Share of the device that destaging takes while reads are served, 0 to 0.95.
    #[serde(default)]
    pub background_share: f64,
    /// Async: idle time before destaging starts on its own, in microseconds.
    #[serde(default)]
    pub idle_delay_us: f64,
    /// Async: what has to wait before lines go to flash beside the host's writes,
    /// in KiB; the whole buffer where absent.
    pub destage_from_kib: Option<u64>,
    /// Immediate: a line cannot be filled again before it is programmed.
    #[serde(default)]
    pub locks_lines: bool,
}

/// A region written with one bit a cell and folded later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slc {
    /// Its size in MiB.
    pub cache_mib: u64,
    /// Page program in this mode, in microseconds.
    pub program_us: f64,
    /// Folding into the rest in idle time, in 10^6 bytes a second.
    pub fold_mb_s: f64,
}

/// The mechanics of a disk (seek curve after Ruemmler and Wilkes, "An
/// introduction to disk drive modeling", IEEE Computer 1994).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Revolutions a minute.
    pub rpm: f64,
    /// Seek to the next track, in milliseconds.
    pub track_seek_ms: f64,
    /// Mean seek (a third of the tracks), in milliseconds.
    pub mean_seek_ms: f64,
    /// Seek over all tracks, in milliseconds.
    pub full_seek_ms: f64,
    /// Tracks, counting each cylinder's surfaces.
    pub tracks: u64,
    /// Surfaces: tracks of a cylinder.
    pub surfaces: u32,
    /// Zones of equal sectors a track, from the outermost.
    pub zones: u32,
    /// Sectors a track in the innermost zone over those in the outermost.
    pub inner_outer_ratio: f64,
    /// Track buffer for reading ahead, in KiB.
    pub read_buffer_kib: u64,
    /// Write buffer in KiB, 0 for write-through.
    pub write_buffer_kib: u64,
    /// Writes among which the next to go to the platter is chosen by position.
    #[serde(default = "defaults::one")]
    pub write_queue: u32,
}

/// Energy. All zero (not known) where absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// Page read, in microjoules.
    #[serde(default)]
    pub read_uj: f64,
    /// Page program, in microjoules.
    #[serde(default)]
    pub program_uj: f64,
    /// Block erase, in microjoules.
    #[serde(default)]
    pub erase_uj: f64,
    /// Byte on the link, in nanojoules.
    #[serde(default)]
    pub link_nj_per_byte: f64,
    /// At rest, in milliwatts.
    #[serde(default)]
    pub idle_mw: f64,
    /// Extra while an IO is in service, in milliwatts.
    #[serde(default)]
    pub active_mw: f64,
}

/// Timing noise: each response is lengthened by up to this share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Largest share, 0 for none, at most 1.
    #[serde(default)]
    pub share: f64,
}

pub use crate::validate::{check, validate};

mod defaults {
    pub fn sector_bytes() -> u64 {
        512
    }
    pub fn one() -> u32 {
        1
    }
}
