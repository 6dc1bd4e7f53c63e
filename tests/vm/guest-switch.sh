#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the controller with a switch that has the kernel's datapath: packets
# of each level use their queue, the first level gets the link, the other
# levels get the rest, at least their minimum share, and the whole link when
# the first level is idle.  In the userspace datapath of the lab queues have no
# effect.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
MBIT=20
traffic=$BUILD/tests/lab/traffic
need ovs-vswitchd ovs-vsctl ovsdb-server ovs-appctl tc
begin switch
export STAGECOACH_RUNDIR="$dir/run"
. "$SOURCE/tests/lab/switch-functions.sh"
clean_up() { stop_databases run; }
show() {
    switches
    ovs-ofctl -O OpenFlow14 dump-flows "unix:$dir/ovs/br0.mgmt"
    ovs-appctl -t "$dir/ovs/vswitchd.ctl" dpctl/dump-flows
    tc -s class show dev p2
}
switches() { ovs-appctl -t "$dir/run/switch.ctl" controller/switches; }

modprobe openvswitch
modprobe sch_htb
modprobe veth

# Two sending hosts and one receiving host.
start_switch_database
ovs-vsctl --no-wait add-br br0 -- set bridge br0 datapath_type=system \
    fail_mode=secure protocols=OpenFlow13,OpenFlow14 \
    other_config:datapath-id=0000000000000001
for n in 0 1 2; do
    ip netns add "h$n"
    ip link add "p$n" type veth peer name eth0 netns "h$n"
    ip link set "p$n" up
    ip -n "h$n" addr add "10.78.0.$((n + 1))/24" dev eth0
    ip -n "h$n" link set eth0 up
    ip netns exec "h$n" ethtool -K eth0 tso off gso off gro off
    ovs-vsctl --no-wait add-port br0 "p$n" -- set interface "p$n" \
        ofport_request=$((n + 1))
done
# Open vSwitch 3.1 assumes that a machine has no processors during the first 10
# s after boot; packets without a flow are then dropped.
while [ "$(cut -d . -f 1 /proc/uptime)" -lt 12 ]; do
    sleep 0.5
done
start_switch ovs-vswitchd
await "the switch is there" test -S "$dir/ovs/br0.mgmt"
[ "$(ovs-vsctl get bridge br0 datapath_type)" = system ] || fail "datapath"

start_databases run
cat >"$dir/topology.json" <<EOF
{"switches": [{"name": "leaf0", "target": "unix:$dir/ovs/br0.mgmt",
               "datapath": "0000000000000001",
               "queues": {"database": "unix:$dir/ovs/db.sock",
                          "type": "linux-htb"}}],
 "links": [],
 "hosts": [
    {"name": "h0", "ip": "10.78.0.1", "capacity": "1Gbit",
     "at": {"switch": "leaf0", "port": 1}},
    {"name": "h1", "ip": "10.78.0.2", "capacity": "1Gbit",
     "at": {"switch": "leaf0", "port": 2}},
    {"name": "h2", "ip": "10.78.0.3", "capacity": "${MBIT}Mbit",
     "at": {"switch": "leaf0", "port": 3}}]}
EOF
"$BUILD/controller/stagecoach-controller" \
    --policy="$SOURCE/policies/stage.json" --topology="$dir/topology.json" \
    --unixctl="$dir/run/switch.ctl" --rest=none -vconsole:off -vsyslog:off \
    --log-file="$dir/controller.log" &
pids="$pids $!"
in_sync() { [ "$(switches | grep -o '"in sync"' | wc -l)" = 2 ]; }
await "the switch has flows and queues" in_sync
ip netns exec h2 "$traffic" echo 200000 7000 & pids="$pids $!"
reaches() { ip netns exec h0 "$traffic" ping 10.78.0.3 7000 1 100; }
await "the hosts reach each other" reaches

# mbps TOS TOS: prints the rates of two flows with these TOS bytes, from h0 and
# h1 to h2, after both have run for a second; "-" for no flow.
mbps() {
    ip netns exec h2 "$traffic" sink 8000 5000 5001 >"$dir/sink" & sink=$!
    sleep 1
    sources=
    for n in 0 1; do
        tos=$1
        shift
        [ "$tos" != - ] || continue
        ip netns exec "h$n" "$traffic" source 10.78.0.3 "500$n" 0 "$tos" 0 \
            6000 >"$dir/source" & sources="$sources $!"
    done
    for pid in $sources $sink; do
        wait "$pid" || fail "a flow"
    done
    awk 'NR == 1 { t0 = $1 }
        $1 - t0 > 1000 && $1 - t0 <= 5000 { n[$2] += $3 }
        END { printf "%.1f %.1f\n", n[5000] / 500000, n[5001] / 500000 }' \
        "$dir/sink"
}
# shares TEXT TOS TOS CONDITION: checks an awk CONDITION on the rates $1 and
# $2, in Mbit/s.
shares() {
    got=$(mbps "$2" "$3")
    echo "$1: $got Mbit/s"
    echo "$got" | awk '{ exit !('"$4"') }' || fail "$1: $got Mbit/s"
}
# DSCPs of the first two levels of the policy.
first=$((35 << 2)) second=$((23 << 2)) last=0
# 0.92 to 0.97 of the rate on a quiet machine: TCP's headers, and emulated
# processors.
full="$MBIT * 0.8 && \$1 + \$2 < $MBIT * 1.05"
shares "the same level" $second $second \
    "\$1 + \$2 > $full && \$1 > 1 && \$2 > 1"
shares "the second and the first level" $second $first \
    "\$1 + \$2 > $full && \$2 > 0.85 * (\$1 + \$2) && \$1 > 0.1"
shares "the first and the last level" $first $last \
    "\$1 + \$2 > $full && \$1 > 0.85 * (\$1 + \$2) && \$2 > 0.1"
shares "the last level alone" - $last "\$2 > $full"

# Checks the kernel's counters: each level's queue has sent frames.
for class in 1:2 1:3 1:8; do
    tc -s class show dev p2 | awk -v class="$class" '
        $3 == class { ours = 1; next }
        /^class/ { ours = 0 }
        ours && $1 == "Sent" { n = $4 }
        END { print class, n + 0, "packets"; exit !(n > 100) }' ||
        fail "nothing was in queue $class"
done
echo PASS
