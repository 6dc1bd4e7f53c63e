#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the time to a loss under the synchronization schemes, with eight
# workers that emulate machines of speeds 8:8:8:8:8:8:16:4, in two ways.
# "linear" (all schemes): the time of a gradient is proportional to its
# samples.  "batched": each gradient also has a fixed cost, in the proportion
# measured for an MLP on this machine; this shows the cost of splitting a batch
# into pieces (for flexrr, the fastest of 2, 4 and 8 pieces counts). $PAGE, if
# set, is the file for the page of "linear".  Prints one JSON object on
# standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
trainer=build/trainer/stagecoach-trainer
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

build/tests/bench/schemes-cost > "$dir/cost.json"
cat "$dir/cost.json" >&2
python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

dir = sys.argv[1]
cost = json.load(open(dir + "/cost.json"))
spec = json.load(open("tests/compare/cpu-8.json"))
profile = json.load(open("trainer/balance/profiles/mixed-8.json"))
spec["profile"] = "linear-profile.json"
json.dump(profile, open(dir + "/linear-profile.json", "w"))
json.dump(spec, open(dir + "/linear.json", "w"))
for worker in profile["workers"]:
    worker["launch_s"] = max(cost["launch_samples"], 0) / worker[
        "samples_per_s"]
spec["profile"] = "batched-profile.json"
spec["schemes"] = ["bsp", "lbbsp-cpu"] + [
    f"flexrr,pieces={n}" for n in (2, 4, 8)]
json.dump(profile, open(dir + "/batched-profile.json", "w"))
json.dump(spec, open(dir + "/batched.json", "w"))
EOF_PYTHON
for name in linear batched; do
    echo "$name" >&2
    timeout 120 "$trainer" compare "$dir/$name.json" --format json \
        --html "$dir/$name.html" > "$dir/$name.out"
done
[ -z "${PAGE:-}" ] || cp "$dir/linear.html" "$PAGE"
python3 - "$dir" <<'EOF_PYTHON'
import json
import sys

dir = sys.argv[1]
cost = json.load(open(dir + "/cost.json"))
runs, figures, baseline = {}, {}, {"cost": cost}
for name in ("linear", "batched"):
    out = json.load(open(f"{dir}/{name}.out"))
    assert all(s["reached"] for s in out["schemes"]), out["schemes"]
    schemes = {}
    for s in out["schemes"]:        # Of several the fastest stands.
        kind = s["scheme"].split(",")[0]
        if s["seconds"] < schemes.get(kind, s)["seconds"] + 1e-9:
            schemes[kind] = s
    runs[name] = schemes
    baseline[name] = {
        s["scheme"]: {
            "seconds": round(s["seconds"], 3), "iterations": s["iterations"],
            "iteration_s": round(s["iteration_s"], 4)}
        for s in out["schemes"]}


def ratio(run, scheme):
    return round(runs[run][scheme]["seconds"]
                 / runs[run]["lbbsp-cpu"]["seconds"], 3)


for scheme in ("bsp", "ssp", "essp", "asp", "backup"):
    figures["lbbsp_vs_" + scheme] = ratio("linear", scheme)
figures["lbbsp_vs_flexrr"] = ratio("batched", "flexrr")
figures["lbbsp_vs_flexrr_linear"] = ratio("linear", "flexrr")
figures["lbbsp_vs_bsp_batched"] = ratio("batched", "bsp")
figures["overhead"] = round(cost["manager_s"]
                            / runs["linear"]["lbbsp-cpu"]["iteration_s"], 5)
for n in (32, 128):             # Of an iteration of 50 ms.
    figures[f"overhead_{n}"] = round(cost[f"manager_{n}_s"] / 0.05, 5)
print(json.dumps({"bench": "schemes-cpu", "figures": figures,
                  "baseline": baseline}))
EOF_PYTHON
