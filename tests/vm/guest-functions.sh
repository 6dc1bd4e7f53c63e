# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh disable=SC2034,SC2154
#
# Functions of scripts that run in a guest, see run-guest.sh.  Sourced.
#
# $A and $B are hosts, namespaces with an eth0 each, 10.99.0.1 and 10.99.0.2;
# the shim is between them, in the first namespace, with the ports $HOST_PORT
# and $UPLINK.  The guest is destroyed when the script ends.

A=a B=b
MTU=1500
RATE=1Gbit
HOST_PORT=pci:0000:00:11.0
UPLINK=pci:0000:00:12.0
SOCK=/run/shim.sock
traffic=$BUILD/tests/lab/traffic
pattern=$BUILD/tests/vm/pattern

fail() {
    echo "FAILED: $*"
    show 2>/dev/null | grep -v "^cc_\| 0\$"
    [ ! -e /out/shim.log ] || tail -n 20 /out/shim.log
    dmesg | grep -i 'dmar\|vfio\|oops\|bug:' | tail -n 10
    exit 1
}
ok() { echo "ok: $*"; }

in_a() { ip netns exec "$A" "$@"; }
in_b() { ip netns exec "$B" "$@"; }
show() { "$BUILD/shim/stagecoach-shim" --show "$SOCK"; }
shim_ask() { "$BUILD/tests/lab/shim-client" "$SOCK" "$@" || fail "$*"; }

# Waits until a command succeeds, at most 40 seconds: emulated processors
# clear huge pages slowly beside other load.
wait_until() {
    began=$(date +%s)
    until "$@" >/dev/null 2>&1; do
        [ $(($(date +%s) - began)) -lt 40 ] || fail "timeout: $*"
        sleep 0.1
    done
}

load() {
    for module; do
        modprobe "$module" || fail "no module $module"
    done
}

# push_tags TAG [PORT=TAG]...: host A's frames get slot tags, see slot-tags.py.
push_tags() {
    load sch_ingress cls_bpf
    in_a python3 "$SOURCE/tests/lab/slot-tags.py" push eth0 "$@" ||
        fail "no tags"
}

# Prints the kernel's interface of the card with this PCI address.
iface_of() {
    basename "$(find "/sys/bus/pci/devices/0000:00:$1/" -path '*/net/*' \
        -prune)"
}

# give_iface NAMESPACE IFACE ADDRESS: makes it the eth0 of a host, without GRO,
# so that received frames are seen unmerged.
give_iface() {
    [ -e "/run/netns/$1" ] || ip netns add "$1"
    ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
        net.ipv6.conf.default.disable_ipv6=1
    ip link set "$2" netns "$1" name eth0
    ip netns exec "$1" ethtool -K eth0 gro off
    ip -n "$1" link set lo up
    ip -n "$1" addr add "$3/24" dev eth0
    ip -n "$1" link set eth0 up
}

set_mtu() {
    MTU=$1
    ip -n "$A" link set eth0 mtu "$1" && ip -n "$B" link set eth0 mtu "$1" ||
        fail "the hosts' cards take no MTU of $1"
}

# Unbinds cards from the kernel, as described in the shim's manual.
let_go() {
    load vfio-pci
    dpdk-devbind.py --bind=vfio-pci "$@" || fail "the cards stay the kernel's"
}

shim_value() { show | awk -v n="$1" '$1 == n { print $2 }'; }

# slot_value SLOT NAME
slot_value() {
    show | awk -v name="$2" -v slot="$1" '
        $1 == "count" && $3 == slot {
            for (i = 2; i < NF; i += 2) if ($i == name) print $(i + 1)
        }'
}

shim_begin() {
    "$BUILD/shim/stagecoach-shim" --name guest --host-port "$HOST_PORT" \
        --uplink "$UPLINK" --rate "$RATE" --mtu "$MTU" --control "$SOCK" --cc off \
        --host-tags yes "$@" >>/out/shim.log 2>&1 &
    SHIM_PID=$!
}

shim_start() {
    shim_begin "$@"
    wait_until show
}

# starts_not CONTROL [OPTION]...: another shim on the same ports fails.
starts_not() {
    log=$(timeout 20 "$BUILD/shim/stagecoach-shim" --name guest2 \
        --host-port "$HOST_PORT" --uplink "$UPLINK" --rate 1Gbit \
        --control "$@" 2>&1)
    status=$?
    [ $status = 1 ] || fail "status $status: $log"
    ok "$(echo "$log" | tail -n 1)"
}

shim_stop() {
    kill "$SHIM_PID"
    wait "$SHIM_PID" || fail "the shim's exit status is $?"
}

# doctor_says PORT WORDS: checks the output of the doctor about this port.
doctor_says() {
    "$BUILD/cli/stagecoach" agent doctor --port "$1" >/run/doctor
    grep "$1" /run/doctor | grep -q "$2" ||
        fail "the doctor says of $1: $(cat /run/doctor)"
}

# Starts an agent without a controller, for the shim.
agent_start() {
    mount -t cgroup2 cgroup /sys/fs/cgroup
    "$BUILD/agent/stagecoach-agent" --host=guest --rundir=/run \
        --shim="$SOCK" -vconsole:info -vsyslog:off 2>/out/agent.log &
    AGENT_PID=$!
}
agent_says() {
    ovs-appctl -T 5 -t /run/agent.ctl agent/status | grep -q -- "$1"
}

# ping N BYTES: UDP from A to B and back.
ping() { in_a "$traffic" ping 10.99.0.2 7000 "$1" "$2" >/run/ping; }
median() { awk '$1 == "rtt" { print $2 }' /run/ping | sort -n | sed -n "$1p"; }
echo_in_b() { in_b "$traffic" echo 600000 7000 & }

# The DSCPs that B receives between watch_marks and end_watch are in /run/dscp.
watch_marks() {
    ip netns exec "$B" "$traffic" dscp 60000 eth0 >/run/dscp & dscp=$!
}
end_watch() {
    kill $dscp
    wait $dscp
}

# tcp_counter NAMESPACE NAME: prints a counter of the kernel.
tcp_counter() {
    ip netns exec "$1" awk -v name="$2" '$1 != "Tcp:" { next }
        !n { n = split($0, names); next }
        { for (i in names) if (names[i] == name) print $i }' /proc/net/snmp
}

# transfer BYTES PORT...: transfers a known byte pattern from A to B and from B
# to A, with one connection for each port and direction, from that port + 1000.
transfer() {
    bytes=$1
    shift
    jobs=
    for port; do
        in_b "$pattern" take "$port" "$bytes" 60 & jobs="$jobs $!"
        in_a "$pattern" take "$port" "$bytes" 60 & jobs="$jobs $!"
        in_a "$pattern" give 10.99.0.2 "$port" $((port + 1000)) "$bytes" 60 &
        jobs="$jobs $!"
        in_b "$pattern" give 10.99.0.1 "$port" $((port + 1000)) "$bytes" 60 &
        jobs="$jobs $!"
    done
    for job in $jobs; do
        wait "$job" || return 1
    done
}
