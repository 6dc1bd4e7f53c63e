#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the agent's programs load, and know, mark and count packets, on
# the guest's kernel: the unit test "identity" there, as root.
set -u
. "$SOURCE/tests/vm/guest-functions.sh"

load veth macvlan bridge tun
modprobe sch_ingress cls_bpf 2>/dev/null
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
uname -r
"$BUILD/tests/unit/test-identity" >/out/identity.log 2>&1 ||
    { tail -n 60 /out/identity.log; fail "the unit test identity"; }
grep -q 'SKIPPED' /out/identity.log && fail "the unit test was skipped"
grep 'PASSED' /out/identity.log
echo PASS
