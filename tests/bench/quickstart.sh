#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the quickstart $RUNS times (default 3) under fair sharing and under
# stage order.  Prints one JSON object on standard output, progress on standard
# error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

run=0
while [ $run -lt "${RUNS:-3}" ]; do
    run=$((run + 1))
    echo "run $run" >&2
    build/cli/stagecoach lab run lab/scenarios/quickstart.json \
        --name "b$(($$ % 1000000))" --out "$dir/$run" >&2
done
python3 - "$dir"/*/report.json <<'EOF_PYTHON'
import json
import statistics
import sys

reports = [json.load(open(name)) for name in sys.argv[1:]]


def values(policy, key):
    return [p[key] for r in reports for p in r["policies"]
            if p["name"] == policy]


def median(policy, key):
    return round(statistics.median(values(policy, key)), 4)


both = ("fair", "stage")
print(json.dumps({
    "bench": "quickstart",
    "figures": {
        "ratio": round(statistics.median(r["ratio"] for r in reports), 4),
        "ratios": [round(r["ratio"], 4) for r in reports],
        "mean_sct_s": median("stage", "mean_sct_s"),
        "p95_sct_s": median("stage", "p95_sct_s"),
        "makespan_s": median("stage", "makespan_s"),
        "over_bound": round(statistics.median(
            r["certificate"]["gap"] for r in reports), 4),
        "coverage": min(min(values(p, "coverage")) for p in both),
        "coverage_fabric": min(min(values(p, "coverage_fabric"))
                               for p in both),
        "cpu_busy": max(max(values(p, "cpu_busy")) for p in both),
        "stalls": sum(sum(values(p, "stalls")) for p in both),
        "restarts": sum(sum(values(p, "restarts")) for p in both),
    },
    "baseline": {
        "mean_sct_s": median("fair", "mean_sct_s"),
        "p95_sct_s": median("fair", "p95_sct_s"),
        "makespan_s": median("fair", "makespan_s"),
    },
}))
EOF_PYTHON
