# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Functions for tests with many hosts with shims on one switch:
#
#    host hI, eth0 10.99.0.I+1 -- hostside, node nI (shim), uplink -- portI,
#    bridge in fabric f
#
# for I from 0 to $HOSTS.  Port 0, to host 0, sends at $RATE through one queue
# of $QUEUE bytes.  The script sets HOSTS, RATE (of tc and the shims), MTU and
# QUEUE before it sources this file; everything is cleaned up when the script
# exits.

[ "$(id -u)" = 0 ] || { echo "needs root" >&2; exit 77; }
[ -x "$BUILD/shim/stagecoach-shim" ] || {
    echo "built without DPDK" >&2
    exit 77
}

PREFIX=sci$(($$ % 100000))
TMP=$(mktemp -d "/tmp/$PREFIX.XXXXXX")
PIDS=
SHIM_PIDS=

# shellcheck disable=SC2034
traffic=$BUILD/tests/lab/traffic

hosts() { seq 0 "$HOSTS"; }
in_host() { ns=$PREFIX-h$1; shift; ip netns exec "$ns" "$@"; }
in_fabric() { ip netns exec "$PREFIX-f" "$@"; }

shims_stop() {
    for pid in $SHIM_PIDS; do
        kill -9 "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    SHIM_PIDS=
}

cleanup() {
    shims_stop
    for pid in $PIDS; do
        kill -9 "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    for ns in $PREFIX-f $(for i in $(hosts); do
                              echo "$PREFIX-h$i $PREFIX-n$i"
                          done); do
        # Processes in the namespaces were started here, but not all by this
        # shell.
        for pid in $(ip netns pids "$ns" 2>/dev/null); do
            kill -9 "$pid" 2>/dev/null || true
        done
        ip netns del "$ns" 2>/dev/null || true
    done
    for i in $(hosts); do
        rm -rf "/var/run/dpdk/$PREFIX-n$i" "/var/run/dpdk/$PREFIX-n$i".*
    done
    rm -rf "$TMP"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# Waits until a command succeeds, about 40 seconds at most.
wait_until() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 800 ] || {
            tail -5 "$TMP/shims" >&2
            fail "timeout: $*"
        }
        sleep 0.05
    done
}

# host_listens I t|u PORT: succeeds if a TCP (t) or UDP (u) socket in host I
# listens on that port.
host_listens() { [ -n "$(in_host "$1" ss "-Hl${2}n" "sport = :$3")" ]; }

# shim_value I NAME: prints a counter of shim I.
shim_value() {
    "$BUILD/shim/stagecoach-shim" --show "$TMP/$1.sock" |
        awk -v name="$2" '$1 == name { print $2 }'
}

# shim_pid I: prints the process id of host I's shim.
shim_pid() {
    "$BUILD/shim/stagecoach-shim" --show "$TMP/$1.sock" |
        awk '$1 == "boot_id" {
            for (i = 1; i < NF; i += 2) if ($i == "pid") print $(i + 1)
        }'
}

# shim_start I OPTION...
shim_start() {
    host=$1
    shift
    ip netns exec "$PREFIX-n$host" "$BUILD/shim/stagecoach-shim" \
        --name "$PREFIX-n$host" --host-port af_packet:hostside \
        --uplink af_packet:uplink --rate "$RATE" --mtu "$MTU" \
        --control "$TMP/$host.sock" --no-huge "$@" 2>>"$TMP/shims" &
    SHIM_PIDS="$SHIM_PIDS $!"
}

# shims_wait: waits until all shims forward.
shims_wait() {
    for i in $(hosts); do
        wait_until "$BUILD/shim/stagecoach-shim" --show "$TMP/$i.sock"
    done
}

ns_make() {
    ip netns add "$1" || exit 77
    ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
        net.ipv6.conf.default.disable_ipv6=1 2>/dev/null
    ip -n "$1" link set lo up
}

host_make() {
    ns_make "$PREFIX-h$1"
    ns_make "$PREFIX-n$1"
    ip link add eth0 mtu "$MTU" netns "$PREFIX-h$1" \
        type veth peer name hostside mtu "$MTU" netns "$PREFIX-n$1" || exit 1
    ip link add uplink mtu "$MTU" netns "$PREFIX-n$1" \
        type veth peer name "port$1" mtu "$MTU" netns "$PREFIX-f" || exit 1
    ip -n "$PREFIX-h$1" addr add "10.99.0.$(($1 + 1))/24" dev eth0
    ip -n "$PREFIX-h$1" link set eth0 up
    ip -n "$PREFIX-n$1" link set hostside up
    ip -n "$PREFIX-n$1" link set uplink up
    # Frames must leave the host's kernel with complete checksums.
    in_host "$1" ethtool -K eth0 tx off >/dev/null
    ip -n "$PREFIX-f" link set "port$1" master switch up
}

ns_make "$PREFIX-f"
ip -n "$PREFIX-f" link add switch mtu "$MTU" type bridge
ip -n "$PREFIX-f" link set switch up
for i in $(hosts); do
    host_make "$i"
done
in_fabric tc qdisc add dev port0 root handle 1: htb default 1
in_fabric tc class add dev port0 parent 1: classid 1:1 htb rate "$RATE" \
    ceil "$RATE" burst $((2 * MTU)) cburst $((2 * MTU)) quantum 60000
in_fabric tc qdisc add dev port0 parent 1:1 handle 2: bfifo limit "$QUEUE"
