#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How long the simulator takes: the public coflow trace by rank and fairly
# shared, and growing clusters full of searches, up to $HOSTS hosts (default
# 10000).  One JSON object on standard output; progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
bench=build/tests/bench/sim-speed
trace=${STAGECOACH_DATA:-../shared/data}/coflow/FB2010-1Hr-150-0.txt
if [ ! -e "$trace" ]; then
    echo "{\"bench\": \"sim-speed\", \"skipped\": \"no trace $trace, set" \
         "STAGECOACH_DATA\"}"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

for order in stage fair; do
    echo "trace, $order" >&2
    "$bench" trace "$trace" $order > "$dir/$order"
done
for hosts in 625 1250 2500 5000 10000; do
    [ $hosts -le "${HOSTS:-10000}" ] || continue
    echo "$hosts hosts" >&2
    "$bench" searches $hosts > "$dir/$hosts"
done
exec python3 - "$dir" <<'EOF_PYTHON'
import json
import os
import sys

runs = {name: json.load(open(os.path.join(sys.argv[1], name)))
        for name in os.listdir(sys.argv[1])}
growth = {int(name): run["seconds"] for name, run in runs.items()
          if name.isdigit()}
largest = max(growth)
print(json.dumps({
    "bench": "sim-speed",
    "figures": {
        "fb_seconds": runs["stage"]["seconds"],
        "fb_fair_seconds": runs["fair"]["seconds"],
        "fb_rss_mib": max(runs[o]["rss_mib"] for o in ("stage", "fair")),
        "big_seconds": growth[largest],
        "big_hosts": largest,
        "big_rss_mib": runs[str(largest)]["rss_mib"],
        "growth": [[hosts, growth[hosts]] for hosts in sorted(growth)],
    },
    "baseline": {},
}))
EOF_PYTHON
