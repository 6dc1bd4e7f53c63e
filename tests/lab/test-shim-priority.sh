#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks two TCP flows of different levels through one shim: the higher one
# gets the uplink while it has data, then the lower one gets it back; both get
# their DSCPs, and a flow without a job keeps its DSCP.  A flow gets a job
# while many of its packets are queued.  Then the lease ends, and the shim is
# killed and restarted.
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
push_tags "$A" eth0 0 6001=1 6002=2
untagged=$(shim_value untagged)

# The lower flow sends for 7 s, the higher flow starts after 2 s and sends for
# 3 s, and a flow without a job sends briefly at the end, with its own DSCP 46.
in_b "$traffic" sink-each 9000 6001 6002 6003 >"$TMP/sink" & sink=$!
ip netns exec "$B" "$traffic" dscp 9000 eth0 >"$TMP/dscp" & dscp=$!
PIDS="$PIDS $sink $dscp"
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
[ "$(shim_value untagged)" = "$untagged" ] || fail "frames without a tag"

# A guard gives the lower level a fifth of the link.  The data of that job are
# in its control class: few leave as such, and it gets no more.
push_tags "$A" eth0 0 6001=1 6002=$((2 | 1024))
shim_ask guard 200000
in_b "$traffic" sink-each 4000 6001 6002 >"$TMP/sink" & sink=$!
ip netns exec "$B" "$traffic" dscp 4000 eth0 >"$TMP/dscp" & dscp=$!
PIDS="$PIDS $sink $dscp"
wait_until b_listens t 6002
in_a "$traffic" source 10.99.0.2 6002 5002 0 0 3000 >/dev/null &
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
    fail "packets of control: $(xargs <"$TMP/dscp")"

# A flow without a job gets one while many of its packets are queued: it has the
# job's DSCP from its next packet on, and goes on.
in_b "$traffic" echo 60000 7000 & PIDS="$PIDS $!"
in_b "$traffic" sink 6000 6004 >/dev/null & PIDS="$PIDS $!"; sink=$!
wait_until b_listens t 6004
wait_until b_listens u 7000
shim_ask guard 20000
in_a "$traffic" source 10.99.0.2 6004 5004 0 0 4000 >/dev/null &
high=$!
sleep 1.5
echo "waits without a job: $(shim_value queued_bytes) bytes"
push_tags "$A" eth0 0 6001=1 6002=2 6004=1
in_b "$traffic" dscp 2000 eth0 >"$TMP/dscp"
wait $high || fail "the flow, once of a job"
awk '$1 == 6004 && $2 == 48 { n = $3 } END { exit !(n > 1000) }' \
    "$TMP/dscp" || fail "the flow of a job: $(xargs <"$TMP/dscp")"
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
