#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks congestion control with a bottleneck inside the network instead of at
# a host's link, with frames of 9000 bytes, over IPv4 and IPv6: a switch on the
# path to host 0 has half of the rate known to the shims, and marks queued
# packets (ECN).  Shims that have negotiated ECN make packets ECN-capable and
# react to marks; hosts see no ECN bits, and packets from or to a host with a
# shim without congestion control (host 3) are not ECN-capable.
set -u
HOSTS=3 RATE=100mbit MTU=9000 QUEUE=1000000
. "$SOURCE/tests/lab/incast-net.sh"
CORE=50                 # Mbit/s.
# Bytes from which the core marks: ten frames.  With four, the windows are of two
# or three frames, and the shares of two flows differ by a factor of up to three.
MARK=90000

# ipv6_on I: host I has address fd99::I+1.
ipv6_on() {
    in_host "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 \
        net.ipv6.conf.eth0.disable_ipv6=0 2>/dev/null &&
        ip -n "$PREFIX-h$1" addr add "fd99::$(($1 + 1))/64" dev eth0 nodad
}

# Removes host 0's port from the bridge: the link between them is the core.
ip -n "$PREFIX-f" link add core0 mtu $MTU type veth peer name core1 mtu $MTU
ip -n "$PREFIX-f" link set core0 master switch
ip -n "$PREFIX-f" link set core0 up
ip -n "$PREFIX-f" link set core1 up
in_fabric tc qdisc del dev port0 root
ip -n "$PREFIX-f" link set port0 nomaster

for i in 0 1 2; do
    shim_start $i --cc on
done
shim_start 3 --cc off
shims_wait
families=4
for i in $(hosts); do
    ipv6_on "$i" && families="4 6"
done

# core_start NAME, core_stop: counters of the core go to $TMP/NAME.
core_start() {
    in_fabric "$BUILD/tests/lab/ce-link" core1 port0 $CORE $MARK 1000000 \
        >"$TMP/$1" &
    core=$!
    PIDS="$PIDS $core"
}
core_stop() {
    for pid in $(ip netns pids "$PREFIX-f"); do
        kill "$pid"
    done
    wait $core
}
core_value() { tr -s ' ' '\n' <"$TMP/$1" | grep -A1 -x "$2" | tail -1; }

# ecn_seen I: prints the number of IP packets with ECN bits that host I
# received.
# shellcheck disable=SC2016
ecn_seen() {
    { in_host "$1" awk '$1 == "IpExt:" && !n { n = split($0, name); next }
                        $1 == "IpExt:" { for (i = 1; i <= n; i++)
                                             print name[i], $i }' \
          /proc/net/netstat
      in_host "$1" cat /proc/net/snmp6 2>/dev/null; } |
        awk '/InECT[01]Pkts|InCEPkts/ { sum += $2 }
            END { printf "%.0f\n", sum }'
}

# mbps HOST PORT FROM TO: prints the rate that PORT of the host received
# between two times, in Mbit/s.
mbps() {
    awk -v port="$2" -v from="$3" -v to="$4" '
        $1 > from && $1 <= to && $2 == port { bytes += $3 }
        END { printf "%d\n", bytes * 8 / (to - from) / 1000 }' "$TMP/sink.$1"
}

# send FROM TO PORT MS: starts a flow to the sink of host TO; its times go to
# $TMP/PORT.
send() {
    in_host "$1" "$traffic" source "$(address "$2")" "$3" $(($3 - 1000)) 0 0 \
        "$4" >"$TMP/$3" & sources="$sources $!"
}
# last_begin PORT..., first_end PORT...: print the times of these flows.
last_begin() {
    (cd "$TMP" && awk '/begin/ { print $2 }' "$@" | sort -n | tail -n 1)
}
first_end() {
    (cd "$TMP" && awk '/end/ { print $2 }' "$@" | sort -n | head -n 1)
}

# sinks_start PORT, sinks_stop: sinks of hosts 0 and 3.  The end of a sink ends
# its connections, with data that their senders still have.
sinks_start() {
    sinks=
    for i in 0 3; do
        ip netns exec "$PREFIX-h$i" "$traffic" sink 60000 $(($1 + 1)) \
            $(($1 + 2)) >"$TMP/sink.$i" & sinks="$sinks $!"
        wait_until host_listens $i t $(($1 + 2))
    done
    PIDS="$PIDS $sinks"
}
sinks_stop() {
    for pid in $sinks; do
        kill "$pid"
        wait "$pid"
    done 2>/dev/null
}
address() {
    case $family in
    4) echo "10.99.0.$(($1 + 1))" ;;
    6) echo "fd99::$(($1 + 1))" ;;
    esac
}
sources_wait() {
    for pid in $sources; do
        wait "$pid" || fail "IPv$family: a source"
    done
    sources=
}

sources=
for family in $families; do
    port=$((6000 + family * 10))
    # A sender, and then a receiver, with a shim without congestion control.
    core_start "alone.$family"
    sinks_start $port
    send 3 0 $((port + 1)) 1500
    send 0 3 $((port + 2)) 1500
    sources_wait
    sinks_stop
    core_stop
    to_3=$(mbps 3 $((port + 2)) "$(last_begin $((port + 2)))" \
        "$(first_end $((port + 2)))")
    echo "IPv$family, to host 3: $to_3 Mbit/s"
    [ "$to_3" -ge 30 ] || fail "IPv$family: to host 3: $to_3 Mbit/s"
    cat "$TMP/alone.$family"
    [ "$(core_value "alone.$family" able)" = 0 ] ||
        fail "IPv$family: marks were offered by a shim alone"

    marks=$(shim_value 0 cc_marks)
    core_start "both.$family"
    sinks_start $port
    send 1 0 $((port + 1)) 6000
    send 2 0 $((port + 2)) 6000
    sources_wait
    sinks_stop
    core_stop
    cat "$TMP/both.$family"
    marks=$(($(shim_value 0 cc_marks) - marks))
    marked=$(core_value "both.$family" marked)
    [ "$marked" -gt 0 ] || fail "IPv$family: nothing was marked"
    [ "$marks" -gt 0 ] || fail "IPv$family: the shim has seen no mark"
    [ "$marks" -le "$marked" ] || fail "IPv$family: $marks marks of $marked"
    [ "$(core_value "both.$family" dropped)" = 0 ] ||
        fail "IPv$family: the core dropped"
    # Shares count after both have begun, and two seconds in which they
    # approach each other: the first of them may have had the whole core.
    from=$(($(last_begin $((port + 1)) $((port + 2))) + 2000))
    to=$(first_end $((port + 1)) $((port + 2)))
    sum=0
    for i in 1 2; do
        rate=$(mbps 0 $((port + i)) "$from" "$to")
        echo "IPv$family, flow $i: $rate Mbit/s"
        sum=$((sum + rate))
        [ "$rate" -ge 15 ] || fail "IPv$family: flow $i has $rate Mbit/s"
    done
    [ $sum -ge $((CORE * 7 / 10)) ] || fail "IPv$family: $sum Mbit/s"
    for i in $(hosts); do
        [ "$(ecn_seen "$i")" = 0 ] || fail "IPv$family: host $i has seen ECN"
    done
done
[ "$(shim_value 1 cc_grants_taken)" -gt 0 ] || fail "shim 1 got no grants"
[ "$(shim_value 0 cc_windows)" -gt 0 ] || fail "no window was lowered"
[ "$families" = "4 6" ] || echo "without IPv6: the kernel has none"
echo PASS
