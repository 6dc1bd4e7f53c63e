#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures what looking ahead gains on $SEEDS (default 100) random placements of
# each family of searches, simulated, with $RUNS (default 240) runs of the judge
# in a simulated second, and what it costs a controller in $COST_S (default 20)
# seconds for each number of jobs.  Prints one JSON object on standard output,
# progress on standard error; see order-lookahead.c and lookahead-time.c.
set -eu
cd "$(dirname "$0")/../.."
bin=${BUILD:-build}/tests/bench
cost=$("$bin/lookahead-time" "${COST_S:-20}")
"$bin/order-lookahead" "${SEEDS:-100}" "${RUNS:-240}" |
    sed "s/\"figures\": {/&$cost, /"
