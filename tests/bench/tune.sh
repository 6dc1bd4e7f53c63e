#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures what "stagecoach policy tune" gains on the searches of the
# quickstart at the random placements of $SEEDS (default 1-60), 60 % of them to
# learn from, the others held back, with $BUDGET simulations (default 5000)
# for each policy: from stage with its objective, for which the default should
# be as good as what is found, and from dclas, whose thresholds are published
# ones for other traffic.  "gain" is the share of the mean stage completion
# time that is saved on the seeds that were held back, "best_knob" the most
# that one member alone gains there.  Prints one JSON object on standard
# output; two minutes.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

tune() {        # NAME POLICY [OPTION]...: may find nothing, which is status 1.
    name=$1 policy=$2
    shift 2
    build/cli/stagecoach policy tune \
        --trace lab/scenarios/quickstart.json --seeds "${SEEDS:-1-60}" \
        --budget "${BUDGET:-5000}" --policy "$policy" "$@" \
        >"$dir/$name" || [ $? = 1 ]
    cat "$dir/$name" >&2
}

tune default stage --keep /objective/latest &
tune untuned dclas
wait $!
python3 - "$dir" <<'EOF_PYTHON'
import json
import re
import sys

NUMBER = r"(-?[\d.]+)"
GAIN = rf"{NUMBER} % \({NUMBER} to {NUMBER}\)"
figures = {}
for name in ("default", "untuned"):
    with open(f"{sys.argv[1]}/{name}", encoding="utf-8") as f:
        text = f.read()
    gain, low, high = (float(n) / 100 for n in re.search(
        rf"in training, {GAIN} held back", text).groups())
    figures[f"gain_{name}"] = round(gain, 4)
    figures[f"gain_{name}_ci95"] = [round(low, 4), round(high, 4)]
    figures[f"best_knob_{name}"] = max(
        round(float(row[0]) / 100, 4)
        for line in text.splitlines() if not line.endswith("kept")
        for row in re.findall(rf"^/\S+ .* {GAIN} ", line))
print(json.dumps({"bench": "tune", "figures": figures, "baseline": {}}))
EOF_PYTHON
