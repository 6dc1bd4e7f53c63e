#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a scenario with searches that set schemes and models: the servers and
# workers train with these settings through all rungs, and nothing is left.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab s

# Prints the command lines of this lab's jobs.
(
    while :; do
        for pid in $(ip netns pids "scl-$name-h0" 2>/dev/null) \
            $(ip netns pids "scl-$name-h2" 2>/dev/null); do
            tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null && echo
        done
        sleep 0.2
    done
) >"$dir/commands" 2>/dev/null &
pids=$!

start_run "$SOURCE/lab/scenarios/schemes.json"
end_run
for words in "server .*--sync=essp,staleness=2" "server .*--sync=lbbsp-cpu" \
    "worker .*--model cifarnet --image 8x8x3" \
    "worker .*--model linear --features 20000 --loss hinge" \
    "peer .*--scheme prague --group 2"; do
    grep -q "stagecoach-trainer $words" "$dir/commands" ||
        fail "no process \"$words\""
done
python3 - "$dir/report/report.json" <<'PYTHON' || fail "the run"
import json, sys

report = json.load(open(sys.argv[1]))
policy, = report["policies"]
assert policy["stalls"] == 0 and policy["restarts"] == 0, policy
stages = {(s["cojob"], s["rung"]) for s in report["stages"]}
assert stages == {("images", 0), ("images", 1), ("sparse", 0), ("peers", 0),
                  ("peers", 1)}, stages
losses = {s["cojob"]: s["loss"] for s in report["searches"]}
assert 0 < losses["images"] < 4, losses         # It does not diverge.
assert 0 < losses["sparse"] < 1, losses         # Untrained: 1.
assert 0 < losses["peers"] < 1.39, losses       # Untrained: log 4.
PYTHON
assert_clean "the run"
echo PASS
