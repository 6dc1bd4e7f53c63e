#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compares the simulator with the lab: mean stage completion times of the
# quickstart and of searches of equal widths (lab/scenarios/equal.json), by
# placement and policy.  $QUICKSTART is a folder that the bench quickstart has
# kept (OUT=FOLDER ./test --bench quickstart); without it, runs two placements
# under fair sharing and stage order (four minutes).  Runs one placement of the
# other scenario (two minutes).  As root.  Prints one JSON object on standard
# output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
stagecoach=build/cli/stagecoach

run() {         # SCENARIO PLACEMENTS
    $stagecoach lab run "lab/scenarios/$1.json" --policy fair \
        --policy stage --placements "$2" --name "v$(($$ % 1000000))" \
        --out "$dir/$1" >&2
}

if [ -n "${QUICKSTART:-}" ]; then
    ln -s "$(realpath "$QUICKSTART")" "$dir/quickstart"
else
    run quickstart 2
fi
run equal 1
python3 - "$dir" $stagecoach <<'EOF_PYTHON'
import glob
import json
import os
import statistics
import subprocess
import sys

folder, stagecoach = sys.argv[1:]
errors, ratio_errors, means, by_policy = {}, {}, {}, {}


def lab_mean(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)["policies"][0]["mean_sct_s"]


def sim_means(scenario, seed, policies):
    command = [stagecoach, "sim", f"lab/scenarios/{scenario}.json",
               "--seed", seed, "--format", "json"]
    for policy in policies:
        command += ["--policy", policy]
    result = json.loads(subprocess.run(command, check=True,
                                       stdout=subprocess.PIPE).stdout)
    return {p["name"]: p["mean"] for p in result["policies"]}


for scenario in ("quickstart", "equal"):
    for placement in sorted(glob.glob(f"{folder}/{scenario}/placement-*")):
        lab = {os.path.basename(os.path.dirname(path)): lab_mean(path)
               for path in glob.glob(f"{placement}/*/report.json")}
        seed = placement.rsplit("-", 1)[1]
        sim = sim_means(scenario, seed, lab)
        name = f"{scenario}_{seed}"
        means[name] = {p: [round(lab[p], 2), round(sim[p], 2)] for p in lab}
        for policy in lab:
            errors[name, policy] = sim[policy] / lab[policy] - 1
            by_policy.setdefault(f"{scenario}_{policy}", []).append(
                (sim[policy], lab[policy]))
            if policy != "fair" and "fair" in lab:
                ratio_errors[name, policy] = (sim[policy] / sim["fair"]
                                              - lab[policy] / lab["fair"])
policies = {name: statistics.mean(s for s, _ in pairs)
            / statistics.mean(l for _, l in pairs) - 1
            for name, pairs in by_policy.items()}
print(json.dumps({
    "bench": "sim-vs-lab",
    "figures": {
        "worst_sct_error": round(max(abs(e) for e in errors.values()), 4),
        "worst_policy_error": round(max(abs(e) for e in policies.values()),
                                    4),
        "ratio_error": round(max(abs(e) for e in ratio_errors.values()), 4),
        "mean_ratio_error": round(statistics.mean(
            abs(e) for e in ratio_errors.values()), 4),
        "policy_errors": {n: round(e, 4) for n, e in policies.items()},
    },
    "baseline": {"lab_and_sim_s": means},
}))
EOF_PYTHON
