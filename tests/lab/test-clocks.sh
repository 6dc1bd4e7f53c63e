#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sets the wall clock of all programs of a lab (databases, controller, agents,
# shims, search, trainers) two hours forward and four hours back during a
# search: no stage and no lease ends, there is no alarm, and the search ends
# by itself.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab c
need ovs-appctl ovsdb-client python3
rundir=/run/stagecoach/lab-$name
case $BUILD in *san*) echo "skip: preloading needs no sanitizer"; exit 77 ;; esac

sed -e 's/"iterations": 8,/"iterations": 60,/' \
    -e 's/"iterations": 16,/"iterations": 90,/' \
    -e 's/"iterations": 12,/"iterations": 110,/' \
    "$SOURCE/lab/scenarios/smoke.json" >"$dir/long.json"

# set_clock SECONDS: sets the clock, relative to the right one.
set_clock() { printf '%-16s' "$1" | dd of="$dir/step" conv=notrunc status=none; }
: >"$dir/step"
set_clock 0

ask() { ovs-appctl -T 10 -t "$rundir/$1" "$2"; }
# How often an order was extended: once a second for each agent.
leases() {
    ask controller.ctl coverage/show |
        sed -n 's/^telemetry_lease .*total: \([0-9]*\)$/\1/p'
}
# Fails the test if something is wrong at this moment.
look() {
    ask controller.ctl controller/status >"$dir/status"
    grep -q '"alarms":\[\]' "$dir/status" || fail "$(cat "$dir/status")"
    for host in h0 h1 h2; do
        ask "hosts/$host/agent.ctl" agent/status >"$dir/agent"
        grep -q '"state":"ordered"' "$dir/agent" || fail "$(cat "$dir/agent")"
    done
}
# Four leases of each of three agents: the controller has looked three times
# for stages that end.
leases_are_extended() {
    look
    [ "$(leases)" -ge $((before + 12)) ]
}
two_stages_run() {
    ask controller.ctl controller/status | grep -q '"stages":2' && (look)
}
# Prints the names of the programs of the lab whose clock can be set.
programs() {
    for process in $(cat "$(cgroup_mount)"/stagecoach/lab-"$name"/cgroup.procs \
        $(find "$(cgroup_mount)/stagecoach/lab-$name" -mindepth 2 \
            -name cgroup.procs) | sort -u); do
        ! grep -q "$dir/step" "/proc/$process/maps" ||
            cat "/proc/$process/comm"
    done 2>/dev/null | sort -u | xargs
}

export LD_PRELOAD="$BUILD/tests/lab/libclock-step.so" CLOCK_STEP="$dir/step"
start_run "$dir/long.json" --policy stage
unset LD_PRELOAD CLOCK_STEP
wait_in_run 20 two_stages_run
for program in ovsdb-server stagecoach-agen stagecoach-cont stagecoach-shim \
    stagecoach-trai; do
    programs | grep -qw "$program" || fail "the clock of $program is not set"
done
for wrong in 7200 -7200 0; do
    before=$(leases)
    set_clock $wrong
    wait_in_run 10 leases_are_extended
    echo "ok: a clock that is wrong by $wrong s"
done
ovsdb-client dump "unix:$rundir/intent.sock" Stagecoach_Intent Event at what \
    why >"$dir/events"
! grep 'inactive' "$dir/events" || fail "a search that runs was ended"
end_run
python3 - "$dir/report/report.json" <<'PYTHON' || fail "the run"
import json, sys

policy = json.load(open(sys.argv[1]))["policies"][0]
assert policy["restarts"] == 0, policy
PYTHON
grep -q . "$dir/report/report.json" || fail "no report"
assert_clean "the run"
echo PASS
