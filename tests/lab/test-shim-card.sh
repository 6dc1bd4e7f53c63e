#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks stagecoach-card: a host that is moved behind a shim keeps its
# addresses, routes and connections while the kernel or a shim forwards, no
# frame arrives twice but for a few at the change, and afterwards everything is
# as before.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need ip tc ethtool
[ -x "$BUILD/shim/stagecoach-shim" ] || { echo "skip: no DPDK"; exit 77; }
begin card
name=sct-card-$$
far=$name-far
traffic=$BUILD/tests/lab/traffic
card=$SOURCE/packaging/card/stagecoach-card

clean_up() {
    ip netns del "$name" 2>/dev/null
    ip netns del "$far" 2>/dev/null
    rm -rf "/run/dpdk/$name"
}
show() { here ip address; }
here() { ip netns exec "$name" "$@"; }
in_far() { ip netns exec "$far" "$@"; }

ip netns add "$name"
ip netns add "$far"
ip link add eth0 netns "$name" type veth peer name eth0 netns "$far"
for ns in "$name" "$far"; do
    ip -n "$ns" link set lo up
    ip -n "$ns" link set eth0 up
    ip netns exec "$ns" ethtool -K eth0 tx off >/dev/null
done
ip -n "$far" address add 10.99.0.2/24 dev eth0
for address in 10.99.0.1/24 10.99.0.3/24 10.98.0.1/32; do
    ip -n "$name" address add $address brd + dev eth0
done
ip -n "$name" -6 address add fd99::1/64 dev eth0 nodad
ip -n "$name" route add default via 10.99.0.2
ip -n "$name" route add 10.97.0.0/16 dev eth0 metric 7
ip -n "$name" route add 10.96.0.0/16 via 10.99.0.2 table 77
ip -n "$name" -6 route add default via fd99::2
# What an operator sees, without the order of routes and the state of IPv6's
# duplicate address detection.
state() {
    here ip -o link show dev eth0 | sed 's/.*\(<.*\)qdisc.*\(link.*\)/\1\2/'
    here ip -o address show dev eth0 | sed 's/ nodad//; s/ tentative//'
    for family in -4 -6; do
        here ip $family route show table all dev eth0 |
            sed '/^local fe80/d' | sort
    done
    here tc qdisc show dev eth0
}
has_link_local() { here ip -6 address show dev eth0 | grep -q fe80; }
await "eth0 has all addresses" has_link_local
state >"$dir/before"

# Cards that it must not take, and words.
refused() {
    status=0
    here "$card" attach "$1" >"$dir/out" 2>&1 || status=$?
    [ $status = 1 ] || fail "attach $1: exit $status"
    grep -q "^stagecoach-card: $1: $2" "$dir/out" || fail "$(cat "$dir/out")"
    [ "$(wc -l <"$dir/out")" = 1 ] || fail "$(cat "$dir/out")"
}
refused eth7 'there is no such interface'
here ip link add link eth0 name upper type macvlan
refused eth0 'upper is on top of it, only'
here ip link del upper
here ip link add br0 type bridge
here ip link add part type veth peer name parted
here ip link set part master br0
refused part 'is a port of a bridge or a bond, only'
here ip link del br0
here ip address add 10.95.0.1/24 dev parted valid_lft 100 preferred_lft 100
refused parted 'its address is by DHCP, only'
here ip link del parted
status=0
here "$card" attach 2>"$dir/out" || status=$?
[ $status = 2 ] || fail "usage: exit $status"
echo "ok: refusals"

# A host that sends and a host that replies, all the time.
ip netns exec "$far" "$traffic" sink 30000 5001 >/dev/null &
pids="$pids $!"
ip netns exec "$name" "$traffic" echo 30000 7000 &
pids="$pids $!"
listens() { in_far ss -Hltn "sport = :5001" | grep -q .; }
await "the far end listens" listens
ip netns exec "$name" "$traffic" source 10.99.0.2 5001 0 0 0 4000 >/dev/null &
source=$!
ip netns exec "$far" "$traffic" beat 10.99.0.1 7000 4000 1000 >"$dir/beat" &
beat=$!
sleep 0.3
here "$card" attach eth0 || fail "attach"
[ -z "$(here ip -o address show dev eth0)" ] || fail "eth0 has addresses"
routes() {
    for family in -4 -6; do
        here ip $family route show table all dev "$1" | sort
    done | grep -v multicast
}
routes stage0 >"$dir/routes"
grep -v 'multicast\|inet\|^<\|^qdisc' "$dir/before" | diff - "$dir/routes" ||
    fail "routes of stage0"
here ip link add other type veth peer name another
status=0
here "$card" attach other 2>"$dir/out" || status=$?
[ $status = 1 ] && grep -q 'stage0: exists, only one' "$dir/out" ||
    fail "a second card: $(cat "$dir/out")"
here ip link del other
sleep 0.3
ip netns exec "$name" "$BUILD/shim/stagecoach-shim" --name "$name" \
    --host-port af_packet:stage0-shim --uplink af_packet:eth0 --rate 1Gbit \
    --control "$dir/shim.sock" --cc off 2>"$dir/shim.log" &
shim=$!
pids="$pids $shim"
by_shim() { [ -z "$(here tc filter show dev eth0 ingress)" ]; }
await "the shim forwards instead of the kernel" by_shim
sleep 1
kill $shim
wait $shim || fail "the shim"
here "$card" detach eth0 || fail "detach"
here "$card" detach eth0 || fail "detach twice"
wait $source || fail "the connection broke"
wait $beat || fail "no replies"
echo "beat: $(tr '\n' ' ' <"$dir/beat")"
result() { awk -v name="$1" '$1 == name { print $2 }' "$dir/beat"; }
# What arrives in the milliseconds in which the shim removes the kernel's
# filters is forwarded twice (end_bypass() in shim/shim.c).  If both went on,
# each of a thousand frames a second would be.
[ "$(result duplicates)" -le 10 ] || fail "frames arrived twice"
state | diff "$dir/before" - >"$dir/out" || fail "after detach: $(cat "$dir/out")"
echo PASS
