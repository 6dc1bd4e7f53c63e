#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the orders of jobs that iterate on $SEEDS (default 200) random
# placements of each family of searches.  Prints one JSON object on standard
# output, progress on standard error; see order-iterating.c.  If $PLOT is set,
# draws means and tails of all policies to this SVG file; see order-front.py.
set -eu
cd "$(dirname "$0")/../.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
build/tests/bench/order-iterating "${SEEDS:-200}" >"$out"
if [ -n "${PLOT:-}" ]; then
    python3 tests/bench/order-front.py "$out" "$PLOT"
fi
cat "$out"
