#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks lanes on network cards with as many queues: the cards distribute the
# flows, each lane receives its own queue, and the shim's counters match the
# cards' counters.  The hosts leave checksums and segmentation to their cards.
set -u
. "$SOURCE/tests/vm/guest-functions.sh"

BYTES=2000000
PORTS="5001 5002 5003 5004 5005 5006 5007 5008"

# queue_packets CARD: prints the packets that each queue of the host's card (0)
# or of the uplink's (1) has received, from DPDK's telemetry.
queue_packets() {
    echo "/ethdev/xstats,$1" | dpdk-telemetry.py -f guest |
        grep -o '"rx_q[0-9]*_good_packets": [0-9]*' | cut -d ' ' -f 2
}

# Prints the sum, the least, or a row of the numbers on standard input.
sum() { awk '{ n += $1 } END { print n }'; }
least() { sort -n | head -n 1; }
row() { tr '\n' ' '; }

# same_counts NAME CARD: checks that the shim's counter equals the sum of the
# card's queues.
same_counts() {
    for try in 1 2 3 4 5; do
        before=$(shim_value "$1")
        queues=$(queue_packets "$2" | sum)
        [ "$before" != "$queues" ] || return 0
        sleep 0.5
    done
    fail "$1: the shim counted $before, the queues $queues (try $try)"
}

load virtio_net
wait_until iface_of 13.0
give_iface $A "$(iface_of 10.0)" 10.99.0.1
give_iface $B "$(iface_of 13.0)" 10.99.0.2
in_a ethtool -k eth0 | grep -q '^tcp-segmentation-offload: on' ||
    fail "nothing is left to the card"
let_go 0000:00:11.0 0000:00:12.0

# The data in flight must be less than a queue: when one queue is full, the
# emulator (7.2) may wait forever for room in another one.
for host in $A $B; do
    ip netns exec $host sysctl -qw net.ipv4.tcp_rmem="4096 65536 65536"
done
echo_in_b

# spreads LANES: the cards have four queues.
spreads() {
    shim_start --lanes "$1"
    wait_until ping 1 100
    shim_ask lease 120000 10
    shim_ask slot 5 3 32 asha/t1
    # shellcheck disable=SC2046
    push_tags 0 $(printf '%s=5\n' $PORTS)
    watch_marks
    # shellcheck disable=SC2086
    transfer $BYTES $PORTS || fail "TCP"
    end_watch || fail "a header's checksum"
    awk '$1 > 5000 && $1 < 7000 { n += $3; if ($2 != 32) exit 1 }
        END { exit !(n > 1000) }' /run/dscp ||
        fail "marks: $(cat /run/dscp)"

    for card in 0 1; do
        ok "$1 lanes, received by card $card: $(queue_packets $card | row)"
        [ "$(queue_packets $card | wc -l)" = "$1" ] || fail "queues"
        [ "$(queue_packets $card | least)" -gt 500 ] || fail "not spread"
    done
    same_counts tx_packets 0
    same_counts rx_packets 1
    for bytes in tx_bytes rx_bytes; do
        [ "$(slot_value 5 $bytes)" -gt $((8 * BYTES)) ] ||
            fail "the job's $bytes: $(slot_value 5 $bytes)"
    done
    for name in lane_lost port_dropped malformed; do
        [ "$(shim_value $name)" = 0 ] || fail "$name"
    done
    for host in $A $B; do
        [ "$(tcp_counter $host InCsumErrors)" = 0 ] || fail "checksums"
    done
}

# All packets of a flow must use one queue, to keep their order.
stays() {
    queue_packets "$1" >"/run/before$1"
    transfer $BYTES 5003
    queue_packets "$1" | paste - "/run/before$1" |
        awk '{ print $1 - $2 }' >/run/got
    ok "of two flows, received by card $1: $(row </run/got)"
    [ "$(awk '$1 > 100' /run/got | wc -l)" -le 2 ] || fail "flows are torn"
}

spreads 4
stays 0
stays 1
shim_stop

# With fewer lanes than there are queues, jumbo frames, and by interrupt.
set_mtu 9000
shim_start --lanes 3 --poll interrupt
wait_until ping 1 100
ping 30 8972 || fail "$(tail -n 1 /run/ping)"
ok "3 lanes, MTU 9000: a round trip: $(median 15) us"
[ "$(median 15)" -lt 10000 ] || fail "a lane is not woken"
transfer $BYTES 5001 5002 5003 5004 || fail "MTU 9000: TCP"
ok "received by card 0: $(queue_packets 0 | row)"
[ "$(queue_packets 0 | wc -l)" = 3 ] || fail "queues"
shim_stop
! grep "receive interrupts do not work" /out/shim.log || fail "an interrupt is given up"
echo PASS
