#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Simulates the main scenario with $SEEDS seeds (default 100) in a plain network,
# under stage order and under the rules to compare it with, on all processors.
# Figures are means over the seeds of ratios of one seed, with 95 % intervals.
# stage_vs_best is against the best published rule of each seed, chosen
# afterwards.  Prints one JSON object on standard output.
set -eu
cd "$(dirname "$0")/../.."
PYTHONPATH=tests/bench python3 - build/cli/stagecoach "${SEEDS:-100}" <<'EOF_PYTHON'
import json
import os
import statistics
import subprocess
import sys

from intervals import with_interval

stagecoach, n_seeds = sys.argv[1], int(sys.argv[2])
PUBLISHED = ("sebf", "tcf", "sincronia", "intensity")
POLICIES = ["plain", "fair", "mltcp", "work", *PUBLISHED, "stage"]
if os.path.exists("policies/grouper.json"):
    POLICIES.append("grouper")
# The scenario is that of docs/notes only if these lie in these ranges.
DRAW = {"stage_vs_plain": (0.74, 0.80), "stage_vs_best": (0.89, 0.94)}


def ratios_of(policies):
    policies = {p["name"]: p for p in policies}
    mean = {name: p["mean_sct_s"] for name, p in policies.items()}
    stage = policies["stage"]
    ratios = {f"stage_vs_{name}": mean["stage"] / mean[name]
              for name in POLICIES if name != "stage"}
    ratios.update((f"{name}_vs_plain", mean[name] / mean["plain"])
                  for name in POLICIES if name not in ("plain", "stage"))
    ratios["stage_vs_best"] = mean["stage"] / min(mean[p] for p in PUBLISHED)
    ratios["p95_vs_plain"] = stage["p95_sct_s"] / policies["plain"]["p95_sct_s"]
    searches = stage["searches_vs_baseline"]
    ratios["search_vs_plain"] = searches["mean"]
    ratios["worst_search_vs_plain"] = searches["worst"]
    ratios["later_share"] = searches["later_share"]
    return ratios


command = [stagecoach, "sim", "lab/scenarios/main.json", "--seeds",
           f"1-{n_seeds}", "--format", "json"]
for policy in POLICIES:
    command += ["--policy", policy]
result = json.loads(subprocess.run(command, check=True,
                                   stdout=subprocess.PIPE).stdout)
seeds = [ratios_of(p["policies"]) for p in result["placements"]]
figures = {}
for name in seeds[0]:
    figures |= with_interval(name, [seed[name] for seed in seeds])
figures["draw_error"] = round(max(
    max(low - figures[name], figures[name] - high, 0)
    for name, (low, high) in DRAW.items()), 4)
figures["stage_wins"] = round(statistics.mean(
    s["stage_vs_best"] < 1 for s in seeds), 4)
figures["seeds"] = n_seeds
print(json.dumps({"bench": "main-sim", "figures": figures, "baseline": {}}))
EOF_PYTHON
