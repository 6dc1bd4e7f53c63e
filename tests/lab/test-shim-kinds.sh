#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks every kind of port that this machine supports: UDP in both directions,
# TCP, and a clean exit of the shim.
set -u
MTU=1500 RATE=500Mbit
. "$SOURCE/tests/lab/shim-net.sh"

set_mtu() {
    MTU=$1
    ip -n "$A" link set eth0 mtu "$1" && ip -n "$B" link set eth0 mtu "$1"
    ip -n "$N" link set hostside mtu "$1"
    ip -n "$N" link set uplink mtu "$1"
}

works() {
    in_a "$traffic" ping 10.99.0.2 7000 1 100 >/dev/null
    in_a "$traffic" ping 10.99.0.2 7000 5 $((MTU - 28)) >/dev/null ||
        fail "$1: UDP"
    bytes=$(tcp_bytes $((7001 + (n = ${n:-0} + 1))) 500)
    echo "$1: $bytes bytes"
    [ "$bytes" -gt 1000000 ] || fail "$1: TCP"
}

# makes_iface KIND: checks a port that creates the host's interface, also that
# the shim finds the slot tags which the host's kernel pushes there.
makes_iface() {
    HOST_PORT=$1:host0 shim_start
    ip -n "$N" link set host0 netns "$A"
    ip -n "$A" link set eth0 down
    ip -n "$A" addr add 10.99.0.1/24 dev host0
    ip -n "$A" link set host0 up
    push_tags "$A" host0 3
    shim_ask lease 600000 0
    shim_ask slot 3 1 48 a/b
    works "$1"
    [ "$(job 3 tx_bytes)" -gt "$bytes" ] || fail "$1: TCP is not of slot 3"
    [ "$(job 3 rx_packets)" -gt 10 ] || fail "$1: its ACKs are not"
    shim_stop
    ip -n "$A" link set eth0 up
}

in_b "$traffic" echo 120000 7000 & PIDS="$PIDS $!"
wait_until b_listens u 7000

for mtu in 1500 2984; do
    set_mtu $mtu
    HOST_PORT=af_xdp:hostside UPLINK=af_xdp:uplink shim_start 2>"$TMP/log" ||
        fail "$(cat "$TMP/log")"
    works "af_xdp, MTU $mtu"
    shim_stop
done

set_mtu 1500
makes_iface tap 2>"$TMP/log" || fail "$(cat "$TMP/log")"
if [ -c /dev/vhost-net ]; then
    makes_iface virtio_user
else
    echo "virtio_user: no /dev/vhost-net here"
fi

# The largest queues, without huge pages.
for mtu in 9000 1500; do
    set_mtu $mtu
    shim_start --no-huge --rate 100Gbit
    works "no huge pages, MTU $mtu"
    shim_stop
done

echo PASS
