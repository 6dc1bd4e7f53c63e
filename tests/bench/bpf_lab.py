# SPDX-License-Identifier: Apache-2.0
"""Figures of the bench bpf that take runs in the lab.

order     the main scenario with $SEEDS placements (default 3), ordered by
          shims and by the kernel, relative to each other and to the plain
          network, which has neither
mixed     a host with a shim, one that orders in the kernel, two with neither
pytorch   unmodified PyTorch, ordered by the kernel
observe   what a cluster that is observed is promised, see observe.py

Results of single runs of the main scenario are kept as by quickstart.sh.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from observe import observe_error

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MAIN = "lab/scenarios/main.json"
seeds = int(os.environ.get("SEEDS", 3))


def lab(scenario, folder, *options):
    """Runs a scenario in the lab."""
    subprocess.run(["build/cli/stagecoach", "lab", "run", scenario, "--out",
                    folder, "--name", f"b{os.getpid() % 1000000}", *options],
                   cwd=ROOT, stdout=sys.stderr, check=True)


def policies(folder):
    with open(f"{folder}/report.json", encoding="utf-8") as f:
        return {p["name"]: p for p in json.load(f)["policies"]}


def mean_ratio(runs, others):
    return round(statistics.mean(a["mean_sct_s"] / b["mean_sct_s"]
                                 for a, b in zip(runs, others)), 4)


def order(figures):
    folder = subprocess.run(
        ["sh", "tests/lab/kept-runs.sh", "bpf", MAIN], cwd=ROOT, check=True,
        stdout=subprocess.PIPE, text=True).stdout.strip()
    runs = {}
    for name, actuator, policy in (("plain", "shim", "plain"),
                                   ("shim", "shim", "stage"),
                                   ("bpf", "bpf", "stage")):
        out = os.path.join(ROOT, folder, name)
        lab(MAIN, out, "--actuator", actuator, "--policy", policy,
            "--placements", str(seeds))
        runs[name] = [policies(os.path.join(out, placement, policy))[policy]
                      for placement in sorted(os.listdir(out))
                      if placement.startswith("placement-")]
    for name in "shim", "bpf":
        figures[f"stage_vs_plain_{name}"] = mean_ratio(runs[name],
                                                       runs["plain"])
        figures[f"coverage_{name}"] = min(r["coverage"] for r in runs[name])
        figures[f"cpu_busy_{name}"] = max(r["cpu_busy"] for r in runs[name])
    figures["stage_vs_shim"] = mean_ratio(runs["bpf"], runs["shim"])
    if not os.environ.get("OUT"):
        shutil.rmtree(os.path.join(ROOT, folder))


def mixed(figures):
    with tempfile.TemporaryDirectory() as folder:
        lab("tests/lab/mixed-hosts.json", folder, "--policy", "stage")
        stage = policies(folder)["stage"]
    figures["mixed_coverage"] = stage["coverage"]
    figures["mixed_stalls"] = stage["stalls"]


def pytorch(figures):
    done = subprocess.run(["sh", "tests/bench/pytorch-lab.sh"], cwd=ROOT,
                          env={**os.environ, "ACTUATOR": "bpf"},
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        result = json.loads(done.stdout[done.stdout.index('{"bench"'):])
        figures["pytorch_coverage"] = result["figures"]["coverage"]
        figures["pytorch_stalls"] = result["figures"]["stalls"]


def observe(figures):
    figures.update(observe_error(os.path.join(ROOT, "build"),
                                 range(1, seeds + 1)))


MEASURES = {"order": order, "mixed": mixed, "pytorch": pytorch,
            "observe": observe}
