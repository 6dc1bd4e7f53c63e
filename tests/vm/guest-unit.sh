#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the shim's unit on two network cards, under systemd: its rights are
# sufficient for them, it is restarted when it is killed, and it keeps running
# when another shim cannot open its cards.
set -u
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/machine-functions.sh"
. "$SOURCE/tests/vm/guest-functions.sh"

load virtio_net overlay
wait_until iface_of 13.0
give_iface $A "$(iface_of 10.0)" 10.99.0.1
give_iface $B "$(iface_of 13.0)" 10.99.0.2
echo_in_b
let_go 0000:00:11.0 0000:00:12.0
mount -t cgroup2 cgroup /sys/fs/cgroup
need_systemd

begin unit
prefix=vm-
clean_up() { forget_machines h0; }
make_machines
install_version installed
boot h0 installed

h0() { in_machine h0 "$@"; }
unit=stagecoach-shim
echo "OPTIONS=\"--host-port $HOST_PORT --uplink $UPLINK --rate 1Gbit\"" |
    h0 tee /etc/default/$unit >/dev/null
h0 systemctl start $unit || fail "$(h0 journalctl --no-pager --unit $unit)"
wait_until ping 1 100
transfer 2000000 5001 || fail "TCP"
ok "the unit forwards between cards"

h0 systemctl kill --kill-whom main --signal KILL $unit
is_back() { unit_says h0 $unit NRestarts 1 && ping 1 100; }
await "killed, it is back" is_back

before=$(h0 systemctl show -P MainPID $unit)
h0 systemctl reload $unit 2>/dev/null && fail "two shims on the same cards"
unit_says h0 $unit MainPID "$before" || fail "the shim is another"
ping 3 100 || fail "the shim does not forward"
ok "one that cannot have the cards leaves the first alone"

h0 systemctl stop $unit
unit_says h0 $unit Result success || fail "the end"
echo PASS
