#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the searches of lab/scenarios/racks.json at $PLACEMENTS random
# placements (default 4) in two racks with uplinks of 4:1 and of 2:1: under fair
# sharing, under stage order that sees the uplinks, and under stage order that
# sees hosts only ("blind").  Then cuts a link between two racks with two spines
# while searches train: 20 minutes in all.  Prints one JSON object on standard
# output, progress on standard error.
#
# Results of single runs stay in a folder of the build, by the checksum of the
# programs, until all runs have ended.  So an interrupted bench, started again,
# continues with the run that is missing.  With $OUT, they stay there.
set -eu
cd "$(dirname "$0")/../.."
dir=$(tests/lab/kept-runs.sh racks lab/scenarios/racks.json)

# runs OVER NAME [OPTION]...: runs what is missing of the placements.
runs() {
    over=$1 name=$2
    shift 2
    sed "s/\"over\": 4/\"over\": $over/" lab/scenarios/racks.json \
        >"$dir/racks-$over.json"
    build/cli/stagecoach lab run "$dir/racks-$over.json" "$@" \
        --placements "${PLACEMENTS:-4}" --name "r$(($$ % 1000000))" \
        --out "$dir/$name-$over" --format json >"$dir/$name-$over.json"
}

for over in 4 2; do
    runs "$over" seen --policy fair --policy stage
    runs "$over" blind --policy stage --blind
done
[ -f "$dir/cut.json" ] || {
    python3 tests/bench/link-cut.py >"$dir/cut.new"
    mv "$dir/cut.new" "$dir/cut.json"
}

python3 - "$dir" <<'EOF_PYTHON'
import json
import statistics
import sys

folder = sys.argv[1]


def read(name):
    with open(f"{folder}/{name}.json", encoding="utf-8") as f:
        return json.load(f)


def means(name):
    """The mean SCT of each placement, by policy."""
    return [{p["name"]: p["mean_sct_s"] for p in placement["policies"]}
            for placement in read(name)["placements"]]


figures, baseline = {}, {}
for over in (4, 2):
    seen, blind = means(f"seen-{over}"), means(f"blind-{over}")
    by_fair = [s["stage"] / s["fair"] for s in seen]
    by_blind = [s["stage"] / b["stage"] for s, b in zip(seen, blind)]
    figures[f"stage_vs_fair_{over}"] = round(statistics.mean(by_fair), 4)
    figures[f"stage_vs_fair_{over}_each"] = [round(r, 4) for r in by_fair]
    figures[f"seen_vs_blind_{over}"] = round(statistics.mean(by_blind), 4)
    figures[f"seen_vs_blind_{over}_each"] = [round(r, 4) for r in by_blind]
    for policy in ("fair", "stage"):
        seconds = round(statistics.mean(s[policy] for s in seen), 2)
        (baseline if policy == "fair" else figures)[
            f"{policy}_{over}_s"] = seconds
figures["placements"] = len(seen)
figures.update(read("cut"))
print(json.dumps({"bench": "racks", "figures": figures,
                  "baseline": baseline}))
EOF_PYTHON
[ -n "${OUT:-}" ] || rm -rf "$dir"
