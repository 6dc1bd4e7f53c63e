#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures what looking ahead gains on $SEEDS (default 100) random placements of
# each family of searches, simulated, with $RUNS (default 240) runs of the judge
# in a simulated second.  Prints one JSON object on standard output, progress on
# standard error; see order-lookahead.c.
set -eu
cd "$(dirname "$0")/../.."
exec "${BUILD:-build}/tests/bench/order-lookahead" "${SEEDS:-100}" "${RUNS:-240}"
