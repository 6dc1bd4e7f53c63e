#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# gossip-net.sh up PREFIX N RATE | slow PREFIX I J RATE | down PREFIX N: N
# namespaces PREFIX0... with the addresses 10.99.0.1... and, between any two, a
# link of its own with RATE in each direction.
set -eu

shape() {       # PREFIX I J RATE
    ip netns exec "$1$2" tc qdisc replace dev "l$3" root tbf rate "$4" \
        burst 4kb limit 24kb
}

case $1 in
up)
    for i in $(seq 0 $(($3 - 1))); do
        ip netns add "$2$i"
        ip -n "$2$i" link set lo up
        ip -n "$2$i" address add "10.99.0.$((i + 1))/32" dev lo
        for j in $(seq 0 $((i - 1))); do
            ip link add "l$j" netns "$2$i" type veth peer "l$i" netns "$2$j"
            for end in "$i $j" "$j $i"; do
                # shellcheck disable=SC2086
                set -- "$1" "$2" "$3" "$4" $end
                ip netns exec "$2$5" ethtool -K "l$6" tso off gso off gro off \
                    >/dev/null 2>&1 || true
                ip -n "$2$5" link set "l$6" up
                ip -n "$2$5" route add "10.99.0.$(($6 + 1))/32" dev "l$6" \
                    src "10.99.0.$(($5 + 1))"
                shape "$2" "$5" "$6" "$4"
            done
        done
    done
    ;;
slow)
    shape "$2" "$3" "$4" "$5"
    shape "$2" "$4" "$3" "$5"
    ;;
down)
    for i in $(seq 0 $(($3 - 1))); do
        ip netns delete "$2$i" 2>/dev/null || true
    done
    ;;
esac
