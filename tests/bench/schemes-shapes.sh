#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures each scheme with several kinds of stragglers, with eight workers of
# 1,600 samples per second and batch 512 (an iteration of 0.04 s without a
# straggler):
#
#    straggler   one takes four times as long, always; to a loss of 1.5
#    rate        the same, with four times the learning rate
#    spikes      each batch takes ten times as long by a chance of 1 in 20
#    pauses      of 800 samples a second, one after the other is half as fast
#                for 2 s
#    links       as root: workers' links of 100 Mbit/s, transfers about as long
#                as computing (essp-links.py)
#
# Prints one JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

SPEED = 1600
fast = {"samples_per_s": SPEED, "jitter": 0.03}
profiles = {
    "equal": [fast],
    "straggler": [{**fast, "count": 7}, {**fast, "samples_per_s": SPEED / 4}],
    "rate": [{**fast, "count": 7}, {**fast, "samples_per_s": SPEED / 4}],
    "spikes": [{**fast, "spikes": {"probability": 0.05, "factor": 0.1}}],
    "pauses": [{**fast, "samples_per_s": SPEED / 2, "repeat_s": 17, "steps": [
        {"at_s": 2 * i, "factor": 0.5}, {"at_s": 2 * i + 2, "factor": 1}]}
        for i in range(8)],
}
runs = {
    "equal": (["bsp"], 1.5),
    "straggler": (["bsp", "ssp,staleness=3", "essp,staleness=3", "asp",
                   "backup"], 1.5),
    "rate": (["bsp", "asp"], 1.5),
    "spikes": (["bsp", "backup"], None),
    "pauses": (["bsp", "flexrr,pieces=16", "lbbsp-cpu"], None),
}
for name, (schemes, target) in runs.items():
    json.dump({"name": name, "workers": profiles[name]},
              open(f"{sys.argv[1]}/{name}-profile.json", "w"))
    spec = {"schemes": schemes, "workers": 8, "iterations": 120, "limit_s": 40,
            "profile": f"{name}-profile.json",
            "arguments": ["--batch", "512", "--shape", "32,48,10",
                          "--learning-rate", "0.4" if name == "rate" else
                          "0.1", "--eval-every", "2",
                          "--backend", "cpu"]}
    if target:
        spec["target_loss"] = target
    json.dump(spec, open(f"{sys.argv[1]}/{name}.json", "w"))
EOF_PYTHON
for name in equal straggler rate spikes pauses; do
    echo "$name" >&2
    timeout 120 build/trainer/stagecoach-trainer compare "$dir/$name.json" \
        --format json > "$dir/$name.out"
done
echo null > "$dir/links"
if [ "$(id -u)" = 0 ]; then
    echo links >&2
    timeout 100 python3 tests/bench/essp-links.py > "$dir/links"
fi
python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

N = 8
IDEAL_PAUSES = 512 / (800 * (N - 0.5 * N / 8.5))       # Sum of speeds.
runs = {name: {s["scheme"].split(",")[0]: s for s in json.load(
    open(f"{sys.argv[1]}/{name}.out"))["schemes"]}
    for name in ("equal", "straggler", "rate", "spikes", "pauses")}
links = json.load(open(sys.argv[1] + "/links"))
none = runs["equal"]["bsp"]
figures = {}
for scheme, run in runs["straggler"].items():
    assert run["reached"], run
    figures[f"straggler_{scheme}"] = {
        "time": round(run["seconds"] / none["seconds"], 3),
        "iteration": round(run["iteration_s"] / none["iteration_s"], 3)}

# The number of gradients of all workers; the straggler computes a quarter as
# many as each other worker.
asp = runs["straggler"]["asp"]
figures["straggler_asp"]["updates"] = round(
    asp["iterations"] * (N - 1 + 0.25) / N / none["iterations"], 3)
figures["rate_asp"] = {"updates": round(
    runs["rate"]["asp"]["iterations"] * (N - 1 + 0.25) / N
    / runs["rate"]["bsp"]["iterations"], 3)}
figures["spikes_backup_vs_bsp"] = round(
    runs["spikes"]["backup"]["iteration_s"]
    / runs["spikes"]["bsp"]["iteration_s"], 3)
for scheme, run in runs["pauses"].items():
    figures[f"pauses_{scheme}_vs_ideal"] = round(
        run["iteration_s"] / IDEAL_PAUSES, 3)
figures["links_ssp_vs_essp"] = links and round(links["ssp"] / links["essp"],
                                               3)
print(json.dumps({
    "bench": "schemes-shapes", "figures": figures,
    "baseline": {"links": links, **{
        name: {scheme: {k: round(s[k], 4) for k in (
            "seconds", "iterations", "iteration_s", "loss")}
            for scheme, s in schemes.items()}
        for name, schemes in runs.items()}},
}))
EOF_PYTHON
