#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the searches of the quickstart while leaders are killed repeatedly: the
# active controller, the leaders of both databases, and all at once.  The
# baseline is the same run without kills.
set -eu
cd "$(dirname "$0")/../.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

# run NAME OPTION...: one run, its report in $dir/NAME.
run() {
    name=$1
    shift
    timeout 170 build/cli/stagecoach lab run lab/scenarios/quickstart.json \
        --policy stage --name benchha --out "$dir/$name" "$@" \
        >"$dir/$name.out" 2>&1 || { tail -n 20 "$dir/$name.out" >&2; exit 1; }
}

run faults --ha
run calm
python3 - "$dir" <<'END'
import json
import sys


def policy(name):
    with open(f"{sys.argv[1]}/{name}/report.json") as f:
        return json.load(f)["policies"][0]


faults, calm = policy("faults"), policy("calm")
ha = faults["ha"]
print(json.dumps({
    "bench": "ha",
    "figures": {
        "faults": ha["faults"],
        "order_back_s": ha["order_back_s"],
        "double_master": ha["double_masters"],
        "switch_changes": ha["switch_changes"],
        "switch_refused": ha["switch_refused"],
        "overlap_s": ha["overlap_s"],
        "same_generation_looks": ha["same_leads"],
        "stages_lost": ha["stages_lost"],
        "flows_flushed": ha["flows_flushed"],
        "mean_sct_s": faults["mean_sct_s"],
    },
    "baseline": {"mean_sct_s": calm["mean_sct_s"]},
}))
END
