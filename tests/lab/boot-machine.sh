#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# boot-machine.sh NAME FOLDER [LAYER [BASE]]: boots a machine with systemd as
# its first process.  Its root is an overlay: the folder BASE (default: this
# machine's root file system), then the folder LAYER, then the files that it
# writes, which are kept in FOLDER for the next boot.  The folders $SOURCE and $BUILD have the same paths there,
# read-only.  Runs in new namespaces of all kinds except user namespaces, after
# its network is set up.  Global files of the kernel are read-only.
# (systemd-nspawn(1) does the same with more packages.)
set -eu
name=$1 folder=$2 layer=${3:-} base=${4:-/}
root=$folder/root

mount --make-rprivate /
hostname "$name"
mkdir -p "$folder/written" "$folder/work" "$root"
mount -t overlay overlay -o \
    "lowerdir=${layer:+$layer:}$base,upperdir=$folder/written,workdir=$folder/work" \
    "$root"

# Removes the files that control what this machine starts, mounts and asks at
# boot.
if [ ! -e "$folder/booted" ]; then
    rm -rf "$root"/etc/systemd/system/* "$root"/etc/rc?.d \
        "$root"/etc/default/stagecoach* "$root/etc/stagecoach" \
        "$root/var/lib/stagecoach" "$root/var/log/journal" \
        "$root/etc/fstab" "$root/etc/machine-id"
    tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
    echo "$name" >"$root/etc/hostname"
    for unit in dbus.service dbus.socket getty.target systemd-logind.service; do
        ln -s /dev/null "$root/etc/systemd/system/$unit"
    done
    : >"$folder/booted"
fi

mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t bpf bpf "$root/sys/fs/bpf"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
for tree in "$SOURCE" "$BUILD"; do
    mkdir -p "$root$tree"
    mount --bind "$tree" "$root$tree"
    mount -o remount,bind,ro "$root$tree"
done
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty net/tun vhost-net; do
    [ -c "/dev/$device" ] || continue
    mkdir -p "$(dirname "$root/dev/$device")"
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
if [ -d /dev/vfio ]; then
    mkdir "$root/dev/vfio"
    mount --bind /dev/vfio "$root/dev/vfio"
fi
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/hugepages"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t hugetlbfs hugetlbfs "$root/dev/hugepages" || :
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

cd "$root"
mkdir -p run/outside
pivot_root . run/outside
umount -l run/outside
rmdir run/outside
exec env -i container=stagecoach-test PATH="$PATH" \
    /lib/systemd/systemd --unit=multi-user.target
