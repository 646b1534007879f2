//! The list of signatures against a second one, drawn from the tables of
//! util-linux's source by a script that knows nothing of ours: an entry whose
//! place or bytes differ fails.

use super::*;

/// Tag, place in bytes (from the end where negative), bytes. Source: util-linux
/// of 2026-08 (39465c780eed), `libblkid/src/superblocks` and `partitions`; HFS+: Apple's
/// technical note 1150; cramfs at 512: Linux, fs/cramfs/inode.c.
#[rustfmt::skip]
const FACTS: &[(&str, i64, &[u8])] = &[
    ("aix", 0, b"\xc9\xc2\xd4\xc1"),
    ("apfs", 32, b"NXSB"),
    ("bcachefs", -1048552, b"\xc6\x85s\xf6f\xce\x90\xa9\xd9j`\xcf\x80=\xf7\xef"),
    ("bcachefs", 2097176, b"\xc6\x85s\xf6f\xce\x90\xa9\xd9j`\xcf\x80=\xf7\xef"),
    ("bcachefs", 4120, b"\xc6\x85s\xf6N\x1aE\xca\x82e\xf5\x7fH\xbam\x81"),
    ("bcachefs", 4120, b"\xc6\x85s\xf6f\xce\x90\xa9\xd9j`\xcf\x80=\xf7\xef"),
    ("befs", 32, b"1SFB"),
    ("befs", 32, b"BFS1"),
    ("befs", 544, b"1SFB"),
    ("befs", 544, b"BFS1"),
    ("bfs", 0, b"\xce\xfa\xad\x1b"),
    ("bitlocker", 0, b"\xebR\x90-FVE-FS-"),
    ("bitlocker", 0, b"\xebX\x90-FVE-FS-"),
    ("bsd", 128, b"WEV\x82"),
    ("bsd", 512, b"WEV\x82"),
    ("bsd", 64, b"WEV\x82"),
    ("btrfs", 274877907008, b"_BHRfS_M"),
    ("btrfs", 65600, b"_BHRfS_M"),
    ("btrfs", 67108928, b"_BHRfS_M"),
    ("ceph", 0, b"bluestore block device"),
    ("cramfs", 0, b"(\xcd=E"),
    ("cramfs", 0, b"E=\xcd("),
    ("cramfs", 512, b"(\xcd=E"),
    ("cramfs", 512, b"E=\xcd("),
    ("drbd", -4036, b"\x83t\x02k"),
    ("drbd", -4036, b"\x83t\x02l"),
    ("drbd", -4036, b"\x83t\x02m"),
    ("drbd", 0, b"$DRBDmgr=q"),
    ("drbd", 0, b"DRBDdlh*"),
    ("erofs", 1024, b"\xe2\xe1\xf5\xe0"),
    ("exfat", 3, b"EXFAT   "),
    ("exfs", 0, b"EXFS"),
    ("f2fs", 1024, b"\x10 \xf5\xf2"),
    ("f2fs", 5120, b"\x10 \xf5\xf2"),
    ("fakeraid", 4640, b"\xf0\x16xZ"),
    ("fakeraid", 4640, b"\xfd\x16xZ"),
    ("gfs2", 65536, b"\x01\x16\x19p"),
    ("hfsplus", 1024, b"H+\x00\x04"),
    ("hfsplus", 1024, b"HX\x00\x05"),
    ("hpfs", 8192, b"I\xe8\x95\xf9"),
    ("integrity", 0, b"integrt\x00"),
    ("iso9660", 32769, b"CD001"),
    ("iso9660", 32777, b"CDROM"),
    ("jfs", 32768, b"JFS1"),
    ("luks", 0, b"LUKS\xba\xbe"),
    ("luks", 0x10000, b"SKUL\xba\xbe"),
    ("luks", 0x100000, b"SKUL\xba\xbe"),
    ("luks", 0x20000, b"SKUL\xba\xbe"),
    ("luks", 0x200000, b"SKUL\xba\xbe"),
    ("luks", 0x4000, b"SKUL\xba\xbe"),
    ("luks", 0x40000, b"SKUL\xba\xbe"),
    ("luks", 0x400000, b"SKUL\xba\xbe"),
    ("luks", 0x8000, b"SKUL\xba\xbe"),
    ("luks", 0x80000, b"SKUL\xba\xbe"),
    ("lvm1", 0, b"HM\x01\x00"),
    ("lvm1", 0, b"HM\x02\x00"),
    ("mpool", 0, b"mpoolDev"),
    ("nss", 4096, b"SPB5"),
    ("ntfs", 3, b"NTFS    "),
    ("ocfs", 8192, b"OracleCFS"),
    ("ocfs2", 1024, b"OCFSV2"),
    ("ocfs2", 2048, b"OCFSV2"),
    ("ocfs2", 4096, b"OCFSV2"),
    ("ocfs2", 8192, b"OCFSV2"),
    ("oracleasm", 32, b"ORCLDISK"),
    ("refs", 0, b"\x00\x00\x00ReFS\x00"),
    ("reiser4", 65536, b"ReIsEr4"),
    ("reiserfs", 65588, b"ReIsEr2Fs"),
    ("reiserfs", 65588, b"ReIsEr3Fs"),
    ("reiserfs", 65588, b"ReIsErFs"),
    ("reiserfs", 8212, b"ReIsErFs"),
    ("reiserfs", 8244, b"ReIsErFs"),
    ("romfs", 0, b"-rom1fs-"),
    ("scoutfs", 65540, b"\x8bB<\x10"),
    ("sgi", 0, b"\x0b\xe5\xa9A"),
    ("snapshot", 0, b"SnAp"),
    ("solaris", 524, b"\xee\xde\x0d`"),
    ("squashfs", 0, b"hsqs"),
    ("squashfs", 0, b"sqsh"),
    ("stratis", 4612, b"!Stra0tis\x86\xff\x02^Arh"),
    ("stratis", 516, b"!Stra0tis\x86\xff\x02^Arh"),
    ("swap", 0, b"\xed\xc3\x02\xe9\x98V\xe5\x0c"),
    ("swap", 16374, b"LINHIB0001"),
    ("swap", 16374, b"S1SUSPEND"),
    ("swap", 16374, b"S2SUSPEND"),
    ("swap", 16374, b"SWAP-SPACE"),
    ("swap", 16374, b"SWAPSPACE2"),
    ("swap", 16374, b"ULSUSPEND"),
    ("swap", 32758, b"LINHIB0001"),
    ("swap", 32758, b"S1SUSPEND"),
    ("swap", 32758, b"S2SUSPEND"),
    ("swap", 32758, b"SWAP-SPACE"),
    ("swap", 32758, b"SWAPSPACE2"),
    ("swap", 32758, b"ULSUSPEND"),
    ("swap", 4086, b"LINHIB0001"),
    ("swap", 4086, b"S1SUSPEND"),
    ("swap", 4086, b"S2SUSPEND"),
    ("swap", 4086, b"SWAP-SPACE"),
    ("swap", 4086, b"SWAPSPACE2"),
    ("swap", 4086, b"ULSUSPEND"),
    ("swap", 65526, b"LINHIB0001"),
    ("swap", 65526, b"S1SUSPEND"),
    ("swap", 65526, b"S2SUSPEND"),
    ("swap", 65526, b"SWAP-SPACE"),
    ("swap", 65526, b"SWAPSPACE2"),
    ("swap", 65526, b"ULSUSPEND"),
    ("swap", 8182, b"LINHIB0001"),
    ("swap", 8182, b"S1SUSPEND"),
    ("swap", 8182, b"S2SUSPEND"),
    ("swap", 8182, b"SWAP-SPACE"),
    ("swap", 8182, b"SWAPSPACE2"),
    ("swap", 8182, b"ULSUSPEND"),
    ("ubi", 0, b"UBI#"),
    ("ubifs", 0, b"1\x18\x10\x06"),
    ("udf", 32769, b"BEA01"),
    ("udf", 32769, b"BOOT2"),
    ("udf", 32769, b"CDW02"),
    ("udf", 32769, b"NSR02"),
    ("udf", 32769, b"NSR03"),
    ("udf", 32769, b"TEA01"),
    ("unixware", 14852, b"\x0d`\xe5\xca"),
    ("vdo", 0, b"dmvdo001"),
    ("verity", 0, b"verity\x00\x00"),
    ("vmfs", 1048576, b"\x0d\xd0\x01\xc0"),
    ("vmfs", 2097152, b"^\xf1\xab/"),
    ("vxfs", 1024, b"\xf5\xfc\x01\xa5"),
    ("vxfs", 8192, b"\xa5\x01\xfc\xf5"),
    ("xfs", 0, b"XFSB"),
    ("zonefs", 0, b"SFOZ"),
];

/// Large enough for every place, and of a whole number of MiB.
const LARGE: u64 = 1 << 40;

fn place(at: i64) -> u64 {
    if at < 0 { LARGE - at.unsigned_abs() } else { at.unsigned_abs() }
}

#[test]
fn every_fact_is_found_and_named_as_what_it_is() {
    for (tag, at, bytes) in FACTS {
        let found = found_in(LARGE, &[(place(*at), bytes)]);
        assert_eq!(found.iter().map(|s| s.tag).collect::<Vec<_>>(), [*tag], "{tag} at {at}: {bytes:x?}");
        assert!(found[0].offset.abs_diff(place(*at)) <= 60, "{tag} at {at}: {found:?}");
    }
}

#[test]
fn every_row_of_ours_is_a_fact() {
    for (tag, _, offset, magic) in fixed::ROWS {
        // The row's bytes as they are where the fact's lie among zeros.
        let on = |at: i64, bytes: &[u8]| -> Vec<u8> {
            let byte = |at_row: u64| at_row.checked_sub(place(at)).and_then(|k| bytes.get(k as usize));
            (*offset..offset + magic.len() as u64).map(|k| byte(k).copied().unwrap_or(0)).collect()
        };
        let fact = FACTS.iter().any(|(named, at, bytes)| named == tag && on(*at, bytes) == *magic);
        assert!(fact, "{tag} at {offset}: no source says so");
    }
}
