//! What the real programs make, and what blkid and wipefs say of our images.
//! What is not installed is skipped with a line.

use super::checked::images;
use super::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

/// Past the harness's capture.
fn skipped(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

fn shell(folder: &Path, script: &str) -> Option<Output> {
    let mut command = Command::new("sh");
    command.current_dir(folder).args(["-ec", script]);
    command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").output().ok()
}

/// Tag, the program it takes, and a script that leaves a file `i`, which
/// `truncate` has made with a size where one is given, beside a folder `src`
/// with a file in it.
const MADE: &[(&str, &str, &str, &str)] = &[
    ("ext2", "mke2fs", "16M", "mke2fs -q -F -t ext2 i"),
    ("ext3", "mke2fs", "16M", "mke2fs -q -F -t ext3 i"),
    ("ext4", "mkfs.ext4", "16M", "mkfs.ext4 -q -F i"),
    ("jbd", "mke2fs", "16M", "mke2fs -q -F -O journal_dev i"),
    ("xfs", "mkfs.xfs", "512M", "mkfs.xfs -q i"),
    ("btrfs", "mkfs.btrfs", "128M", "mkfs.btrfs -q i"),
    ("vfat", "mkfs.fat", "1440K", "mkfs.fat -F12 i"),
    ("vfat", "mkfs.fat", "32M", "mkfs.fat -F16 i"),
    ("vfat", "mkfs.fat", "64M", "mkfs.fat -F32 i"),
    // Without its name, as some cameras format.
    ("vfat", "mkfs.fat", "32M", "mkfs.fat -F16 i; printf '        ' | dd of=i bs=1 seek=54 conv=notrunc"),
    ("exfat", "mkfs.exfat", "16M", "mkfs.exfat i"),
    ("ntfs", "mkfs.ntfs", "16M", "mkfs.ntfs -F -Q i"),
    ("f2fs", "mkfs.f2fs", "64M", "mkfs.f2fs -q i"),
    ("jfs", "mkfs.jfs", "32M", "mkfs.jfs -q i"),
    ("reiserfs", "mkreiserfs", "64M", "mkreiserfs -q -ff i"),
    ("reiser4", "mkfs.reiser4", "64M", "mkfs.reiser4 -y -f i"),
    ("udf", "mkudffs", "16M", "mkudffs i"),
    ("nilfs2", "mkfs.nilfs2", "160M", "mkfs.nilfs2 -q i"),
    ("nilfs2", "mkfs.nilfs2", "160M", "mkfs.nilfs2 -q i; dd if=/dev/zero of=i bs=1M count=1 conv=notrunc"),
    ("ocfs2", "mkfs.ocfs2", "64M", "mkfs.ocfs2 -q -M local --fs-feature-level=max-compat -N1 i"),
    ("gfs2", "mkfs.gfs2", "64M", "mkfs.gfs2 -O -K -p lock_nolock -J 8 i"),
    ("minix", "mkfs.minix", "4M", "mkfs.minix -1 i"),
    ("minix", "mkfs.minix", "4M", "mkfs.minix -2 i"),
    ("minix", "mkfs.minix", "4M", "mkfs.minix -3 i"),
    ("bfs", "mkfs.bfs", "1M", "mkfs.bfs i"),
    ("cramfs", "mkfs.cramfs", "", "mkfs.cramfs src i"),
    ("cramfs", "mkfs.cramfs", "", "mkfs.cramfs -p src i"),
    ("romfs", "genromfs", "", "genromfs -f i -d src"),
    ("squashfs", "mksquashfs", "", "mksquashfs src i -quiet -no-progress"),
    ("erofs", "mkfs.erofs", "", "mkfs.erofs i src"),
    ("iso9660", "genisoimage", "", "genisoimage -quiet -o i src"),
    ("ubifs", "mkfs.ubifs", "", "mkfs.ubifs -r src -m 2048 -e 124KiB -c 100 -o i"),
    (
        "ubi",
        "ubinize",
        "",
        "printf '[a]\nmode=ubi\nimage=src/a\nvol_id=0\nvol_size=1MiB\nvol_type=dynamic\nvol_name=x\n' > u; \
      ubinize -o i -m 2048 -p 128KiB u",
    ),
    ("swap", "mkswap", "16M", "mkswap -q i"),
    (
        "luks",
        "cryptsetup",
        "32M",
        "echo x | cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 i -",
    ),
    (
        "luks",
        "cryptsetup",
        "32M",
        "echo x | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 i -",
    ),
    (
        "luks",
        "cryptsetup",
        "32M",
        "echo x | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 i -; \
      dd if=/dev/zero of=i bs=4k count=1 conv=notrunc",
    ),
    ("verity", "veritysetup", "4M", "truncate -s 1M data; veritysetup format data i"),
    ("integrity", "integritysetup", "32M", "integritysetup format -q --no-wipe i"),
    ("bcachefs", "make-bcache", "32M", "make-bcache -B i"),
    (
        "lvm2",
        "pvcreate",
        "32M",
        "l=$(losetup -f --show i); trap 'losetup -d $l' EXIT; pvcreate -ff -y -q --devices $l $l",
    ),
    ("gpt", "sfdisk", "16M", "printf 'label: gpt\n,4M\n' | sfdisk -q i"),
    ("dos", "sfdisk", "16M", "printf 'label: dos\n,4M\n' | sfdisk -q i"),
    ("sgi", "sfdisk", "16M", "printf 'label: sgi\n,4M\n' | sfdisk -q i"),
    ("sun", "sfdisk", "16M", "printf 'label: sun\n,4M\n' | sfdisk -q i"),
];

/// Our word for blkid's.
fn ours(name: &str) -> &str {
    match name {
        "BitLocker" => "bitlocker",
        "DM_integrity" => "integrity",
        "DM_snapshot_cow" => "snapshot",
        "DM_verity_hash" => "verity",
        "LVM1_member" => "lvm1",
        "LVM2_member" => "lvm2",
        "ReFS" => "refs",
        "VMFS" | "VMFS_volume_member" => "vmfs",
        "bcache" => "bcachefs",
        "ceph_bluestore" => "ceph",
        "crypto_LUKS" => "luks",
        "cs_fvault2" => "corestorage",
        "drbdmanage_control_volume" | "drbdproxy_datalog" => "drbd",
        "gfs" => "gfs2",
        "linux_raid_member" => "md",
        "mac" => "apm",
        "scoutfs_data" | "scoutfs_meta" => "scoutfs",
        "squashfs3" => "squashfs",
        "swsuspend" => "swap",
        "xfs_external_log" => "xfs-log",
        "zfs_member" => "zfs",
        maker if maker.ends_with("_raid_member") => "fakeraid",
        same => same,
    }
}

/// What wipefs finds in the file: its name and place. `None` where there is no
/// wipefs.
fn wipefs(folder: &Path, file: &str) -> Option<Vec<(String, u64)>> {
    let output = shell(folder, &format!("wipefs -n -p {file}")).filter(|o| o.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        let (place, name) = (line.split(',').next()?, line.rsplit(',').next()?);
        Some((name.to_string(), u64::from_str_radix(place.strip_prefix("0x")?, 16).ok()?))
    };
    Some(text.lines().filter(|l| !l.starts_with('#')).filter_map(line).collect())
}

/// True where what blkid names and we do not is explained: the MBR that a boot
/// sector or a GPT looks like.
fn explained(name: &str, found: &[&str]) -> bool {
    matches!(name, "dos" | "PMBR")
        && found.iter().any(|tag| *tag == "gpt" || super::tables::BOOT_SECTORS.contains(tag))
}

#[test]
fn what_the_programs_make_is_found_and_blkid_names_nothing_more() {
    let mut count = 0;
    for (tag, program, size, script) in MADE {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/a"), "hello").unwrap();
        let sized = if size.is_empty() { String::new() } else { format!("truncate -s {size} i; ") };
        let there =
            shell(folder.path(), &format!("command -v {program}")).is_some_and(|o| o.status.success());
        if !there {
            skipped(&format!("{program} is not here"));
            continue;
        }
        let made = shell(folder.path(), &format!("{sized}{script}"));
        if !made.as_ref().is_some_and(|output| output.status.success()) {
            let why = made.map(|o| String::from_utf8_lossy(&o.stderr).into_owned()).unwrap_or_default();
            skipped(&format!("{program} makes no {tag}: {}", why.lines().next().unwrap_or("no word")));
            continue;
        }
        let file = File::open(folder.path().join("i")).unwrap();
        let ends = Ends::read(&file, file.metadata().unwrap().len()).unwrap();
        let found: Vec<&str> = signatures(&ends).iter().map(|s| s.tag).collect();
        assert!(found.contains(tag), "{script}: {found:?}");
        count += 1;
        for (name, place) in wipefs(folder.path(), "i").unwrap_or_default() {
            let agrees = found.contains(&ours(&name)) || explained(&name, &found);
            assert!(agrees, "{script}: blkid finds {name} at {place}, we {found:?}");
        }
    }
    skipped(&format!("{} of {} images; {count} were made", MADE.len() - count, MADE.len()));
}

/// A file of `size` with `writes`; its tags by us.
fn image(folder: &Path, size: u64, writes: &[(u64, &[u8])]) -> Vec<&'static str> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(folder.join("i"));
    let file = file.unwrap();
    file.set_len(size).unwrap();
    writes.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
    signatures(&Ends::read(&file, size).unwrap()).iter().map(|s| s.tag).collect()
}

#[test]
fn wipefs_finds_our_rows_where_we_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut confirmed = 0;
    for (tag, _, offset, magic) in fixed::ROWS.iter().filter(|row| row.2 < 1 << 30) {
        assert_eq!(image(folder.path(), 512 << 20, &[(*offset, magic)]), [*tag]);
        let Some(named) = wipefs(folder.path(), "i") else { return skipped("there is no wipefs") };
        for (name, place) in named {
            // ReFS is told by the three zeros before its name, too.
            assert!(ours(&name) == *tag && offset - place <= 3, "{tag} at {offset}: {name} at {place}");
            confirmed += 1;
        }
    }
    // The others take a checksum or fields that the row does not give. 40 by
    // util-linux 2.38.
    assert!(confirmed >= 35, "only {confirmed} rows are confirmed");
}

#[test]
fn blkid_names_our_images_as_we_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut unnamed = Vec::new();
    for (tag, expected, writes) in images() {
        let writes: Vec<(u64, &[u8])> = writes.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
        assert_eq!(image(folder.path(), 16 << 20, &writes), [tag]);
        let Some(named) = wipefs(folder.path(), "i") else { return skipped("there is no wipefs") };
        assert!(named.iter().all(|(name, _)| ours(name) == tag), "{tag}: {named:?}");
        if !expected.is_empty() && !named.iter().any(|(name, _)| name == expected) {
            unnamed.push((tag, expected, writes.first().map(|(at, _)| *at)));
        }
    }
    assert!(unnamed.is_empty(), "not named by blkid: {unnamed:?}");
}
