#!/bin/busybox sh
# The first process of the machine that stack.sh starts: builds the stacks and
# asks uflip to write to each of their parts.
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin LD_LIBRARY_PATH=/lib
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
ln -s /proc/mounts /etc/mtab
for module in virtio_pci virtio_blk crc32c_generic ext4 loop zram dm-mod raid1 bcache nbd btrfs nvme; do
    modprobe $module 2>/dev/null || echo "no module $module"
done
sleep 2
ifconfig lo 127.0.0.1 up
echo "kernel $(uname -r), $(uflip --version)"

consents() {
    for tag in "" +ext4 +btrfs +swap +bcachefs +mdraid +dos +dos+partitions +partitions +unknown-contents; do
        echo "--erase-device $1$tag"
    done
}
# refused ROW TARGET WORD: nothing that can be typed helps, and WORD is said.
refused() {
    # shellcheck disable=SC2046
    uflip pattern "$2" --base SW --io-count 4 $(consents "$2") > /tmp/out 2> /tmp/err
    code=$?
    if [ $code = 1 ] && grep -q "nothing is written" /tmp/err && grep -q "$3" /tmp/err &&
        ! grep -q -- --erase-device /tmp/err; then
        echo "PASS refused: $1 ($(sed -n 's/.*nothing is written to //p' /tmp/err | head -1))"
    else
        echo "FAIL refused: $1 (exit $code): $(cat /tmp/err)"
    fi
}
# written ROW TARGET: written once what the refusal prints is typed.
written() {
    uflip pattern "$2" --base SW --io-count 4 > /tmp/out 2> /tmp/err
    option=$(sed -n 's/^ *--erase-device //p' /tmp/err | head -1)
    if [ -n "$option" ] && uflip pattern "$2" --base SW --io-count 4 --erase-device "$option" > /tmp/out 2> /tmp/err
    then
        echo "PASS written: $1 (--erase-device $option)"
    else
        echo "FAIL written: $1 ($option): $(cat /tmp/err)"
    fi
}
fs() {
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$1" > /dev/null 2>&1
    mkdir -p /run/m
    mount -t ext4 "$1" /run/m || echo "no mount of $1"
}
# The full one: busybox prefers its own applet.
losetup() {
    /bin/losetup "$@"
}
over() {
    losetup -f --show "$1"
}
table() {
    # Two partitions of 8 MiB each.
    printf '\0\0\0\0\203\0\0\0\0\010\0\0\0\100\0\0\0\0\0\0\203\0\0\0\0\120\0\0\0\100\0\0' |
        dd of="$1" bs=1 seek=446 conv=notrunc 2> /dev/null
    printf '\125\252' | dd of="$1" bs=1 seek=510 conv=notrunc 2> /dev/null
    sync
    blockdev --rereadpt "$1" 2> /dev/null
    sleep 1
}

echo "--- device mapper"
dmsetup create one --table "0 65536 linear /dev/vda 0"
dmsetup mknodes 2> /dev/null
one=/dev/$(basename "$(readlink -f /dev/mapper/one)")
[ -b "$one" ] || one=$(ls -d /sys/block/dm-* | head -1 | sed 's,/sys/block,/dev,')
written "a dm over an idle disk" "$one"
refused "a disk beneath an idle dm" /dev/vda "held by"
loop=$(over "$one")
written "a loop over an idle dm" "$loop"
refused "a dm behind an idle loop" "$one" "in use behind"
losetup -d "$loop"
fs "$one"
loop=$(over "$one")
disk=$(over /dev/vda)
refused "a mounted dm" "$one" "mounted at /run/m"
refused "the disk of a mounted dm" /dev/vda "mounted at /run/m"
refused "a loop over a mounted dm" "$loop" "mounted at /run/m"
refused "a loop over the disk of a mounted dm" "$disk" "mounted at /run/m"
losetup -d "$disk"
losetup -d "$loop"
dmsetup create two --table "0 65536 linear /dev/vda 0"
dmsetup mknodes 2> /dev/null
two=/dev/dm-1
refused "a second dm over the bytes of a mounted one" "$two" "mounted at /run/m"
umount /run/m
dmsetup remove two
dmsetup remove one
group=LVM-aaaaaaaaaabbbbbbbbbbccccccccccdd
dmsetup create -u ${group}aaaaaaaaaabbbbbbbbbbccccccccccd1 lv1 --table "0 32768 linear /dev/vda 0"
dmsetup create -u ${group}aaaaaaaaaabbbbbbbbbbccccccccccd2 lv2 --table "0 32768 linear /dev/vda 32768"
fs /dev/dm-0
written "a volume beside a mounted one of its group" /dev/dm-1
umount /run/m
mkswap /dev/dm-0 > /dev/null && swapon /dev/dm-0
loop=$(over /dev/dm-0)
refused "a loop over a dm in use as swap" "$loop" "swap"
swapoff /dev/dm-0
losetup -d "$loop"
dmsetup remove lv1
dmsetup remove lv2
image=$(over /dev/vda)
dmsetup create upper --table "0 65536 linear $image 0"
fs /dev/dm-0
second=$(over /dev/vda)
refused "a second loop beneath a mounted dm over a loop" "$second" "mounted at /run/m"
umount /run/m
dmsetup remove upper
losetup -d "$second"
losetup -d "$image"

echo "--- MD"
yes | mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --metadata=1.2 --assume-clean /dev/vdb /dev/vdc > /dev/null 2>&1
if [ -d /sys/block/md0 ]; then
    written "an idle array" /dev/md0
    refused "a member of an idle array" /dev/vdb "held by md0"
    loop=$(over /dev/vdb)
    refused "a loop over a member" "$loop" "held by md0"
    fs /dev/md0
    upper=$(over /dev/md0)
    refused "a mounted array" /dev/md0 "mounted at /run/m"
    refused "a member of a mounted array" /dev/vdc "mounted at /run/m"
    refused "a loop over a member of a mounted array" "$loop" "mounted at /run/m"
    refused "a loop over a mounted array" "$upper" "mounted at /run/m"
    losetup -d "$upper"
    losetup -d "$loop"
    umount /run/m
    dd if=/dev/zero of=/dev/md0 bs=64k count=64 2> /dev/null
    table /dev/md0
    if [ -b /dev/md0p2 ]; then
        fs /dev/md0p1
        refused "an array with a mounted partition" /dev/md0 "md0p1"
        written "the other partition of that array" /dev/md0p2
        loop=$(over /dev/vdb)
        refused "the same with a loop over a member" /dev/md0p2 "in use behind"
        refused "a loop over a member beneath it" "$loop" "md0"
        upper=$(over /dev/md0p1)
        refused "a loop over a mounted partition of an array" "$upper" "mounted at /run/m"
        losetup -d "$upper"
        losetup -d "$loop"
        umount /run/m
    else
        echo "SKIP partitions of an array: none are shown"
    fi
    mdadm --stop /dev/md0 2> /dev/null
else
    echo "SKIP MD: no array was made"
fi

echo "--- bcache"
make-bcache -B /dev/vdd > /dev/null 2>&1
make-bcache -C --bucket 128k /dev/vde > /dev/null 2>&1
echo /dev/vde > /sys/fs/bcache/register 2> /dev/null
sleep 1
refused "a cache that is registered only" /dev/vde "bcache"
loop=$(over /dev/vde)
refused "a loop over a cache that is registered only" "$loop" "bcache"
losetup -d "$loop"
echo /dev/vdd > /sys/fs/bcache/register 2> /dev/null
sleep 1
set=$(ls -d /sys/fs/bcache/*-*-* 2> /dev/null | head -1)
echo "$(basename "$set")" > /sys/block/vdd/bcache/attach 2> /dev/null
sleep 1
if [ -b /dev/bcache0 ]; then
    written "an idle bcache" /dev/bcache0
    refused "its backing device" /dev/vdd "held by bcache0"
    refused "its cache" /dev/vde "bcache"
    fs /dev/bcache0
    for member in vdd vde; do
        loop=$(over /dev/$member)
        refused "a loop over $member beneath a mounted bcache" "$loop" "bcache"
        losetup -d "$loop"
    done
    loop=$(over /dev/bcache0)
    refused "a loop over a mounted bcache" "$loop" "mounted at /run/m"
    losetup -d "$loop"
    umount /run/m
else
    echo "SKIP bcache: no bcache0 appeared"
fi

echo "--- zram"
if echo /dev/vdf > /sys/block/zram0/backing_dev 2> /dev/null; then
    echo 32M > /sys/block/zram0/disksize
    refused "what a zram writes back to" /dev/vdf "held by zram0"
    loop=$(over /dev/vdf)
    refused "a loop over what a zram writes back to" "$loop" "held by zram0"
    losetup -d "$loop"
    written "that zram" /dev/zram0
    fs /dev/zram0
    loop=$(over /dev/zram0)
    refused "a loop over a mounted zram" "$loop" "mounted at /run/m"
    refused "what a mounted zram writes back to" /dev/vdf "mounted at /run/m"
    losetup -d "$loop"
    umount /run/m
else
    echo "SKIP zram: no backing device to be had"
fi

echo "--- btrfs of two devices"
if command -v mkfs.btrfs > /dev/null && mkfs.btrfs -q -f -m raid1 /dev/vdg /dev/vdh > /tmp/out 2>&1; then
    mkdir -p /run/m
    mount -t btrfs -o device=/dev/vdg,device=/dev/vdh /dev/vdg /run/m || echo "no mount of btrfs"
    for member in vdg vdh; do
        refused "$member of a mounted btrfs" /dev/$member "btrfs"
        loop=$(over /dev/$member)
        refused "a loop over $member of a mounted btrfs" "$loop" "btrfs"
        losetup -d "$loop"
    done
    truncate -s 16M /run/m/x.img
    loop=$(over /run/m/x.img)
    written "a loop over a file on it" "$loop"
    second=$(over /run/m/x.img)
    refused "a second loop over that file" "$second" "in use behind"
    losetup -d "$loop"
    losetup -d "$second"
    umount /run/m
else
    echo "SKIP btrfs: $(cat /tmp/out)"
fi

echo "--- nbd"
truncate -s 32M /tmp/nbd.img
if command -v nbd-server > /dev/null && nbd-server 127.0.0.1:10809 /tmp/nbd.img > /tmp/out 2>&1; then
    sleep 1
    nbd-client 127.0.0.1 10809 /dev/nbd0 > /tmp/out 2>&1 || nbd-client -nonetlink 127.0.0.1 10809 /dev/nbd0 >> /tmp/out 2>&1
fi
if [ "$(cat /sys/block/nbd0/size 2> /dev/null || echo 0)" != 0 ]; then
    written "an idle nbd" /dev/nbd0
    fs /dev/nbd0
    loop=$(over /dev/nbd0)
    refused "a mounted nbd" /dev/nbd0 "mounted at /run/m"
    refused "a loop over a mounted nbd" "$loop" "mounted at /run/m"
    losetup -d "$loop"
    umount /run/m
else
    echo "SKIP nbd: $(cat /tmp/out)"
fi

echo "--- NVMe multipath"
head=$(ls /sys/block | grep 'nvme[0-9]*n1$' | head -1)
if [ -n "$head" ]; then
    echo "$(ls /sys/block | grep nvme | tr '\n' ' ')"
    table /dev/$head
    if [ -b /dev/${head}p2 ]; then
        fs /dev/${head}p1
        refused "a multipath disk with a mounted partition" /dev/$head "mounted at /run/m"
        loop=$(over /dev/$head)
        refused "a loop over it" "$loop" "mounted at /run/m"
        losetup -d "$loop"
        written "its other partition" /dev/${head}p2
        umount /run/m
    fi
else
    echo "SKIP NVMe: no disk appeared"
fi

echo "--- the list"
uflip devices --json > /tmp/out 2>&1 && echo "PASS devices ($(grep -c '"path"' /tmp/out) listed)" || echo "FAIL devices"
echo END
poweroff -f
