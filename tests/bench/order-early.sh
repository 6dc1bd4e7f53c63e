#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Simulates the lab scenarios main and early with $SEEDS seeds (default 20) in a
# plain network, under stage order and under orders that prefer early jobs.
# "NAME_SCENARIO" is the mean time until jobs have 0.9 of their last accuracy,
# by recorded curves, relative to the plain network; "NAME_SCENARIO_loss" is
# what the mean SCT loses to stage order.  Means over the seeds of ratios of one
# seed, with 95 % intervals.  Prints one JSON object on standard output.
set -eu
cd "$(dirname "$0")/../.."
PYTHONPATH=tests/bench exec python3 - "${SEEDS:-20}" <<'EOF_PYTHON'
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from intervals import with_interval

POLICIES = ["plain", "stage", "stage-early", "early", "maif"]
DRAWS = {"main": "random_searches", "early": "random_placements"}
n_seeds = int(sys.argv[1])


def simulate(run):
    """Returns the times of each policy."""
    scenario, seed = run
    with open(f"lab/scenarios/{scenario}.json", encoding="utf-8") as f:
        drawn = json.load(f)
    drawn[DRAWS[scenario]]["seed"] = seed
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(drawn, f)
        f.flush()
        command = ["build/cli/stagecoach", "sim", f.name, "--format", "json",
                   "--seed", str(seed)]
        for policy in POLICIES:
            command += ["--policy", policy]
        output = subprocess.run(command, check=True,
                                stdout=subprocess.PIPE).stdout
    return {p["name"]: (p["early"]["mean"], p["sct"]["mean"])
            for p in json.loads(output)["policies"]}


figures = {"seeds": n_seeds}
with ThreadPoolExecutor(os.cpu_count()) as pool:
    for scenario in DRAWS:
        runs = list(pool.map(simulate, [(scenario, 1 + i)
                                        for i in range(n_seeds)]))
        for policy in POLICIES[1:]:
            name = f"{policy}_{scenario}"
            figures |= with_interval(
                name, [run[policy][0] / run["plain"][0] for run in runs])
            figures |= with_interval(
                f"{name}_loss",
                [run[policy][1] / run["stage"][1] - 1 for run in runs])
print(json.dumps({"bench": "order-early", "figures": figures,
                  "baseline": {}}))
EOF_PYTHON
