#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# localize-net.sh up PREFIX N RATE | down PREFIX N: N namespaces PREFIX0... with
# the addresses 10.98.0.1..., each with a link of RATE in each direction to a
# switch, the namespace PREFIXs.
set -eu

case $1 in
up)
    ip netns add "$2s"
    ip -n "$2s" link add switch up type bridge
    for i in $(seq 0 $(($3 - 1))); do
        ip netns add "$2$i"
        ip -n "$2$i" link set lo up
        ip link add port netns "$2$i" type veth peer "p$i" netns "$2s"
        ip -n "$2s" link set "p$i" master switch up
        ip -n "$2$i" address add "10.98.0.$((i + 1))/24" dev port
        ip -n "$2$i" link set port up
        ip netns exec "$2$i" tc qdisc add dev port root tbf rate "$4" \
            burst 128kb limit 1mb
        ip netns exec "$2s" tc qdisc add dev "p$i" root tbf rate "$4" \
            burst 128kb limit 1mb
    done
    ;;
down)
    for i in s $(seq 0 $(($3 - 1))); do
        ip netns delete "$2$i" 2>/dev/null || true
    done
    ;;
esac
