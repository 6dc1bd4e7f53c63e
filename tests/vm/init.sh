#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
#
# The first process of a guest.  The guest's root is the machine's root,
# read-only, with a memory file system above it. /out is a folder of the test:
# "run" is the script to run, "log" its output and "status" its exit status.
/bin/busybox --install -s /bin
export PATH=/bin:/sbin

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
exec >/dev/console 2>&1

# In the order of their dependencies.
while read -r module; do
    insmod "/modules/$module" || echo "init: no $module"
done </modules/order

options=trans=virtio,version=9p2000.L,msize=262144
mkdir -p /low /mem /root /out
mount -t 9p -o "ro,cache=loose,$options" machine /low &&
    mount -t tmpfs memory /mem && mkdir /mem/up /mem/work &&
    mount -t overlay -o lowerdir=/low,upperdir=/mem/up,workdir=/mem/work \
        root /root && mkdir -p /root/out /root/lib/modules &&
    mount -t 9p -o "$options" out /root/out ||
    { echo "init: no root"; poweroff -f; }

for fs in proc sys dev; do
    mount -o move /$fs /root/$fs
done
mount -t tmpfs -o mode=755 run /root/run
mount -t tmpfs shm /root/dev/shm 2>/dev/null ||
    { mkdir -p /root/dev/shm && mount -t tmpfs shm /root/dev/shm; }
mkdir -p /root/dev/pts && mount -t devpts pts /root/dev/pts
exec switch_root /root /bin/sh /out/run
