#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the time to a loss under the synchronization schemes, with eight
# workers that emulate machines of speeds 8:8:8:8:8:8:16:4: the time of a
# gradient is proportional to its samples.  Larger clusters, in which each
# gradient also has a fixed cost, are in virtual time: see clusters.py.  $PAGE,
# if set, is the file for the page of the eight workers.  Prints one JSON object
# on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

build/tests/bench/schemes-cost > "$dir/cost"
timeout 120 build/trainer/stagecoach-trainer compare tests/compare/cpu-8.json \
    --format json --html "${PAGE:-$dir/page}" > "$dir/out"
python3 tests/bench/clusters.py build/tests/bench/schemes-virtual cpu \
    > "$dir/clusters"
python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

cost, out, clusters = (json.load(open(f"{sys.argv[1]}/{name}"))
                       for name in ("cost", "out", "clusters"))
assert all(s["reached"] for s in out["schemes"]), out["schemes"]
schemes = {s["scheme"].split(",")[0]: s for s in out["schemes"]}
ours = schemes["lbbsp-cpu"]
figures = {f"lbbsp_vs_{name}": round(s["seconds"] / ours["seconds"], 3)
           for name, s in schemes.items() if s is not ours}
figures["lbbsp_vs_flexrr_linear"] = figures["lbbsp_vs_flexrr"]
figures["lbbsp_vs_flexrr"] = clusters["figures"]["32"]["flexrr"]
figures["overhead"] = round(cost["manager_8_s"] / ours["iteration_s"], 5)
for n in (8, 32, 128):          # Of an iteration of 50 ms.
    figures[f"overhead_{n}"] = round(cost[f"manager_{n}_s"] / 0.05, 5)
print(json.dumps({
    "bench": "schemes-cpu", "figures": figures | clusters["figures"],
    "baseline": {
        "cost": cost, "clusters": clusters["baseline"],
        "linear": {s["scheme"]: {k: round(s[k], 4) for k in (
            "seconds", "iterations", "iteration_s")}
            for s in out["schemes"]}}}))
EOF_PYTHON
