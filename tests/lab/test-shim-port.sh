#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a running shim when its interfaces change, and the CPU use of an idle
# shim.
set -u
MTU=9000 RATE=100Mbit
. "$SOURCE/tests/lab/shim-net.sh"
STUCK=$TMP/stuck
export STUCK
LD_PRELOAD=$BUILD/tests/lab/libstuck.so shim_start 2>"$TMP/log"

in_b "$traffic" echo 60000 7000 & PIDS="$PIDS $!"
wait_until b_listens u 7000
ping() { in_a "$traffic" ping 10.99.0.2 7000 "$1" "$2" >"$TMP/ping"; }
wait_until ping 1 100
ping 20 100 || fail "pings"
echo "median of 20 round trips: $(awk '{ print $2 }' "$TMP/ping" | sort -n |
    sed -n 10p) us"
ping 5 8900 || fail "long pings"

before=$(shim_value busy_ns)
sleep 3
permille=$((($(shim_value busy_ns) - before) / 3000000))
echo "idle: $permille permille of a CPU"
[ $permille -le 20 ] || fail "an idle shim takes $permille permille of a CPU"

# Interfaces that go down and up again recover without a restart.
for ns_iface in "$N uplink" "$N hostside" "$B eth0"; do
    # shellcheck disable=SC2086
    set -- $ns_iface
    ip -n "$1" link set "$2" down
    ping 1 100 && fail "$2 is down"
    ip -n "$1" link set "$2" up
    wait_until ping 1 100
    ping 3 8000 || fail "after $2 was down"
done
[ "$(shim_value port_restarts)" = 0 ] || fail "a port was set up for nothing"

# Packets that are too long for the uplink are dropped, and the others are
# sent.
ip -n "$N" link set uplink mtu 1500
dropped=$(shim_value port_dropped)
tries=0
while [ "$(shim_value port_dropped)" = "$dropped" ]; do
    ping 1 4000
    tries=$((tries + 1))
    [ $tries -lt 5 ] || fail "long packets are not counted as dropped"
done
ping 3 100 || fail "after a packet that was too long"
ip -n "$N" link set uplink mtu "$MTU"
wait_until ping 1 4000

# A new interface with the same name: the port is set up again.
ip -n "$N" link del uplink
ping 1 100 && fail "there is no uplink"
uplink_make
wait_until ping 1 100
ping 3 8000 || fail "over the new uplink"
[ "$(shim_value port_restarts)" -ge 1 ] || fail "no restart was counted"

# The kernel stops sending the frames in the ring for a while: the shim wakes
# it again, without further packets.
late=$(shim_value late_bytes)
: >"$STUCK"
in_a "$traffic" flood 10.99.0.2 7000 1 777
sleep 0.3
[ "$(shim_value late_bytes)" = "$late" ] || fail "the ring is not stuck"
rm "$STUCK"
late_is_more() { [ "$(shim_value late_bytes)" -gt "$late" ]; }
wait_until late_is_more
ping 3 8000 || fail "after the ring was stuck"

# The kernel never sends them: the port is set up again, with few frames in the
# ring...
restarted() { [ "$(shim_value port_restarts)" -gt "$restarts" ]; }
send_until_restarted() {
    in_a "$traffic" flood 10.99.0.2 7000 1 777
    restarted
}
restarts=$(shim_value port_restarts)
: >"$STUCK"
wait_until send_until_restarted
rm "$STUCK"
ping 3 8000 || fail "after the kernel sent nothing"

# ...and with a full ring.
sleep 1.1
restarts=$(shim_value port_restarts)
: >"$STUCK"
in_a "$traffic" flood 10.99.0.2 7000 400 8000 & PIDS="$PIDS $!"
wait_until restarted
rm "$STUCK"
wait_until ping 1 100
ping 3 8000 || fail "after the ring was full"
grep -q "the kernel sends nothing" "$TMP/log" || fail "$(cat "$TMP/log")"
grep -q "the ring is full" "$TMP/log" || fail "$(cat "$TMP/log")"

kill "$SHIM_PID"
wait "$SHIM_PID" || fail "exit status $?"
SHIM_PID=

# Invalid arguments: one line and status 2.
mistake() {
    expected=$1
    shift
    got=$(ip netns exec "$N" timeout 10 "$BUILD/shim/stagecoach-shim" \
        --name "$PREFIX" --control "$SOCK" "$@" 2>&1)
    status=$?
    [ $status = 2 ] || fail "status $status of $*"
    [ "$got" = "$expected" ] || fail "$got"
}
mistake '--rate: "x" is not a rate, such as 50Mbit' --rate x
mistake '--uplink: there is no interface "none" here' --rate 1Mbit \
    --host-port af_packet:hostside --uplink af_packet:none --mtu 9000
mistake '--host-port: hostside has MTU 9000; expected at most --mtu 1500 + 8' \
    --rate 1Mbit --host-port af_packet:hostside --uplink af_packet:uplink
echo PASS
