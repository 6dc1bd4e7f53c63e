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
exec python3 - build/cli/stagecoach "${SEEDS:-100}" <<'EOF_PYTHON'
import concurrent.futures
import json
import math
import os
import statistics
import subprocess
import sys

stagecoach, n_seeds = sys.argv[1], int(sys.argv[2])
PUBLISHED = ("sebf", "tcf", "sincronia", "intensity")
POLICIES = ["plain", "fair", "mltcp", "work", *PUBLISHED, "stage"]
if os.path.exists("policies/grouper.json"):
    POLICIES.append("grouper")
# The scenario is that of the findings only if these lie in these ranges.
DRAW = {"stage_vs_plain": (0.74, 0.80), "stage_vs_best": (0.89, 0.94)}


def search_times(stages):
    """Returns the time of each search, from its begin to its end."""
    times = {}
    for stage in stages:
        begin, end = times.get(stage["cojob"], (math.inf, 0))
        times[stage["cojob"]] = (min(begin, stage["start"]),
                                 max(end, stage["end"]))
    return {name: end - begin for name, (begin, end) in times.items()}


def run(seed):
    command = [stagecoach, "sim", "lab/scenarios/main.json", "--seed",
               str(seed), "--format", "json"]
    for policy in POLICIES:
        command += ["--policy", policy]
    result = json.loads(subprocess.run(command, check=True,
                                       stdout=subprocess.PIPE).stdout)
    policies = {p["name"]: p for p in result["policies"]}
    mean = {name: p["mean"] for name, p in policies.items()}
    plain, stage = (search_times(s for s in result["stages"]
                                 if s["policy"] == name)
                    for name in ("plain", "stage"))
    searches = [stage[name] / plain[name] for name in plain]
    ratios = {f"stage_vs_{name}": mean["stage"] / mean[name]
              for name in POLICIES if name != "stage"}
    ratios.update((f"{name}_vs_plain", mean[name] / mean["plain"])
                  for name in POLICIES if name not in ("plain", "stage"))
    ratios["stage_vs_best"] = mean["stage"] / min(mean[p] for p in PUBLISHED)
    ratios["p95_vs_plain"] = policies["stage"]["p95"] / policies["plain"]["p95"]
    ratios["search_vs_plain"] = statistics.mean(searches)
    ratios["worst_search_vs_plain"] = max(searches)
    ratios["later_share"] = statistics.mean(r > 1.05 for r in searches)
    return ratios


def student(n):
    """Returns the quantile 0.975 of Student's t, by its density."""
    def density(t):
        return (1 + t * t / n) ** (-(n + 1) / 2)
    whole = (math.sqrt(n * math.pi)
             * math.exp(math.lgamma(n / 2) - math.lgamma((n + 1) / 2)))
    step, t, area = 1e-3, 0, 0
    while area < 0.475 * whole:
        area += step * density(t + step / 2)
        t += step
    return t


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    seeds = list(pool.map(run, range(1, n_seeds + 1)))
figures = {}
for name in seeds[0]:
    values = [seed[name] for seed in seeds]
    figures[name] = mean = statistics.mean(values)
    if n_seeds > 1:
        half = (student(n_seeds - 1) * statistics.stdev(values)
                / math.sqrt(n_seeds))
        figures[name + "_low"], figures[name + "_high"] = mean - half, mean + half
figures["draw_error"] = max(
    max(low - figures[name], figures[name] - high, 0)
    for name, (low, high) in DRAW.items())
figures["stage_wins"] = statistics.mean(s["stage_vs_best"] < 1 for s in seeds)
print(json.dumps({
    "bench": "main-sim",
    "figures": {name: round(value, 4) for name, value in figures.items()}
    | {"seeds": n_seeds},
    "baseline": {}}))
EOF_PYTHON
