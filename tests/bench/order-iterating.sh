#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the orders of jobs that iterate on $SEEDS (default 200) random
# placements of each family of searches.  Prints one JSON object on standard
# output, progress on standard error; see order-iterating.c.  If $PLOT is set,
# draws means and tails of all policies to this SVG file; see order-front.py.
#
# Results of families stay in a folder of the build, by the checksum of the
# program, until all have ended.  So an interrupted bench, started again,
# continues with the family that is missing.
set -eu
cd "$(dirname "$0")/../.."
program=build/tests/bench/order-iterating
sum=$(sha256sum <"$program" | cut -c1-12)
dir=build/bench/order-iterating-$sum-${SEEDS:-200}
mkdir -p "$dir"
families="spread one equal 16_load05 16_load1 16_load2 narrow_wide_64 \
    narrow_wide_128"
for family in $families; do
    [ -s "$dir/$family.json" ] || {
        echo "$family" >&2
        "$program" "${SEEDS:-200}" "$family" >"$dir/part"
        mv "$dir/part" "$dir/$family.json"
    }
done
# shellcheck disable=SC2086
python3 - "$dir" $families >"$dir/all" <<'EOF_PYTHON'
import json
import statistics
import sys

folder, *families = sys.argv[1:]
figures, overall = {}, {}
for family in families:
    with open(f"{folder}/{family}.json", encoding="utf-8") as f:
        part = json.load(f)["figures"]
    for key, value in part.items():
        if key.endswith("_" + family):
            figures[key] = value
        else:
            overall.setdefault(key, []).append(value)
for key, values in overall.items():
    combine = max if key == "vs_best_peer_worst" else statistics.mean
    figures[key] = round(combine(values), 4)
print(json.dumps({"bench": "order-iterating", "figures": figures}))
EOF_PYTHON
if [ -n "${PLOT:-}" ]; then
    python3 tests/bench/order-front.py "$dir/all" "$PLOT"
fi
cat "$dir/all"
rm -rf "$dir"
