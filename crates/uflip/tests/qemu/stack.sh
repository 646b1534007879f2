#!/bin/sh
# The safety matrix where it needs more than loop devices: device mapper, MD,
# bcache, nbd, zram, btrfs and NVMe multipath, in a virtual machine with
# Debian's kernel. Not part of the test suite; prints PASS, FAIL or SKIP a row.
#
#   crates/uflip/tests/qemu/stack.sh [UFLIP] [KERNEL.deb]
#
# UFLIP is the binary, target/debug/uflip where not given. KERNEL.deb is a
# linux-image package; without it apt-get downloads the newest. Needs
# qemu-system-x86_64, a static busybox, cpio, depmod, dmsetup, mdadm,
# make-bcache, mkfs.ext4; mkfs.btrfs, nbd-server and nbd-client where these rows
# are wanted. Everything happens in a temporary folder and inside the machine.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
uflip=${1:-$here/../../../../target/debug/uflip}
package=${2:-}
PATH=$PATH:/usr/sbin:/sbin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "$package" ]; then
    name=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p' | head -1)
    (cd "$work" && apt-get download "$name")
    package=$(ls "$work"/linux-image-*.deb)
fi
dpkg-deb -x "$package" "$work/kernel"
kernel=$(ls "$work"/kernel/boot/vmlinuz-*)
version=${kernel##*/vmlinuz-}

# The root: busybox, the tools with their libraries, and the modules.
root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run" "$root/etc" "$root/lib"
cp "$(command -v busybox)" "$root/bin/busybox"
take() {
    from=$(command -v "$1" || true)
    [ -n "$from" ] || { echo "without $1"; return 0; }
    cp -L "$from" "$root/bin/$(basename "$1")"
    ldd "$from" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        # Flat, and the loader where programs look for it.
        cp -L "$library" "$root/lib/$(basename "$library")"
        case $library in /lib64/*) mkdir -p "$root/lib64" && cp -L "$library" "$root$library" ;; esac
    done
}
for tool in "$uflip" losetup dmsetup mdadm make-bcache mkfs.ext4 mkfs.btrfs mkswap nbd-server nbd-client; do
    take "$tool"
done
strip "$root/bin/uflip" 2>/dev/null || true
depmod -b "$work/kernel" "$version"
for module in virtio_pci virtio_blk ext4 loop zram dm-mod raid1 bcache nbd btrfs nvme crc32c_generic; do
    modprobe -q -d "$work/kernel" -S "$version" --show-depends "$module" 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | sort -u | while read -r file; do
    into=$root/${file#"$work"/kernel/}
    mkdir -p "$(dirname "$into")"
    cp "$file" "$into"
done
cp "$work/kernel/lib/modules/$version"/modules.* "$root/lib/modules/$version/"
cp "$here/stack-init.sh" "$root/init"
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) > "$work/initramfs"

# Eight disks of 128 MiB, and one with two NVMe controllers before it.
drives=
for disk in a b c d e f g h; do
    truncate -s 128M "$work/$disk.img"
    drives="$drives -drive file=$work/$disk.img,format=raw,if=virtio"
done
truncate -s 64M "$work/nvme.img"
# shellcheck disable=SC2086
timeout 900 qemu-system-x86_64 -machine q35 -cpu max -m 768 -smp 1 -nographic -no-reboot -net none \
    -kernel "$kernel" -initrd "$work/initramfs" -append "console=ttyS0 quiet panic=-1 nvme_core.multipath=Y" \
    $drives -drive file="$work/nvme.img",format=raw,if=none,id=shared \
    -device nvme-subsys,id=subsystem -device nvme,serial=one,subsys=subsystem \
    -device nvme,serial=one,subsys=subsystem -device nvme-ns,drive=shared,nsid=1,shared=on \
    < /dev/null 2>&1 | sed -u 's,\r,,g' | tee "$work/log"
grep -q '^END$' "$work/log" || { echo "the machine did not come to its end"; exit 1; }
! grep -q '^FAIL' "$work/log"
