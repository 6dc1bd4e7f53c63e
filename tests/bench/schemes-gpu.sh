#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the time to a loss with eight workers that emulate GPUs of four
# kinds, with constant times of small batches and with overheads, with equal
# batches and with adapted batches; the time to compute the batches; 12 and 16
# GPUs in virtual time (clusters.py); and, as root, the time to adapt batches
# after a link loses half of its rate.  Prints one JSON object on standard
# output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

build/tests/bench/schemes-cost > "$dir/cost"
timeout 150 build/trainer/stagecoach-trainer compare tests/compare/gpu-8.json \
    --format json > "$dir/out"
python3 tests/bench/clusters.py build/tests/bench/schemes-virtual gpu \
    > "$dir/clusters"
echo null > "$dir/cut"
if [ "$(id -u)" = 0 ]; then
    timeout 100 python3 tests/bench/bandwidth-cut.py \
        trainer/balance/profiles/gpu-4.json > "$dir/cut"
fi
python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

cost, out, cut, clusters = (json.load(open(f"{sys.argv[1]}/{name}")) for name in (
    "cost", "out", "cut", "clusters"))
bsp, lbbsp = out["schemes"]
assert bsp["reached"] and lbbsp["reached"]
print(json.dumps({
    "bench": "schemes-gpu",
    "figures": {
        "lbbsp_vs_bsp": round(bsp["seconds"] / lbbsp["seconds"], 3),
        "overhead": round(cost["manager_gpu_s"] / lbbsp["iteration_s"], 6),
        "recover_iterations": cut and cut["recover_iterations"],
        **clusters["figures"],
    },
    "baseline": {
        "cut": cut,
        "clusters": clusters["baseline"],
        **{s["scheme"]: {k: s[k] for k in ("seconds", "iterations",
                                           "iteration_s")}
           for s in out["schemes"]},
    },
}))
EOF_PYTHON
