#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Kills each process of a cluster at a random moment while searches train.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/fault-functions.sh"

begin_faults fk

kill_one "$(pid_of "stagecoach-controller .*$rundir/")" kill-controller
kill_one "$(pid_of "ovsdb-server .*$rundir/intent.sock")" kill-intent
kill_one "$(pid_of "ovsdb-server .*$rundir/hosts.sock")" kill-hosts
kill_one "$(pid_of "stagecoach-agent .*$rundir/hosts/h0")" kill-agent
kill_one "$(pid_of "stagecoach-shim .*$rundir/hosts/h1")" kill-shim

# The reader of a job's log: another one continues.
iteration_is() {
    ovs-appctl -T 2 -t "$rundir/hosts/h0/agent.ctl" agent/jobs |
        grep -q "\"iteration\":$1,\"job\":\"logs/t0\""
}
echo "step 1" >"$dir/job.txt"
lab exec h0 -- "$BUILD/cli/stagecoach" run --cojob logs --job t0 \
    --log "regex:$dir/job.txt,iteration=step ([0-9]+)" -- sleep 600 &
pids="$pids $!"
await "the log is read" iteration_is 1
kill_one "$(pid_of "stagecoach-tail")" kill-tail \
    --check "echo step 2 >>$dir/job.txt
    ovs-appctl -T 2 -t $rundir/hosts/h0/agent.ctl agent/jobs |
        grep -q '\"iteration\":2,\"job\":\"logs/t0\"'"

# A job without checkpoints ends with its server or a worker, and with it its
# search, which ends its stage.  A search that is killed leaves its stage behind
# for a minute (test controller-silence).
another_search() {
    begin_search "$1" bravo
    await_order "another search trains"
}
another_search server
kill_one "$(pid_of_job h0 server/t0)" kill-server --gone server
another_search worker
kill_one "$(pid_of_job h1 worker/t0)" kill-worker --gone worker
another_search search
kill_one "$search" kill-search --gone search
end_faults
