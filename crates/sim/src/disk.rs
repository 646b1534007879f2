//! A disk: seek curve, rotation, zones, track buffer, write buffer.
//!
//! Source: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE
//! Computer 27(3), 1994: seek time a + b sqrt(distance) + c distance through
//! the three times a data sheet gives; rotational position is the clock modulo
//! a revolution; a sequential reader finds its data in the track buffer.
//! Writes to the buffer are done when they are in it; when it is full the
//! waiting write with the shortest positioning time goes first (Seltzer et
//! al., "Disk scheduling revisited", USENIX 1990).

use crate::describe::{Description, Disk};
use crate::link::Link;
use crate::units::ms_ns;
use uflip_device::rng::Rng;

const SECTOR: u64 = 512;

/// Tracks with the same number of sectors.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first_track: u64,
    first_sector: u64,
    sectors_per_track: u64,
}

/// Where a sector is.
#[derive(Clone, Copy, Debug)]
struct Place {
    track: u64,
    /// Angle of its start, as ns of a revolution.
    angle_ns: u64,
    sector_ns: u64,
    /// Sectors from it to the end of its track, itself included.
    left: u64,
}

/// A disk and where its head is.
#[derive(Clone, Debug)]
pub struct Hdd {
    link: Link,
    revolution_ns: u64,
    seek: [f64; 3],
    track_seek_ns: u64,
    cylinders: f64,
    surfaces: u64,
    zones: Vec<Zone>,
    sectors: u64,
    head_track: u64,
    media_free_ns: u64,
    /// What the track buffer holds or is being filled with.
    buffered_media: u64,
    buffered_at_ns: u64,
    read_buffer: u64,
    write_buffer: u64,
    write_queue: usize,
    waiting: Vec<(u64, u64)>,
    waiting_sectors: u64,
    busy_ns: u64,
    quiet_ns: u64,
}

impl Hdd {
    /// A disk at rest with its head on the outermost track, turned by `seed`.
    pub fn new(d: &Description, disk: &Disk, seed: u64) -> Hdd {
        let revolution_ns = (60e9 / disk.rpm).round() as u64;
        let sectors = (d.capacity_mib << 20) / SECTOR;
        let cylinders = (disk.tracks / u64::from(disk.surfaces)).max(1) as f64;
        Hdd {
            link: Link::new(&d.link),
            revolution_ns,
            seek: seek_curve(disk, cylinders),
            track_seek_ns: ms_ns(disk.track_seek_ms),
            cylinders,
            surfaces: u64::from(disk.surfaces),
            zones: zones(disk, sectors),
            sectors,
            head_track: 0,
            media_free_ns: Rng::new(seed).below(revolution_ns.max(1)),
            buffered_media: u64::MAX,
            buffered_at_ns: 0,
            read_buffer: disk.read_buffer_kib * 2,
            write_buffer: disk.write_buffer_kib * 2,
            write_queue: disk.write_queue as usize,
            waiting: Vec::new(),
            waiting_sectors: 0,
            busy_ns: 0,
            quiet_ns: 0,
        }
    }

    /// Bytes moved over the link.
    pub fn link_bytes(&self) -> u64 {
        self.link.bytes
    }

    /// Time in service, in ns.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    fn place(&self, sector: u64) -> Place {
        let sector = sector.min(self.sectors - 1);
        let zone = self.zones[self.zones.partition_point(|z| z.first_sector <= sector) - 1];
        let within = sector - zone.first_sector;
        let track = zone.first_track + within / zone.sectors_per_track;
        let index = within % zone.sectors_per_track;
        let sector_ns = (self.revolution_ns / zone.sectors_per_track).max(1);
        // Skew: the next track starts where the head is after a track switch.
        let skew = track.wrapping_mul(self.track_seek_ns) % self.revolution_ns;
        let angle_ns = (skew + index * sector_ns) % self.revolution_ns;
        Place { track, angle_ns, sector_ns, left: zone.sectors_per_track - index }
    }

    fn seek_ns(&self, from: u64, to: u64) -> u64 {
        let cylinders = (from / self.surfaces).abs_diff(to / self.surfaces);
        if cylinders == 0 {
            return if from == to { 0 } else { self.track_seek_ns };
        }
        let x = (cylinders as f64).min(self.cylinders);
        let time = self.seek[0] + self.seek[1] * x.sqrt() + self.seek[2] * x;
        (time.max(0.0) as u64).max(self.track_seek_ns)
    }

    /// When the head is at `sector`, starting to move at `at_ns`.
    fn positioned(&self, at_ns: u64, sector: u64) -> u64 {
        let place = self.place(sector);
        let there = at_ns + self.seek_ns(self.head_track, place.track);
        let angle = there % self.revolution_ns;
        there + (place.angle_ns + self.revolution_ns - angle) % self.revolution_ns
    }

    /// Moves the head to `sector` and transfers `count` sectors.
    fn transfer(&mut self, at_ns: u64, sector: u64, count: u64) -> u64 {
        let start = self.media_free_ns.max(at_ns);
        let mut now = self.positioned(start, sector);
        now += self.stream_ns(sector, count);
        self.head_track = self.place(sector + count - 1).track;
        self.media_free_ns = now;
        now
    }

    /// Time to pass over `count` sectors once the head is at the first.
    fn stream_ns(&self, sector: u64, count: u64) -> u64 {
        let (mut at, mut left, mut time) = (sector, count, 0);
        while left > 0 {
            let place = self.place(at);
            let take = left.min(place.left);
            time += take * place.sector_ns;
            at += take;
            left -= take;
            if left > 0 {
                time += self.track_seek_ns;
            }
        }
        time
    }

    /// Reads; a reader that goes on where it was finds the head reading ahead.
    pub fn read(&mut self, at_ns: u64, offset: u64, size: u64) -> u64 {
        let (slot, start) = self.link.accept(at_ns);
        let (sector, count) = (offset / SECTOR, size.div_ceil(SECTOR));
        let ready = start + self.link.read_latency_ns();
        let ahead = self.read_buffer > 0 && sector == self.buffered_media;
        let media = if ahead {
            // The head went on reading since `buffered_at_ns`, as far as the
            // track buffer reaches.
            let time = self.stream_ns(sector, count);
            let most = self.stream_ns(sector, self.read_buffer.min(self.sectors - sector).max(1));
            let credit = ready.saturating_sub(self.buffered_at_ns).min(most);
            self.buffered_at_ns = ready.max(self.buffered_at_ns) - credit + time;
            self.media_free_ns = self.media_free_ns.max(self.buffered_at_ns);
            self.head_track = self.place(sector + count - 1).track;
            self.buffered_at_ns.max(ready)
        } else {
            let end = self.transfer(ready, sector, count);
            self.buffered_at_ns = end;
            end
        };
        self.buffered_media = sector + count;
        let sent = self.link.to_host(ready, size).max(media);
        self.end(slot, start, sent)
    }

    /// Writes, through the buffer where there is one.
    pub fn write(&mut self, at_ns: u64, offset: u64, size: u64) -> u64 {
        let (slot, start) = self.link.accept(at_ns);
        self.drain(self.quiet_ns, at_ns);
        let (sector, count) = (offset / SECTOR, size.div_ceil(SECTOR));
        let received = self.link.from_host(start, size);
        self.buffered_media = u64::MAX;
        let mut done = received;
        if self.write_buffer < count {
            done = self.transfer(received, sector, count);
        } else {
            match self.waiting.last_mut() {
                Some((first, n)) if *first + *n == sector && *n + count <= self.write_buffer => *n += count,
                _ => self.waiting.push((sector, count)),
            }
            self.waiting_sectors += count;
            while self.waiting_sectors > self.write_buffer || self.waiting.len() > self.write_queue {
                done = self.write_next(start).max(received);
            }
            self.drain(start, done);
        }
        self.end(slot, start, done)
    }

    /// Writes the nearest waiting range, not before `at_ns`.
    fn write_next(&mut self, at_ns: u64) -> u64 {
        let from = self.media_free_ns.max(at_ns);
        let nearest = (0..self.waiting.len()).min_by_key(|i| self.positioned(from, self.waiting[*i].0));
        let Some(i) = nearest else { return at_ns };
        let (sector, count) = self.waiting.swap_remove(i);
        self.waiting_sectors -= count;
        self.transfer(at_ns, sector, count)
    }

    /// Writes waiting ranges while the host leaves the head alone.
    fn drain(&mut self, from_ns: u64, to_ns: u64) {
        while !self.waiting.is_empty() && self.media_free_ns.max(from_ns) < to_ns {
            self.write_next(from_ns);
        }
    }

    /// Empties the write buffer.
    pub fn flush(&mut self, at_ns: u64) -> u64 {
        let (slot, start) = self.link.accept(at_ns);
        let mut done = self.link.command(start);
        while !self.waiting.is_empty() {
            done = done.max(self.write_next(start));
        }
        done = done.max(self.media_free_ns);
        self.end(slot, start, done)
    }

    /// A pause up to `now_ns`.
    pub fn pass(&mut self, now_ns: u64) {
        self.drain(self.quiet_ns, now_ns);
        self.quiet_ns = self.quiet_ns.max(now_ns);
    }

    fn end(&mut self, slot: usize, start_ns: u64, done_ns: u64) -> u64 {
        self.link.release(slot, done_ns);
        self.busy_ns += done_ns.saturating_sub(start_ns.max(self.quiet_ns));
        self.quiet_ns = self.quiet_ns.max(done_ns);
        done_ns
    }
}

/// Coefficients of a + b sqrt(x) + c x in ns, x in cylinders, through the
/// times of one cylinder, a third of them, and all.
fn seek_curve(disk: &Disk, cylinders: f64) -> [f64; 3] {
    let (x1, x2, x3) = (1.0f64, (cylinders / 3.0).max(2.0), cylinders.max(3.0));
    let (y1, y2, y3) = (disk.track_seek_ms * 1e6, disk.mean_seek_ms * 1e6, disk.full_seek_ms * 1e6);
    // Divided differences in s = sqrt(x): y = p + q s + r s^2.
    let (s1, s2, s3) = (x1.sqrt(), x2.sqrt(), x3.sqrt());
    let d12 = (y2 - y1) / (s2 - s1);
    let d23 = (y3 - y2) / (s3 - s2);
    let r = (d23 - d12) / (s3 - s1);
    let q = d12 - r * (s1 + s2);
    [y1 - q * s1 - r * s1 * s1, q, r]
}

/// Zones with sectors a track falling linearly from the outermost.
fn zones(disk: &Disk, sectors: u64) -> Vec<Zone> {
    let n = u64::from(disk.zones);
    let tracks_of = |z: u64| disk.tracks * (z + 1) / n - disk.tracks * z / n;
    let share = |z: u64| {
        let at = if n > 1 { z as f64 / (n - 1) as f64 } else { 0.0 };
        1.0 - (1.0 - disk.inner_outer_ratio) * at
    };
    let weight: f64 = (0..n).map(|z| tracks_of(z) as f64 * share(z)).sum();
    let outer = sectors as f64 / weight;
    let mut list = Vec::with_capacity(n as usize);
    let (mut track, mut sector) = (0, 0);
    for z in 0..n {
        let per_track = ((outer * share(z)).ceil() as u64).max(1);
        list.push(Zone { first_track: track, first_sector: sector, sectors_per_track: per_track });
        track += tracks_of(z);
        sector += tracks_of(z) * per_track;
    }
    list
}
