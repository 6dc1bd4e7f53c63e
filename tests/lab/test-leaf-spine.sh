#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a fabric of two leaves and two spines from a topology file: hosts
# reach each other over both spines, a link failure interrupts traffic for less
# than a second, the order has the uplinks that routes use, a switch with a
# wrong datapath id is rejected, and another decoder accepts the messages as
# OpenFlow.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
id=$(($$ % 100000))
fab=scs$id-fab
stagecoach=$BUILD/cli/stagecoach
need_root
need ovs-vswitchd ovs-vsctl ovs-ofctl ovsdb-server ovs-appctl ethtool

begin fabric
export STAGECOACH_RUNDIR="$dir/run"
. "$SOURCE/tests/lab/switch-functions.sh"

clean_up() {
    stop_databases run
    for ns in "$fab" "scs$id-h0" "scs$id-h1" "scs$id-h2" "scs$id-h3"; do
        ip netns del "$ns" 2>/dev/null
    done
}
show() { switches; }

switches() {
    ovs-appctl -t "$dir/run/fabric.ctl" controller/switches
}
says() { switches | grep -q -- "$1"; }
ordered() {
    ovs-appctl -t "$dir/run/fabric.ctl" controller/order | grep -q -- "$1"
}
in_sync() { [ "$(switches | grep -o '"in sync"' | wc -l)" = "$1" ]; }

# Prints the flows of bridge $1 in table 1 with priority $2.
routes() {
    ovs-ofctl -O OpenFlow14 dump-flows "unix:$dir/ovs/$1.mgmt" |
        grep "table=1.*priority=$2,"
}

# Prints how many packets spine0 has from leaf0.
packets() {
    ovs-ofctl -O OpenFlow14 dump-ports "unix:$dir/ovs/spine0.mgmt" 1 |
        sed -n 's/.*rx pkts=\([0-9]*\),.*/\1/p'
}

# Takes the link of leaf $1 down to the spine that the beat from h0 takes, and
# leaves its number in $dir/spine.
cut() {
    before=$(packets)
    sleep 0.3
    [ $(($(packets) - before)) -ge 30 ] && spine=0 || spine=1
    echo "$spine" >"$dir/spine"
    ip -n "$fab" link set "l$1$spine" down
}

ns() {
    host=$1
    shift
    ip netns exec "scs$id-$host" "$@"
}

# The wires: hosts h0 h1 at leaf0, h2 h3 at leaf1, both leaves at both spines.
wire() {
    ip netns add "$fab"
    ip -n "$fab" link set lo up
    for n in 0 1 2 3; do
        ip netns add "scs$id-h$n"
        ip -n "$fab" link add "p$n" type veth peer name eth0 netns "scs$id-h$n"
        ip -n "$fab" link set "p$n" up
        ip -n "scs$id-h$n" addr add "10.78.0.$((n + 1))/24" dev eth0
        ip -n "scs$id-h$n" link set eth0 up
        ip netns exec "scs$id-h$n" ethtool -K eth0 tx off >/dev/null
    done
    for leaf in 0 1; do
        for spine in 0 1; do
            ip -n "$fab" link add "l$leaf$spine" type veth \
                peer name "s$spine$leaf"
            ip -n "$fab" link set "l$leaf$spine" up
            ip -n "$fab" link set "s$spine$leaf" up
        done
    done
}

# bridge NAME DATAPATH TCP-PORT INTERFACE:PORT...
bridge() {
    name=$1
    set -- "$name" "000000000000000$2" "$3" "$4" "$5" "$6" "$7"
    ovs-vsctl --timeout=20 --no-wait add-br "$name" -- set bridge "$name" \
        datapath_type=netdev fail_mode=secure \
        protocols=OpenFlow13,OpenFlow14 other_config:datapath-id="$2" \
        -- set-controller "$name" "ptcp:$3:127.0.0.1" \
        -- set controller "$name" connection-mode=out-of-band
    for interface in "$4" "$5" "$6" "$7"; do
        [ -z "$interface" ] || ovs-vsctl --no-wait add-port "$name" \
            "${interface%:*}" -- set interface "${interface%:*}" \
            ofport_request="${interface#*:}"
    done
}

start_switches() {
    start_switch_database
    bridge leaf0 1 6701 p0:1 p1:2 l00:10 l01:11
    bridge leaf1 2 6702 p2:1 p3:2 l10:10 l11:11
    bridge spine0 3 6703 s00:1 s01:2 "" ""
    bridge spine1 4 6704 s10:1 s11:2 "" ""
    start_switch ip netns exec "$fab" ovs-vswitchd
    await "the switches are there" test -S "$dir/ovs/spine1.mgmt"
}

write_topology() {
    {
        echo '{"switches": ['
        comma=
        for n in 1:leaf0 2:leaf1 3:spine0 4:spine1; do
            id_of=${n%:*}
            [ "$id_of" != "$1" ] || id_of=9
            printf '%s{"name": "%s", "target": "tcp:127.0.0.1:670%d",
                "datapath": "%016d"}' "$comma" "${n#*:}" "${n%:*}" "$id_of"
            comma=,
        done
        echo '], "links": ['
        comma=
        for n in "0 0" "0 1" "1 0" "1 1"; do
            printf '%s{"capacity": "100Mbit", "ends": [
                {"switch": "leaf%d", "port": %d},
                {"switch": "spine%d", "port": %d}]}' "$comma" "${n% *}" \
                "$((10 + ${n#* }))" "${n#* }" "$((${n% *} + 1))"
            comma=,
        done
        echo '], "hosts": ['
        comma=
        for n in 0 1 2 3; do
            printf '%s{"name": "h%d", "ip": "10.78.0.%d",
                "capacity": "100Mbit",
                "at": {"switch": "leaf%d", "port": %d}}' "$comma" "$n" \
                "$((n + 1))" "$((n / 2))" "$((n % 2 + 1))"
            comma=,
        done
        echo ']}'
    } >"$dir/topology.json"
}

start_controller() {
    ip netns exec "$fab" "$BUILD/controller/stagecoach-controller" \
        --policy="$SOURCE/policies/stage.json" \
        --topology="$dir/topology.json" --unixctl="$dir/run/fabric.ctl" \
        --rest=none -vconsole:off -vsyslog:off \
        --log-file="$dir/controller.log" &
    controller=$!
    pids="$pids $controller"
}

stop_controller() {
    kill "$controller"
    wait "$controller" || fail "the controller ended with $?"
}

# Prints the longest gap in milliseconds between replies to packets sent every
# 5 ms from h0 to h2, with the DSCP of a level, while COMMAND runs.
gap_during() {
    ns h0 "$BUILD/tests/lab/traffic" beat 10.78.0.3 7 600 5000 140 \
        >"$dir/beat" &
    beat=$!
    sleep 0.5
    "$@"
    wait $beat || fail "nothing comes back: $(cat "$dir/beat")"
    awk '{ n[$1] = $2 }
        END { gap = n["gap_us"] / 1000; lost = (n["sent"] - n["received"]) * 5
              print int(gap > lost ? gap : lost) }' "$dir/beat"
}

wire
start_switches
start_databases run

if command -v tshark >/dev/null && command -v dumpcap >/dev/null; then
    ip netns exec "$fab" dumpcap -q -i lo -w "$dir/wire.pcapng" \
        -f 'tcp portrange 6701-6704' 2>/dev/null &
    capture=$!
    pids="$pids $capture"
    await "the wire is recorded" test -s "$dir/wire.pcapng"
fi

# The topology has another datapath id for spine1, so the switch is rejected.
write_topology 4
start_controller
await "three switches are kept" in_sync 3
says '"reason":"datapath id 0000000000000004, \\"spine1\\" has 0000000000000009' ||
    fail "another switch's datapath id: $(switches)"
ovs-ofctl -O OpenFlow14 dump-flows "unix:$dir/ovs/spine1.mgmt" |
    grep -q actions= && fail "a refused switch got flows"
stop_controller

write_topology 0
start_controller
await "all switches are kept" in_sync 4
says '"applied":1,' || fail "not all is applied: $(switches)"
for host in h0 h1 h2 h3; do
    ip netns exec "scs$id-$host" "$BUILD/tests/lab/traffic" echo 60000 7 &
    pids="$pids $!"
done
for pair in "h0 2" "h0 3" "h0 4" "h3 1"; do
    await "${pair% *} reaches 10.78.0.${pair#* }" ns "${pair% *}" \
        "$BUILD/tests/lab/traffic" ping "10.78.0.${pair#* }" 7 5 64
done
routes leaf0 100 | grep -q 'actions=group:' || fail "no group of both spines"

# Telemetry of both hosts of a job that will send 200 GB.
for host in h0 h2; do
    "$BUILD/tests/lab/fake-agent" "unix:$dir/run/telemetry.sock" $host \
        100000000 large/t0:2000000:20 >/dev/null &
    pids="$pids $!"
done
"$stagecoach" stage begin --cojob large --rung 0 --iterations 100000 --jobs t0
await "both uplinks of a leaf are a port of the order" ordered \
    '"leaf0>spine0+spine1":[0-9]'
await "all flows are applied" says '"applied":1,'

# The first link of the path goes down during traffic.
gap=$(gap_during cut 0)
echo "reroute: $gap ms of silence"
[ "$gap" -lt 1000 ] || fail "more than a second"
spine=$(cat "$dir/spine")
await "the failed link is reported" says '"links_down":1'
await "the order has the other uplink" ordered \
    "\"leaf0>spine$((1 - spine))\":[0-9]"
gap=$(gap_during ip -n "$fab" link set "l0$spine" up)
echo "back: $gap ms of silence"
[ "$gap" -lt 1000 ] || fail "more than a second"
await "the restored link is reported" says '"links_down":0'
await "the groups are restored" in_sync 4
await "the order has both uplinks" ordered '"leaf0>spine0+spine1":[0-9]'

# A remote link: the other leaf's, at none of leaf0's ports.
gap=$(gap_during cut 1)
echo "reroute, far: $gap ms of silence"
[ "$gap" -lt 1000 ] || fail "more than a second"

# The messages between controller and switches are OpenFlow.
if [ -n "${capture:-}" ]; then
    stop_controller
    kill "$capture"
    wait "$capture" || :
    decode() {
        tshark -r "$dir/wire.pcapng" -d tcp.port==6701-6704,openflow "$@" \
            2>/dev/null
    }
    n=$(decode -Y 'openflow_v4 || openflow_v5' | wc -l)
    [ "$n" -ge 50 ] || fail "tshark knows $n frames of OpenFlow"
    decode -Y '_ws.malformed || _ws.expert.severity == error' >"$dir/bad"
    [ ! -s "$dir/bad" ] || fail "tshark: $(head -n 5 "$dir/bad")"
    decode -Y 'openflow_v5.type == 33' | grep -q . ||
        fail "no bundle was sent"
    echo "ok: $n frames of OpenFlow, none malformed"
fi
echo PASS
