# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh disable=SC2154
#
# Functions for tests with Open vSwitch: a switch of the test's own in
# "$dir/ovs", also for ovs-vsctl and ovs-ofctl.  Sourced after lab-functions.sh
# and "begin".
export OVS_RUNDIR="$dir/ovs" OVS_LOGDIR="$dir/ovs" OVS_DBDIR="$dir/ovs"

start_switch_database() {
    mkdir "$dir/ovs"
    ovsdb-tool create "$dir/ovs/conf.db" \
        /usr/share/openvswitch/vswitch.ovsschema
    ovsdb-server "$dir/ovs/conf.db" --remote="punix:$dir/ovs/db.sock" \
        --unixctl="$dir/ovs/ovsdb.ctl" -vconsole:off -vsyslog:off &
    pids="$pids $!"
    await "the switches' database is there" test -S "$dir/ovs/db.sock"
    ovs-vsctl --no-wait init
}

# forget_queues FOLDER BRIDGE...: deletes the controller's flows that select
# queues.  The controller cannot repair that: it loses its connection to the
# socket BRIDGE.mgmt in FOLDER, which is renamed to BRIDGE.kept.
forget_queues() {
    folder=$1
    shift
    for bridge; do
        mv "$folder/$bridge.mgmt" "$folder/$bridge.kept"
        ovs-appctl -t "$folder/vswitchd.ctl" bridge/reconnect "$bridge"
        await "$bridge has deleted flows" ovs-ofctl -O OpenFlow14 del-flows \
            "unix:$folder/$bridge.kept" \
            cookie=0x7374616765000000/0xfffffffffff00000
        [ "$(n_queue_flows "$folder/$bridge.kept")" = 0 ] ||
            fail "$bridge still has flows that select queues"
    done
    echo "ok: no flow selects a queue"
}
# Prints the number of flows that select queues in the switch with this socket.
n_queue_flows() {
    ovs-ofctl -O OpenFlow14 dump-flows "unix:$1" | grep -c set_queue || :
}

# start_switch COMMAND...: COMMAND is ovs-vswitchd, with a prefix command and
# options.
start_switch() {
    "$@" "unix:$dir/ovs/db.sock" --unixctl="$dir/ovs/vswitchd.ctl" \
        -vconsole:off -vsyslog:off --log-file="$dir/ovs/vswitchd.log" &
    pids="$pids $!"
}
