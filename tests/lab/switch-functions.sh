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

# start_switch COMMAND...: COMMAND is ovs-vswitchd, with a prefix command and
# options.
start_switch() {
    "$@" "unix:$dir/ovs/db.sock" --unixctl="$dir/ovs/vswitchd.ctl" \
        -vconsole:off -vsyslog:off --log-file="$dir/ovs/vswitchd.log" &
    pids="$pids $!"
}
