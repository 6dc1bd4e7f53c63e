#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Time to a loss with eight workers that stand for GPUs of four kinds, whose
# times have flat starts and overheads, with equal batches and with batches
# that suit them; and what deciding the batches costs.  One JSON object on
# standard output; progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

build/tests/bench/schemes-cost > "$dir/cost"
timeout 150 build/trainer/stagecoach-trainer compare tests/compare/gpu-8.json \
    --format json > "$dir/out"
exec python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

cost = json.load(open(sys.argv[1] + "/cost"))
out = json.load(open(sys.argv[1] + "/out"))
bsp, lbbsp = out["schemes"]
assert bsp["reached"] and lbbsp["reached"]
print(json.dumps({
    "bench": "schemes-gpu",
    "figures": {
        "lbbsp_vs_bsp": round(bsp["seconds"] / lbbsp["seconds"], 3),
        "overhead": round(cost["manager_gpu_s"] / lbbsp["iteration_s"], 6),
    },
    "baseline": {
        s["scheme"]: {k: s[k] for k in ("seconds", "iterations",
                                        "iteration_s")}
        for s in out["schemes"]},
}))
EOF_PYTHON
