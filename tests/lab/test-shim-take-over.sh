#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a takeover from one shim to another under traffic: slots are kept, no
# frame is duplicated, connections survive, and almost no packet is lost.
set -u
MTU=1500 RATE=100Mbit
. "$SOURCE/tests/lab/shim-net.sh"

result() { awk -v name="$1" '$1 == name { print $2 }' "$TMP/beat"; }

# shim_succeed LOG: starts another shim, which takes over from $SHIM_PID.
shim_succeed() {
    ip netns exec "$N" "$BUILD/shim/stagecoach-shim" --name "$PREFIX" \
        --host-port af_packet:hostside --uplink af_packet:uplink \
        --rate 10Mbit --mtu "$MTU" --control "$SOCK" --cc off \
        --take-over 2>"$1" &
    next=$!
    PIDS="$PIDS $SHIM_PID"
    old=$SHIM_PID SHIM_PID=$next
}

gone() { ! kill -0 "$1" 2>/dev/null; }
shim_show() { "$BUILD/shim/stagecoach-shim" --show "$SOCK"; }

# hello NAME: prints a member of the first line, which is "NAME VALUE NAME
# VALUE...".
hello() {
    shim_show | awk -v name="$1" '$1 == "boot_id" {
        for (i = 1; i < NF; i += 2) if ($i == name) print $(i + 1)
    }'
}
slots() {
    hello rate
    shim_show | grep -E '^slot .* name'
}

# Without an old shim, --take-over starts normally.
PIDS=
ip netns exec "$N" "$BUILD/shim/stagecoach-shim" --name "$PREFIX" \
    --host-port af_packet:hostside --uplink af_packet:uplink \
    --rate "$RATE" --mtu "$MTU" --control "$SOCK" --cc off \
    --take-over 2>"$TMP/log0" &
SHIM_PID=$!
wait_until "$BUILD/shim/stagecoach-shim" --show "$SOCK"
grep -q "no shim to take over from" "$TMP/log0" || fail "$(cat "$TMP/log0")"

in_b "$traffic" echo 60000 7000 & PIDS="$PIDS $!"
in_b "$traffic" sink 30000 5001 >"$TMP/sink" & PIDS="$PIDS $!"
wait_until b_listens u 7000
wait_until b_listens t 5001
shim_ask lease 60000 10
shim_ask slot 5 3 32 asha/t1
push_tags "$A" eth0 0 5001=5 7000=5
shim_ask guard 50000
slots >"$TMP/slots"

# With heartbeats only.
in_a "$traffic" beat 10.99.0.2 7000 3000 1000 >"$TMP/beat" &
beat=$!
sleep 1
shim_succeed "$TMP/log1"
wait $beat || fail "no beat came back"
gone "$old" || fail "the old shim is still there"
[ "$(hello pid)" = "$SHIM_PID" ] || fail "the new shim does not answer: $(cat "$TMP/log1")"
echo "beat: $(tr '\n' ' ' <"$TMP/beat")"
[ "$(result duplicates)" = 0 ] || fail "frames went twice"
[ "$(result received)" -ge 2990 ] || fail "frames were lost"
[ "$(result gap_us)" -le 200000 ] || fail "a gap of $(result gap_us) us"
slots >"$TMP/slots2"
diff "$TMP/slots" "$TMP/slots2" || fail "the slots have changed"
[ "$(job 5 rx_packets)" -ge 1500 ] ||
    fail "the new shim has not learned whose packets are received"
[ "$(hello lease_ms)" -gt 0 ] || fail "the lease was lost"

# With a connection that fills the link.
in_a "$traffic" source 10.99.0.2 5001 6001 0 0 5000 >"$TMP/source" &
source=$!
sleep 1
in_a "$traffic" beat 10.99.0.2 7000 2500 1000 >"$TMP/beat" &
beat=$!
sleep 0.5
shim_succeed "$TMP/log2"
wait $beat || fail "no beat came back"
echo "beside TCP: $(tr '\n' ' ' <"$TMP/beat")"
wait $source || fail "the connection broke"
gone "$old" || fail "the old shim is still there"
[ "$(result duplicates)" = 0 ] || fail "frames went twice"
[ "$(result gap_us)" -le 200000 ] || fail "a gap of $(result gap_us) us"
end=$(awk '$1 == "end" { print $2 }' "$TMP/source")
late=$(awk -v end="$end" '$1 > end - 1000 { sum += $3 }
    END { printf "%.0f\n", sum }' "$TMP/sink")
[ "$late" -gt 5000000 ] || fail "only $late bytes in the last second"

# A takeover that stops after STOP changes nothing: the old shim continues.
in_a "$traffic" beat 10.99.0.2 7000 1000 1000 >"$TMP/beat" &
beat=$!
sleep 0.2
shim_ask stop
wait $beat
[ "$(result gap_us)" -gt 250000 ] || fail "not stopped: $(cat "$TMP/beat")"
[ "$(result gap_us)" -lt 700000 ] || fail "stopped for long"
"$BUILD/tests/lab/shim-client" "$SOCK" leave 2>/dev/null &&
    fail "left without being stopped"
in_a "$traffic" ping 10.99.0.2 7000 3 100 >/dev/null || fail "pings"

kill "$SHIM_PID"
wait "$SHIM_PID" || fail "exit status $?"
SHIM_PID=
[ ! -e "$SOCK" ] || fail "the socket is left"
[ -z "$(find /var/run/dpdk -name "$PREFIX*" 2>/dev/null)" ] ||
    fail "files of DPDK are left"
echo PASS
