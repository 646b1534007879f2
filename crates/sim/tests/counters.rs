//! What a simulated device counts of its own work, in exact numbers.

mod common;

use common::run;
use uflip_device::{Arrival, Bytes, Counters, Device, Io, Mode, Snapshot};
use uflip_sim::{SimDevice, check};

const PAGE: u64 = 2048;

/// 1 MiB in superblocks of one block of 16 pages, one log block, no buffer.
fn bast() -> SimDevice {
    let text = "name = \"counted\"\ncapacity_mib = 1\n\
        [link]\nread_latency_us = 70\nwrite_latency_us = 70\nread_mb_s = 100\nwrite_mb_s = 80\n\
        [geometry]\nchannels = 1\nchips_per_channel = 1\npages_per_block = 16\npage_bytes = 2048\n\
        [timing]\nread_us = 25\nprogram_us = 200\nerase_us = 1500\nbus_mb_s = 40\n\
        [ftl]\nkind = \"bast\"\nlog_blocks = 1\n";
    SimDevice::new(&check(text).unwrap(), 1).unwrap()
}

/// `pages` pages from `page` of superblock `sb`, as one IO.
fn io(mode: Mode, sb: u64, page: u64, pages: u64) -> Io {
    let (offset, size) = (Bytes((sb * 16 + page) * PAGE), (pages * PAGE) as u32);
    Io { arrival: Arrival::CONSECUTIVE, offset, size, mode, pattern: 0 }
}

/// What serving `ios` one after the other came to.
fn counted(device: &mut SimDevice, ios: Vec<Io>) -> Counters {
    let before = device.counters().unwrap();
    run(device, vec![ios]);
    device.counters().unwrap().since(&before)
}

fn pages(n: u64) -> Option<Bytes> {
    Some(Bytes(n * PAGE))
}

#[test]
fn whole_blocks_in_order_give_switch_merges_and_nothing_is_copied() {
    let mut device = bast();
    // Twice over superblocks 0 to 3, a page at a time: each log is switched in,
    // and the second time the block in whose place it comes is erased.
    let twice = (0..2 * 64).map(|i| io(Mode::Write, i / 16 % 4, i % 16, 1)).collect();
    let found = counted(&mut device, twice);
    assert_eq!((found.switch_merges, found.partial_merges, found.full_merges), (Some(8), Some(0), Some(0)));
    assert_eq!((found.host_written, found.flash_programmed), (pages(128), pages(128)));
    assert_eq!((found.flash_copied, found.flash_read, found.block_erases), (pages(0), pages(0), Some(4)));
    assert_eq!(found.write_amplification(), Some(1.0));
    assert_eq!(found.energy_uj, None, "the description says nothing of energy");
}

#[test]
fn each_kind_of_merge_counts_what_it_copies_and_erases() {
    let mut device = bast();
    counted(&mut device, vec![io(Mode::Write, 0, 0, 16), io(Mode::Write, 1, 0, 16)]);
    // Superblock 0's log, half full and in order, makes way for superblock 1's: a
    // partial merge copies 8 pages and erases one block. Superblock 1's, which
    // begins at page 3, makes way for superblock 0's: a full merge copies 16 pages
    // and erases two.
    let merges = vec![io(Mode::Write, 0, 0, 8), io(Mode::Write, 1, 3, 1), io(Mode::Write, 0, 0, 1)];
    let expected = Counters {
        host_read: pages(0),
        host_read_unwritten: pages(0),
        host_written: pages(10),
        host_trimmed: pages(0),
        flash_read: pages(24),
        flash_programmed: pages(34),
        flash_copied: pages(24),
        block_erases: Some(3),
        switch_merges: Some(0),
        partial_merges: Some(1),
        full_merges: Some(1),
        reclaimed: Some(0),
        levelled: Some(0),
        energy_uj: None,
    };
    let found = counted(&mut device, merges);
    assert_eq!(found, expected);
    assert_eq!(found.write_amplification(), Some(3.4));
}

#[test]
fn reads_and_trims_are_counted_apart_from_writes() {
    let mut device = bast();
    counted(&mut device, vec![io(Mode::Write, 0, 0, 16)]);
    let flush = Io { offset: Bytes(0), size: 0, ..io(Mode::Flush, 0, 0, 1) };
    let rest = vec![io(Mode::Read, 0, 0, 4), io(Mode::Read, 0, 2, 1), flush, io(Mode::Trim, 0, 0, 16)];
    let found = counted(&mut device, rest);
    assert_eq!((found.host_read, found.host_written, found.host_trimmed), (pages(5), pages(0), pages(16)));
    assert_eq!((found.flash_read, found.flash_programmed), (pages(5), pages(0)));
    assert_eq!(found.block_erases, Some(1), "a superblock trimmed whole gives its block back");
    assert_eq!(found.write_amplification(), None, "the host wrote nothing");
}

#[test]
fn reclamation_is_counted_and_the_sum_of_its_parts_is_the_whole() {
    let text = uflip_sim::catalogue::text("nvme-tlc").unwrap();
    let small = text
        .replace("capacity_mib = 65536", "capacity_mib = 2048")
        .replace("cache_mib = 8192", "cache_mib = 8");
    let mut device = SimDevice::new(&check(&small).unwrap(), 1).unwrap();
    let mut rng = uflip_device::rng::Rng::new(5);
    let at = |page: u64| Io { offset: Bytes(page * 4096), size: 4096, ..io(Mode::Write, 0, 0, 1) };
    let found = counted(&mut device, (0..900_000).map(|_| at(rng.below(2048 * 256))).collect());
    assert!(found.reclaimed > Some(0) && found.flash_copied > Some(Bytes(0)), "{found:?}");
    let sum = found.host_written.unwrap().0 + found.flash_copied.unwrap().0;
    assert_eq!(found.flash_programmed, Some(Bytes(sum)), "what is programmed is the host's or a copy");
    assert!(found.write_amplification() > Some(1.0));
}

#[test]
fn a_disk_tells_of_the_host_and_of_energy_and_not_of_flash() {
    let mut device = uflip_sim::open("ibm-deskstar-hdd-60G", 1).unwrap();
    let found = counted(&mut device, vec![io(Mode::Write, 0, 0, 4), io(Mode::Read, 9, 0, 2)]);
    let energy_uj = found.energy_uj;
    assert!(energy_uj > Some(0.0));
    let (host_read, host_written, host_trimmed) = (pages(2), pages(4), pages(0));
    let expected = Counters { host_read, host_written, host_trimmed, energy_uj, ..Counters::default() };
    assert_eq!(found, expected);
    assert_eq!(found.write_amplification(), None);
}

#[test]
fn a_return_to_a_snapshot_takes_the_counters_back() {
    let mut device = bast();
    counted(&mut device, vec![io(Mode::Write, 0, 0, 16)]);
    assert!(device.snapshot(Snapshot::Take));
    let then = device.counters().unwrap();
    counted(&mut device, vec![io(Mode::Write, 1, 0, 16)]);
    let now = device.counters().unwrap();
    assert!(device.snapshot(Snapshot::Return));
    assert_eq!(device.counters(), Some(then));
    assert_eq!(device.counters().unwrap().since(&now).host_written, None, "work cannot be undone");
}

#[test]
fn reads_of_what_was_never_written_are_counted_and_those_of_the_buffer_are_not() {
    for name in ["mtron", "transcend-module", "kingston-dti"] {
        let mut device = uflip_sim::open(name, 1).unwrap();
        let unwritten = |device: &uflip_sim::SimDevice| {
            uflip_device::Device::counters(device).unwrap().host_read_unwritten.unwrap().0
        };
        let mut at = uflip_device::Nanos(1_000_000);
        let mut ask = |device: &mut uflip_sim::SimDevice, write: bool, offset: u64| {
            let (offset, mut data) = (uflip_device::Bytes(offset), vec![7; 32 << 10]);
            let request = match write {
                true => uflip_sim::Request::Write { offset, from: &data },
                false => uflip_sim::Request::Read { offset, into: &mut data },
            };
            at = device.arrive(at, request).unwrap();
        };
        ask(&mut device, false, 1 << 20);
        assert_eq!(unwritten(&device), 32 << 10, "{name}");
        ask(&mut device, true, 1 << 20);
        ask(&mut device, false, 1 << 20);
        assert_eq!(unwritten(&device), 32 << 10, "{name}: what was just written, on flash or not");
        // Half of it was written.
        ask(&mut device, false, (1 << 20) + (16 << 10));
        assert_eq!(unwritten(&device), 48 << 10, "{name}");
    }
}
