#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks hosts that leave checksums and segmentation to a network card that
# does not exist: TCP works, because the shim disables these offloads at the
# other ends, or completes the checksums.
set -u
MTU=1500 RATE=500Mbit OFFLOADS=on
. "$SOURCE/tests/lab/shim-net.sh"

ENOUGH=5000000                  # Bytes in a second, of 60 million.

offload() {
    in_a ethtool -k eth0 | awk -v name="$1:" '$1 == name { print $2 }'
}

flows() {
    bytes=$(tcp_bytes "$1" 1000)
    echo "$2: $bytes bytes"
    [ "$bytes" -ge $ENOUGH ] || fail "$2: TCP does not get through"
}

# host_tso VALUE: the shim reports what the host's interface has.
host_tso() {
    [ "$(shim_value host_tso)" = "$1" ] ||
        fail "host_tso $(shim_value host_tso), not $1"
}

for mtu in 1500 9000; do
    MTU=$mtu
    ip -n "$A" link set eth0 mtu $mtu && ip -n "$B" link set eth0 mtu $mtu
    ip -n "$N" link set hostside mtu $mtu
    ip -n "$N" link set uplink mtu $mtu

    # The host's default: all offloads enabled.
    in_a ethtool -K eth0 tx on tso on gso on >/dev/null
    in_b ethtool -K eth0 tx on tso on gso on >/dev/null
    [ "$(offload tx-checksumming)" = on ] || fail "no offloads to begin with"
    shim_start
    [ "$(offload tx-checksumming)" = off ] || fail "not switched off"
    flows 7001 "MTU $mtu, switched off"
    [ "$(shim_value long_refused)" = 0 ] || fail "long packets still come"
    host_tso off

    # Enabled behind the shim: long packets are dropped, TCP is slow.
    in_a ethtool -K eth0 tx on tso on >/dev/null
    host_tso on
    echo "enabled again: $(tcp_bytes 7004 500) bytes"
    [ "$(shim_value long_refused)" -gt 0 ] || fail "no long packets"
    in_a ethtool -K eth0 tx off >/dev/null
    host_tso off
    flows 7005 "MTU $mtu, switched off again"
    shim_stop

    # Without permission to disable offloads, the shim completes the checksums.
    in_a ethtool -K eth0 tx on tso off >/dev/null
    in_b ethtool -K eth0 tx on tso off >/dev/null
    shim_start --keep-offload
    [ "$(offload tx-checksumming)" = on ] || fail "switched off all the same"
    flows 7002 "MTU $mtu, checksums completed"
    [ "$(shim_value checksums_completed)" -gt 100 ] || fail "none completed"
    host_tso off
    in_b "$traffic" echo 60000 7000 & PIDS="$PIDS $!"
    wait_until b_listens u 7000
    in_a "$traffic" ping 10.99.0.2 7000 5 777 >/dev/null || fail "UDP"
    kill $!
    wait $! 2>/dev/null
    shim_stop
done

# Packets that need segmentation are dropped and counted; TCP continues with
# small packets.
in_a ethtool -K eth0 tx on tso on >/dev/null
shim_start --keep-offload
bytes=$(tcp_bytes 7003 2000)
echo "long packets refused: $bytes bytes, $(shim_value long_refused) refused"
[ "$bytes" -gt 0 ] || fail "nothing gets through"
[ "$(shim_value long_refused)" -gt 0 ] || fail "none is counted"
host_tso on
shim_stop
echo PASS
