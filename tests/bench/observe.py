#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""observe.py BUILD: what "stagecoach report" predicts that an order saves, and
what it saves.

With each of some draws of the main scenario ($SEEDS, default "1 2 3"),
the lab runs it twice: on hosts that only observe, whose recording the report
reads, and on hosts that order in the kernel.  Prints one JSON object: the mean
of the predicted ratios of stage completion times (ordered / observed), that of
the measured ones, and how far they are apart.  Other benches call
observe_error(BUILD).
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SCENARIO = "lab/scenarios/main.json"
RUN_S = 400                     # Limit of one run.


def run(stagecoach, actuator, seed, folder):
    """Returns the mean stage completion time, and the folder of the logs."""
    out = folder / f"{actuator}-{seed}"
    subprocess.run(
        [stagecoach, "lab", "run", SCENARIO, "--actuator", actuator,
         "--policy", "stage", "--seed", str(seed), "--keep", "--out", out,
         "--name", f"o{os.getpid() % 1000000}"],
        check=True, timeout=RUN_S, stdout=sys.stderr)
    with open(out / "report.json", encoding="utf-8") as f:
        policy = json.load(f)["policies"][0]
    assert policy["complete"], policy
    return policy["mean_sct_s"], out / "logs/stage"


def observe_error(build, seeds=(1, 2, 3)):
    """Returns the figures."""
    stagecoach = f"{build}/cli/stagecoach"
    predicted, measured = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            plain, logs = run(stagecoach, "observe", seed,
                              pathlib.Path(folder))
            page = subprocess.run(
                [stagecoach, "report", "--since", "1d", "--format", "json",
                 "--history", logs / "controller.db"],
                check=True, stdout=subprocess.PIPE, text=True).stdout
            ordered, _ = run(stagecoach, "bpf", seed, pathlib.Path(folder))
            predicted.append(json.loads(page)["ratio"])
            measured.append(ordered / plain)
            print(f"observe: seed {seed}: predicted {predicted[-1]:.3f}, "
                  f"measured {measured[-1]:.3f}", file=sys.stderr)
    return {
        "observe_predicted": round(statistics.mean(predicted), 4),
        "observe_measured": round(statistics.mean(measured), 4),
        "observe_error": round(abs(statistics.mean(predicted)
                                   - statistics.mean(measured)), 4)}


if __name__ == "__main__":
    print(json.dumps({"bench": "observe", **observe_error(
        os.path.abspath(sys.argv[1]),
        [int(s) for s in os.environ.get("SEEDS", "1 2 3").split()])}))
