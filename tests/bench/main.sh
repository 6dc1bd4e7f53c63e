#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the main scenario with $SEEDS seeds (default 10) in a plain network, and
# with shims and agents under fair sharing, stage order and the published rules;
# with the first four looking ahead, too, and with the first two a plain network
# again.  Two minutes for each run, 140 minutes in all.  Prints one JSON object on
# standard output, progress on standard error.
#
# A plain network depends on TCP's congestion control.  It runs with the first
# two seeds under that of the kernel, cubic and bbr, if the kernel has them.  The
# fastest is then that of all runs.  Ratios are means of the seeds' ratios.
#
# Results of single runs are kept as by quickstart.sh.
set -eu
cd "$(dirname "$0")/../.."
scenario=lab/scenarios/main.json
sysctl=/proc/sys/net/ipv4
seeds=${SEEDS:-10}
dir=$(tests/lab/kept-runs.sh main "$scenario")

# runs FILE FOLDER CONTROL N POLICY...: runs with the first N seeds what is
# missing in FOLDER; writes the summary to FILE.
runs() {
    file=$1 folder=$2 control=$3 n=$(($4 < seeds ? $4 : seeds))
    shift 4
    policies=
    for policy in "$@"; do
        policies="$policies --policy $policy"
    done
    # shellcheck disable=SC2086
    build/cli/stagecoach lab run "$scenario" $policies \
        --congestion "$control" --placements "$n" \
        --name "m$(($$ % 1000000))" --out "$dir/$folder" --format json \
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
    runs "plain-$control.json" "$control" "$control" 2 plain
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
runs all.json "$fastest" "$fastest" "$seeds" plain fair stage work tcf sebf
runs again.json again "$fastest" 2 plain
python3 - "$dir/ahead.json" <<'EOF_PYTHON'
import json
import sys

with open("policies/stage.json", encoding="utf-8") as f:
    policy = json.load(f)
del policy["$schema"]
policy.update(name="ahead", lookahead={"core_share": 0.1})
with open(sys.argv[1], "w", encoding="utf-8") as f:
    json.dump(policy, f)
EOF_PYTHON
runs by-ahead.json "$fastest" "$fastest" 4 "$dir/ahead.json"

# shellcheck disable=SC2086
PYTHONPATH=tests/bench python3 - "$dir" "$fastest" $controls <<'EOF_PYTHON'
import json
import statistics
import sys

from intervals import with_interval

folder, control, *controls = sys.argv[1:]
POLICIES = ("plain", "fair", "stage", "work", "tcf", "sebf")


def read(name):
    with open(f"{folder}/{name}", encoding="utf-8") as f:
        return json.load(f)


def report(policy, seed, within=control):
    return read(f"{within}/placement-{seed}/{policy}/report.json")


def search_times(seed, policy):
    return {s["cojob"]: s["end"] - s["start"]
            for s in report(policy, seed)["searches"]}


def search_ratios(seed):
    plain = search_times(seed, "plain")
    return [time / plain[cojob]
            for cojob, time in search_times(seed, "stage").items()]


def values(member, policy, of=None):
    """The figure of each seed."""
    return [report(policy, seed)["policies"][0][member]
            for seed in of or seeds]


def ratios(member, policy="stage", baseline="plain", least=0):
    """The ratio of each seed."""
    return [x / max(least, y) for x, y in
            zip(values(member, policy), values(member, baseline))]


def same():
    """How far two plain runs of a seed are apart."""
    again = [s["seed"] for s in read("again.json")["placements"]]
    return max(abs(report("plain", seed, "again")["policies"][0]["mean_sct_s"]
                   / value - 1) for seed, value in
               zip(again, values("mean_sct_s", "plain", again)))


def seconds(policy):
    return {key: round(statistics.mean(values(key, policy)), 4)
            for key in ("mean_sct_s", "p95_sct_s", "makespan_s", "startup_s",
                        "exchange_s", "retransmitted_share")}


seeds = [p["seed"] for p in read("all.json")["placements"]]
ahead = [p["seed"] for p in read("by-ahead.json")["placements"]]
best = [min(pair) for pair in
        zip(values("mean_sct_s", "tcf"), values("mean_sct_s", "sebf"))]
runs = [report(policy, seed)["policies"][0] for seed in seeds
        for policy in POLICIES]
times = [search_ratios(seed) for seed in seeds]
print(json.dumps({
    "bench": "main",
    "figures": {
        **with_interval("stage_vs_plain", ratios("mean_sct_s")),
        **with_interval("startup_vs_plain", ratios("startup_s")),
        **with_interval("stage_vs_fair",
                        ratios("mean_sct_s", baseline="fair")),
        **with_interval("fair_vs_plain", ratios("mean_sct_s", "fair")),
        **with_interval("stage_vs_best", [
            x / y for x, y in zip(values("mean_sct_s", "stage"), best)]),
        **with_interval("stage_vs_work",
                        ratios("mean_sct_s", baseline="work")),
        **with_interval("ahead_vs_key", [
            x / y for x, y in zip(values("mean_sct_s", "ahead", ahead),
                                  values("mean_sct_s", "stage", ahead))]),
        "same": round(same(), 4),
        **with_interval("p95_vs_plain", ratios("p95_sct_s")),
        **with_interval("makespan_vs_plain", ratios("makespan_s")),
        **with_interval("exchange_vs_plain", ratios("exchange_s")),
        **with_interval("search_vs_plain",
                        [statistics.mean(t) for t in times]),
        **with_interval("worst_search_vs_plain", [max(t) for t in times]),
        "worst_search": round(max(map(max, times)), 4),
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
