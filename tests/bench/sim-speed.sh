#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the time of the simulator for the public coflow trace by rank and in
# the plain network.  Prints one JSON object on standard output.
set -eu
cd "$(dirname "$0")/../.."
bench=build/tests/bench/sim-speed
trace=${STAGECOACH_DATA:-../shared/data}/coflow/FB2010-1Hr-150-0.txt
if [ ! -e "$trace" ]; then
    echo "{\"bench\": \"sim-speed\", \"skipped\": \"no trace $trace, set" \
         "STAGECOACH_DATA\"}"
    exit 0
fi
{ "$bench" trace "$trace" stage; "$bench" trace "$trace" plain; } | python3 -c '
import json, sys

stage, plain = map(json.loads, sys.stdin)
print(json.dumps({"bench": "sim-speed", "figures": {
    "fb_seconds": stage["seconds"],
    "fb_plain_seconds": plain["seconds"],
    "fb_rss_mib": max(run["rss_mib"] for run in (stage, plain))}}))'
