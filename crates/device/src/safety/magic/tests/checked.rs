//! What is told by more than a magic: images with the fields that each format
//! has around it, and magics alone, which are nothing.

use super::*;

const SIZE: u64 = 16 << 20;

/// Tag, blkid's name for it (empty where blkid wants a checksum or more that is
/// not made here), and what is written where.
pub(super) type Image = (&'static str, &'static str, Vec<(u64, Vec<u8>)>);

fn le16(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn be16(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_be_bytes()).collect()
}

fn le32(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn be32(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_be_bytes()).collect()
}

/// Minix 1 and 2: inodes, zones, blocks of the maps, first zone, log2 of a
/// zone, the largest file, magic, state, zones of version 2.
fn minix(of: fn(&[u16]) -> Vec<u8>, magic: u16, zones: [u16; 3]) -> Vec<(u64, Vec<u8>)> {
    vec![(1024, of(&[64, zones[0], 1, 1, 6, 0, 0, 0, magic, 1, zones[1], zones[2]]))]
}

fn minix3(of: fn(&[u16]) -> Vec<u8>, inodes: [u16; 2], zones: [u16; 2]) -> Vec<(u64, Vec<u8>)> {
    let fields = [inodes[0], inodes[1], 0, 1, 1, 6, 0, 0, 0, 0, zones[0], zones[1], 0x4d5a, 0, 1024];
    vec![(1024, of(&fields))]
}

/// A FAT16 boot sector of 16 MiB without the name.
fn fat_without_name() -> Vec<(u64, Vec<u8>)> {
    let mut sector = vec![0u8; 512];
    sector[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    sector[0x0b..0x0d].copy_from_slice(&512u16.to_le_bytes());
    sector[0x0d..0x16].copy_from_slice(&[4, 1, 0, 2, 0, 2, 0, 0x80, 0xf8]);
    sector[0x16..0x18].copy_from_slice(&32u16.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    vec![(0, sector)]
}

/// A sector of a maker's metadata whose checksum is made by `sum`.
fn summed(length: usize, fields: &[(usize, &[u8])], sum: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = vec![0u8; length];
    for (at, field) in fields {
        bytes[*at..at + field.len()].copy_from_slice(field);
    }
    sum(&mut bytes);
    bytes
}

fn words_sum(bytes: &[u8]) -> u16 {
    bytes.chunks_exact(2).map(|w| u16::from_le_bytes([w[0], w[1]])).fold(0, u16::wrapping_add)
}

fn firmware() -> Vec<Image> {
    let from_end = |sectors: u64| SIZE - sectors * 512;
    let jmicron = summed(128, &[(0, b"JM")], |b| {
        let rest = 1u16.wrapping_sub(words_sum(b));
        b[4..6].copy_from_slice(&rest.to_le_bytes());
    });
    let silicon = summed(0x140, &[(0x60, &[0, 0, 0, 0x2f])], |b| {
        let rest = 0u16.wrapping_sub(words_sum(&b[..0x13e]));
        b[0x13e..].copy_from_slice(&rest.to_le_bytes());
    });
    let via = summed(51, &[(0, &[0x55, 0xaa, 1]), (3, &[9, 8, 7])], |b| {
        b[50] = b[..50].iter().fold(0, |sum, byte| sum.wrapping_add(*byte));
    });
    let nvidia = summed(120, &[(0, b"NVIDIA  "), (8, &30u32.to_le_bytes())], |b| {
        let words = b.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        let rest = 0u32.wrapping_sub(words.fold(0, u32::wrapping_add));
        b[12..16].copy_from_slice(&rest.to_le_bytes());
    });
    let adaptec = summed(512, &[(0, &0x37fc_4d1e_u32.to_be_bytes()), (256, b"DPTM")], |_| {});
    let mut all: Vec<Image> = vec![
        ("fakeraid", "", vec![(from_end(1), adaptec)]),
        ("fakeraid", "isw_raid_member", vec![(from_end(2), b"Intel Raid ISM Cfg Sig. 1.3.00".to_vec())]),
        ("fakeraid", "jmicron_raid_member", vec![(from_end(1), jmicron)]),
        ("fakeraid", "lsi_mega_raid_member", vec![(from_end(1), b"$XIDE$".to_vec())]),
        ("fakeraid", "nvidia_raid_member", vec![(from_end(2), nvidia)]),
        ("fakeraid", "silicon_medley_raid_member", vec![(from_end(1), silicon)]),
        ("fakeraid", "via_raid_member", vec![(from_end(1), via)]),
        ("fakeraid", "hpt45x_raid_member", vec![(from_end(11), vec![0xf3, 0x16, 0x78, 0x5a])]),
        ("fakeraid", "hpt45x_raid_member", vec![(from_end(11), vec![0xfd, 0x16, 0x78, 0x5a])]),
        ("fakeraid", "hpt37x_raid_member", vec![(4096 + 544, vec![0xf0, 0x16, 0x78, 0x5a])]),
        ("fakeraid", "", vec![(from_end(1), vec![0xde, 0x11, 0xde, 0x11])]),
        ("fakeraid", "", vec![(from_end(257), vec![0xde, 0x11, 0xde, 0x11])]),
    ];
    for sector in [63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, 3087] {
        let bytes = b"Promise Technology, Inc.".to_vec();
        all.push(("fakeraid", "promise_fasttrack_raid_member", vec![(from_end(sector), bytes)]));
    }
    all
}

fn tables() -> Vec<Image> {
    let sun = summed(512, &[(7, b"Disk"), (508, &[0xda, 0xbe])], |b| {
        let sum = b.chunks_exact(2).map(|w| u16::from_be_bytes([w[0], w[1]])).fold(0, |a, w| a ^ w);
        b[510..].copy_from_slice(&sum.to_be_bytes());
    });
    let descriptor = [b"ER".to_vec(), be16(&[512]), be32(&[32768])].concat();
    let entry = [b"PM\0\0".to_vec(), be32(&[1, 1, 63])].concat();
    let atari = [vec![1], b"GEM".to_vec(), be32(&[2, 100])].concat();
    let mut ultrix = le32(&[0x32957, 1]);
    ultrix.resize(72, 0);
    vec![
        ("sun", "sun", vec![(0, sun)]),
        ("apm", "mac", vec![(0, descriptor), (512, entry.clone())]),
        ("apm", "", vec![(512, entry)]),
        ("atari", "atari", vec![(0x1c2, be32(&[32000])), (0x1c6, atari)]),
        ("ultrix", "ultrix", vec![(16384 - 72, ultrix)]),
        ("solaris", "", vec![(512 + 12, le32(&[0x600d_deee, 1]))]),
        ("dasd", "", vec![(2 * 4096 + 4, vec![0xe5, 0xd6, 0xd3, 0xf1])]),
        ("dasd", "", vec![(2 * 512, vec![0xd3, 0xd5, 0xe7, 0xf1])]),
        ("dasd", "", vec![(2 * 1024, vec![0xc3, 0xd4, 0xe2, 0xf1])]),
    ]
}

fn file_systems() -> Vec<Image> {
    let hfs =
        |sign: &[u8]| vec![(1024, b"BD".to_vec()), (1024 + 20, be32(&[4096])), (1024 + 124, sign.to_vec())];
    let gfs =
        |format: u32, multi: u32| vec![(65536, be32(&[0x0116_1970])), (65536 + 24, be32(&[format, multi]))];
    let xenix = |of: fn(&[u32]) -> Vec<u8>| vec![(1024 + 1016, of(&[0x002b_5544, 2]))];
    let log = [be32(&[0xfeed_babe, 1, 2, 512]), vec![0; 284], be32(&[1])].concat();
    let nilfs = [le32(&[2]), le16(&[0, 0x3434, 280, 0]), le32(&[0, 0, 2])].concat();
    let mut all: Vec<Image> = vec![
        ("minix", "minix", minix(le16, 0x137f, [1000, 0, 0])),
        ("minix", "minix", minix(be16, 0x138f, [1000, 0, 0])),
        ("minix", "minix", minix(le16, 0x2468, [0, 1000, 0])),
        ("minix", "minix", minix(be16, 0x2478, [0, 0, 1000])),
        ("minix", "minix", minix3(le16, [64, 0], [1000, 0])),
        ("minix", "", minix3(be16, [0, 64], [0, 1000])),
        ("vfat", "vfat", fat_without_name()),
        ("hfs", "hfs", hfs(&[0, 0])),
        ("hfsplus", "", hfs(b"H+")),
        ("gfs2", "", gfs(1801, 1900)),
        ("gfs2", "", gfs(1309, 1401)),
        ("xenix", "", xenix(le32)),
        ("xenix", "", xenix(be32)),
        ("xfs-log", "xfs_external_log", vec![(0, log.clone())]),
        ("xfs-log", "xfs_external_log", vec![(511 * 512, log)]),
        ("nilfs2", "", vec![(1024, nilfs.clone())]),
        ("nilfs2", "", vec![(SIZE - 4096, nilfs)]),
        ("corestorage", "", vec![(8, le16(&[1, 0x10])), (88, b"CS\x01\0\0\0".to_vec())]),
        ("hpfs", "hpfs", vec![(8192, vec![0x49, 0xe8, 0x95, 0xf9]), (8704, vec![0x49, 0x18, 0x91, 0xf9])]),
        ("integrity", "DM_integrity", vec![(0, b"integrt\0\x01".to_vec())]),
        ("verity", "DM_verity_hash", vec![(0, b"verity\0\0\x01".to_vec())]),
    ];
    for block in [0, 9, 15, 18] {
        let at = block * 1024 + 512 + 504;
        all.push(("sysv", "sysv", vec![(at, 0xfd18_7e20_u32.to_le_bytes().to_vec())]));
        all.push(("sysv", "sysv", vec![(at, 0xfd18_7e20_u32.to_be_bytes().to_vec())]));
    }
    for kib in [0, 8, 64, 256] {
        for magic in [0x0001_1954_u32, 0x1954_0119, 0x0019_5612, 0x0009_5014, 0x0061_2195, 0x0523_1994] {
            all.push(("ufs", "ufs", vec![(kib * 1024 + 0x55c, magic.to_le_bytes().to_vec())]));
            all.push(("ufs", "ufs", vec![(kib * 1024 + 0x55c, magic.to_be_bytes().to_vec())]));
        }
    }
    all
}

/// Software RAID 1.1, 1.2, 1.0 and 0.90 of either byte order, and DRBD.
fn stacked() -> Vec<Image> {
    const MD: u32 = 0xa92b_4efc;
    let md = |writes| ("md", "linux_raid_member", writes);
    let version1 = |at: u64| {
        let own_place = (at / 512).to_le_bytes().to_vec();
        md(vec![(at, le32(&[MD, 1])), (at + 144, own_place)])
    };
    vec![
        version1(0),
        version1(4096),
        version1((SIZE / 512 - 16) / 8 * 8 * 512),
        md(vec![(SIZE - 65536, le32(&[MD, 0]))]),
        md(vec![(SIZE - 65536, be32(&[MD, 0]))]),
        ("drbd", "drbd", vec![(SIZE - 4096 + 60, be32(&[0x8374_026b, 0, 0, 0, 0, 4096]))]),
        ("drbd", "", vec![(SIZE - 4096 + 60, be32(&[0x8374_026d, 0, 0, 0, 0, 4096]))]),
    ]
}

/// All of these images, [`SIZE`] bytes long.
pub(super) fn images() -> Vec<Image> {
    [firmware(), tables(), file_systems(), stacked()].concat()
}

#[test]
fn every_image_is_found_as_what_it_is_and_nothing_else() {
    for (tag, _, writes) in images() {
        let writes: Vec<(u64, &[u8])> = writes.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
        assert_eq!(tags_in(SIZE as usize, &writes), [tag], "{writes:x?}");
    }
}

#[test]
fn what_needs_fields_is_nothing_without_them() {
    let alone: [(u64, &[u8]); 14] = [
        (1040, &[0x7f, 0x13]),
        (1048, &[0x5a, 0x4d]),
        (1024, b"BD"),
        (1024, b"H+"),
        (1030, &[0x34, 0x34]),
        (508, &[0xda, 0xbe]),
        (0, b"ER\x02\0"),
        (88, b"CS"),
        (SIZE - 512, b"JM\x01"),
        (SIZE - 512, &[0x55, 0xaa]),
        (SIZE - 512 + 0x60, &[0, 0, 0, 0x2f]),
        (1024 + 1016, &[0x44, 0x55, 0x2b, 0]),
        (0, &[0xeb, 0x3c, 0x90]),
        (0, b"HM\x03\0"),
    ];
    for (at, bytes) in alone {
        assert!(tags_in(SIZE as usize, &[(at, bytes)]).is_empty(), "{at}: {bytes:x?}");
    }
}

#[test]
fn the_journal_of_ext_on_a_device_of_its_own_has_no_inodes() {
    let mut journal = ext_with(0, 0x8, 0);
    journal[..4].fill(0);
    assert_eq!(tags(&[(1024, &journal)]), ["jbd"]);
    let mut none = ext_with(0, 0x2, 0);
    none[..4].fill(0);
    assert!(tags(&[(1024, &none)]).is_empty(), "a file system has inodes");
}

#[test]
fn jfs_and_hpfs_have_the_parameters_of_fat_and_are_none() {
    for name in [b"JFS     ", b"HPFS    "] {
        let (at, mut sector) = fat_without_name().remove(0);
        sector[54..62].copy_from_slice(name);
        assert!(!tags(&[(at, &sector)]).contains(&"vfat"));
    }
}

/// A device that is cut below every place is read without a fault, and a
/// signature near the cut is no other's.
#[test]
fn every_image_is_looked_at_at_any_length() {
    for (_, _, writes) in images().into_iter().step_by(5) {
        let end = writes.iter().map(|(at, bytes)| at + bytes.len() as u64).max().unwrap_or(0);
        for size in [end / 2, end.saturating_sub(1), end, end + 1] {
            let writes: Vec<(u64, &[u8])> = writes.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
            let _ = found_in(size.min(4 << 20), &writes);
        }
    }
}
