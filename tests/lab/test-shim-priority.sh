#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks two TCP flows of different levels through one shim: the higher one
# gets the uplink while it has data, then the lower one gets it back; both get
# their DSCPs, and a flow without a job keeps its DSCP.  Flows are
# classified while many of their packets are queued.  Then the lease ends, and
# the shim is killed and restarted.
set -u
MTU=9000 RATE=100Mbit
. "$SOURCE/tests/lab/shim-net.sh"

LINK=100000000          # Bits per second, as RATE.
shim_start

# shares FROM TO PORT: prints the part of the link that PORT got from FROM to
# TO, in permille.  Less than 1 % of a 9000-byte frame is headers.
shares() {
    awk -v from="$1" -v to="$2" -v port="$3" -v link="$LINK" '
        $1 > from && $1 <= to && $2 == port { bytes += $3 }
        END { printf "%d\n", bytes * 8 * 1000 * 1000 / (to - from) / link }' \
        "$TMP/sink"
}

at_least() {
    echo "$1: $2 permille, at least $3"
    [ "$2" -ge "$3" ] || fail "$1: $2 permille of the link, at least $3"
}

# dscps PORT: prints the DSCPs seen on PORT, with any number of packets.
dscps() { awk -v port="$1" '$1 == port { print $2 }' "$TMP/dscp" | xargs; }

is_dscp() {
    [ "$(dscps "$1")" = "$2" ] ||
        fail "port $1 has DSCP $(dscps "$1"), not $2"
}

shim_ask lease 60000 0
shim_ask guard 20000            # As policies have it.
shim_ask slot 1 1 48 search/high
shim_ask slot 2 6 8 search/low
shim_ask flow 1 tcp 10.99.0.1 5001 10.99.0.2 6001
shim_ask flow 2 tcp 10.99.0.1 5002 10.99.0.2 6002

# The lower flow sends for 7 s, the higher flow starts after 2 s and sends for
# 3 s, and a flow without a job sends briefly at the end, with its own DSCP 46.
in_b "$traffic" sink-each 9000 6001 6002 6003 >"$TMP/sink" & sink=$!
ip netns exec "$B" "$traffic" dscp 9000 eth0 >"$TMP/dscp" & dscp=$!
PIDS="$PIDS $sink $dscp"
"$BUILD/tests/lab/shim-client" "$SOCK" misses 9000 >"$TMP/misses" &
PIDS="$PIDS $!"
wait_until b_listens t 6003
in_a "$traffic" source 10.99.0.2 6002 5002 184 0 7000 >"$TMP/low" &
low=$!
in_a "$traffic" source 10.99.0.2 6001 5001 0 2000 3000 >"$TMP/high" &
high=$!
wait $low || fail "the lower flow"
wait $high || fail "the higher flow"
in_a "$traffic" source 10.99.0.2 6003 5003 184 0 300 >"$TMP/other" ||
    fail "the unknown flow"
wait $sink || fail "the sink"
kill $dscp
wait $dscp || fail "a packet's header checksum is wrong"

began=$(awk '/begin/ { print $2 }' "$TMP/high")
ended=$(awk '/end/ { print $2 }' "$TMP/high")
at_least "lower, alone" \
    "$(shares $((began - 1300)) $((began - 100)) 6002)" 850
at_least "higher" "$(shares $((began + 500)) $((ended - 100)) 6001)" 900
echo "lower meanwhile:" \
    "$(shares $((began + 500)) $((ended - 100)) 6002) permille"
at_least "lower, alone again" \
    "$(shares $((ended + 700)) $((ended + 1700)) 6002)" 850

is_dscp 6001 48
is_dscp 6002 8
is_dscp 6003 46
grep -q "miss tcp 10.99.0.1 5003 10.99.0.2 6003" "$TMP/misses" ||
    fail "the unknown flow was not reported"
! grep -q "6001" "$TMP/misses" || fail "a known flow was reported"

# A guard gives the lower level a fifth of the link.  That job marks its data
# as control packets (DSCP 39): few leave as such, and it gets no more.
shim_ask guard 200000
in_b "$traffic" sink-each 4000 6001 6002 >"$TMP/sink" & sink=$!
ip netns exec "$B" "$traffic" dscp 4000 eth0 >"$TMP/dscp" & dscp=$!
PIDS="$PIDS $sink $dscp"
wait_until b_listens t 6002
in_a "$traffic" source 10.99.0.2 6002 5002 156 0 3000 >/dev/null &
low=$!
in_a "$traffic" source 10.99.0.2 6001 5001 0 0 3000 >"$TMP/high" &
high=$!
wait $low || fail "the lower flow, guarded"
wait $high || fail "the higher flow, with one that is guarded"
wait $sink || fail "the sink of both"
kill $dscp
wait $dscp
ended=$(awk '/end/ { print $2 }' "$TMP/high")
at_least "lower, guarded" \
    "$(shares $((ended - 2000)) $((ended - 100)) 6002)" 150
at_least "higher, with a guard" \
    "$(shares $((ended - 2000)) $((ended - 100)) 6001)" 700
awk '$1 == 6002 { n[$2] += $3 } END { exit n[39] * 20 > n[8] }' "$TMP/dscp" ||
    fail "packets marked as control: $(xargs <"$TMP/dscp")"

# Two flows fill the queue of packets without a job before the agent connects.
# When they are classified, their queued packets move to their jobs' queues,
# so that other packets do not wait behind them.
in_b "$traffic" echo 60000 7000 & PIDS="$PIDS $!"
in_b "$traffic" sink 9000 6004 6005 >/dev/null & PIDS="$PIDS $!"; sink=$!
wait_until b_listens t 6005
wait_until b_listens u 7000
shim_ask guard 20000
in_a "$traffic" source 10.99.0.2 6004 5004 0 0 6000 >/dev/null &
high=$!
in_a "$traffic" source 10.99.0.2 6005 5005 0 0 6000 >/dev/null &
low=$!
sleep 2.5
echo "waits before the agent comes: $(shim_value queued_bytes) bytes"
shim_ask flow 1 tcp 10.99.0.1 5004 10.99.0.2 6004
shim_ask flow 2 tcp 10.99.0.1 5005 10.99.0.2 6005
in_a "$traffic" ping 10.99.0.2 7000 5 100 >"$TMP/ping" ||
    fail "an unknown flow waits more than a second: $(xargs <"$TMP/ping")"
echo "an unknown flow, after that: $(awk '{ print $2 }' "$TMP/ping" |
    sort -n | sed -n 3p) us, median of 5"
wait $high || fail "the higher flow, once known"
wait $low || fail "the lower flow, once known"
kill $sink

# Without a lease all flows are equal.
shim_ask lease 0 0
in_b "$traffic" sink-each 2000 6001 >"$TMP/sink" & PIDS="$PIDS $!"
in_b "$traffic" dscp 1500 eth0 >"$TMP/dscp" & PIDS="$PIDS $!"; dscp=$!
wait_until b_listens t 6001
in_a "$traffic" source 10.99.0.2 6001 5001 0 0 300 >/dev/null
wait $dscp
is_dscp 6001 0

# The shim is killed, and the next one takes over its socket.
boot=$("$BUILD/shim/stagecoach-shim" --show "$SOCK" | head -1)
kill -9 "$SHIM_PID"
wait "$SHIM_PID" 2>/dev/null
[ -S "$SOCK" ] || fail "the socket should be left"
in_a "$traffic" ping 10.99.0.2 7000 1 100 &&
    fail "frames are forwarded without a shim"
shim_start
[ "$boot" != "$("$BUILD/shim/stagecoach-shim" --show "$SOCK" | head -1)" ] ||
    fail "a new process must have a new boot_id"
in_a "$traffic" ping 10.99.0.2 7000 5 8000 || fail "no pings after restart"

# The shim ends on request, and leaves nothing behind.
kill "$SHIM_PID"
wait "$SHIM_PID" || fail "exit status $?"
[ ! -e "$SOCK" ] || fail "the socket is left"
[ ! -e "/var/run/dpdk/$PREFIX" ] || fail "DPDK's directory is left"
SHIM_PID=
echo PASS
