#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a shim that creates its host port as an interface through
# /dev/vhost-net, with a network card as uplink: TCP in both directions at both
# frame sizes, with the interface's default offloads, from the host itself and
# from a container behind a bridge that leaves checksums and segmentation
# undone; and that the interface disappears when the shim is killed.
set -u
. "$SOURCE/tests/vm/guest-functions.sh"

BYTES=4000000
HOST_PORT=virtio_user:host0

# Checks traffic between A and B through the running shim.
works() {
    wait_until ping 1 100
    ping 50 $((MTU - 28)) || fail "$1, MTU $MTU: $(tail -n 1 /run/ping)"
    shim_ask lease 120000 10
    shim_ask slot 5 3 32 asha/t1
    push_tags 0 5001=5
    packets=$(shim_value tx_packets)
    before=$(slot_value 5 tx_bytes)
    transfer $BYTES 5001 || fail "$1, MTU $MTU: TCP"
    [ $(($(slot_value 5 tx_bytes) - ${before:-0})) -gt $BYTES ] ||
        fail "$1: tx_bytes"
    packets=$(($(shim_value tx_packets) - packets))
    [ $packets -ge $((BYTES / MTU)) ] ||
        fail "$1: only $packets packets: some were too long"
    for host in $A $B; do
        [ "$(tcp_counter $host InCsumErrors)" = 0 ] || fail "$1: checksums"
    done
    for name in long_refused port_dropped malformed; do
        [ "$(shim_value $name)" = 0 ] || fail "$1: $name"
    done
    ok "$1, MTU $MTU: $packets packets, $(shim_value checksums_completed)" \
        "checksums completed"
}

offload() {
    in_a ethtool -k eth0 | awk -v name="$1:" '$1 == name { print $2 }'
}

# Case 1: the interface is the host's own.
of_host() {
    give_iface $A host0 10.99.0.1
    # The interface does not offer checksum and segmentation offload, because
    # nothing would perform them for the host.
    in_a ethtool -K eth0 tx on tso on >/dev/null 2>&1
    [ "$(offload tx-checksumming) $(offload tcp-segmentation-offload)" = \
        "off off" ] || fail "the interface leaves work to the shim"
}

# Case 2: the interface is in a bridge, with the interface of a container.
of_container() {
    ip link add name pods mtu $MTU type bridge
    ip link add name pod mtu $MTU type veth peer name pod0 mtu $MTU
    for iface in pods pod host0; do
        ip link set dev $iface up
    done
    ip link set host0 master pods
    ip link set pod master pods
    give_iface $A pod0 10.99.0.1
    in_a ethtool -K eth0 tx on tso on gro on >/dev/null
    [ "$(offload tx-checksumming) $(offload tcp-segmentation-offload)" = \
        "on on" ] || fail "the container has no offloads"
}

begin() {
    MTU=$1
    shift
    ip -n $B link set eth0 mtu "$MTU" || fail "B's MTU"
    shim_start "$@"
    [ "$(cat /sys/class/net/host0/mtu)" = "$MTU" ] || fail "host0's MTU"
}

gone() { ! ip link show host0 && ! in_a ip link show eth0; }

load virtio_net vhost_net bridge veth
wait_until iface_of 13.0
give_iface $B "$(iface_of 13.0)" 10.99.0.2
let_go 0000:00:12.0
echo_in_b

for mtu in 1500 9000; do
    begin $mtu
    of_host
    works "a host"
    shim_stop
    wait_until gone
done

# With interrupts; after a kill, the next shim creates the interface again.
begin 1500 --poll interrupt
of_host
works "a host"
ping 30 100 || fail "$(tail -n 1 /run/ping)"
ok "by interrupt, a round trip: $(median 15) us"
[ "$(median 15)" -lt 10000 ] || fail "no interrupt wakes the shim"
starts_not "$SOCK" --mtu 1500 --take-over
ping 3 100 || fail "after an attempt to take over"
kill -9 "$SHIM_PID"
wait "$SHIM_PID"
wait_until gone
ok "after kill -9 the interface is gone"

begin 1500
of_container
works "a container"
shim_stop
ip link del pod
ip link del pods

begin 9000 --no-huge
of_container
works "a container, ordinary pages"
shim_stop
! grep "receive interrupts do not work" /out/shim.log || fail "an interrupt is given up"
echo PASS
