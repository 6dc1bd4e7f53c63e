#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures what the presence of shims and agents costs: runs the quickstart at
# $PLACEMENTS random placements (default 4) under fair sharing with them, and
# in a plain network, with kernel bridges in their place.  Prints one JSON
# object on standard output, progress on standard error.  Results of single
# runs are kept as by quickstart.sh.
set -eu
cd "$(dirname "$0")/../.."
dir=$(tests/lab/kept-runs.sh presence)
build/cli/stagecoach lab run lab/scenarios/quickstart.json --policy plain \
    --policy fair --placements "${PLACEMENTS:-4}" \
    --name "p$(($$ % 1000000))" --out "$dir" --format json >"$dir/both.json"
python3 - "$dir/both.json" <<'EOF_PYTHON'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    policies = {p["name"]: p for p in json.load(f)["policies"]}
ratio = policies["plain"]["vs_baseline"]["mean_sct_s"]
print(json.dumps({
    "bench": "presence",
    "figures": {
        "plain_vs_fair": round(ratio["mean"], 4),
        "ci95": [round(ratio["low"], 4), round(ratio["high"], 4)],
        "plain_mean_sct_s": round(policies["plain"]["mean_sct_s"], 2),
    },
    "baseline": {"mean_sct_s": round(policies["fair"]["mean_sct_s"], 2)},
}))
EOF_PYTHON
[ -n "${OUT:-}" ] || rm -rf "$dir"
