# SPDX-License-Identifier: Apache-2.0
"""Does the gain of the main scenario carry over to faster links?

Runs the draw of lab/scenarios/main.json with $SEEDS seeds (default 2), ordered
by the kernel, beside a job of unmodified PyTorch: at 50 Mbit/s, and at
150 Mbit/s with models of three times the bytes.  Both compute the same small
batches and sleep for the rest of an iteration, so that two processors carry
them.  Prints one JSON object on standard output, progress on standard error.
"""

import json
import os
import statistics
import subprocess
import tempfile

from bpf_lab import lab

RATES = {50: {"width": [160, 448], "ddp": 300},
         150: {"width": [304, 800], "ddp": 550}}
POLICIES = "plain", "stage"


def scenario(rate):
    """Returns the scenario at a rate in Mbit/s."""
    with open("lab/scenarios/main.json", encoding="utf-8") as f:
        main = json.load(f)
    main["random_searches"].update(width=RATES[rate]["width"], batch=12)
    ddp = ["/usr/bin/python3", os.path.abspath("lab/scenarios/pytorch-ddp.py"),
           "--iterations", "60", "--batch", "4", "--step-ms", "200",
           "--width", str(RATES[rate]["ddp"]), "--times", "%log/times-%rank"]
    main.update(
        name=f"main-{rate}", rate=f"{rate}Mbit", actuator="bpf",
        cojobs=[{"name": "ddp",
                 "stages": [{"iterations": 30}, {"iterations": 60}],
                 "jobs": [{"name": "t0", "hosts": ["h0", "h1"],
                           "command": ddp}]}])
    return main


def measure(rate, seeds, folder):
    """Returns the runs of each policy at a rate."""
    path = f"{folder}/{rate}.json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(scenario(rate), f)
    out = f"{folder}/{rate}"
    lab(path, out, "--placements", str(seeds))
    placements = sorted(p for p in os.listdir(out)
                        if p.startswith("placement-"))
    runs = {}
    for policy in POLICIES:
        runs[policy] = []
        for placement in placements:
            with open(f"{out}/{placement}/{policy}/report.json",
                      encoding="utf-8") as f:
                runs[policy] += json.load(f)["policies"]
    return runs


def main():
    seeds = int(os.environ.get("SEEDS", 2))
    figures, ratios, stages = {"seeds": seeds}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        for rate in RATES:
            runs = measure(rate, seeds, folder)
            ratios[rate] = statistics.mean(
                stage["mean_sct_s"] / plain["mean_sct_s"]
                for plain, stage in zip(*(runs[p] for p in POLICIES)))
            figures[f"stage_vs_plain_{rate}"] = round(ratios[rate], 4)
            figures[f"cpu_busy_{rate}"] = max(
                run["cpu_busy"] for policy in POLICIES for run in runs[policy])
            stages += runs["stage"]
    figures["gain_lost"] = round(ratios[150] - ratios[50], 4)
    figures["coverage"] = min(run["coverage"] for run in stages)
    figures["stalls"] = sum(run["stalls"] for run in stages)
    print(json.dumps({"bench": "bpf-rate", "figures": figures}))


if __name__ == "__main__":
    main()
