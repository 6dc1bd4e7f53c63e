#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the effect of priority: two unmodified jobs under "stagecoach run"
# send at full speed, over one host's uplink and then over one host's downlink.
# The job with the first stage in the controller's order gets at least 0.90 of
# the link while it has data.  Also checks what the doctor and "top"
# find in this cluster.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab p
STAGECOACH_RUNDIR=/run/stagecoach/lab-$name
export STAGECOACH_RUNDIR
stagecoach=$BUILD/cli/stagecoach
traffic=$BUILD/tests/lab/traffic

# Reports four iterations a second to the agent, as a framework would.
cat >"$dir/progress.py" <<'PYTHON'
import json, os, socket, time

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for i in range(1, 25):
    s.sendto(json.dumps({"cojob": os.environ["STAGECOACH_COJOB"],
                         "job": os.environ["STAGECOACH_JOB"],
                         "stage": 0, "iteration": i}).encode(),
             os.environ["STAGECOACH_RUNDIR"] + "/progress.sock")
    time.sleep(0.25)
PYTHON

# "job HOST COJOB PORT": sends to h2 for 6 s, and reports progress.
job() {
    lab exec "$1" -- "$stagecoach" run --cojob "$2" --job j -- sh -c \
        "python3 '$dir/progress.py' & exec '$traffic' source 10.77.0.3 $3 $3 0 0 6000"
}

# Prints the permille of the link that port $1 got between 2 s after 'began'
# and 'ended'.
share() {
    awk -v from=$((began + 2000)) -v to="$ended" -v port="$1" '
        $1 > from && $1 <= to && $2 == port { bytes += $3 }
        END { printf "%d\n", bytes * 8 * 1000 / (to - from) * 1000 / 50e6 }' \
        "$dir/sink"
}

# Prints the level of cojob $1, from the controller.
level() {
    "$stagecoach" order --format json | python3 -c "
import json, sys
print([s['level'] for s in json.load(sys.stdin)['order']
       if s['cojob'] == '$1'][0])"
}

# Both jobs send to h2 for 6 s, from hosts $1 and $2.
compete() {
    lab exec h2 -- timeout 20 "$traffic" sink-each 9500 6001 6002 \
        >"$dir/sink" &
    sink=$!
    sleep 0.5
    job "$1" first 6001 >"$dir/first" &
    first=$!
    job "$2" second 6002 >"$dir/second" &
    second=$!
    sleep 2
    "$stagecoach" top --once >"$dir/top" || fail "top"
    if [ "$(level first)" -lt "$(level second)" ]; then
        high=6001 low=6002
    else
        high=6002 low=6001
    fi
    wait $first || fail "the first job"
    wait $second || fail "the second job"
    wait $sink || true
    began=$(awk '/begin/ { print $2 }' "$dir/first")
    ended=$(awk '/end/ { print $2 }' "$dir/first")
    got=$(share $high)
    echo "$3: the higher level has $got permille of the link," \
         "the lower $(share $low)"
    [ "$got" -ge 900 ] || fail "$3: $got permille, at least 900 is right"
}

# finds STATUS EXPRESSION: the doctor's exit status, and an expression that is
# true of its findings f.
finds() {
    status=0
    "$stagecoach" doctor --format json >"$dir/doctor" || status=$?
    [ $status = "$1" ] && python3 -c "
import json, sys
f = {(x['level'], place): x['what']
     for x in json.load(sys.stdin)['findings'] for place in x['places']}
sys.exit(not ($2))" <"$dir/doctor"
}

lab up "$SOURCE/lab/scenarios/smoke.json" --policy stage
"$stagecoach" stage begin --cojob first --rung 0 --iterations 60 --jobs j
"$stagecoach" stage begin --cojob second --rung 0 --iterations 9000 --jobs j
compete h0 h0 "one uplink"
awk '$1 == "h0:tx" && $2 + 0 >= 50 { load = 1 }
     $2 == "first/0" && $5 ~ "^[1-9][0-9]*/60$" { stage = 1 }
     END { exit !(load && stage) }' "$dir/top" || fail "top: $(cat "$dir/top")"
compete h0 h1 "one downlink"
await "the doctor knows what the shims expect of the switch" finds 0 \
    "'serve levels in order' in f['note', 'switches']"
ovs-appctl -T 10 -t "$STAGECOACH_RUNDIR/hosts/h1/agent.ctl" exit
await "the doctor misses an agent" finds 1 \
    "'has disconnected' in f['error', 'h1'] and ('error', 'h0') not in f"
lab down
assert_clean "the lab"
echo PASS
