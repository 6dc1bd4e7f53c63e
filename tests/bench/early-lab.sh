#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures jobs in their early stage: three searches begin when two older ones
# are half done, in a plain network, under stage order and under the policies
# that use progress.  Reads the lab report $REPORT; without it, runs the lab (as
# root, less than five minutes).  Prints one JSON object on standard output,
# progress on standard error.  "first_s" is the mean time until a job can train,
# "after_ratio" is early_ratio counted from there.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
if [ -z "${REPORT:-}" ]; then
    build/cli/stagecoach lab run lab/scenarios/early.json \
        --name "e$(($$ % 1000000))" --out "$dir" >&2
    REPORT=$dir/report.json
fi
python3 - "$REPORT" <<'EOF_PYTHON'
import json
import sys

report = json.load(open(sys.argv[1]))
policies = {p["name"]: p for p in report["policies"]}
plain, early = policies["plain"], policies["early"]
n_jobs = {name: sum(job["policy"] == name for job in report["jobs"])
          for name in policies}


def ratio(policy, member="early_s", baseline="plain"):
    return round(policies[policy][member] / policies[baseline][member], 4)


def first_s(policy):
    return policies[policy]["startup_s"] / n_jobs[policy]


print(json.dumps({
    "bench": "early-lab",
    "figures": {
        "early_ratio": ratio("early"),
        "after_ratio": round((early["early_s"] - first_s("early"))
                             / (plain["early_s"] - first_s("plain")), 4),
        "stage_early_ratio": ratio("stage-early"),
        "stage_ratio": ratio("stage"),
        "maif_ratio": ratio("maif"),
        "early_s": round(early["early_s"], 3),
        "first_s": round(first_s("early"), 3),
        "sct_loss": round(ratio("stage-early", "mean_sct_s", "stage") - 1, 4),
        "jobs": min(n_jobs.values()),
        "complete": all(p["complete"] for p in policies.values()),
    },
    "baseline": {
        "early_s": round(plain["early_s"], 3),
        "first_s": round(first_s("plain"), 3),
        "mean_sct_s": {n: p["mean_sct_s"] for n, p in policies.items()},
    },
}))
EOF_PYTHON
