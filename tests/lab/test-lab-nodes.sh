#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that nodes with moving keys and nodes with replicas are handled like
# other jobs: their traffic has DSCPs, and their stages are counted.  When a
# node is killed, the others end and report which node died.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab n

# The shipped scenario, with fewer epochs and one policy, and a third job,
# which loses a node during the run.
python3 - "$SOURCE/lab/scenarios/localize.json" "$dir" >"$dir/short.json" \
    <<'PYTHON'
import json, sys

scenario = json.load(open(sys.argv[1]))
scenario.update(name="localize-short", policies=["stage"], timeout_s=60)
for cojob, (first, last) in zip(scenario["cojobs"], ((10, 20), (5, 10))):
    cojob["stages"] = [{"iterations": first}, {"iterations": last}]
    command = cojob["jobs"][0]["command"]
    command[command.index("--epochs") + 1] = str(last)
mover = scenario["cojobs"][0]["jobs"][0]
command = list(mover["command"])
command[command.index("--epochs") + 1] = "100000"
run = ('"$@" 2>DIR/said-%rank & echo $! >DIR/pid-%rank;'
       ' wait $!; echo $? >DIR/code-%rank').replace("DIR", sys.argv[2])
scenario["cojobs"].append({
    "name": "loser", "stages": [{"iterations": 1000}],
    "jobs": [{"name": "t0", "hosts": mover["hosts"],
              "command": ["/bin/sh", "-c", run, "sh"] + command}]})
print(json.dumps(scenario))
PYTHON

has_trained() {
    ovs-appctl -T 10 -t "/run/stagecoach/lab-$name/hosts/h0/agent.ctl" \
        agent/jobs >"$dir/jobs" 2>/dev/null && python3 -c '
import json, sys
jobs = {j["job"]: j for j in json.load(open(sys.argv[1]))["jobs"]}
sys.exit(not jobs.get("loser/t0", {}).get("iteration", 0) >= 3)
' "$dir/jobs"
}

start_run "$dir/short.json"
wait_in_run 40 has_trained
kill -KILL "$(cat "$dir/pid-2")"
end_run

for rank in 0 1 3; do
    said=$(cat "$dir/said-$rank")
    [ "$(cat "$dir/code-$rank")" = 1 ] ||
        fail "node $rank ended with $(cat "$dir/code-$rank"): $said"
    [ "$(echo "$said" | wc -l)" = 1 ] &&
        echo "$said" | grep -q 'node: node 2 (.*) died$' ||
        fail "node $rank said: $said"
done
python3 - "$dir/report/report.json" <<'PYTHON' || fail "the run"
import json, sys

report = json.load(open(sys.argv[1]))
policy, = report["policies"]
assert policy["coverage"] >= 0.97, policy
assert policy["coverage_fabric"] >= 0.97, policy
assert policy["stalls"] == 0 and policy["restarts"] == 0, policy
stages = {(s["cojob"], s["rung"]) for s in report["stages"]}
assert stages >= {(c, r) for c in ("mover", "copier") for r in (0, 1)}, stages
PYTHON
assert_clean "the run"
echo PASS
