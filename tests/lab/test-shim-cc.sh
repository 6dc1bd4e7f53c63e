#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks congestion control: three hosts send to one host; the third sender's
# shim has no congestion control.  The link is full and its queue is short, no
# host sees the messages between the shims, this continues when new shims take
# over at both ends, and connections survive the death of the receiver's shim.
set -u
HOSTS=3 RATE=100mbit MTU=1500 QUEUE=1000000
. "$SOURCE/tests/lab/incast-net.sh"

for i in 0 1 2; do
    shim_start $i --cc on --control-port 7000
done
shim_start 3
shims_wait

# no_ports I: prints the number of UDP datagrams to ports of host I without a
# socket.
no_ports() {
    in_host "$1" awk '/^Udp: [0-9]/ { print $3 }' /proc/net/snmp
}

# now: milliseconds, as in the sink's output.
now() { awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime; }

# mbps FROM TO PORT: prints the rate of PORT between two times, in Mbit/s.
mbps() {
    awk -v from="$1" -v to="$2" -v port="$3" '
        $1 > from && $1 <= to && $2 == port { bytes += $3 }
        END { printf "%d\n", bytes * 8 / (to - from) / 1000 }' "$TMP/sink"
}

in_host 0 "$traffic" echo 45000 7000 & PIDS="$PIDS $!"
in_host 0 "$traffic" sink 41000 6001 6002 6003 >"$TMP/sink" &
sink=$!
PIDS="$PIDS $sink"
wait_until host_listens 0 t 6003
wait_until host_listens 0 u 7000
sources=
for i in 1 2 3; do
    in_host $i "$traffic" source 10.99.0.1 600$i 500$i 0 0 40000 \
        >"$TMP/source.$i" & sources="$sources $!"
done
PIDS="$PIDS $sources"
# measure NAME: measures queue and heartbeats for two seconds, and succeeds if
# the p99 of the queue is short.
measure() {
    in_fabric "$BUILD/tests/lab/queue-sample" port0 2 2000 1000 \
        "${RATE%mbit}" >"$TMP/$1" &
    sampler=$!
    in_host 1 "$traffic" ping 10.99.0.1 7000 80 200 >"$TMP/ping" ||
        fail "$1: a heartbeat was lost"
    wait $sampler || fail "queue-sample"
    echo "$1: $(cat "$TMP/$1")"
    [ "$(awk '{ print $6 }' "$TMP/$1")" -le 65536 ]
}

# look NAME: checks that the queue is short.  A virtual processor may stop for
# 8 ms while it serves the switch's queue; then 100 kB arrive, which takes the
# shims 70 ms to drain.  Such a measurement is repeated.
look() {
    looks=1
    until measure "$1"; do
        [ "$(awk '{ print $14 }' "$TMP/$1")" -gt 32768 ] ||
            fail "$1: the p99 is too much"
        looks=$((looks + 1))
        [ $looks -le 5 ] || fail "$1: the switch stopped in 5 measurements"
    done
}

sleep 1
began=$(now)
look queue
ended=$(now)

for i in 0 1 3; do
    echo "host $i: $(no_ports $i) datagrams without a socket"
    [ "$(no_ports $i)" = 0 ] || fail "host $i has seen a shim's message"
done
[ "$(shim_value 0 cc_windows)" -gt 0 ] || fail "no window was lowered"
[ "$(shim_value 1 cc_grants_taken)" -gt 0 ] || fail "shim 1 got no grants"

# New shims take over: from the receiver's, then from a sender's.
gone() { ! kill -0 "$1" 2>/dev/null; }
for i in 0 1; do
    old=$(shim_pid $i)
    shim_start $i --cc on --control-port 7000 --take-over
    wait_until gone "$old"
done
grep "copied from the old shim" "$TMP/shims"
[ "$(grep -c " [1-9][0-9]* connections and [1-9]" "$TMP/shims")" = 2 ] ||
    fail "the new shims got no connections"
succeeded=$(now)
look queue-then
looked=$(now)
[ "$(shim_value 0 cc_windows)" -gt 0 ] || fail "the new shim lowers no window"
[ "$(shim_value 1 cc_grants_taken)" -gt 0 ] || fail "shim 1 gets no grants"

# The receiver's shim is killed, and a new one starts without its state.
old=$(shim_pid 0)
kill -9 "$old"
wait "$old" 2>/dev/null
killed=$(now)
shim_start 0 --cc on --control-port 7000
wait_until "$BUILD/shim/stagecoach-shim" --show "$TMP/0.sock"
back=$(now)
echo "the new shim forwards after $((back - killed)) ms"

# A sender retries after intervals that double, so a flow may be silent for as
# long after the shim's absence as during it.
again=$((2 * back - killed + 1000))
[ $again -ge $((killed + 3000)) ] || again=$((killed + 3000))
while [ "$(now)" -le $((again + 2000)) ]; do
    sleep 0.1
done
for pid in $sources $sink; do
    # Not a process that has ended and was not waited for.
    grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$pid/status" ||
        fail "a connection or the sink did not survive"
done

sum=0
for i in 1 2 3; do
    before=$(mbps "$began" "$ended" 600$i)
    then=$(mbps "$succeeded" "$looked" 600$i)
    after=$(mbps $again $((again + 2000)) 600$i)
    echo "flow $i: $before Mbit/s, $then after a takeover, $after with a new shim"
    [ "$before" -ge 15 ] || fail "flow $i: $before Mbit/s"
    [ "$then" -ge 15 ] || fail "flow $i, after a takeover: $then Mbit/s"
    # The new shim does not know these connections' windows, so this is how TCP
    # shares a queue: 11 to 68 Mbit/s were seen.
    [ "$after" -ge 10 ] || fail "flow $i, with a new shim: $after Mbit/s"
    sum=$((sum + before))
done
[ $sum -ge 80 ] || fail "all flows: $sum Mbit/s"
echo PASS
