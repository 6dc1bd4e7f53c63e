#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compares the simulator with the lab: the quickstart's mean stage completion
# time under each policy.  Reads the lab report $REPORT; without it, runs the
# lab (as root, about three minutes).  Prints one JSON object on standard
# output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
scenario=lab/scenarios/quickstart.json
if [ -z "${REPORT:-}" ]; then
    build/cli/stagecoach lab run $scenario --name "v$(($$ % 1000000))" \
        --out "$dir/lab" >&2
    REPORT=$dir/lab/report.json
fi
build/cli/stagecoach sim $scenario --format json > "$dir/sim.json"
python3 - "$REPORT" "$dir/sim.json" <<'EOF_PYTHON'
import json
import sys

lab = {p["name"]: p["mean_sct_s"]
       for p in json.load(open(sys.argv[1]))["policies"]}
sim = {p["name"]: p["mean"] for p in json.load(open(sys.argv[2]))["policies"]}
errors = {name: sim[name] / lab[name] - 1 for name in lab if name in sim}
ratios = {"lab": lab["stage"] / lab["fair"], "sim": sim["stage"] / sim["fair"]}
print(json.dumps({
    "bench": "sim-vs-lab",
    "figures": {
        "worst_sct_error": round(max(abs(e) for e in errors.values()), 4),
        "ratio_error": round(abs(ratios["sim"] - ratios["lab"]), 4),
        "sct_errors": {n: round(e, 4) for n, e in errors.items()},
    },
    "baseline": {"lab_mean_sct_s": lab, "sim_mean_sct_s": sim,
                 "ratios": {n: round(r, 4) for n, r in ratios.items()}},
}))
EOF_PYTHON
