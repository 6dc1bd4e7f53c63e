#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a shim whose host tags its frames with job slots: single frames from a
# packet socket, with and without a VLAN of the host and of the full size, and
# TCP behind a program of the kernel that pushes the tags.
set -u
MTU=1500 RATE=500Mbit
. "$SOURCE/tests/lab/shim-net.sh"
CONTROL=1024
NO_LEARN=2048

# set_mtu BYTES TAGS: the host's end and the shim's have TAGS more.
set_mtu() {
    MTU=$1
    ip -n "$N" link set hostside mtu $(($1 + $2))
    ip -n "$A" link set eth0 mtu $(($1 + $2))
    ip -n "$N" link set uplink mtu "$1" && ip -n "$B" link set eth0 mtu "$1"
}

tags_in_a() { in_a python3 "$SOURCE/tests/lab/slot-tags.py" "$@"; }
send() { tags_in_a send eth0 "$@" || fail "send $*"; }

has_seen() { grep -qx "$1" "$TMP/seen"; }
seen() { wait_until has_seen "$1"; }
is_ready() { grep -q ready "$1"; }
received() { [ "$(job 3 rx_packets)" -ge 2 ]; }

# shim_with PORT yes|no [OPTION]...
shim_with() {
    HOST_PORT=$1
    shift
    shim_start --host-tags "$@"
    shim_ask lease 600000 0
    shim_ask slot 3 1 48 a/b
    shim_ask slot 4 2 40 c/d
}

in_b "$traffic" echo 120000 7000 & PIDS="$PIDS $!"
wait_until b_listens u 7000
in_b python3 "$SOURCE/tests/lab/slot-tags.py" see eth0 \
    >"$TMP/seen" & PIDS="$PIDS $!"
wait_until is_ready "$TMP/seen"

# af_packet has the tag beside the frame, af_xdp in it.
port=6000
for mtu in 1500 2984; do
    for kind in af_packet af_xdp; do
        set_mtu $mtu 8
        shim_with $kind:hostside yes
        port=$((port + 10))
        send $((port + 1)) $mtu 3
        seen "$((port + 1)) $mtu 48 -"
        send $((port + 2)) 100 $((4 | CONTROL))
        seen "$((port + 2)) 100 39 -"
        send $((port + 3)) $mtu 3 7
        seen "$((port + 3)) $mtu 48 7"
        send $((port + 4)) 100 $((3 | NO_LEARN))
        seen "$((port + 4)) 100 48 -"
        send $((port + 5)) 100 5
        seen "$((port + 5)) 100 0 -"
        send $((port + 1)) 100 3
        wait_until received
        [ "$(job 3 rx_bytes)" = $((mtu + 14 + 100 + 14)) ] ||
            fail "received: $(job 3 rx_bytes) bytes of slot 3"
        [ "$(job 3 tx_bytes)" = $((2 * mtu + 14 + 18 + 2 * 114)) ] ||
            fail "sent: $(job 3 tx_bytes) bytes of slot 3"
        untagged=$(shim_value untagged)
        send $((port + 6)) 100
        seen "$((port + 6)) 100 0 -"
        [ "$(shim_value untagged)" -gt "$untagged" ] ||
            fail "a frame without a tag is not counted"
        [ "$(shim_value host_tags)" = yes ] || fail "no host_tags"
        shim_stop
        echo "$kind, MTU $mtu: frames"
    done
done

# By default a port of the kernel has tags.  Without them a tag is one of the
# host's VLANs.
set_mtu 1500 0
HOST_PORT=af_packet:hostside shim_start
[ "$(shim_value host_tags)" = yes ] || fail "no host_tags by default"
shim_stop
HOST_PORT=af_packet:hostside shim_start --host-tags no
send 7001 100 3
seen "7001 100 0 3"
[ "$(shim_value untagged)" -gt 0 ] || fail "frames without tags do not count"
shim_stop

push_tags "$A" eth0 3
port=7100
for kind in af_packet af_xdp; do
    for cc in off on; do
        shim_with $kind:hostside yes --cc $cc
        bytes=$(tcp_bytes $((port = port + 1)) 500)
        echo "$kind, --cc $cc: $bytes bytes of TCP"
        [ "$bytes" -gt 1000000 ] || fail "TCP does not get through"
        [ "$(job 3 tx_bytes)" -gt "$bytes" ] || fail "TCP is not of slot 3"
        [ "$(job 3 rx_packets)" -gt 10 ] || fail "its ACKs are not"
        [ "$(shim_value untagged)" = 0 ] || fail "frames without tags"
        shim_stop
    done
done
echo PASS
