#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs lab/scenarios/pytorch.json: an unmodified data-parallel job of PyTorch
# over gloo, between two searches, under fair sharing and under stage order, by
# $ACTUATOR (default shim).
#
# coverage: the part of the bytes sent by its hosts, for the job or without a
# job, that is in the job's slot; the lower of both runs. iteration_error:
# relative difference between the iterations counted from traffic and those in
# the job's log, the higher of both runs. stage_ratio: seconds from the end of
# its first iteration to the end of its last one, stage / fair. sct_ratio: mean
# completion time of all stages, stage / fair.  Prints one JSON object on
# standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "pytorch-lab: needs python3-torch, which \$BUILD_TORCH=true makes" \
         "deps/setup.sh install" >&2
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
build/cli/stagecoach lab run lab/scenarios/pytorch.json --keep \
    --actuator "${ACTUATOR:-shim}" --name "p$(($$ % 1000000))" --out "$dir" >&2
python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

folder = sys.argv[1]
report = json.load(open(folder + "/report.json"))


def times(policy):
    with open("%s/logs/%s/times-0" % (folder, policy)) as lines:
        return [float(line.split()[1]) for line in lines]


policies = {p["name"]: p for p in report["policies"]}
cojobs = {c["policy"]: c for c in report["cojobs"]}
seconds, errors = {}, []
for name in policies:
    done = times(name)
    seconds[name] = done[-1] - done[0]
    errors.append(abs(cojobs[name]["iterations"]["t0"] - len(done))
                  / len(done))
print(json.dumps({
    "bench": "pytorch-lab",
    "figures": {
        "coverage": min(c["coverage"] for c in cojobs.values()),
        "iteration_error": round(max(errors), 4),
        "stage_ratio": round(seconds["stage"] / seconds["fair"], 4),
        "sct_ratio": round(report["ratio"], 4),
        "ddp_s": round(seconds["stage"], 2),
        "cpu_busy": max(p["cpu_busy"] for p in policies.values()),
        "stalls": sum(p["stalls"] for p in policies.values()),
    },
    "baseline": {"ddp_s": round(seconds["fair"], 2)},
}))
EOF_PYTHON
