#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the agent's programs load, and know, mark and count packets, on
# the guest's kernel, also with VLANs and bonds, that the agent finds the
# queues of an uplink, and the doctor what is against it: the unit tests
# "identity", "identity-pods", "uplink-queues" and "doctor-interfaces" there,
# as root.
set -u
. "$SOURCE/tests/vm/guest-functions.sh"

load veth macvlan bridge tun 8021q bonding sch_htb \
    sch_mqprio sch_ets sch_prio sch_fq wireguard
modprobe sch_ingress cls_bpf 2>/dev/null
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
uname -r
for test in identity identity-pods; do
    "$BUILD/tests/unit/test-$test" >>/out/identity.log 2>&1 ||
        { tail -n 60 /out/identity.log; fail "the unit test $test"; }
done
# netkit is there since 6.7.
grep '^\[  SKIPPED' /out/identity.log | grep -v 'netkit\|listed' &&
    fail "the unit test was skipped"
grep 'PASSED' /out/identity.log
"$BUILD/tests/unit/test-uplink-queues" >/out/queues.log 2>&1 ||
    { cat /out/queues.log; fail "the unit test uplink-queues"; }
"$BUILD/tests/unit/test-doctor-interfaces" >/out/doctor.log 2>&1 ||
    { cat /out/doctor.log; fail "the unit test doctor-interfaces"; }
# Since 6.7, fq has bands too.
[ "$(grep -c 'is not available' /out/queues.log)" -le 1 ] ||
    { cat /out/queues.log; fail "queues that the kernel has were left out"; }
echo PASS
