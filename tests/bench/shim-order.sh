#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures how jobs share the uplink and the downlink.  Prints one JSON object
# on standard output, with shares of a link of 100 Mbit/s with frames of 9000
# bytes:
#
#    uplink_high_share       of the job of lower rank while it has data, beside
#                            one of the *same level* and higher rank
#    floor_share             of the other one meanwhile (its guard is 0.02)
#    work_conserving_share   of the other one when the first has none
#    downlink_high_share     of the higher of two hosts' jobs, at the port of a
#                            switch with a queue for each level, beside floors
#    cycles                  of order and pace, see shim-order.c
#
# Needs root: namespaces and three shims.
set -eu
cd "$(dirname "$0")/../.."
# shellcheck disable=SC2034
MTU=9000 RATE=100Mbit SOURCE=$PWD BUILD=$PWD/build
LINK=100000000

exec 3>&1 >&2
. tests/lab/shim-net.sh
C=$PREFIX-c M=$PREFIX-m S=$PREFIX-s
SHIM2_PID=

cleanup_all() {
    set +e
    [ -z "$SHIM2_PID" ] || kill -9 "$SHIM2_PID" 2>/dev/null || :
    for ns in "$C" "$M" "$S"; do
        for pid in $(ip netns pids "$ns" 2>/dev/null); do
            kill -9 "$pid" 2>/dev/null || :
        done
        ip netns del "$ns" 2>/dev/null || :
    done
    rm -rf "/var/run/dpdk/$PREFIX-2"
    cleanup
}
trap cleanup_all EXIT
trap 'exit 1' INT TERM

# share FROM TO PORT: prints the share of the link from FROM to TO.
share() {
    awk -v from="$1" -v to="$2" -v port="$3" -v link="$LINK" '
        $1 > from && $1 <= to && $2 == port { bytes += $3 }
        END { printf "%.3f", bytes * 8 * 1000 / (to - from) / link }' \
        "$TMP/sink"
}

when() { awk -v what="$1" '$1 == what { print $2 }' "$2"; }

# two_flows HIGH-NS LOCAL: the lower flow from A for 9 s; the higher one joins
# after 2 s for 4 s.  Sets 'began' and 'ended' of the higher.
two_flows() {
    in_b "$traffic" sink 11000 6001 6002 >"$TMP/sink" &
    sink=$! PIDS="$PIDS $!"
    wait_until b_listens t 6002
    in_a "$traffic" source 10.99.0.2 6002 5002 0 0 9000 >"$TMP/low" &
    low=$! PIDS="$PIDS $!"
    ip netns exec "$1" "$traffic" source 10.99.0.2 6001 5001 0 2000 4000 \
        >"$TMP/high" || fail "the higher flow"
    wait $low || fail "the lower flow"
    wait $sink || fail "the sink"
    began=$(when begin "$TMP/high") ended=$(when end "$TMP/high")
}

ask2() { "$BUILD/tests/lab/shim-client" "$TMP/shim2.sock" "$@" || fail "$*"; }

shim_start
shim_ask lease 600000 0
shim_ask guard 20000
shim_ask slot 1 3 32 search/high 1
shim_ask slot 2 3 32 search/low 2
push_tags "$A" eth0 0 6001=1 6002=2
two_flows "$A"
high=$(share $((began + 500)) $((ended - 100)) 6001)
floor=$(share $((began + 500)) $((ended - 100)) 6002)
alone=$(share $((ended + 700)) $((ended + 2500)) 6002)

# A switch between the shim and B, and a second host with a shim of its own.
for ns in "$C" "$M" "$S"; do
    ip netns add "$ns"
    ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
        net.ipv6.conf.default.disable_ipv6=1
    ip -n "$ns" link set lo up
done
ip -n "$N" link del uplink
ip -n "$S" link add name switch type bridge
ip -n "$S" link set switch mtu "$MTU" up
join() {                        # join NS IFACE PORT: to the switch.
    ip link add "$2" mtu "$MTU" netns "$1" \
        type veth peer name "$3" mtu "$MTU" netns "$S"
    ip -n "$1" link set "$2" up
    ip -n "$S" link set "$3" master switch up
    ip netns exec "$1" ethtool -K "$2" tx off >/dev/null
}
join "$N" uplink p1
join "$M" uplink p2
join "$B" eth0 p3
# A knows it by that.
ip -n "$B" link set eth0 address 02:00:00:00:00:02
ip -n "$B" addr add 10.99.0.2/24 dev eth0
ip link add eth0 mtu "$MTU" netns "$C" \
    type veth peer name hostside mtu "$MTU" netns "$M"
ip -n "$C" addr add 10.99.0.3/24 dev eth0
ip -n "$C" link set eth0 up
ip -n "$M" link set hostside up
ip netns exec "$C" ethtool -K eth0 tx off >/dev/null

# A queue for each level, each with a guard of 2 %.
in_s() { ip netns exec "$S" "$@"; }
in_s tc qdisc add dev p3 root handle 1: htb default 17 r2q 1000
in_s tc class add dev p3 parent 1: classid 1:1 htb rate $LINK ceil $LINK \
    burst 31250 cburst 31250 quantum 60000
for level in 0 1 2 3 4 5 6 7; do
    in_s tc class add dev p3 parent 1:1 classid 1:1$level htb \
        rate $((LINK / 50)) ceil $LINK prio $level burst $((2 * MTU)) \
        cburst 31250 quantum 60000
    in_s tc qdisc add dev p3 parent 1:1$level handle 2$level: bfifo \
        limit 250000
    set -- 39 35 23 19 15 11 7 0
    shift $level
    in_s tc filter add dev p3 parent 1: protocol ip prio $((level + 1)) u32 \
        match ip tos "$(printf 0x%02x $(($1 << 2)))" 0xfc flowid 1:1$level
done
in_s tc filter add dev p3 parent 1: protocol arp prio 9 u32 \
    match u32 0 0 flowid 1:10

ip netns exec "$M" "$BUILD/shim/stagecoach-shim" --name "$PREFIX-2" \
    --host-port af_packet:hostside --uplink af_packet:uplink --rate "$RATE" \
    --mtu "$MTU" --control "$TMP/shim2.sock" --cc off &
SHIM2_PID=$!
wait_until "$BUILD/shim/stagecoach-shim" --show "$TMP/shim2.sock"
ask2 lease 600000 0
ask2 slot 1 1 35 search/high 0
push_tags "$C" eth0 0 6001=1
shim_ask slot 2 5 15 search/low 1
two_flows "$C"
down=$(share $((began + 500)) $((ended - 100)) 6001)

cycles=$(timeout 60 "$BUILD/tests/bench/shim-order")
cat >&3 <<EOD
{"bench": "shim-order",
 "figures": {"uplink_high_share": $high, "downlink_high_share": $down,
             "floor_share": $floor, "work_conserving_share": $alone,
             "cycles": $cycles},
 "baseline": {"rte_sched_1_cycles": $(echo "$cycles" |
     sed 's/.*"rte_sched_1": \([0-9.-]*\).*/\1/')}}
EOD
