//! The NAND array: geometry, times, and resources that each know when they are
//! next free.
//!
//! Source: paper 001, section 2.1. Blocks of the same number in the dies (and
//! planes) of a bank form a superblock; page `i` of a superblock lies in lane
//! `i % lanes`. Lanes (planes) and channels are resources of their own, so
//! interleaving and conflicts are what they are and no event queue is needed.
//!
//! Two ways of timing share the array. Page operations ([`Nand::read_page`],
//! [`Nand::program_lane`]) reserve one lane and its channel. Row operations
//! ([`Nand::program_rows`], [`Nand::copy_rows`]) drive all lanes of a bank in
//! lock-step, as superblock FTLs do, and are arithmetic whatever their length.

use crate::describe::{self, Description};
use crate::units::{Divisor, byte_ns_q20, transfer_ns, us_ns};
use crate::witness::Witness;

/// The geometry in whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayShape {
    /// Planes that make up one superblock.
    pub lanes: u32,
    /// Groups of dies that work independently; superblock `s` is in bank `s % banks`.
    pub banks: u32,
    /// Pages of a superblock.
    pub units_per_sb: u32,
    /// Data bytes of a page, the unit of mapping.
    pub unit_bytes: u64,
    /// Usable capacity in pages.
    pub units: u64,
    /// Superblocks that the usable capacity fills, the last perhaps in part.
    pub logical_sbs: u32,
    /// Channels.
    pub channels: u32,
    /// Channels that one bank's dies hang on.
    pub bank_channels: u32,
    /// Planes of a die.
    pub planes: u32,
    /// Rows of a superblock, which is pages of a block.
    pub rows: u32,
}

impl ArrayShape {
    /// Of a checked description.
    pub fn new(d: &Description, g: &describe::FlashArray, f: &describe::FtlOptions) -> ArrayShape {
        let dies = g.channels * g.chips_per_channel * g.dies_per_chip;
        let stripe = f.superblock_dies.unwrap_or(dies);
        let lanes = stripe * g.planes_per_die;
        let units_per_sb = lanes * g.pages_per_block;
        let units = (d.capacity_mib << 20) / g.page_bytes;
        ArrayShape {
            lanes,
            banks: dies / stripe,
            units_per_sb,
            unit_bytes: g.page_bytes,
            units,
            logical_sbs: units.div_ceil(u64::from(units_per_sb)) as u32,
            channels: g.channels,
            bank_channels: g.channels.min(stripe),
            planes: g.planes_per_die,
            rows: g.pages_per_block,
        }
    }

    /// Bytes of a superblock.
    pub fn sb_bytes(&self) -> u64 {
        u64::from(self.units_per_sb) * self.unit_bytes
    }
}

/// Flash operations so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounts {
    /// Page reads.
    pub reads: u64,
    /// Page programs, of host data and of copies.
    pub programs: u64,
    /// Page programs that were copies.
    pub copies: u64,
    /// Erase-block erases.
    pub erases: u64,
}

/// Operation times in ns.
#[derive(Clone, Copy, Debug)]
struct Times {
    read: u64,
    program: u64,
    erase: u64,
    page_transfer: u64,
    copy_back: Option<u64>,
    map_update: u64,
    log_switch: u64,
}

/// The array.
#[derive(Clone, Debug)]
pub struct Nand {
    /// The geometry.
    pub shape: ArrayShape,
    /// What it has done.
    pub ops: OpCounts,
    /// Erases of each physical superblock.
    pub erase_counts: Vec<u32>,
    /// Follows every page in checked runs; `None` costs nothing.
    pub witness: Option<Box<Witness>>,
    /// Pages left in the region written with one bit a cell.
    pub slc_pages_left: u64,
    /// Program time there, in ns.
    pub slc_program_ns: u64,
    times: Times,
    by_units_per_sb: Divisor,
    by_banks: Divisor,
    by_lanes: Divisor,
    lane_free_ns: Vec<u64>,
    channel_free_ns: Vec<u64>,
    lane_channel: Vec<u32>,
    bank_free_ns: Vec<u64>,
}

impl Nand {
    /// An erased array with `physical_sbs` superblocks.
    pub fn new(shape: ArrayShape, t: &describe::FlashTiming, physical_sbs: u32) -> Nand {
        let all_lanes = shape.lanes * shape.banks;
        Nand {
            shape,
            ops: OpCounts::default(),
            erase_counts: vec![0; physical_sbs as usize],
            witness: None,
            slc_pages_left: 0,
            slc_program_ns: 0,
            by_units_per_sb: Divisor::new(shape.units_per_sb),
            by_banks: Divisor::new(shape.banks),
            by_lanes: Divisor::new(shape.lanes),
            times: Times {
                read: us_ns(t.read_us),
                program: us_ns(t.program_us),
                erase: us_ns(t.erase_us),
                page_transfer: transfer_ns(shape.unit_bytes, byte_ns_q20(t.bus_mb_s)),
                copy_back: t.copy_back_us.map(us_ns),
                map_update: us_ns(t.map_update_us),
                log_switch: us_ns(t.log_switch_us),
            },
            lane_free_ns: vec![0; all_lanes as usize],
            channel_free_ns: vec![0; shape.channels as usize],
            lane_channel: (0..all_lanes).map(|lane| (lane / shape.planes) % shape.channels).collect(),
            bank_free_ns: vec![0; shape.banks as usize],
        }
    }

    /// Physical superblocks.
    pub fn physical_sbs(&self) -> u32 {
        self.erase_counts.len() as u32
    }

    /// The bank a superblock lies in.
    #[inline]
    pub fn bank_of(&self, sb: u32) -> u32 {
        self.by_banks.split(sb).1
    }

    #[inline]
    fn lane_of(&self, ppu: u32) -> usize {
        let (sb, index) = self.by_units_per_sb.split(ppu);
        self.lane_at(sb, index)
    }

    /// The resource number of page `index` of superblock `sb`.
    #[inline]
    pub fn lane_at(&self, sb: u32, index: u32) -> usize {
        (self.bank_of(sb) * self.shape.lanes + self.by_lanes.split(index).1) as usize
    }

    /// When `lane` is next free, in ns.
    #[inline]
    pub fn lane_free_ns(&self, lane: usize) -> u64 {
        self.lane_free_ns[lane]
    }

    /// Reads the page at physical address `ppu`; gives when it is in the controller.
    #[inline]
    pub fn read_page(&mut self, at_ns: u64, ppu: u32) -> u64 {
        self.read_lane(at_ns, self.lane_of(ppu))
    }

    /// Reads a page of `lane`.
    #[inline]
    pub fn read_lane(&mut self, at_ns: u64, lane: usize) -> u64 {
        self.note_begin(at_ns);
        self.ops.reads += 1;
        let channel = self.lane_channel[lane] as usize;
        let sensed = at_ns.max(self.lane_free_ns[lane]) + self.times.read;
        let end = sensed.max(self.channel_free_ns[channel]) + self.times.page_transfer;
        self.lane_free_ns[lane] = end;
        self.channel_free_ns[channel] = end;
        end
    }

    /// Programs a page of `lane` with data in the controller from `at_ns`;
    /// `program_ns` where it differs from the chip's usual time.
    #[inline]
    pub fn program_lane(&mut self, at_ns: u64, lane: usize, program_ns: Option<u64>) -> u64 {
        self.note_begin(at_ns);
        self.ops.programs += 1;
        let channel = self.lane_channel[lane] as usize;
        let start = at_ns.max(self.lane_free_ns[lane]).max(self.channel_free_ns[channel]);
        let moved = start + self.times.page_transfer;
        self.channel_free_ns[channel] = moved;
        let end = moved + program_ns.unwrap_or(self.times.program);
        self.lane_free_ns[lane] = end;
        end
    }

    /// Programs a page of host data, in one-bit mode while that region has room.
    #[inline]
    pub fn program_host(&mut self, at_ns: u64, lane: usize) -> u64 {
        if self.slc_pages_left == 0 {
            return self.program_lane(at_ns, lane, None);
        }
        self.slc_pages_left -= 1;
        self.program_lane(at_ns, lane, Some(self.slc_program_ns))
    }

    /// Erases superblock `sb`: one block in each of its lanes, all at once.
    pub fn erase_lanes(&mut self, at_ns: u64, sb: u32) -> u64 {
        self.note_begin(at_ns);
        let first = (self.bank_of(sb) * self.shape.lanes) as usize;
        let mut end = at_ns;
        for lane in first..first + self.shape.lanes as usize {
            let done = self.lane_free_ns[lane].max(at_ns) + self.times.erase;
            self.lane_free_ns[lane] = done;
            end = end.max(done);
        }
        self.note_erase(sb);
        end
    }

    /// Holds the time an operation may begin at against when it was decided on.
    #[inline]
    fn note_begin(&mut self, at_ns: u64) {
        if let Some(witness) = &mut self.witness {
            witness.begins(at_ns);
        }
    }

    fn note_erase(&mut self, sb: u32) {
        self.ops.erases += u64::from(self.shape.lanes);
        self.erase_counts[sb as usize] += 1;
        if let Some(witness) = &mut self.witness {
            witness.erase(sb);
        }
    }

    /// Bus time of one row: the lanes of a channel take turns.
    fn row_transfer_ns(&self, lanes: u64) -> u64 {
        lanes.div_ceil(u64::from(self.shape.bank_channels)) * self.times.page_transfer
    }

    /// Rows that `units` pages from index `first` touch.
    #[inline]
    fn rows(&self, first: u64, units: u64) -> u64 {
        let lanes = u64::from(self.shape.lanes);
        ((first % lanes) + units).div_ceil(lanes)
    }

    /// Time to bring `units` pages from index `first` of a superblock into the
    /// controller: sensing a row overlaps the transfer of the one before.
    pub fn read_rows_ns(&self, first: u64, units: u64) -> u64 {
        let transfer = self.row_transfer_ns(units.min(u64::from(self.shape.lanes)));
        let (long, short) = (self.times.read.max(transfer), self.times.read.min(transfer));
        self.rows(first, units) * long + short
    }

    /// Time to program `units` pages from index `first` of a superblock.
    pub fn program_rows_ns(&self, first: u64, units: u64) -> u64 {
        let transfer = self.row_transfer_ns(units.min(u64::from(self.shape.lanes)));
        let (long, short) = (self.times.program.max(transfer), self.times.program.min(transfer));
        self.rows(first, units) * long + short
    }

    /// Time to copy `units` pages within a bank, row by row.
    pub fn copy_rows_ns(&self, units: u64) -> u64 {
        let rows = units.div_ceil(u64::from(self.shape.lanes));
        let over_bus =
            self.times.read + self.times.program + 2 * self.row_transfer_ns(u64::from(self.shape.lanes));
        rows * self.times.copy_back.unwrap_or(over_bus)
    }

    /// Reads `units` pages from index `first` of a superblock, all lanes
    /// together; a bank's queue of programs and erases is suspended for it.
    pub fn read_rows(&mut self, at_ns: u64, first: u64, units: u64) -> u64 {
        self.note_begin(at_ns);
        self.ops.reads += units;
        at_ns + self.read_rows_ns(first, units)
    }

    /// Programs `units` pages from index `first` of superblock `sb`.
    pub fn program_rows(&mut self, at_ns: u64, sb: u32, first: u64, units: u64) -> u64 {
        self.ops.programs += units;
        let time = self.program_rows_ns(first, units);
        self.occupy(at_ns, sb, time)
    }

    /// Copies `units` pages into superblock `to` of the same bank.
    pub fn copy_rows(&mut self, at_ns: u64, to: u32, units: u64) -> u64 {
        self.ops.reads += units;
        self.ops.programs += units;
        self.ops.copies += units;
        let time = self.copy_rows_ns(units);
        self.occupy(at_ns, to, time)
    }

    /// Copies `units` pages into superblock `to` one page at a time, because
    /// they do not lie in the lanes they go to.
    pub fn copy_scattered(&mut self, at_ns: u64, to: u32, units: u64) -> u64 {
        self.ops.reads += units;
        self.ops.programs += units;
        self.ops.copies += units;
        let one = self.times.read + 2 * self.times.page_transfer + self.times.program;
        self.occupy(at_ns, to, units * one)
    }

    /// Erases superblock `sb`, its bank in lock-step.
    pub fn erase_rows(&mut self, at_ns: u64, sb: u32) -> u64 {
        self.note_erase(sb);
        self.occupy(at_ns, sb, self.times.erase)
    }

    /// Writes a record of the map in the bank of `sb`.
    pub fn update_map(&mut self, at_ns: u64, sb: u32) -> u64 {
        self.occupy(at_ns, sb, self.times.map_update)
    }

    /// Brings the page map of log block `sb` in for that of another.
    pub fn switch_log(&mut self, at_ns: u64, sb: u32) -> u64 {
        self.occupy(at_ns, sb, self.times.log_switch)
    }

    fn occupy(&mut self, at_ns: u64, sb: u32, time_ns: u64) -> u64 {
        self.note_begin(at_ns);
        let bank = self.bank_of(sb) as usize;
        let end = self.bank_free_ns[bank].max(at_ns) + time_ns;
        self.bank_free_ns[bank] = end;
        end
    }
}
