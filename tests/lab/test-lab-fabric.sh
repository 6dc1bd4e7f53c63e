#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that a shaped port of the lab's fabric serves the higher of two DSCPs
# first: it gets at least 0.90 of the rate while it has data, and then the
# lower one gets the link again.  Checks both kinds of fabric, and that a
# restarted Open vSwitch keeps the port's queues.  Then checks that a port with
# one queue marks packets if, and only if, its queue is long.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab f
extra=sct-$$-x
rate=50000000

clean_up() {
    ip netns del "$extra" 2>/dev/null
    lab down
}

in_fabric() {
    nsenter --net="/run/netns/scl-$name-fab" "$@"
}

in_extra() {
    nsenter --net="/run/netns/$extra" "$@"
}

# Prints the bytes that class $1 of port p0 has sent.
class_bytes() {
    in_fabric tc -s class show dev p0 classid "$1" |
        awk '$1 == "Sent" { print $2; exit }'
}

# Sets 'high' and 'low' to shares of the rate over the next $1 seconds.
measure() {
    high0=$(class_bytes 1:11) low0=$(class_bytes 1:17)
    begin=$(date +%s%N)
    sleep "$1"
    high1=$(class_bytes 1:11) low1=$(class_bytes 1:17)
    end=$(date +%s%N)
    high=$(echo "$high0 $high1" | share) low=$(echo "$low0 $low1" | share)
}

share() {
    awk -v ns=$((end - begin)) -v rate=$rate \
        '{ printf "%.3f", ($2 - $1) * 8 / (rate * ns / 1e9) }'
}

assert_at_least() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }' ||
        fail "$3: $1, at least $2 is right"
}

wait_until() { await "$1" eval "$1"; }

# A sender on an unshaped port of the fabric.
join_extra() {
    ip netns add "$extra"
    ip link add x0 netns "$extra" mtu 9000 type veth \
        peer name x1 netns "scl-$name-fab" mtu 9000
    in_extra ethtool -K x0 tx off >/dev/null 2>&1
    in_extra ip addr add 10.77.0.200/24 dev x0
    in_extra ip link set x0 up
    in_fabric ip link set x1 up
    if [ "$1" = ovs ]; then
        ovs-vsctl --timeout=10 --db="unix:/run/stagecoach/lab-$name/ovs/db.sock" \
            add-port br0 x1
    else
        in_fabric ip link set x1 master br0
    fi
}

vswitchd_pid() {
    for pid in $(cat "$(cgroup_mount)/stagecoach/lab-$name/daemons/cgroup.procs"); do
        [ "$(cat "/proc/$pid/comm")" != ovs-vswitchd ] || echo "$pid"
    done
}

check_fabric() {
    sed 's/"fabric": "ovs"/"fabric": "'"$1"'"/' \
        "$SOURCE/lab/scenarios/smoke.json" >"$dir/scenario.json"
    lab up "$dir/scenario.json"
    if [ "$1" = ovs ]; then
        old=$(vswitchd_pid)
        kill -9 "$old"
        wait_until '[ -n "$(vswitchd_pid)" ] && [ "$(vswitchd_pid)" != "$old" ]'
    fi
    join_extra "$1"
    lab exec h0 -- "$BUILD/tests/lab/traffic" sink 60000 5001 5002 >"$dir/sink" &
    pids="$pids $!"
    wait_until 'lab exec h0 -- ss -Hltn | grep -q :5002'

    in_extra "$BUILD/tests/lab/traffic" source 10.77.0.1 5002 0 0 0 9000 &
    low_pid=$! pids="$pids $!"
    wait_until '[ "$(class_bytes 1:17)" -gt 5000000 ]'
    in_extra "$BUILD/tests/lab/traffic" source 10.77.0.1 5001 0 140 0 4000 &
    high_pid=$! pids="$pids $!"
    wait_until '[ "$(class_bytes 1:11)" -gt 5000000 ]'

    measure 2
    echo "$1: while both send: high $high, low $low"
    assert_at_least "$high" 0.90 "$1: share of the higher level"
    wait $high_pid
    wait_until '[ -z "$(lab exec h0 -- ss -Htn state established sport = 5001)" ]'
    measure 1.5
    echo "$1: after that: low $low"
    assert_at_least "$low" 0.85 "$1: share of the lower level when alone"
    wait $low_pid
    ip netns del "$extra"
    lab down
    assert_clean "lab down"
}

# Prints how many marked packets host h0 has received.
marked() {
    lab exec h0 -- cat /proc/net/netstat | awk '
        $1 == "IpExt:" && !n { n = split($0, name); next }
        $1 == "IpExt:" { for (i = 1; i <= n; i++)
                             if (name[i] == "InCEPkts") print $i }'
}

# Sends to h0 for $1 ms by mode $2 of tests/lab/traffic, with arguments $3...
send() {
    lab exec h0 -- "$BUILD/tests/lab/traffic" sink "$1" 5001 >/dev/null &
    sink=$! pids="$pids $!"
    wait_until 'lab exec h0 -- ss -Hltn | grep -q :5001'
    mode=$2
    shift 2
    in_extra "$BUILD/tests/lab/traffic" "$mode" 10.77.0.1 5001 "$@"
    wait $sink
}

check_one_queue() {
    sed 's/"fabric": "ovs"/"fabric": "bridge", "queues": "ecn"/' \
        "$SOURCE/lab/scenarios/smoke.json" >"$dir/scenario.json"
    lab up "$dir/scenario.json"
    join_extra bridge
    in_extra sh -c 'echo 1 >/proc/sys/net/ipv4/tcp_ecn'
    in_fabric tc class show dev p0 | grep -q 'class htb 1:1 ' ||
        fail "p0 has no rate"
    ! in_fabric tc class show dev p0 | grep -q 'class htb 1:1[0-7]' ||
        fail "p0 has levels"
    send 2500 drip 1500 5000
    few=$(marked)
    send 3000 source 0 0 0 2000
    many=$(marked)
    echo "marked: $few of a short queue, $many of a long one"
    [ "$few" = 0 ] || fail "$few packets of a short queue were marked"
    [ "$many" -gt 50 ] || fail "$many packets of a long queue were marked"
    ip netns del "$extra"
    lab down
    assert_clean "lab down"
}

check_fabric bridge
check_fabric ovs
check_one_queue
