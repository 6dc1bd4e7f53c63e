#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a search that dies without ending its stage: the stage ends by itself,
# a minute after its last process, and the stage of a search that is still
# running does not.  Needs neither root nor namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
agent=$BUILD/tests/lab/fake-agent
need ovsdb-server ovsdb-client

begin silence
export STAGECOACH_RUNDIR="$dir/run"

clean_up() {
    "$stagecoach" controller stop
}

# start_agent JOB:BYTES:MS...: starts the agent of h0 in place of the previous
# one.
start_agent() {
    for pid in $pids; do
        kill "$pid"
        wait "$pid" 2>/dev/null || :
    done
    "$agent" "unix:$dir/run/telemetry.sock" h0 1000000000 "$@" \
        >"$dir/agent.out" &
    pids=$!
}
stages() { "$stagecoach" order | awk '$4 ~ /^(dead|alive)$/ { print $4 }' | xargs; }
stages_are() { [ "$(stages | tr ' ' '\n' | sort | xargs)" = "$1" ]; }

"$stagecoach" controller start --dbdir "$dir/db" \
    --policy "$SOURCE/policies/stage.json" || fail "controller start"
start_agent alive/t0:100000:20 dead/t0:100000:20
for cojob in alive dead; do
    "$stagecoach" stage begin --cojob $cojob --rung 0 --iterations 100000 \
        --jobs t0
done
has_demand() { "$stagecoach" explain $1/t0 | grep -q 'h0:'; }
wait_for 5 "both jobs run" has_demand dead
has_demand alive || fail "one job does not run"

start_agent alive/t0:100000:20
began=$(date +%s)
wait_for 80 "the dead one's stage ends" stages_are alive
[ $(($(date +%s) - began)) -ge 50 ] || fail "after $(($(date +%s) - began)) s"
ovsdb-client dump "unix:$dir/run/intent.sock" Stagecoach_Intent Event what why |
    grep -q '^stage-inactive .*dead/0: none of its 1 jobs has had' ||
    fail "no event"
echo "ok: all"
