//! Signatures on made images: hand-written bytes, and mkfs where it is there.

use super::*;
use crate::rng::Rng;

mod checked;
mod facts;
mod programs;

const SIZE: usize = 8 << 20;

/// The tags on an image of zeros with `bytes` at their offsets.
fn tags(writes: &[(u64, &[u8])]) -> Vec<&'static str> {
    tags_in(SIZE, writes)
}

/// The same of a device of any size, of which only what is looked at is made.
fn tags_in(size: usize, writes: &[(u64, &[u8])]) -> Vec<&'static str> {
    found_in(size as u64, writes).iter().map(|s| s.tag).collect()
}

fn found_in(size: u64, writes: &[(u64, &[u8])]) -> Vec<Signature> {
    let mut ends = Ends::blank(size);
    for (start, part) in &mut ends.parts {
        for (offset, bytes) in writes {
            for (at, byte) in (*offset..).zip(*bytes) {
                let within = at.checked_sub(*start).and_then(|at| part.get_mut(at as usize));
                within.into_iter().for_each(|to| *to = *byte);
            }
        }
    }
    let found = signatures(&ends);
    let confirmed = |s: &Signature| super::tags().any(|tag| tag == s.tag);
    assert!(found.iter().all(confirmed), "each can be confirmed: {found:?}");
    found
}

#[test]
fn an_empty_image_holds_nothing() {
    assert!(tags(&[]).is_empty());
    assert!(signatures(&Ends::of(&[])).is_empty());
    assert!(signatures(&Ends::of(&[0; 511])).is_empty());
    assert_eq!(Ends::of(&[0; 4096]).first_unknown(), None);
}

#[test]
fn every_fixed_signature_is_found_where_it_belongs_and_only_there() {
    for (tag, _, offset, magic) in fixed::ROWS {
        assert_eq!(tags_in(1 << 40, &[(*offset, magic)]), [*tag]);
        assert!(tags_in(1 << 40, &[(offset + 1, magic)]).is_empty(), "{tag} one byte on");
    }
}

#[test]
fn signatures_with_several_places_are_found_in_each() {
    for offset in [512, 4096, SIZE as u64 - 512, SIZE as u64 - 4096] {
        assert_eq!(tags(&[(offset, b"EFI PART")]), ["gpt"], "{offset}");
    }
    for sector in 0..4 {
        assert_eq!(tags(&[(sector * 512, b"LABELONE"), (sector * 512 + 24, b"LVM2 001")]), ["lvm2"]);
    }
    for page in [4096u64, 8192, 16384, 32768, 65536] {
        assert_eq!(tags(&[(page - 10, b"SWAPSPACE2")]), ["swap"]);
    }
    for offset in [0x4000u64, 0x8000, 0x10_0000, 0x20_0000, 0x40_0000] {
        assert_eq!(tags(&[(offset, b"SKUL\xba\xbe")]), ["luks"]);
    }
    assert_eq!(tags(&[(0, b"LUKS\xba\xbe"), (0x4000, b"SKUL\xba\xbe")]), ["luks"], "named once");
}

#[test]
fn raid_members_are_found_at_either_end() {
    let v1 = [0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0];
    let v0 = [0xfc, 0x4e, 0x2b, 0xa9, 0, 0, 0, 0];
    let end1 = ((SIZE as u64 / 512 - 16) & !7) * 512;
    for offset in [0, 4096, end1] {
        assert_eq!(tags(&[(offset, &v1)]), ["md"], "{offset}");
    }
    assert_eq!(tags(&[(SIZE as u64 - 65536, &v0)]), ["md"]);
    assert!(tags(&[(0, &v0)]).is_empty(), "version 0.90 is only at the end");
    assert_eq!(tags(&[(SIZE as u64 - 1024, b"Intel Raid ISM Cfg Sig. 1.3")]), ["fakeraid"]);
}

#[test]
fn zfs_is_found_in_each_of_its_four_labels_in_either_byte_order() {
    let magic = 0x00ba_b10cu64;
    for label in [0, 256 << 10, SIZE as u64 - (512 << 10), SIZE as u64 - (256 << 10)] {
        assert_eq!(tags(&[(label + (128 << 10), &magic.to_le_bytes())]), ["zfs"], "{label}");
        assert_eq!(tags(&[(label + (255 << 10), &magic.to_be_bytes())]), ["zfs"], "{label}");
    }
}

/// A superblock with 10 inodes and blocks and these features.
fn ext_with(compat: u32, incompat: u32, ro_compat: u32) -> Vec<u8> {
    let mut block = vec![0u8; 0x100];
    let mut put = |at: usize, value: u32| block[at..at + 4].copy_from_slice(&value.to_le_bytes());
    put(0, 10);
    put(4, 10);
    put(0x4c, 1);
    put(0x5c, compat);
    put(0x60, incompat);
    put(0x64, ro_compat);
    block[0x38..0x3a].copy_from_slice(&[0x53, 0xef]);
    block
}

#[test]
fn ext_is_told_apart_by_its_features() {
    assert_eq!(tags(&[(1024, &ext_with(0, 0x2, 0x1))]), ["ext2"]);
    assert_eq!(tags(&[(1024, &ext_with(0x4, 0x2, 0x1))]), ["ext3"]);
    assert_eq!(tags(&[(1024, &ext_with(0x4, 0x42, 0x1))]), ["ext4"]);
    assert_eq!(tags(&[(1024, &ext_with(0x4, 0x2, 0x9))]), ["ext4"]);
    assert_eq!(tags(&[(1024, &ext_with(0, 0x8, 0))]), ["jbd"]);
    assert!(tags(&[(1024 + 0x38, &[0x53, 0xef])]).is_empty(), "two bytes alone are no file system");
}

#[test]
fn an_mbr_needs_a_plausible_partition() {
    let mut entry = [0u8; 16];
    entry[4] = 0x83;
    entry[12..].copy_from_slice(&2048u32.to_le_bytes());
    let end: (u64, &[u8]) = (510, &[0x55, 0xaa]);
    assert_eq!(tags(&[(446, &entry), end]), ["dos"]);
    assert_eq!(tags(&[(494, &entry), end]), ["dos"], "in the last entry");
    assert!(tags(&[end]).is_empty(), "no partition");
    assert!(tags(&[(446, &entry)]).is_empty(), "no end mark");
    let mut implausible = entry;
    implausible[0] = 0x12;
    assert!(tags(&[(446, &entry), (462, &implausible), end]).is_empty());
    let mut protective = entry;
    protective[4] = 0xee;
    assert_eq!(
        tags(&[(446, &protective), end, (512, b"EFI PART")]),
        ["gpt"],
        "the protective MBR is not named"
    );
}

#[test]
fn fat_needs_its_name_and_its_end_mark() {
    assert_eq!(tags(&[(82, b"FAT32   "), (510, &[0x55, 0xaa])]), ["vfat"]);
    assert_eq!(tags(&[(54, b"FAT16   "), (510, &[0x55, 0xaa])]), ["vfat"]);
    assert!(tags(&[(82, b"FAT32   ")]).is_empty());
}

#[test]
fn several_are_all_named() {
    assert_eq!(
        tags(&[(0, b"XFSB"), (4086, b"SWAPSPACE2"), (0x1_0040, b"_BHRfS_M")]),
        ["btrfs", "swap", "xfs"]
    );
}

#[test]
fn random_contents_are_no_signature_but_are_content() {
    let mut rng = Rng::new(1);
    let mut image = vec![0; 1 << 20];
    for _ in 0..100 {
        rng.fill(&mut image);
        let ends = Ends::of(&image);
        assert!(signatures(&ends).is_empty());
        assert_eq!(ends.first_unknown(), Some(image.iter().position(|b| *b != 0).unwrap() as u64));
    }
}

#[test]
fn any_size_is_taken_and_a_lone_byte_is_seen_in_the_tail() {
    for size in (0..5000).step_by(7).chain([65535, 65536, 65537, 131072]) {
        let mut image = vec![0u8; size];
        assert!(signatures(&Ends::of(&image)).is_empty());
        if let Some(last) = image.last_mut() {
            *last = 1;
            assert_eq!(Ends::of(&image).first_unknown(), Some(size as u64 - 1));
        }
    }
    assert_eq!(tags_in(1 << 20, &[((1 << 20) - 512, b"EFI PART")]), ["gpt"]);
}
