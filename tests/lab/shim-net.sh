# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Functions for tests of one shim:
#
#    host A, eth0 10.99.0.1 -- hostside, node N (shim), uplink -- eth0
#    10.99.0.2, host B
#
# The script sets MTU and RATE before it sources this file, and OFFLOADS=on if
# hosts may leave checksums and segmentation to the network card. $A, $N and $B
# are the namespaces, $SOCK is the shim's control socket, $TMP a directory.
# The script calls shim_start; everything is cleaned up when it exits.

[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
[ -x "$BUILD/shim/stagecoach-shim" ] || { echo "built without DPDK"; exit 77; }

PREFIX=sct-shim-$$
A=$PREFIX-a N=$PREFIX-n B=$PREFIX-b
TMP=$(mktemp -d "/tmp/$PREFIX.XXXXXX")
SOCK=$TMP/shim.sock
SHIM_PID=
PIDS=

cleanup() {
    for pid in $SHIM_PID $PIDS; do
        kill -9 "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    for ns in "$A" "$N" "$B"; do
        # Processes in the namespaces were started here, but not all by this
        # shell.
        for pid in $(ip netns pids "$ns" 2>/dev/null); do
            kill -9 "$pid" 2>/dev/null
        done
        ip netns del "$ns" 2>/dev/null
    done
    rm -rf "$TMP" "/var/run/dpdk/$PREFIX" "/var/run/dpdk/$PREFIX".*
}
trap cleanup EXIT
trap 'exit 1' INT TERM

fail() {
    echo "FAIL: $*"
    exit 1
}

in_a() { ip netns exec "$A" "$@"; }
in_b() { ip netns exec "$B" "$@"; }

# shellcheck disable=SC2034
traffic=$BUILD/tests/lab/traffic

shim_ask() { "$BUILD/tests/lab/shim-client" "$SOCK" "$@" || fail "$*"; }

# push_tags NS IFACE TAG [PORT=TAG]...: the frames of that interface get slot
# tags, see slot-tags.py.
push_tags() {
    ns=$1
    shift
    ip netns exec "$ns" python3 "$SOURCE/tests/lab/slot-tags.py" push "$@" &&
        return
    [ $? != 77 ] || exit 77
    fail "no tags"
}

# Waits until a command succeeds, about 40 seconds at most.
wait_until() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 800 ] || fail "timeout: $*"
        sleep 0.05
    done
}

# b_listens t|u PORT: succeeds if a socket in B listens on that TCP or UDP
# port.
b_listens() { [ -n "$(in_b ss "-Hl${1}n" "sport = :$2")" ]; }

# shim_value NAME: prints a counter.
shim_value() {
    "$BUILD/shim/stagecoach-shim" --show "$SOCK" |
        awk -v name="$1" '$1 == name { print $2 }'
}

# job SLOT COUNTER: prints a counter of a job.
job() {
    "$BUILD/shim/stagecoach-shim" --show "$SOCK" | awk -v slot="$1" \
        -v name="$2" '$1 == "count" && $3 == slot {
            for (i = 4; i < NF; i += 2) if ($i == name) print $(i + 1) }'
}

# shim_start [OPTION]...
shim_start() {
    ip netns exec "$N" "$BUILD/shim/stagecoach-shim" --name "$PREFIX" \
        --host-port "${HOST_PORT:-af_packet:hostside}" \
        --uplink "${UPLINK:-af_packet:uplink}" \
        --rate "$RATE" --mtu "$MTU" --control "$SOCK" --cc off \
        "$@" &
    SHIM_PID=$!
    wait_until "$BUILD/shim/stagecoach-shim" --show "$SOCK"
}

shim_stop() {
    kill "$SHIM_PID"
    wait "$SHIM_PID" || fail "exit status $?"
    SHIM_PID=
}

# tcp_bytes PORT MS: prints the bytes received from one flow from A to B.
tcp_bytes() {
    in_b "$traffic" sink-each $(($2 + 1500)) "$1" >"$TMP/sink" &
    sink=$!
    wait_until b_listens t "$1"
    in_a "$traffic" source 10.99.0.2 "$1" 0 0 0 "$2" >/dev/null
    wait "$sink"
    awk '{ n += $3 } END { printf "%.0f\n", n }' "$TMP/sink"
}

# uplink_make: creates the link between the shim and B, also after its
# deletion.
uplink_make() {
    ip link add eth0 mtu "$MTU" address 02:00:00:00:00:02 netns "$B" \
        type veth peer name uplink mtu "$MTU" netns "$N" || exit 1
    ip -n "$B" addr add 10.99.0.2/24 dev eth0
    ip -n "$B" link set eth0 up
    ip -n "$N" link set uplink up
    [ "${OFFLOADS:-}" = on ] || in_b ethtool -K eth0 tx off >/dev/null
}

for ns in "$A" "$N" "$B"; do
    ip netns add "$ns" || exit 77
    ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
        net.ipv6.conf.default.disable_ipv6=1 2>/dev/null
    ip -n "$ns" link set lo up
done
ip link add eth0 mtu "$MTU" netns "$A" \
    type veth peer name hostside mtu "$MTU" netns "$N" || exit 1
ip -n "$A" addr add 10.99.0.1/24 dev eth0
ip -n "$A" link set eth0 up
ip -n "$N" link set hostside up
[ "${OFFLOADS:-}" = on ] || in_a ethtool -K eth0 tx off >/dev/null
uplink_make
