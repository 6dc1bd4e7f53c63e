#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run-guest.sh SCRIPT KIND [SECONDS]: runs tests/vm/SCRIPT KIND in a virtual
# machine that has network cards of KIND, see cards.sh, for at most SECONDS,
# and prints its output.  The processor is emulated as well, so that any host
# processor works.  $GUEST: which kernel it has, see deps/guest-kernel.sh.
#
# The guest sees this machine's files read-only, and a folder of the test.  Its
# cards are connected to each other in the emulator or in a network namespace,
# and to nothing outside.
set -u
script=$1 kind=$2 seconds=${3:-420}
here=$SOURCE/tests/vm
. "$SOURCE/tests/lab/lab-functions.sh"
. "$here/cards.sh"

kernel=$BUILD/guest-kernel${GUEST:+-$GUEST}
need_root
need qemu-system-x86_64
[ -e "$kernel/complete" ] || { echo "skip: no kernel for guests, which" \
    "deps/setup.sh fetches if \$BUILD_VM is true"; exit 77; }
[ -x "$BUILD/shim/stagecoach-shim" ] ||
    { echo "skip: built without DPDK"; exit 77; }

begin "vm-$kind${GUEST:+-$GUEST}"
logs="qemu.log console.log out/*.log"
out=$dir/out
version=$(basename "$kernel"/lib/modules/*)
modules=$kernel/lib/modules/$version

# Prints the files of modules and their dependencies, in loading order.
in_order() {
    for name; do
        awk -v name="/$name.ko:" 'index($1, name) {
            for (i = NF; i > 1; i--) print $i
            print substr($1, 1, length($1) - 1)
        }' "$modules/modules.dep"
    done | awk '!seen[$0]++'
}

make_initrd() {
    root=$dir/initrd
    mkdir -p "$root/bin" "$root/modules" "$root/proc" "$root/sys" \
        "$root/dev"
    cp "$kernel/bin/busybox" "$root/bin/"
    cp "$here/init.sh" "$root/init"
    chmod +x "$root/init"
    for file in $(in_order virtio_pci 9pnet_virtio 9p overlay); do
        cp "$modules/$file" "$root/modules/"
        basename "$file"
    done >"$root/modules/order"
    (cd "$root" && find . | "$kernel/bin/busybox" cpio -o -H newc) \
        >"$dir/initrd.cpio" 2>/dev/null
}

make_out() {
    mkdir "$out"
    cat >"$out/run" <<END
export BUILD='$BUILD' SOURCE='$SOURCE' KIND='$kind'
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ln -s '$modules' /lib/modules/
timeout $seconds sh '$here/$script' >/out/log 2>&1
echo \$? >/out/status
sync
'$kernel/bin/busybox' poweroff -f
END
}

make_network() {
    ns=sct-vm-$$
    ip netns add "$ns" || fail "no network namespace"
    clean_up() { ip netns del "$ns"; }
    ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
        net.ipv6.conf.default.disable_ipv6=1
    wire "$kind" || fail "no interfaces for the cards"
}

# The output of cards is split into words on purpose.
# shellcheck disable=SC2046
start_guest() {
    timeout -k 5 "$seconds" ip netns exec "$ns" qemu-system-x86_64 -nodefaults -no-user-config \
        -nographic -no-reboot -accel tcg,thread=multi \
        -machine q35,kernel-irqchip=split -cpu Westmere \
        -smp 2 -m 2048 \
        -device intel-iommu,intremap=on,aw-bits=48 \
        -kernel "$kernel/boot/vmlinuz-$version" -initrd "$dir/initrd.cpio" \
        -append "console=ttyS0 panic=-1 tsc=reliable intel_iommu=on iommu=pt \
hugepages=$HUGE_PAGES mitigations=off quiet" \
        -serial "file:$dir/console.log" \
        -virtfs "local,path=/,mount_tag=machine,security_model=none,\
readonly=on,multidevs=remap" \
        -virtfs "local,path=$out,mount_tag=out,security_model=none" \
        -nic none $(cards "$kind") </dev/null >"$dir/qemu.log" 2>&1 &
    pids=$!
}

make_initrd
make_out
make_network
start_guest
wait "$pids"
cat "$out/log" 2>/dev/null
status=$(cat "$out/status" 2>/dev/null)
[ -n "$status" ] || fail "the guest came to no end"
pids=
[ "$status" = 0 ] || [ "$status" = 77 ] || fail "the guest's script: $status"
exit "$status"
