#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the queues of a switch as rows of its database: the controller creates
# them for each port of the topology, the switch creates them in the kernel,
# the controller repairs changed rows, leaves rows of other programs alone,
# keeps its rows when it restarts, and does not overwrite a newer controller's.
# When queues are no longer configured, it removes them and restores the
# previous QoS.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
id=$(($$ % 100000))
fab=scq$id
need_root
need ovs-vswitchd ovs-vsctl ovsdb-server ovs-appctl tc

begin queues
export STAGECOACH_RUNDIR="$dir/run"
. "$SOURCE/tests/lab/switch-functions.sh"

clean_up() {
    stop_databases run
    ip netns del "$fab" 2>/dev/null
}
show() { switches; }

switches() { ovs-appctl -t "$dir/run/queues.ctl" controller/switches; }

# Prints the status of the queue driver.
says() {
    switches | sed 's/{"applied"/\n&/g' | grep '"driver":"ovsdb-qos"' |
        grep -q -- "$1"
}
n_ours() {
    ovs-vsctl --bare --columns=_uuid find "$1" 'external_ids:stagecoach!=""' |
        grep -c . || :
}
has_ours() { [ "$(n_ours QoS) $(n_ours Queue)" = "$1 $2" ]; }
all_rows() { ovs-vsctl list QoS && ovs-vsctl list Queue; }
uuids() { all_rows | grep '^_uuid' | sort; }
qos_of() { ovs-vsctl get port "$1" qos; }
# Prints the classes of a level that the kernel has at port $1.
n_classes() {
    tc -n "$fab" class show dev "$1" |
        grep -c "parent 1:fffe.*ceil $2" || :
}
has_classes() { [ "$(n_classes "$1" "$2")" = "$3" ]; }

topology() {
    cat >"$dir/topology.json" <<EOF
{"switches": [{"name": "leaf0", "target": "unix:$dir/ovs/br0.mgmt",
               "datapath": "0000000000000001",
               "queues": {"database": "unix:$dir/ovs/db.sock", "type": "$1"}}],
 "links": [],
 "hosts": [{"name": "h0", "ip": "10.79.0.1", "capacity": "50Mbit",
            "at": {"switch": "leaf0", "port": 1}},
           {"name": "h1", "ip": "10.79.0.2", "capacity": "80Mbit",
            "at": {"switch": "leaf0", "port": 2}}]}
EOF
}
start_controller() {
    "$BUILD/controller/stagecoach-controller" --policy="$SOURCE/policies/stage.json" \
        --topology="$dir/topology.json" --unixctl="$dir/run/queues.ctl" \
        --rest=none -vconsole:off -vsyslog:off \
        --log-file="$dir/controller.log" &
    controller=$!
    pids="$pids $controller"
}

ip netns add "$fab"
ip -n "$fab" link set lo up
for n in 0 1 2; do
    ip -n "$fab" link add "p$n" type veth peer name "h$n"
    ip -n "$fab" link set "p$n" up
    ip -n "$fab" link set "h$n" up
done
start_switch_database
ovs-vsctl --no-wait add-br br0 -- set bridge br0 datapath_type=netdev \
    fail_mode=secure protocols=OpenFlow13,OpenFlow14 \
    other_config:datapath-id=0000000000000001
for n in 0 1 2; do
    ovs-vsctl --no-wait add-port br0 "p$n" -- set interface "p$n" \
        ofport_request=$((n + 1))
done
start_switch ip netns exec "$fab" ovs-vswitchd
await "the switch is there" test -S "$dir/ovs/br0.mgmt"

# QoS of other programs: queues at a port that gets ours, and at one that does
# not.
for n in 1 2; do
    ovs-vsctl -- set port "p$n" qos=@q -- --id=@q create QoS type=linux-htb \
        other_config:max-rate=30000000 queues:3=@c -- --id=@c create Queue \
        other_config:max-rate=20000000 >/dev/null
done
others=$(uuids)
before=$(qos_of p1)
other=$(qos_of p2)

start_databases run

topology linux-htb
start_controller
await "the queues are in the database" says '"state":"in sync"'
has_ours 2 16 || fail "$(n_ours QoS) QoS, $(n_ours Queue) queues"
says '"applied":1,' || fail "not all is applied: $(switches)"
ovs-vsctl --bare --columns=other_config find Queue \
    'external_ids:stagecoach="0000000000000001:1:3"' >"$dir/queue"
grep -qx 'max-rate=50000000 min-rate=1000000 priority=3' "$dir/queue" ||
    fail "queue 3 of port 1 is: $(cat "$dir/queue")"
await "the switch has made them in the kernel" has_classes p0 50Mbit 8
has_classes p1 80Mbit 8 || fail "p1: $(n_classes p1 80Mbit) classes"
has_classes p2 30Mbit 1 || has_classes p2 20Mbit 1 ||
    fail "p2 lost its classes: $(tc -n "$fab" class show dev p2)"
[ "$(qos_of p2)" = "$other" ] || fail "the QoS of p2 is another"

# Another program changes one of our rows, and deletes one.
queue=$(ovs-vsctl --bare --columns=_uuid find Queue \
    'external_ids:stagecoach="0000000000000001:1:3"')
ovs-vsctl set Queue "$queue" other_config:max-rate=1 \
    -- set port p0 qos="$other"
await "changed rows are repaired" eval \
    '[ "$(ovs-vsctl get Queue "$queue" other_config:max-rate)" = "\"50000000\"" ]'
await "the port's QoS is repaired" eval \
    '[ "$(ovs-vsctl get QoS "$(qos_of p0)" external_ids:stagecoach)" = "\"0000000000000001:1\"" ]'
ovs-vsctl set port p0 external_ids:stagecoach-qos-before=none

# A controller that restarts changes nothing.
ovs-vsctl list Port >"$dir/ports"
all_rows >"$dir/rows"
kill -9 $controller
wait $controller || :
rm -f "$dir/run/queues.ctl"
start_controller
await "in sync again" says '"state":"in sync"'
all_rows >"$dir/rows2"
cmp -s "$dir/rows" "$dir/rows2" || fail "rows were changed by a restart"
ovs-vsctl list Port | cmp -s "$dir/ports" - || fail "ports were changed"
echo "ok: the queues were kept"

# A newer controller has changed the switch.
ovs-vsctl set bridge br0 external_ids:stagecoach-generation=9000000000000000
await "a newer controller is respected" says 'newer controller, of generation 9000000000000000'
says '"state":"refused"' || fail "not refused: $(switches)"
ovs-vsctl set Queue "$queue" other_config:max-rate=1
sleep 0.5
[ "$(ovs-vsctl get Queue "$queue" other_config:max-rate)" = '"1"' ] ||
    fail "the older controller changed it"
ovs-vsctl set bridge br0 external_ids:stagecoach-generation=1
await "an older controller is overwritten" says '"state":"in sync"'

# A port that is missing, and is added later.
ovs-vsctl del-port p0
await "a missing port is reported" says 'the bridge has no port 1'
says '"state":"writing"' || fail "in sync without a port: $(switches)"
ovs-vsctl add-port br0 p0 -- set interface p0 ofport_request=1
await "the port gets its queues when it is added" says '"state":"in sync"'
await "the kernel has the queues of the port" has_classes p0 50Mbit 8

# Queues are no longer configured.
kill $controller
wait $controller || fail "the controller ended with $?"
rm -f "$dir/run/queues.ctl"
topology none
start_controller
await "all queues are removed" says '"state":"in sync"'
has_ours 0 0 || fail "$(n_ours QoS) QoS and $(n_ours Queue) queues are left"
[ "$(uuids)" = "$others" ] || fail "rows of others: $(uuids), not $others"
[ "$(qos_of p0) $(qos_of p1) $(qos_of p2)" = "[] $before $other" ] ||
    fail "ports have $(qos_of p0) $(qos_of p1) $(qos_of p2)"
ovs-vsctl list Port | grep -q stagecoach && fail "a port is still marked"
await "the kernel has what was there before" has_classes p1 30Mbit 1
has_classes p0 50Mbit 0 || fail "p0 has $(n_classes p0 50Mbit) classes"
kill $controller
wait $controller || fail "the controller ended with $?"

# After the last controller, as docs/integrations/switches.md says.
flows() { ovs-ofctl -O OpenFlow14 dump-flows "unix:$dir/ovs/br0.mgmt"; }
flows | grep -q cookie=0x73746167650 || fail "the switch has no flows of ours"
ovs-ofctl -O OpenFlow14 add-flow "unix:$dir/ovs/br0.mgmt" \
    cookie=7,priority=9,actions=NORMAL
eval "$(sed -n "s|^ *\(ovs-ofctl.*del-flows\) BRIDGE|\1 unix:$dir/ovs/br0.mgmt|p" \
    "$SOURCE/docs/integrations/switches.md")"
[ "$(flows | grep -o 'cookie=0x[0-9a-f]*')" = cookie=0x7 ] ||
    fail "flows are left: $(flows)"
echo PASS
