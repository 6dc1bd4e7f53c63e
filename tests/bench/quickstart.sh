#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the quickstart at $PLACEMENTS random placements (default 10) under fair
# sharing and stage order, and at the first $PEER_PLACEMENTS of them (default
# 4) under published orders and stage-early too: a minute for each run, 40
# minutes in all.  Prints one JSON object on standard output, progress on
# standard error.
#
# Results of single runs stay in a folder of the build, by the checksum of the
# programs, until all runs have ended.  So an interrupted bench, started again,
# continues with the run that is missing.  With $OUT, they stay there.
set -eu
cd "$(dirname "$0")/../.."
peers="sebf sincronia tcf"
dir=$(tests/lab/kept-runs.sh quickstart)

# runs FILE N POLICY...: runs what is missing; writes the summary to FILE.
runs() {
    file=$1 n=$2
    shift 2
    policies=
    for policy in "$@"; do
        policies="$policies --policy $policy"
    done
    # shellcheck disable=SC2086
    build/cli/stagecoach lab run lab/scenarios/quickstart.json $policies \
        --placements "$n" --name "b$(($$ % 1000000))" --out "$dir" \
        --format json >"$dir/$file"
}

runs stage.json "${PLACEMENTS:-10}" fair stage
# shellcheck disable=SC2086
runs peers.json "${PEER_PLACEMENTS:-4}" fair stage $peers stage-early

# shellcheck disable=SC2086
python3 - "$dir" fair $peers <<'EOF_PYTHON'
import json
import statistics
import sys

folder, *peers = sys.argv[1:]


def read(name):
    with open(f"{folder}/{name}", encoding="utf-8") as f:
        return json.load(f)


def summary(comparison, policy):
    return next(p for p in comparison["policies"] if p["name"] == policy)


def interval(ratio):
    return [round(ratio["low"], 4), round(ratio["high"], 4)]


stage, among_peers = read("stage.json"), read("peers.json")
ratios = summary(stage, "stage")["vs_baseline"]
runs = [read(f"placement-{p['seed']}/{name}/report.json")
        for p in stage["placements"] for name in ("fair", "stage")]
policies = [r["policies"][0] for r in runs]
vs_best = []
for p in among_peers["placements"]:
    means = {run["name"]: run["mean_sct_s"] for run in p["policies"]}
    vs_best.append(means["stage"] / min(means[name] for name in peers))
others = {}
for policy in [*peers[1:], "stage-early"]:
    ratio = summary(among_peers, policy)["vs_baseline"]
    name = policy.replace("-", "_")
    others[f"{name}_vs_fair"] = round(ratio["mean_sct_s"]["mean"], 4)
    others[f"{name}_p95_vs_fair"] = round(ratio["p95_sct_s"]["mean"], 4)


def seconds(policy):
    s = summary(stage, policy)
    return {key: round(s[key], 2)
            for key in ("mean_sct_s", "p95_sct_s", "makespan_s")}


print(json.dumps({
    "bench": "quickstart",
    "figures": {
        "vs_fair_mean": round(ratios["mean_sct_s"]["mean"], 4),
        "ci95": interval(ratios["mean_sct_s"]),
        "p95_vs_fair": round(ratios["p95_sct_s"]["mean"], 4),
        "p95_ci95": interval(ratios["p95_sct_s"]),
        "makespan_vs_fair": round(ratios["makespan_s"]["mean"], 4),
        "makespan_ci95": interval(ratios["makespan_s"]),
        "placements": len(stage["placements"]),
        "vs_best_peer_mean": round(statistics.mean(vs_best), 4),
        "vs_best_peer": [round(r, 4) for r in vs_best],
        **others,
        **seconds("stage"),
        "over_bound": round(statistics.median(
            p["mean_sct_s"] / p["bound_mean_s"] for p in policies
            if p["name"] == "stage"), 4),
        "coverage": min(p["coverage"] for p in policies),
        "coverage_fabric": min(p["coverage_fabric"] for p in policies),
        "cpu_busy": max(p["cpu_busy"] for p in policies),
        "stalls": sum(p["stalls"] for p in policies),
        "restarts": sum(p["restarts"] for p in policies),
    },
    "baseline": seconds("fair"),
}))
EOF_PYTHON
[ -n "${OUT:-}" ] || rm -rf "$dir"
