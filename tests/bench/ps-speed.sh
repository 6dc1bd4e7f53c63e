#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the speed of a store of keys between two nodes over the loopback
# interface of this machine, alternately with a plain socket that transfers the
# same bytes, and with a hash map that gets the same updates.  Reports medians
# of $RUNS runs (default 3).  push_N_percent_mkeys_per_s pushes 1, 10 and 100 %
# of the keys of a node, as workers of the task linear do for a batch.  Prints
# one JSON object on standard output.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

run=0
while [ $run -lt "${RUNS:-3}" ]; do
    run=$((run + 1))
    echo "run $run" >&2
    timeout 120 "${BUILD:-build}/tests/bench/ps-speed" >"$dir/$run"
done
python3 - "$dir" <<'EOF_PYTHON'
import json
import os
import statistics
import sys

runs = [json.loads(open(os.path.join(sys.argv[1], name)).readlines()[-1])
        for name in os.listdir(sys.argv[1])]
median = {name: statistics.median(run[name] for run in runs)
          for name in runs[0]}
plain = ("pingpong_us",)
print(json.dumps({
    "bench": "ps-speed",
    "figures": {name: median[name] for name in median if name not in plain},
    "baseline": {name: median[name] for name in plain},
}))
EOF_PYTHON
