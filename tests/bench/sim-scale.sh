#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures how the processor time of the simulator grows with a cluster of
# searches, see sim-speed.c, of $SIM_SCALE_HOSTS hosts.  The exponent is that
# from the first to the third size.  Prints one JSON object on standard output,
# and progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
for hosts in ${SIM_SCALE_HOSTS:-1250 2500 5000 10000}; do
    echo "$hosts hosts" >&2
    echo "$hosts $(build/tests/bench/sim-speed searches "$hosts")"
done | python3 -c '
import json, math, sys

runs = [(int(hosts), json.loads(run)) for hosts, run in
        (line.split(" ", 1) for line in sys.stdin)]
growth = [[hosts, run["cpu_seconds"]] for hosts, run in runs]
(first, cpu), (third, third_cpu) = growth[0], growth[2]
print(json.dumps({"bench": "sim-scale", "figures": {
    "exponent": round(math.log(third_cpu / cpu) / math.log(third / first), 3),
    "big_cpu_seconds": growth[-1][1],
    "big_rss_mib": runs[-1][1]["rss_mib"],
    "growth": growth}}))'
