#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the main scenario with $SEEDS seeds (default 5) in a plain network, with
# shims and agents under fair sharing, and under stage order: two minutes for
# each run, 40 minutes in all.  Prints one JSON object on standard output,
# progress on standard error.
#
# A plain network depends on TCP's congestion control.  It runs with the first
# two seeds under that of the kernel, cubic and bbr, if the kernel has them.  The
# fastest is then that of all runs.
#
# Results of single runs are kept as by quickstart.sh.
set -eu
cd "$(dirname "$0")/../.."
scenario=lab/scenarios/main.json
sysctl=/proc/sys/net/ipv4
seeds=${SEEDS:-5}
dir=$(tests/lab/kept-runs.sh main "$scenario")

# runs FILE CONTROL N POLICY...: runs what is missing; writes the summary to
# FILE.
runs() {
    file=$1 control=$2 n=$3
    shift 3
    policies=
    for policy in "$@"; do
        policies="$policies --policy $policy"
    done
    # shellcheck disable=SC2086
    build/cli/stagecoach lab run "$scenario" $policies \
        --congestion "$control" --placements "$n" \
        --name "m$(($$ % 1000000))" --out "$dir/$control" --format json \
        >"$dir/$file"
}

controls=$(cat $sysctl/tcp_congestion_control)
for control in cubic bbr; do
    case " $(cat $sysctl/tcp_available_congestion_control) $controls " in
    *" $control "*" $control "*) ;;
    *" $control "*) controls="$controls $control" ;;
    esac
done
for control in $controls; do
    runs "plain-$control.json" "$control" "$((seeds < 2 ? seeds : 2))" plain
done
# shellcheck disable=SC2086
fastest=$(python3 - "$dir" $controls <<'EOF_PYTHON'
import json
import sys


def mean_sct(control):
    with open(f"{sys.argv[1]}/plain-{control}.json", encoding="utf-8") as f:
        return json.load(f)["policies"][0]["mean_sct_s"]


print(min(sys.argv[2:], key=mean_sct))
EOF_PYTHON
)
runs all.json "$fastest" "$seeds" plain fair stage

# shellcheck disable=SC2086
python3 - "$dir" "$fastest" $controls <<'EOF_PYTHON'
import json
import math
import statistics
import sys

folder, control, *controls = sys.argv[1:]
# Quantiles 0.975 of Student's t, by the degrees of freedom from 1 on.
STUDENT = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
           2.2622)


def read(name):
    with open(f"{folder}/{name}", encoding="utf-8") as f:
        return json.load(f)


def search_times(report):
    return {s["cojob"]: s["end"] - s["start"] for s in report["searches"]}


def search_ratios(reports):
    plain = search_times(reports["plain"])
    return [time / plain[cojob]
            for cojob, time in search_times(reports["stage"]).items()]


def ratios(member, policy="stage", baseline="plain", least=0):
    """The ratio of each seed."""
    return [r[policy]["policies"][0][member]
            / max(least, r[baseline]["policies"][0][member]) for r in seeds]


def with_interval(name, values):
    mean = statistics.mean(values)
    low = high = None
    if len(values) > 1:
        quantile = STUDENT[min(len(values) - 1, len(STUDENT)) - 1]
        half = quantile * statistics.stdev(values) / math.sqrt(len(values))
        low, high = round(mean - half, 4), round(mean + half, 4)
    return {name: round(mean, 4), name + "_low": low, name + "_high": high}


def seconds(policy):
    values = [r[policy]["policies"][0] for r in seeds]
    return {key: round(statistics.mean(v[key] for v in values), 2)
            for key in ("mean_sct_s", "p95_sct_s", "makespan_s", "startup_s",
                        "exchange_s")}


seeds = [{policy: read(f"{control}/placement-{p['seed']}/{policy}/report.json")
          for policy in ("plain", "fair", "stage")}
         for p in read("all.json")["placements"]]
runs = [report["policies"][0] for r in seeds for report in r.values()]
times = [search_ratios(r) for r in seeds]
print(json.dumps({
    "bench": "main",
    "figures": {
        **with_interval("stage_vs_plain", ratios("mean_sct_s")),
        **with_interval("startup_vs_plain", ratios("startup_s")),
        **with_interval("stage_vs_fair",
                        ratios("mean_sct_s", baseline="fair")),
        **with_interval("fair_vs_plain", ratios("mean_sct_s", "fair")),
        **with_interval("p95_vs_plain", ratios("p95_sct_s")),
        **with_interval("makespan_vs_plain", ratios("makespan_s")),
        **with_interval("exchange_vs_plain", ratios("exchange_s")),
        **with_interval("search_vs_plain",
                        [statistics.mean(t) for t in times]),
        **with_interval("worst_search_vs_plain", [max(t) for t in times]),
        **with_interval("later_share", [
            statistics.mean(ratio > 1.05 for ratio in t) for t in times]),
        # A plain network may have no time-out.
        **with_interval("timeouts_vs_plain",
                        ratios("tcp_timeouts", least=1)),
        "seeds": len(seeds),
        **{f"plain_{c}_mean_sct_s": round(
            read(f"plain-{c}.json")["policies"][0]["mean_sct_s"], 2)
           for c in controls},
        **seconds("stage"),
        "coverage": min(p["coverage"] for p in runs
                        if p["name"] != "plain"),
        "cpu_busy": max(p["cpu_busy"] for p in runs),
        "stalls": sum(p["stalls"] for p in runs),
        "restarts": sum(p["restarts"] for p in runs),
    },
    "baseline": {"congestion_control": control, **seconds("plain")},
}))
EOF_PYTHON
[ -n "${OUT:-}" ] || rm -rf "$dir"
