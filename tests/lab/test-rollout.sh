#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks commands that wait for hosts: they return when all hosts with an agent
# have applied the order, and not before.  Needs neither root nor namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
agent=$BUILD/tests/lab/fake-agent
need ovsdb-server ovs-appctl

begin rollout
export STAGECOACH_RUNDIR="$dir/run"

clean_up() {
    "$stagecoach" controller stop
}
show() {
    rollout
}

rollout() {
    ovs-appctl -t "$dir/run/controller.ctl" controller/rollout "$@"
}

says() { rollout | grep -qF "$1"; }

cp "$SOURCE/policies/stage.json" "$dir/policy.json"
"$stagecoach" controller init --dbdir "$dir/db"
timeout 60 "$stagecoach" controller start --dbdir "$dir/db" \
    --policy "$dir/policy.json"
for host in h0 h1; do
    FAKE_AGENT_APPLIES=1 "$agent" "unix:$dir/run/telemetry.sock" $host \
        1000000000 large/t0:2000000:20 >/dev/null &
    pids="$pids $!"
done
last=$!
await "the rollout has both hosts" says '"hosts":2'

timeout 60 "$stagecoach" stage begin --cojob large --rung 0 \
    --iterations 100000 --jobs t0 --wait hosts || fail "stage begin --wait"
rollout large 0 begun | grep -qF '"behind":[],"done":true,"hosts":2,"hosts_applied":2,' ||
    fail "it came back too soon: $(rollout large 0 begun)"
rollout large 0 ended | grep -qF '"done":false' ||
    fail "a stage that runs has ended"
timeout 60 "$stagecoach" pin large/t0 --wait hosts >/dev/null ||
    fail "pin --wait"
timeout 60 "$stagecoach" undo --wait hosts >/dev/null || fail "undo --wait"
echo "ok: commands return when hosts have the order"

# One host does not apply new orders.
kill "$last"
"$agent" "unix:$dir/run/telemetry.sock" h1 1000000000 large/t0:2000000:20 \
    >/dev/null &
pids="$pids $!"
await "the rollout has one host behind" \
    says '"behind":["h1"],"done":false,"hosts":2,"hosts_applied":1'
says '"applied":0.5' || fail "half of the hosts: $(rollout)"
status=0
timeout 3 "$stagecoach" stage end --cojob large --rung 0 --wait hosts ||
    status=$?
[ $status = 124 ] || fail "it does not wait: exit $status"
rollout large 0 ended | grep -qF '"behind":["h1"]' || fail "$(rollout)"
echo "ok: it waits for a host that is behind"

for bad in "--wait=switches" "--wait="; do
    status=0
    "$stagecoach" stage end --cojob large --rung 0 "$bad" 2>"$dir/bad" ||
        status=$?
    [ $status = 2 ] || fail "$bad: exit $status"
    grep -q 'is not one of "hosts"' "$dir/bad" || fail "$(cat "$dir/bad")"
done
if rollout large 0 >"$dir/bad" 2>&1; then
    fail "rollout with two arguments"
fi
grep -q 'all three or none' "$dir/bad" || fail "$(cat "$dir/bad")"
echo PASS
