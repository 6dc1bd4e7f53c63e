#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Time to a loss with eight workers that stand for GPUs of four kinds, whose
# times have flat starts and overheads, with equal batches and with batches
# that suit them; what deciding the batches costs; and, as root, how long it
# takes them to suit again when a link loses half of its rate.  One JSON object
# on standard output; progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

build/tests/bench/schemes-cost > "$dir/cost"
timeout 150 build/trainer/stagecoach-trainer compare tests/compare/gpu-8.json \
    --format json > "$dir/out"
echo null > "$dir/cut"
if [ "$(id -u)" = 0 ]; then
    timeout 100 python3 tests/bench/bandwidth-cut.py \
        trainer/balance/profiles/gpu-4.json > "$dir/cut"
fi
python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

cost = json.load(open(sys.argv[1] + "/cost"))
out = json.load(open(sys.argv[1] + "/out"))
bsp, lbbsp = out["schemes"]
cut = json.load(open(sys.argv[1] + "/cut"))
assert bsp["reached"] and lbbsp["reached"]
print(json.dumps({
    "bench": "schemes-gpu",
    "figures": {
        "lbbsp_vs_bsp": round(bsp["seconds"] / lbbsp["seconds"], 3),
        "overhead": round(cost["manager_gpu_s"] / lbbsp["iteration_s"], 6),
        "recover_iterations": cut and cut["recover_iterations"],
    },
    "baseline": {
        "cut": cut,
        **{s["scheme"]: {k: s[k] for k in ("seconds", "iterations",
                                           "iteration_s")}
           for s in out["schemes"]},
    },
}))
EOF_PYTHON
