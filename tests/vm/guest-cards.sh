#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a shim on two network cards: TCP in both directions at both frame
# sizes, DSCPs, counters, interrupts, memory without huge pages, a shim that is
# killed, and a second shim on the same cards.
set -u
. "$SOURCE/tests/vm/guest-functions.sh"

BYTES=4000000

# Checks all traffic between A and B through a new shim.
works() {
    ping 100 $((MTU - 28)) || fail "MTU $MTU: $(tail -n 1 /run/ping)"
    shim_ask lease 120000 10
    shim_ask slot 5 3 32 asha/t1
    push_tags 0 5001=5
    watch_marks
    transfer $BYTES 5001 || fail "MTU $MTU: TCP"
    end_watch || fail "MTU $MTU: a header's checksum"

    awk '$1 > 5000 && $1 < 7000 { n += $3; if ($2 != 32) exit 1 }
        END { exit !(n > 400) }' /run/dscp ||
        fail "MTU $MTU: marks: $(cat /run/dscp), $(tcp_counter $A RetransSegs)" \
            "and $(tcp_counter $B RetransSegs) sent again"
    [ "$(slot_value 5 tx_bytes)" -gt $BYTES ] || fail "MTU $MTU: tx_bytes"
    [ "$(slot_value 5 rx_bytes)" -gt $BYTES ] || fail "MTU $MTU: rx_bytes"
    [ "$(shim_value malformed)" = 0 ] || fail "MTU $MTU: malformed"
    [ "$(shim_value port_dropped)" = 0 ] || fail "MTU $MTU: dropped"
    for host in $A $B; do
        [ "$(tcp_counter $host InCsumErrors)" = 0 ] || fail "checksums"
    done
    ok "MTU $MTU: $(awk '$1 == 5001 { print $3 }' /run/dscp) marked packets," \
        "$(tcp_counter $A RetransSegs) and $(tcp_counter $B RetransSegs)" \
        "sent again"
}

case $KIND in
virtio) load virtio_net ;;
*) load virtio_net "$KIND" ;;
esac
wait_until iface_of 13.0
give_iface $A "$(iface_of 10.0)" 10.99.0.1
give_iface $B "$(iface_of 13.0)" 10.99.0.2
echo_in_b

# Cards that are still bound to the kernel.
starts_not /run/none.sock
doctor_says "$UPLINK" "vfio-pci is needed"
let_go 0000:00:11.0 0000:00:12.0
doctor_says "$UPLINK" "/dev/vfio/vfio"

shim_start
wait_until ping 1 100
works

# A second shim cannot open the cards, even with --take-over; the first one
# keeps forwarding.
starts_not "$SOCK" --take-over
ping 3 100 || fail "after an attempt to take over"
shim_stop

# An idle shim sleeps, and wakes up by interrupt or, without interrupts, by a
# timer.
shim_start --poll interrupt
wait_until ping 10 100
before=$(shim_value busy_ns)
sleep 2
permille=$((($(shim_value busy_ns) - before) / 2000000))
ping 50 100 || fail "$(tail -n 1 /run/ping)"
ok "idle: $permille permille of a processor; a round trip: $(median 25) us"
[ $permille -le 150 ] || fail "an idle shim takes $permille permille"
[ "$(median 25)" -lt 10000 ] || fail "the shim sleeps although frames come"
deaf=$(grep -c "receive interrupts do not work" /out/shim.log)
case $KIND in
e1000e) [ "$deaf" -ge 1 ] || fail "DPDK's driver has interrupts now" ;;
*) [ "$deaf" = 0 ] || fail "an interrupt is given up" ;;
esac

if [ "$KIND" = vmxnet3 ]; then
    # Drops because the card has no free buffer.  The other emulated cards hold
    # such frames back.
    kill -STOP "$SHIM_PID"
    in_a "$traffic" flood 10.99.0.2 7000 2000 100
    kill -CONT "$SHIM_PID"
    wait_until ping 1 100
    [ "$(shim_value port_dropped)" -gt 500 ] || fail "lost frames are counted"
    ok "frames that were lost: $(shim_value port_dropped)"
    shim_stop       # A driver that is killed makes this emulated card abort.
else
    # When the shim is killed, the card keeps its state, and the next shim can
    # open it.  Until then frames are not forwarded: the kernel has no
    # interface on this card, so no bypass is possible, and the agent logs
    # that.
    agent_start
    wait_until agent_says '"shim":"connected"'
    kill -9 "$SHIM_PID"
    wait "$SHIM_PID"
    wait_until grep "bypass between 0000:00:11.0 and .* cannot be enabled" /out/agent.log
    agent_says '"bypass":false' || fail "a bypass is reported"
    ping 1 100 && fail "frames are forwarded without a shim"
    ok "$(grep -o "the shim does not forward.*" /out/agent.log | head -n 1)"
    kill "$AGENT_PID"
fi

# Memory without huge pages, with addresses from the IOMMU.  Not with jumbo
# frames: the emulator (7.2) loses those that e1000e or vmxnet3 sends from
# pages that are not adjacent in its own memory.
shim_start --no-huge
wait_until ping 1 100
ok "forwards again"
works
shim_stop

set_mtu 9000
shim_start --huge
wait_until ping 1 100
works
shim_stop
echo PASS
