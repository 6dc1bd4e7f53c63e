#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures jobs in their early stage: three searches begin when two older ones
# are half done, under fair sharing, under stage order and under the policies
# that use progress.  Reads the lab report $REPORT; without it, runs the lab (as
# root, less than five minutes).  Prints one JSON object on standard output,
# progress on standard error.  "first_s" is the part of the time to 90 % that
# passes before a job's first evaluation, which follows its first iteration,
# "iterations" the mean number of iterations to 90 %.
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
import statistics
import sys

report = json.load(open(sys.argv[1]))
begin = {(s["policy"], s["cojob"]): s["start"]
         for s in report["stages"] if s["rung"] == 0}
policies = {p["name"]: p for p in report["policies"]}


def early_times(policy, evaluated=False):
    """Seconds from the beginning of each job's search, or if 'evaluated' from
    the job's first evaluation, to 90 % of the accuracy that it had at its last
    iteration."""
    times = {}
    for job in report["jobs"]:
        points = [(t, accuracy) for t, _, _, accuracy in job["points"]
                  if accuracy is not None]
        if job["policy"] == policy and points:
            there = next(t for t, a in points if a >= 0.9 * points[-1][1])
            times[job["cojob"], job["job"]] = (
                there - (points[0][0] if evaluated
                         else begin[policy, job["cojob"]]), job["iteration"])
    return times


times = {name: early_times(name) for name in policies}
last = max(iteration for _, iteration in times["fair"].values())


def mean(policy, full=False):
    return statistics.mean(t for t, iteration in times[policy].values()
                           if iteration == last or not full)


def ratio(policy, full=False):
    return round(mean(policy, full) / mean("fair", full), 4)


def mean_first(policy):
    """Mean seconds to the first evaluation."""
    return (statistics.mean(t for t, _ in early_times(policy).values())
            - mean_evaluated(policy))


def mean_iterations(policy):
    """Mean iteration at which jobs have 90 % of their last accuracy."""
    numbers = []
    for job in report["jobs"]:
        points = [(k, a) for _, k, _, a in job["points"] if a is not None]
        if job["policy"] == policy and points:
            numbers.append(next(k for k, a in points
                                if a >= 0.9 * points[-1][1]))
    return statistics.mean(numbers)


def mean_evaluated(policy):
    return statistics.mean(t for t, _ in early_times(policy, True).values())


print(json.dumps({
    "bench": "early-lab",
    "figures": {
        "early_ratio": ratio("early"),
        "early_ratio_full": ratio("early", True),
        "stage_early_ratio": ratio("stage-early"),
        "stage_ratio": ratio("stage"),
        "early_s": round(mean("early"), 3),
        "first_s": round(mean_first("early"), 3),
        "iterations": round(mean_iterations("early"), 1),
        "sct_loss": round(policies["stage-early"]["mean_sct_s"]
                          / policies["stage"]["mean_sct_s"] - 1, 4),
        "jobs": min(len(t) for t in times.values()),
        "complete": all(p["complete"] for p in policies.values()),
    },
    "baseline": {
        "early_s": round(mean("fair"), 3),
        "first_s": round(mean_first("fair"), 3),
        "early_ratio_evaluated": round(mean_evaluated("early")
                                       / mean_evaluated("fair"), 4),
        "mean_sct_s": {n: p["mean_sct_s"] for n, p in policies.items()},
    },
}))
EOF_PYTHON
