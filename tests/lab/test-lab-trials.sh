#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a search that judges its trials one by one, and one with two brackets
# that it judges together, beside each other in the lab.  Checks that trials stop
# at rungs, that the next one begins in the place of one that has ended, and that
# each bracket is judged by itself.  The simulator reads the same scenario.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab a

python3 - "$dir/trials.json" <<'PYTHON'
import json, sys


def search(name, trials, worker, **members):
    return {"search": {
        "name": name, "trials": trials, "eta": 2, "seed": 1, "eval_every": 2,
        "space": {"learning_rate": {"min": 0.001, "max": 0.2, "scale": "log"},
                  "width": [256], "batch": [64]},
        "placements": [{"workers": [worker, "h1"], "servers": ["h2"]}],
        "model": {"inputs": 64, "hidden_layers": 2, "classes": 10},
        "data": {"kind": "generated", "samples": 2000}, "backend": "cpu",
        **members}}


json.dump({
    "name": "trials", "hosts": 3, "slots": 16, "rate": "25Mbit",
    "policies": ["stage"], "timeout_s": 120,
    "searches": [
        search("single", 6, "h0", method="asynchronous", places=2,
               rungs=[{"iterations": n} for n in (6, 12, 24)]),
        search("bands", 4, "h0", brackets=2,
               rungs=[{"iterations": n} for n in (6, 12)])]},
    open(sys.argv[1], "w"))
PYTHON

start_run "$dir/trials.json"
end_run
"$BUILD/cli/stagecoach" sim "$dir/trials.json" --policy stage --format json \
    >"$dir/sim.json" || fail "the simulation"
python3 - "$dir/report/report.json" "$dir/sim.json" <<'PYTHON' || fail "the run"
import json, sys

report = json.load(open(sys.argv[1]))
policy, = report["policies"]
assert policy["stalls"] == 0 and policy["restarts"] == 0, policy
stages = {(s["cojob"], s["rung"]): s["jobs"] for s in report["stages"]}
assert stages == {("single", 0): 6, ("bands", 0): 4, ("bands", 1): 3}, stages
jobs = {(j["cojob"], j["job"]): j for j in report["jobs"]}
trials = [jobs["single", f"t{i}"] for i in range(6)]
for i, trial in enumerate(trials):
    ends = [(6, "stopped"), (12, "stopped"), (24, "stopped"), (24, "done")]
    assert (trial["iteration"], trial["outcome"]) in ends, trial
    begin = trial["points"][0][0]
    together = [t for t in trials
                if t["points"][0][0] <= begin <= t["points"][-1][0]]
    assert len(together) <= 2, together
for rung in 6, 12, 24:
    # The first at a rung passes it, and the best goes on.
    there = [t for t in trials if t["iteration"] >= rung]
    passed = [t for t in there
              if t["iteration"] > rung or t["outcome"] == "done"]
    assert there and passed, (rung, trials)
assert any(t["outcome"] == "stopped" for t in trials), trials
best, = (s["best"] for s in report["searches"] if s["cojob"] == "single")
last = min((t for t in trials if t["iteration"] == 24),
           key=lambda t: t["loss"])
assert best == last["job"], (best, last)

assert 0 < policy["target_s"] <= policy["makespan_s"], policy
assert 0 < policy["gpu_s_to_target"] <= policy["gpu_s"], policy
assert 0 < policy["exchange_s"] < policy["gpu_s"], policy

# Trials 1 and 3 are of the second bracket, which is not judged at 6.
bands = [jobs["bands", f"t{i}"] for i in range(4)]
assert sorted(b["iteration"] for b in bands[::2]) == [6, 12], bands
assert [b["iteration"] for b in bands[1::2]] == [12, 12], bands
done = [b for b in bands if b["outcome"] == "done"]
assert len(done) == 2 and len([b for b in bands[1::2] if b in done]) == 1, bands

simulated = {(s["cojob"], s["rung"]) for s in json.load(open(sys.argv[2]))["stages"]}
assert simulated == set(stages), simulated
PYTHON
assert_clean "the run"
echo PASS
