#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a shim with several lanes: connections on all lanes in both
# directions, counters, CPU use when idle, a new interface, and a takeover.
set -u
MTU=1500 RATE=200Mbit
. "$SOURCE/tests/lab/shim-net.sh"

LANES=2
threads() { set -- "/proc/$SHIM_PID/task"/*; echo $#; }
ping() { in_a "$traffic" ping 10.99.0.2 7000 "$1" "$2" >"$TMP/ping"; }
# worker_ms: prints the processor time of all lanes except the first.
worker_ms() {
    for task in "/proc/$SHIM_PID/task"/*; do
        grep -q worker "$task/comm" && cat "$task/schedstat"
    done | awk '{ n += $1 } END { print int(n / 1000000) }'
}
sum() { awk '{ n += $3 } END { printf "%.0f\n", n }' "$1"; }

in_b "$traffic" echo 120000 7000 & PIDS="$PIDS $!"
wait_until b_listens u 7000

shim_start --lanes 1 2>"$TMP/log"
wait_until ping 1 100
one=$(threads)
shim_stop
shim_start --lanes $LANES 2>"$TMP/log"
wait_until ping 1 100
[ "$(threads)" = $((one + LANES - 1)) ] || fail "$(threads) threads, not $one + 1"

# All flows have tags, so the job's counters must include every byte.
shim_ask lease 120000 10
shim_ask slot 5 3 32 asha/t1
ports=
tags=0
for port in 5001 5002 5003 5004 5005 5006 5007 5008; do
    tags="$tags $port=5"
    ports="$ports $port"
done
# shellcheck disable=SC2086
push_tags "$A" eth0 $tags

# both MS: starts connections from A to B and from B to A, one for each port.
both() {
    # shellcheck disable=SC2086
    in_b "$traffic" sink-each $(($1 + 1500)) $ports >"$TMP/sink-b" & sinks=$!
    # shellcheck disable=SC2086
    in_a "$traffic" sink-each $(($1 + 1500)) $ports >"$TMP/sink-a" &
    sinks="$sinks $!"
    for port in $ports; do
        wait_until b_listens t $port
        in_a "$traffic" source 10.99.0.2 $port $((port + 1000)) 0 0 "$1" \
            >/dev/null &
        sinks="$sinks $!"
        in_b "$traffic" source 10.99.0.1 $port $((port + 1000)) 0 0 "$1" \
            >/dev/null &
        sinks="$sinks $!"
    done
    for pid in $sinks; do
        wait "$pid" || fail "a connection"
    done
}
before=$(worker_ms)
both 3000
took=$(($(worker_ms) - before))
[ "$took" -gt 20 ] || fail "the other lane ran for $took ms"
echo "from A to B: $(sum "$TMP/sink-b") bytes, from B to A: $(sum "$TMP/sink-a")"
for port in $ports; do
    for sink in "$TMP/sink-a" "$TMP/sink-b"; do
        grep -q "^[0-9]* $port " "$sink" || fail "nothing came to $port"
    done
done
[ "$(sum "$TMP/sink-b")" -gt 40000000 ] || fail "too little came to B"
[ "$(sum "$TMP/sink-a")" -gt 40000000 ] || fail "too little came to A"
[ "$(job 5 tx_bytes)" -gt "$(sum "$TMP/sink-b")" ] || fail "tx_bytes"
[ "$(job 5 rx_bytes)" -gt "$(sum "$TMP/sink-a")" ] || fail "rx_bytes"
echo "lost between lanes: $(shim_value lane_lost) of" \
    "$(($(shim_value tx_packets) + $(shim_value rx_packets))) packets"

# The other lanes sleep as well, and are woken.
before=$(shim_value busy_ns)
sleep 2
permille=$((($(shim_value busy_ns) - before) / 2000000))
ping 30 100 || fail "pings"
rtt=$(awk '{ print $2 }' "$TMP/ping" | sort -n | sed -n 15p)
echo "idle: $permille permille of a CPU; median of 30 round trips: $rtt us"
[ $permille -le 30 ] || fail "idle lanes take $permille permille of a CPU"
[ "$rtt" -lt 10000 ] || fail "a lane is not woken"

# All lanes stop using a port while it is set up again.
ip -n "$N" link del uplink
ping 1 100 && fail "there is no uplink"
uplink_make
wait_until ping 1 100
[ "$(shim_value port_restarts)" -ge 1 ] || fail "no restart was counted"
ping 3 1000 || fail "over the new uplink"

# Takeover by a shim with another number of lanes.
in_a "$traffic" beat 10.99.0.2 7000 2000 1000 >"$TMP/beat" & beat=$!
sleep 0.5
old=$SHIM_PID
PIDS="$PIDS $old"
ip netns exec "$N" "$BUILD/shim/stagecoach-shim" --name "$PREFIX" \
    --host-port af_packet:hostside --uplink af_packet:uplink --rate "$RATE" \
    --mtu "$MTU" --control "$SOCK" --take-over --cc off --lanes 3 2>"$TMP/log2" &
SHIM_PID=$!
wait $beat || fail "no beat came back"
kill -0 "$old" 2>/dev/null && fail "the old shim is still there"
echo "beat: $(tr '\n' ' ' <"$TMP/beat")"
grep -q '^duplicates 0' "$TMP/beat" || fail "frames went twice"
[ "$(awk '$1 == "received" { print $2 }' "$TMP/beat")" -ge 1980 ] ||
    fail "frames were lost"
shim_stop

# A port with a queue for each lane: frames of both lanes are sent.
HOST_PORT=null shim_start --lanes $LANES 2>"$TMP/log"
tx_is_more() { [ "$(shim_value tx_packets)" -gt 1000 ]; }
wait_until tx_is_more
shim_stop
echo PASS
