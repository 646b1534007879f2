//! Signatures told by fixed bytes at a fixed offset from the start.
//!
//! Four bytes at least: of random data one in 2^32 sectors has such bytes, at
//! one place. What stands here is facts (name, place, bytes) of the formats.
//! Source: util-linux `libblkid/src`, the file named like the tag, unless said.

/// Tag, what it is, offset in bytes, the bytes there.
pub(super) type SignatureRow = (&'static str, &'static str, u64, &'static [u8]);

/// Where the checksum's bytes follow in every superblock of bcache and bcachefs.
const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
const STRATIS: &[u8] = b"!Stra0tis\x86\xff\x02^Arh";

/// All of them.
pub(super) const ROWS: &[SignatureRow] = &[
    ("aix", "an AIX partition table", 0, &[0xc9, 0xc2, 0xd4, 0xc1]),
    ("apfs", "an APFS container", 32, b"NXSB"),
    ("bcachefs", "bcache or bcachefs", 4096 + 24, BCACHE),
    ("bcachefs", "bcache or bcachefs", 4096 + 24, BCACHEFS),
    ("bcachefs", "bcache or bcachefs", (2 << 20) + 24, BCACHEFS),
    ("befs", "a BeOS file system", 32, b"BFS1"),
    ("befs", "a BeOS file system", 32, b"1SFB"),
    ("befs", "a BeOS file system", 512 + 32, b"BFS1"),
    ("befs", "a BeOS file system", 512 + 32, b"1SFB"),
    ("bfs", "an SCO BFS file system", 0, &[0xce, 0xfa, 0xad, 0x1b]),
    ("bitlocker", "a BitLocker volume", 3, b"-FVE-FS-"),
    ("bsd", "a BSD disk label", 64, &[0x57, 0x45, 0x56, 0x82]),
    ("bsd", "a BSD disk label", 128, &[0x57, 0x45, 0x56, 0x82]),
    ("bsd", "a BSD disk label", 512, &[0x57, 0x45, 0x56, 0x82]),
    ("btrfs", "a btrfs file system", 0x1_0040, b"_BHRfS_M"),
    ("btrfs", "a btrfs file system", (64 << 20) + 0x40, b"_BHRfS_M"),
    ("btrfs", "a btrfs file system", (256 << 30) + 0x40, b"_BHRfS_M"),
    ("ceph", "a Ceph BlueStore device", 0, b"bluestore block device"),
    ("cramfs", "a cramfs image", 0, &[0x45, 0x3d, 0xcd, 0x28]),
    ("cramfs", "a cramfs image", 0, &[0x28, 0xcd, 0x3d, 0x45]),
    // Behind a boot sector: Linux, fs/cramfs/inode.c.
    ("cramfs", "a cramfs image", 512, &[0x45, 0x3d, 0xcd, 0x28]),
    ("cramfs", "a cramfs image", 512, &[0x28, 0xcd, 0x3d, 0x45]),
    ("drbd", "a DRBD control volume", 0, b"$DRBDmgr=q"),
    ("drbd", "a DRBD proxy's log", 0, b"DRBDdlh*"),
    ("erofs", "an EROFS image", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    ("exfat", "an exFAT file system", 3, b"EXFAT   "),
    ("exfs", "an EXFS file system", 0, b"EXFS"),
    ("f2fs", "an F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("f2fs", "an F2FS file system", 4096 + 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("gfs2", "a GFS or GFS2 file system", 64 << 10, &[0x01, 0x16, 0x19, 0x70]),
    ("hfsplus", "an HFS+ file system", 1024, b"H+\0\x04"),
    ("hfsplus", "an HFS+ file system", 1024, b"HX\0\x05"),
    ("hpfs", "an HPFS file system", 8192, &[0x49, 0xe8, 0x95, 0xf9]),
    ("integrity", "a dm-integrity volume", 0, b"integrt\0"),
    ("iso9660", "an ISO 9660 image", 32769, b"CD001"),
    ("iso9660", "a High Sierra image", 32777, b"CDROM"),
    ("jfs", "a JFS file system", 32768, b"JFS1"),
    ("luks", "a LUKS encrypted volume", 0, b"LUKS\xba\xbe"),
    ("lvm1", "an LVM1 physical volume", 0, b"HM\x01\0"),
    ("lvm1", "an LVM1 physical volume", 0, b"HM\x02\0"),
    ("mpool", "an mpool volume", 0, b"mpoolDev"),
    ("nss", "a NetWare NSS file system", 4096, b"SPB5"),
    ("ntfs", "an NTFS file system", 3, b"NTFS    "),
    ("ocfs", "an OCFS file system", 8192, b"OracleCFS"),
    ("ocfs2", "an OCFS2 file system", 1024, b"OCFSV2"),
    ("ocfs2", "an OCFS2 file system", 2048, b"OCFSV2"),
    ("ocfs2", "an OCFS2 file system", 4096, b"OCFSV2"),
    ("ocfs2", "an OCFS2 file system", 8192, b"OCFSV2"),
    ("oracleasm", "an Oracle ASM disk", 32, b"ORCLDISK"),
    ("refs", "a ReFS file system", 3, b"ReFS\0\0\0\0"),
    ("reiser4", "a Reiser4 file system", 64 << 10, b"ReIsEr4"),
    ("reiserfs", "a reiserfs file system", 8192 + 0x34, b"ReIsErFs"),
    ("reiserfs", "a reiserfs file system", 8192 + 20, b"ReIsErFs"),
    ("reiserfs", "a reiserfs file system", 0x1_0034, b"ReIsErFs"),
    ("reiserfs", "a reiserfs file system", 0x1_0034, b"ReIsEr2Fs"),
    ("reiserfs", "a reiserfs file system", 0x1_0034, b"ReIsEr3Fs"),
    ("romfs", "a romfs image", 0, b"-rom1fs-"),
    ("scoutfs", "a ScoutFS device", (64 << 10) + 4, &[0x8b, 0x42, 0x3c, 0x10]),
    ("sgi", "an SGI disk label", 0, &[0x0b, 0xe5, 0xa9, 0x41]),
    ("snapshot", "a store of a device mapper snapshot", 0, b"SnAp"),
    ("solaris", "a Solaris disk label", 512 + 12, &[0xee, 0xde, 0x0d, 0x60]),
    ("squashfs", "a squashfs image", 0, b"hsqs"),
    ("squashfs", "a squashfs image", 0, b"sqsh"),
    ("stratis", "a Stratis pool's device", 512 + 4, STRATIS),
    ("stratis", "a Stratis pool's device", 9 * 512 + 4, STRATIS),
    // TuxOnIce.
    ("swap", "a suspended system", 0, &[0xed, 0xc3, 0x02, 0xe9, 0x98, 0x56, 0xe5, 0x0c]),
    ("ubi", "a UBI image", 0, b"UBI#"),
    ("ubifs", "a UBIFS image", 0, &[0x31, 0x18, 0x10, 0x06]),
    ("udf", "a UDF file system", 32769, b"BEA01"),
    ("udf", "a UDF file system", 32769, b"BOOT2"),
    ("udf", "a UDF file system", 32769, b"CDW02"),
    ("udf", "a UDF file system", 32769, b"NSR02"),
    ("udf", "a UDF file system", 32769, b"NSR03"),
    ("udf", "a UDF file system", 32769, b"TEA01"),
    // d_magic of the disk label in sector 29.
    ("unixware", "a UnixWare disk label", 29 * 512 + 4, &[0x0d, 0x60, 0xe5, 0xca]),
    ("vdo", "a VDO volume", 0, b"dmvdo001"),
    ("verity", "a dm-verity hash device", 0, b"verity\0\0"),
    ("vmfs", "a VMFS volume", 1 << 20, &[0x0d, 0xd0, 0x01, 0xc0]),
    ("vmfs", "a VMFS file system", 2 << 20, &[0x5e, 0xf1, 0xab, 0x2f]),
    ("vxfs", "a Veritas file system", 1024, &[0xf5, 0xfc, 0x01, 0xa5]),
    ("vxfs", "a Veritas file system", 8192, &[0xa5, 0x01, 0xfc, 0xf5]),
    ("xfs", "an XFS file system", 0, b"XFSB"),
    ("zonefs", "a zonefs file system", 0, b"SFOZ"),
];
