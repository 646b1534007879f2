//! [`SimDevice`]: a simulated device behind the measured face of every device;
//! the data face is [`crate::SimBlocks`].
//!
//! [`Device::run`] interleaves the streams in virtual time (`interleave.rs`). Same
//! description, seed and IOs: the same records, bit for bit.

use crate::content::SectorContent;
use crate::describe::Description;
use crate::disk::Hdd;
use crate::energy::{Meter, Sample};
use crate::flash::Flash;
use crate::ftl::{Ftl, MergeCounts};
use crate::interleave::{END_NS, Server, at_its_end, interleave};
use crate::nand::OpCounts;
use crate::witness::Witness;
use uflip_device::rng::{Rng, derive_seed};
use uflip_device::{
    Arrival, Bytes, Counters, Device, DeviceError, Geometry, Io, Mode, Nanos, Reading, Recorder, RunEnd,
    RunLimits, Snapshot, Stop, Stream,
};

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one of them per device")]
enum Body {
    Flash(Flash),
    Disk(Hdd),
}

/// Bytes that the host has asked for.
#[derive(Clone, Copy, Debug, Default)]
struct HostWork {
    read: u64,
    written: u64,
    trimmed: u64,
}

impl HostWork {
    #[inline]
    fn note(&mut self, mode: Mode, bytes: u64) {
        match mode {
            Mode::Read => self.read += bytes,
            Mode::Write => self.written += bytes,
            Mode::Trim => self.trimmed += bytes,
            Mode::Flush => {}
        }
    }
}

/// A simulated device in virtual time. Cloning it takes a snapshot.
#[derive(Clone, Debug)]
pub struct SimDevice {
    name: String,
    geometry: Geometry,
    body: Body,
    clock_ns: u64,
    noise_share: f64,
    noise: Rng,
    meter: Meter,
    content: SectorContent,
    host: HostWork,
    last_arrival_ns: u64,
    snapshot: Option<Box<SimDevice>>,
    /// Time that was lived through before the last return to a snapshot.
    past_ns: u64,
}

/// What may be asked of a device that keeps its data: by the programs of
/// [`crate::SimBlocks`] in virtual time, or by an attached block device in wall-clock time.
#[derive(Debug)]
pub enum Request<'a> {
    /// Fill `into` from `offset`.
    Read {
        /// Where on the device.
        offset: Bytes,
        /// Takes the data.
        into: &'a mut [u8],
    },
    /// Keep `from` at `offset`.
    Write {
        /// Where on the device.
        offset: Bytes,
        /// The data.
        from: &'a [u8],
    },
    /// Make everything written durable.
    Flush,
    /// Forget a range, which reads as zeros from then on.
    Trim {
        /// Where on the device.
        offset: Bytes,
        /// How much.
        length: Bytes,
    },
}

impl SimDevice {
    /// An erased device of a checked description.
    ///
    /// # Errors
    /// What [`crate::describe::validate`] finds wrong, as text.
    pub fn new(d: &Description, seed: u64) -> Result<SimDevice, crate::describe::DescribeError> {
        crate::describe::validate(d)?;
        let body = match (&d.geometry, &d.timing, &d.ftl, &d.disk) {
            (Some(g), Some(t), Some(f), None) => Body::Flash(Flash::new(d, g, t, f, derive_seed(seed, 1))),
            (_, _, _, Some(disk)) => Body::Disk(Hdd::new(d, disk, derive_seed(seed, 1))),
            _ => unreachable!("validate has refused a description of neither kind"),
        };
        Ok(SimDevice {
            name: d.name.clone(),
            geometry: Geometry { capacity: Bytes(d.capacity_mib << 20), sector: Bytes(d.sector_bytes) },
            body,
            clock_ns: 0,
            noise_share: d.noise.share,
            noise: Rng::new(derive_seed(seed, 2)),
            meter: Meter::new(&d.energy),
            content: SectorContent::default(),
            host: HostWork::default(),
            last_arrival_ns: 0,
            snapshot: None,
            past_ns: 0,
        })
    }

    /// The description's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Flash operations so far; `None` for a disk.
    pub fn flash_ops(&self) -> Option<OpCounts> {
        match &self.body {
            Body::Flash(flash) => Some(flash.nand.ops),
            Body::Disk(_) => None,
        }
    }

    /// Merges and reclamations so far; `None` for a disk.
    pub fn merges(&self) -> Option<MergeCounts> {
        match &self.body {
            Body::Flash(flash) => Some(flash.ftl.counts()),
            Body::Disk(_) => None,
        }
    }

    /// Erases of each physical superblock; empty for a disk.
    pub fn erase_counts(&self) -> &[u32] {
        match &self.body {
            Body::Flash(flash) => &flash.nand.erase_counts,
            Body::Disk(_) => &[],
        }
    }

    /// Energy used since the device was opened, in joules.
    pub fn energy_joules(&self) -> f64 {
        let (ops, link_bytes, busy_ns) = self.work();
        self.meter.joules(self.clock_ns, busy_ns, &ops, link_bytes)
    }

    /// From now on, samples the cumulative energy every `interval`, as a meter
    /// beside the device would. [`crate::energy::power`] makes a power trace of
    /// the samples. Records are the same with and without.
    pub fn meter_every(&mut self, interval: Nanos) {
        let now = self.energy_at(self.clock_ns);
        self.meter.sample_every(now, interval.0);
    }

    /// The samples noted so far, oldest first; they are handed over.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        self.meter.take_samples()
    }

    fn work(&self) -> (OpCounts, u64, u64) {
        match &self.body {
            Body::Flash(flash) => (flash.nand.ops, flash.link.bytes, flash.busy_ns),
            Body::Disk(disk) => (OpCounts::default(), disk.link_bytes(), disk.busy_ns()),
        }
    }

    /// Follows every page from here on; only on a device nothing was written
    /// to. Slow, for checks.
    pub fn watch(&mut self) {
        if let Body::Flash(flash) = &mut self.body {
            flash.nand.witness = Some(Box::new(Witness::new(flash.nand.shape.units_per_sb)));
        }
    }

    /// Holds the FTL's books against each other and, where watched, the map
    /// against the content of every page.
    ///
    /// # Errors
    /// What was found wrong.
    pub fn audit(&mut self) -> Result<(), String> {
        let Body::Flash(flash) = &mut self.body else { return Ok(()) };
        flash.ftl.check(&flash.nand)?;
        let Some(mut witness) = flash.nand.witness.take() else { return Ok(()) };
        witness.audit(flash.nand.shape.units, |unit| flash.ftl.locate(unit));
        let result = match witness.violations() {
            [] => Ok(()),
            [first, ..] => Err(first.clone()),
        };
        flash.nand.witness = Some(witness);
        result
    }

    /// Takes the memory that the model's books may need, so that a run takes none. A
    /// clone and a device brought back to its snapshot have lost theirs. What follows
    /// pages ([`SimDevice::watch`]), samples ([`SimDevice::meter_every`]) and data
    /// ([`SimDevice::arrive`]) grows with what is done.
    fn reserve(&mut self) {
        match &mut self.body {
            Body::Flash(flash) => flash.reserve(),
            Body::Disk(disk) => disk.reserve(),
        }
    }

    /// Refuses what the device does not take.
    #[inline]
    fn accepts(&self, io: &Io) -> bool {
        let end = io.offset.0.checked_add(u64::from(io.size));
        let sector = self.geometry.sector.0;
        let aligned = (io.offset.0 | u64::from(io.size)) & (sector - 1) == 0;
        let sized = io.size > 0 || io.mode == Mode::Flush;
        aligned && sized && end.is_some_and(|end| end <= self.geometry.capacity.0)
    }

    #[cold]
    fn refused(&self, io: &Io) -> DeviceError {
        DeviceError::Io {
            target: self.name.clone(),
            mode: io.mode.name(),
            offset: io.offset.0,
            size: u64::from(io.size),
            source: std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                format!(
                    "offset and size must be multiples of {} bytes within {} bytes",
                    self.geometry.sector.0, self.geometry.capacity.0
                ),
            ),
        }
    }

    /// The device's present, in the time of [`SimDevice::arrive`].
    pub(crate) fn present(&self) -> Nanos {
        Nanos(self.clock_ns)
    }

    /// Refuses what would be asked at the end of virtual time.
    pub(crate) fn refuse_at_the_end(&self, at: Nanos) -> Result<(), DeviceError> {
        if at.0 >= END_NS { Err(at_its_end(&self.name)) } else { Ok(()) }
    }

    /// The cumulative energy at `now_ns`.
    fn energy_at(&self, now_ns: u64) -> Sample {
        let (ops, link_bytes, busy_ns) = self.work();
        Sample { at: Nanos(now_ns), joules: self.meter.joules(now_ns, busy_ns, &ops, link_bytes) }
    }

    /// Tells the meter of the time before an IO at `at_ns` and of what the
    /// device does in it, apart from the IO.
    #[cold]
    fn meter_idle(&mut self, at_ns: u64) {
        if at_ns <= self.clock_ns {
            return;
        }
        // Serving the IO would begin with the same step.
        if let Body::Flash(flash) = &mut self.body {
            flash.pass(at_ns);
        }
        self.meter.note(self.energy_at(at_ns));
    }

    /// Serves a request of any size submitted at `at_ns`, in parts one after
    /// the other where it is larger than an IO; gives when it is done.
    fn serve_parts(&mut self, at_ns: u64, mode: Mode, offset: u64, size: u64) -> Result<u64, DeviceError> {
        let most = if mode == Mode::Trim { 1 << 30 } else { 1 << 20 };
        let (mut at, mut now) = (offset, at_ns);
        let end = offset.saturating_add(size);
        loop {
            let part = (end - at).min(most) as u32;
            let io = Io { arrival: Arrival::CONSECUTIVE, offset: Bytes(at), size: part, mode, pattern: 0 };
            if !self.accepts(&io) {
                return Err(self.refused(&io));
            }
            now = self.serve(now, &io);
            at += u64::from(part);
            if at >= end {
                return Ok(now);
            }
        }
    }

    /// Serves a request that arrives at `at`, and gives when it is done. Whose time
    /// `at` is, virtual or the wall clock's, is the caller's. Several may be on
    /// their way at once. What the device does on its own until `at` happens
    /// first; an arrival before the one before it counts as at the same time.
    ///
    /// # Errors
    /// [`DeviceError`] with the range, where it is not on the device.
    pub fn arrive(&mut self, at: Nanos, request: Request<'_>) -> Result<Nanos, DeviceError> {
        let (mode, offset, length) = match &request {
            Request::Read { offset, into } => (Mode::Read, *offset, Bytes(into.len() as u64)),
            Request::Write { offset, from } => (Mode::Write, *offset, Bytes(from.len() as u64)),
            Request::Flush => (Mode::Flush, Bytes(0), Bytes(0)),
            Request::Trim { offset, length } => (Mode::Trim, *offset, *length),
        };
        let done = self.time(at, mode, offset, length)?;
        match request {
            Request::Read { offset, into } => self.content.read(offset.0, into),
            Request::Write { offset, from } => self.content.write(offset.0, from),
            Request::Flush => {}
            Request::Trim { offset, length } => self.content.forget(offset.0, length.0),
        }
        Ok(done)
    }

    /// The same without the data: that is the caller's to change, and when.
    pub(crate) fn time(
        &mut self,
        at: Nanos,
        mode: Mode,
        offset: Bytes,
        length: Bytes,
    ) -> Result<Nanos, DeviceError> {
        let at_ns = at.0.max(self.last_arrival_ns);
        let done_ns = self.serve_parts(at_ns, mode, offset.0, length.0)?;
        self.last_arrival_ns = at_ns;
        Ok(Nanos(done_ns))
    }

    /// The data it holds.
    pub fn content(&self) -> &SectorContent {
        &self.content
    }

    pub(crate) fn content_mut(&mut self) -> &mut SectorContent {
        &mut self.content
    }
}

impl Server for SimDevice {
    // It changes nothing.
    #[cold]
    fn tell(&self, recorder: &dyn Recorder, at: Nanos) {
        if let Some(counters) = Device::counters(self) {
            recorder.reading(Reading { at, counters });
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn refusal(&self, io: &Io) -> Option<DeviceError> {
        (!self.accepts(io)).then(|| self.refused(io))
    }

    #[inline]
    fn serve(&mut self, at_ns: u64, io: &Io) -> u64 {
        let (offset, size) = (io.offset.0, u64::from(io.size));
        self.host.note(io.mode, size);
        if self.meter.is_on() {
            self.meter_idle(at_ns);
        }
        let done = match (&mut self.body, io.mode) {
            (Body::Flash(flash), Mode::Read) => flash.read(at_ns, offset, size),
            (Body::Flash(flash), Mode::Write) => flash.write(at_ns, offset, size),
            (Body::Flash(flash), Mode::Flush) => flash.flush(at_ns),
            (Body::Flash(flash), Mode::Trim) => flash.trim(at_ns, offset, size),
            (Body::Disk(disk), Mode::Read) => disk.read(at_ns, offset, size),
            (Body::Disk(disk), Mode::Write) => disk.write(at_ns, offset, size),
            (Body::Disk(disk), Mode::Flush) => disk.flush(at_ns),
            (Body::Disk(_), Mode::Trim) => at_ns,
        };
        let done = if self.noise_share > 0.0 {
            done + ((done - at_ns) as f64 * self.noise_share * self.noise.unit()) as u64
        } else {
            done
        };
        self.clock_ns = self.clock_ns.max(done);
        if self.meter.is_on() {
            self.meter.note(self.energy_at(self.clock_ns));
        }
        done
    }
}

impl Device for SimDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        self.reserve();
        interleave(self, self.clock_ns, streams, recorder, limits)
    }

    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        if stop.now() {
            return;
        }
        self.clock_ns = self.clock_ns.saturating_add(pause.0).min(END_NS);
        match &mut self.body {
            Body::Flash(flash) => flash.pass(self.clock_ns),
            Body::Disk(disk) => disk.pass(self.clock_ns),
        }
        if self.meter.is_on() {
            self.meter.note(self.energy_at(self.clock_ns));
        }
    }

    fn now(&self) -> Nanos {
        Nanos(self.past_ns.saturating_add(self.clock_ns))
    }

    fn is_virtual(&self) -> bool {
        true
    }

    /// All of it but the clock comes back: contents, counters and noise, too.
    fn snapshot(&mut self, ask: Snapshot) -> bool {
        match (ask, self.snapshot.take()) {
            (Snapshot::Take, _) => self.snapshot = Some(Box::new(self.clone())),
            (Snapshot::Return, None) => return false,
            (Snapshot::Return, Some(kept)) => {
                let now = self.past_ns.saturating_add(self.clock_ns);
                *self = (*kept).clone();
                self.past_ns = now - self.clock_ns;
                self.snapshot = Some(kept);
            }
        }
        true
    }

    fn counters(&self) -> Option<Counters> {
        let host = Counters {
            host_read: Some(Bytes(self.host.read)),
            host_written: Some(Bytes(self.host.written)),
            host_trimmed: Some(Bytes(self.host.trimmed)),
            energy_uj: self.meter.is_described().then(|| self.energy_joules() * 1e6),
            ..Counters::default()
        };
        let Body::Flash(flash) = &self.body else { return Some(host) };
        let (ops, merges) = (flash.nand.ops, flash.ftl.counts());
        let pages = |n: u64| Some(Bytes(n * flash.nand.shape.unit_bytes));
        Some(Counters {
            host_read_unwritten: Some(Bytes(flash.unwritten_read)),
            flash_read: pages(ops.reads),
            flash_programmed: pages(ops.programs),
            flash_copied: pages(ops.copies),
            block_erases: Some(ops.erases),
            switch_merges: Some(merges.switch),
            partial_merges: Some(merges.partial),
            full_merges: Some(merges.full),
            reclaimed: Some(merges.reclaimed),
            levelled: Some(merges.levelled),
            ..host
        })
    }
}
