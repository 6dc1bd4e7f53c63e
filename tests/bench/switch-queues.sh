#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the order where the switch does not help: runs the quickstart at
# $PLACEMENTS random placements (default 2) with three kinds of switch ports
# (eight levels in strict order, one queue, one queue that marks), under fair
# sharing without congestion control, and under stage order with it.  Strict
# ports also have stage order without it.  A minute for each run, 7 for each
# placement.  Prints one JSON object on standard output, progress on standard
# error.  Results of single runs are kept as by quickstart.sh.
set -eu
cd "$(dirname "$0")/../.."
dir=$(tests/lab/kept-runs.sh switch-queues)

# runs QUEUES CC POLICY: runs what is missing.
runs() {
    mkdir -p "$dir/$1-$2-$3"
    python3 - "$1" "$2" >"$dir/$1-$2-$3/scenario.json" <<'EOF_PYTHON'
import json
import sys

with open("lab/scenarios/quickstart.json", encoding="utf-8") as f:
    scenario = json.load(f)
scenario.update({"queues": sys.argv[1], "cc": sys.argv[2] == "on"})
json.dump(scenario, sys.stdout)
EOF_PYTHON
    build/cli/stagecoach lab run "$dir/$1-$2-$3/scenario.json" --policy "$3" \
        --placements "${PLACEMENTS:-2}" --name "s$(($$ % 1000000))" \
        --out "$dir/$1-$2-$3" --format json >/dev/null
}

for queues in strict fifo ecn; do
    runs $queues off fair
    runs $queues on stage
done
runs strict off stage

python3 - "$dir" "${PLACEMENTS:-2}" <<'EOF_PYTHON'
import json
import statistics
import sys

folder, placements = sys.argv[1], int(sys.argv[2])


def values(queues, cc, policy, member):
    found = []
    for i in range(1, placements + 1):
        name = f"{folder}/{queues}-{cc}-{policy}/placement-{i}/{policy}/report.json"
        with open(name, encoding="utf-8") as f:
            found.append(json.load(f)["policies"][0][member])
    return found


def mean(*which):
    return statistics.mean(values(*which))


def vs_fair(queues, cc):
    return statistics.mean(
        a / b for a, b in zip(values(queues, cc, "stage", "mean_sct_s"),
                              values(queues, "off", "fair", "mean_sct_s")))


strict = vs_fair("strict", "off")
figures = {
    "strict_vs_fair": strict,
    "strict_cc_iteration": mean("strict", "on", "stage", "iteration_s")
    / mean("strict", "off", "stage", "iteration_s"),
    "strict_cc_sct": mean("strict", "on", "stage", "mean_sct_s")
    / mean("strict", "off", "stage", "mean_sct_s"),
}
for queues in ("fifo", "ecn"):
    figures[f"{queues}_vs_fair"] = vs_fair(queues, "on")
    figures[f"{queues}_vs_strict"] = vs_fair(queues, "on") / strict
    figures[f"{queues}_queue_kb"] = mean(queues, "on", "stage",
                                         "queue_p99_bytes") / 1000
    figures[f"{queues}_timeouts"] = mean(queues, "on", "stage", "tcp_timeouts")
figures["strict_timeouts"] = mean("strict", "on", "stage", "tcp_timeouts")
figures["fair_timeouts"] = mean("strict", "off", "fair", "tcp_timeouts")
print(json.dumps({"bench": "switch-queues",
                  "figures": {k: round(v, 4) for k, v in figures.items()}}))
EOF_PYTHON
[ -n "${OUT:-}" ] || rm -rf "$dir"
