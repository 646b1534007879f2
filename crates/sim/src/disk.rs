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
use crate::link::Interface;
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
struct DiskPlace {
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
    link: Interface,
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
            link: Interface::new(&d.link),
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

    /// Takes the memory that its books may need, so that serving takes none.
    pub fn reserve(&mut self) {
        self.waiting.reserve((self.write_queue + 1).saturating_sub(self.waiting.len()));
    }

    /// Bytes moved over the link.
    pub fn link_bytes(&self) -> u64 {
        self.link.bytes
    }

    /// Time in service, in ns.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    fn place(&self, sector: u64) -> DiskPlace {
        let sector = sector.min(self.sectors - 1);
        let zone = self.zones[self.zones.partition_point(|z| z.first_sector <= sector) - 1];
        let within = sector - zone.first_sector;
        let track = zone.first_track + within / zone.sectors_per_track;
        let index = within % zone.sectors_per_track;
        let sector_ns = (self.revolution_ns / zone.sectors_per_track).max(1);
        // Skew: the next track starts where the head is after a track switch.
        let skew = track.wrapping_mul(self.track_seek_ns) % self.revolution_ns;
        let angle_ns = (skew + index * sector_ns) % self.revolution_ns;
        DiskPlace { track, angle_ns, sector_ns, left: zone.sectors_per_track - index }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe;

    /// 128 MiB on 256 tracks of 1024 sectors in 64 cylinders, 7200 turns a minute.
    fn disk(change: impl FnOnce(&mut Disk)) -> Hdd {
        let text = "name = \"disk\"\ncapacity_mib = 128\n\
            [link]\nread_latency_us = 100\nwrite_latency_us = 100\nread_mb_s = 1000\nwrite_mb_s = 1000\n\
            [disk]\nrpm = 7200\ntrack_seek_ms = 1\nmean_seek_ms = 8\nfull_seek_ms = 15\ntracks = 256\n\
            surfaces = 4\nzones = 1\ninner_outer_ratio = 1\nread_buffer_kib = 0\nwrite_buffer_kib = 0\n";
        let mut d: describe::Description = describe::check(text).unwrap();
        let mut disk = d.disk.take().unwrap();
        change(&mut disk);
        Hdd::new(&d, &disk, 1)
    }

    /// One revolution at 7200 turns a minute, in ns.
    const TURN: u64 = 8_333_333;

    #[test]
    fn the_seek_curve_goes_through_the_three_times_of_the_data_sheet() {
        let d = disk(|_| {});
        // One cylinder, a third of the 64, all of them.
        let seek = |cylinders: u64| d.seek_ns(0, cylinders * 4) as f64 / 1e6;
        assert!((seek(1) - 1.0).abs() < 1e-6, "{}", seek(1));
        assert!((seek(21) - 8.0).abs() < 0.1 && (seek(22) - 8.0).abs() < 0.3, "{} {}", seek(21), seek(22));
        assert!((seek(64) - 15.0).abs() < 1e-6, "{}", seek(64));
        assert!((1..64).all(|n| seek(n) < seek(n + 1)), "a longer way takes longer");
        assert_eq!(d.seek_ns(5, 5), 0);
        assert_eq!(d.seek_ns(4, 5), 1_000_000, "to another surface of the same cylinder");
    }

    #[test]
    fn the_same_sector_comes_round_once_a_revolution() {
        let mut d = disk(|_| {});
        let first = d.read(0, 4096, 512);
        for n in 1..5 {
            let at = first + (n - 1) * TURN;
            assert_eq!(d.read(at, 4096, 512), first + n * TURN, "revolution {n}");
        }
    }

    #[test]
    fn a_track_takes_a_revolution_and_a_seek_to_the_next() {
        let mut d = disk(|_| {});
        let one = d.stream_ns(0, 1024);
        assert!(one.abs_diff(TURN) <= 1024, "{one}: each sector's time is rounded");
        assert_eq!(d.stream_ns(0, 4096), 4 * one + 3 * 1_000_000);
        // Half a track later, half a revolution later.
        let start = d.read(0, 0, 512);
        let half = d.read(start, 512 * 512, 512);
        assert!((half - start).abs_diff(TURN / 2) <= 1024, "{}", half - start);
    }

    #[test]
    fn random_reads_take_the_mean_seek_and_half_a_turn() {
        let mut d = disk(|_| {});
        let mut rng = Rng::new(9);
        let (mut at, count) = (0, 4000);
        let mut seeks = 0.0;
        for _ in 0..count {
            let sector = rng.below(262_144);
            seeks += d.seek_ns(d.head_track, d.place(sector).track) as f64;
            at = d.read(at, sector * 512, 512);
        }
        let mean = at as f64 / f64::from(count);
        let expected = 100_000.0 + seeks / f64::from(count) + TURN as f64 / 2.0;
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} instead of {expected}");
        assert!(
            (seeks / f64::from(count) / 8e6 - 1.0).abs() < 0.15,
            "mean seek {}",
            seeks / f64::from(count)
        );
    }

    #[test]
    fn outer_tracks_hold_more() {
        let d = disk(|disk| (disk.zones, disk.inner_outer_ratio) = (8, 0.5));
        let (outer, inner) = (d.place(0), d.place(d.sectors - 1));
        let ratio = outer.sector_ns as f64 / inner.sector_ns as f64;
        assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
        assert_eq!(outer.track, 0);
        assert!(inner.track >= 250, "the last sector lies on track {} of 256", inner.track);
    }

    #[test]
    fn the_track_buffer_reads_ahead_and_only_so_far() {
        let mut d = disk(|disk| disk.read_buffer_kib = 64);
        let first = d.read(0, 0, 4096);
        // Long enough later all of the next 64 KiB are in the buffer.
        let later = first + 10 * TURN;
        let done = d.read(later, 4096, 4096);
        assert!(done - later < 200_000, "{} ns for data in the buffer", done - later);
        let other = d.read(done, 64 << 20, 4096);
        assert!(other - done > 1_000_000, "{} ns for data elsewhere", other - done);
    }

    #[test]
    fn writes_are_done_in_the_buffer_until_it_is_full() {
        let mut d = disk(|disk| (disk.write_buffer_kib, disk.write_queue) = (32, 8));
        let mut at = 0;
        let times: Vec<u64> = (0..12u64)
            .map(|i| {
                let done = d.write(at, i * 7919 % 4096 * 32_768, 8192);
                let time = done - at;
                at = done;
                time
            })
            .collect();
        assert!(times[..4].iter().all(|t| *t == 100_000 + 8192), "{times:?}");
        assert!(times[6..].iter().all(|t| *t > 500_000), "{times:?}");
        let flushed = d.flush(at);
        assert!(flushed > at + 1_000_000 && d.waiting.is_empty());
        assert_eq!(d.flush(flushed), flushed + 100_000, "nothing was left to write");
    }
}
