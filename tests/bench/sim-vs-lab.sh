#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compares the simulator with the lab: mean stage completion times of the main
# scenario by seed and policy.  $MAIN is a folder that the bench main has kept
# (OUT=FOLDER ./test --bench main); without it, runs two seeds (17 minutes).  As
# root.  Prints one JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
stagecoach=build/cli/stagecoach
main=${MAIN:-}
if [ -z "$main" ]; then
    main=$dir
    $stagecoach lab run lab/scenarios/main.json --policy plain --policy fair \
        --policy stage --policy work --placements 2 \
        --name "v$(($$ % 1000000))" --out "$dir/lab" >&2
fi
python3 - "$main" $stagecoach <<'EOF_PYTHON'
import glob
import json
import re
import statistics
import subprocess
import sys

folder, stagecoach = sys.argv[1:]
POLICIES = ("plain", "fair", "stage", "work")


def lab_means(run):
    """Returns the mean of each policy with a seed."""
    means = {}
    for policy in POLICIES:
        with open(f"{run}/{policy}/report.json", encoding="utf-8") as f:
            means[policy] = json.load(f)["policies"][0]["mean_sct_s"]
    return means


def sim_means(seed, run):
    """Simulates searches that keep the jobs that they kept in the lab."""
    command = [stagecoach, "sim", "lab/scenarios/main.json", "--seed", seed,
               "--survivors", f"{run}/stage/report.json", "--format", "json"]
    for policy in POLICIES:
        command += ["--policy", policy]
    result = json.loads(subprocess.run(command, check=True,
                                       stdout=subprocess.PIPE).stdout)
    return {p["name"]: p["mean"] for p in result["policies"]}


# Of the runs under the congestion controls, those with all policies.
runs = {re.search(r"placement-(\d+)", path)[1]: path.rsplit("/", 2)[0]
        for path in glob.glob(f"{folder}/*/placement-*/work/report.json")}
lab = {seed: lab_means(run) for seed, run in runs.items()}
sim = {seed: sim_means(seed, run) for seed, run in runs.items()}


def mean(runs, policy, baseline=None):
    return statistics.mean(run[policy] / (run[baseline] if baseline else 1)
                           for run in runs.values())


errors = {policy: mean(sim, policy) / mean(lab, policy) - 1
          for policy in POLICIES}
print(json.dumps({
    "bench": "sim-vs-lab",
    "figures": {
        "worst_policy_error": round(max(map(abs, errors.values())), 4),
        "stage_vs_plain_error": round(abs(
            mean(sim, "stage", "plain") - mean(lab, "stage", "plain")), 4),
        "policy_errors": {p: round(e, 4) for p, e in errors.items()},
        "seeds": len(runs),
    },
    "baseline": {"lab_and_sim_s": {
        seed: {p: [round(lab[seed][p], 2), round(sim[seed][p], 2)]
               for p in POLICIES} for seed in sorted(runs, key=int)}},
}))
EOF_PYTHON
