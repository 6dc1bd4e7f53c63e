#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the controller keeps the switch's flows as the policy defines
# them: one for each level; deleted flows are repaired at once, changed ones at
# the next verification, flows of other programs are left alone, an idle switch
# is not dumped, and nothing changes when the controller dies and restarts.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab s
rundir=/run/stagecoach/lab-$name

show() { echo "flows: $(table)"; }

switch() {
    command=$1
    shift
    ovs-ofctl -O OpenFlow13 "$command" "unix:$rundir/ovs/br0.mgmt" "$@"
}

# Prints the controller's flows as "DSCP QUEUE SECONDS", sorted.
flows() {
    switch dump-flows cookie=0x7374616765000000/0xffffffffff000000 |
        sed -n 's/.*duration=\([0-9]*\).*nw_tos=\([0-9]*\) actions=set_queue:\([0-9]*\),NORMAL$/\2 \3 \1/p' |
        awk '{ print $1 / 4, $2, $3 }' | sort -n
}

# Prints the flows without their ages.
table() {
    flows | cut -d' ' -f1,2 | xargs
}

# Checks the controller's status.
in_sync() {
    ovs-appctl -t "$rundir/controller.ctl" controller/switches |
        grep -q '"state":"in sync"'
}

is_whole() {
    [ "$(table)" = "$want" ]
}

pid_of_controller() {
    for dir in /proc/[0-9]*; do
        if tr '\0' ' ' 2>/dev/null <"$dir/cmdline" |
            grep -q "stagecoach-controller.*$rundir/"; then
            echo "${dir#/proc/}"
        fi
    done 2>/dev/null
}

want="0 7 7 6 11 5 15 4 19 3 23 2 35 1 39 0"
lab up "$SOURCE/lab/scenarios/smoke.json" --policy stage
await "the controller is in sync" in_sync
is_whole || fail "flows: $(table)"
echo "ok: a flow for each level"

# Prints the time since the controller's last dump of the switch.
verified_ms() {
    ovs-appctl -t "$rundir/controller.ctl" controller/switches |
        sed 's/.*"verified_ms":\([0-9]*\).*/\1/'
}
not_dumped_for_5s() { [ "$(verified_ms)" -ge 5000 ]; }
dumped() { [ "$(verified_ms)" -lt 3000 ]; }

await "an idle switch is not dumped" not_dumped_for_5s
# Stopped, because the controller would repair what is broken first.
controller=$(pid_of_controller)
kill -STOP "$controller"
switch add-flow "cookie=0x1,priority=50,tcp,tp_dst=9 actions=NORMAL"
switch del-flows "ip,nw_tos=28"
broken=$(table)
kill -CONT "$controller"
[ "$broken" != "$want" ] || fail "nothing was broken"
await "there is a flow for each level" is_whole
dumped || fail "the last dump is $(verified_ms) ms old"
switch dump-flows cookie=0x1/-1 | grep -q "tp_dst=9" ||
    fail "another program's flow is gone"
echo "ok: deleted flows are repaired, other flows are kept"

# No message reports changed actions.
switch mod-flows "ip,nw_tos=60 actions=set_queue:0,NORMAL"
! is_whole || fail "nothing was broken"
ovs-appctl -t "$rundir/ovs/vswitchd.ctl" bridge/reconnect br0
await "there is a flow for each level" is_whole
echo "ok: changed flows are repaired after a reconnect"

# Prints what the controller replies to a request.
request() { ovs-appctl -t "$rundir/controller.ctl" "controller/$1"; }
has_reason() { request switches | grep -q '"reason":"[^"]*OFPFMFC_TABLE_FULL'; }
has_alarm() { request status | grep -q '"code":"switch"'; }
n=$(switch dump-flows table=0 | grep -c actions=)
ovs-vsctl --db="unix:$rundir/ovs/db.sock" -- --id=@t create Flow_Table \
    flow_limit=$((n - 1)) overflow_policy=refuse \
    -- set bridge br0 flow_tables:0=@t >/dev/null
switch del-flows "ip,nw_tos=44"
await "a full table is the reason" has_reason
has_alarm || fail "no alarm: $(request status)"
! in_sync || fail "in sync without a flow: $(table)"
ovs-vsctl --db="unix:$rundir/ovs/db.sock" clear bridge br0 flow_tables
await "the flows are complete when the table has space" is_whole
await "the controller is in sync" in_sync
! has_reason && ! has_alarm || fail "the reason is still there"
echo "ok: what the switch refuses is a reason and an alarm"

await "the controller is in sync" in_sync
kill -9 "$(pid_of_controller)"
await "there is a flow for each level" is_whole
sleep 1
await "the controller is in sync" in_sync
youngest=$(flows | cut -d' ' -f3 | sort -n | head -n 1)
[ "$youngest" -ge 1 ] || fail "the flows were added again: $(flows)"
echo "ok: nothing was touched when the controller came back"
lab down
assert_clean "the lab"
echo PASS
