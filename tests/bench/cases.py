#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cases.py: see cases.sh."""

import concurrent.futures
import json
import os
import re
import subprocess
import sys

SOURCE = os.getcwd()
BUILD = os.path.join(SOURCE, "build")
KINDS = ("names", "scheduler", "progress", "kubernetes", "logs", "addresses",
         "switches", "jumps", "http", "importers", "traces", "captures",
         "users")
SKIPPED = 77
AT_ONCE = 3                     # Most of a scene is waiting.


def check(name, *words):
    return ["/usr/bin/python3", f"tests/unit/check-{name}.py", *words]


def lab(script, *words):
    return ["sh", "tests/lab/isolated.sh", script, *words]


STAGECOACH = f"{BUILD}/cli/stagecoach"
CONTROLLER = f"{BUILD}/controller/stagecoach-controller"
POLICY = "policies/stage.json"
SCENES = {                      # The longest first.
    "live": lab("tests/bench/cases.sh", "live"),
    "slurm": lab("tests/lab/test-slurm.sh"),
    "switches": lab("tests/lab/test-rogue-switch.sh"),
    "prometheus": lab("tests/lab/test-prometheus.sh"),
    "http": check("rest-tls", STAGECOACH, CONTROLLER, POLICY,
                  "docs/integrations/stagecoach_client.py"),
    "traces": check("sim", STAGECOACH, "cases"),
    "importers": check(
        "topology-import", STAGECOACH, CONTROLLER,
        "controller/southbound/topology/topology.schema.json", POLICY),
    "captures": check("replay", f"{BUILD}/shim/stagecoach-shim", "cases"),
    "cni": check("cni", "Cni.test_passes_on_results_of_any_version",
                 "Cni.test_is_ready_and_has_nothing_to_collect",
                 f"{BUILD}/agent/launch/stagecoach-cni"),
    "pods": check("pods", "Pods.test_the_first_label_of_the_table_decides",
                  f"{BUILD}/agent/launch/stagecoach-pods"),
    "ray": check("ray", "Ray.test_odd_results_lose_no_iteration",
                 "docs/integrations/ray_stagecoach.py"),
}


def run(name):
    """Runs a scene.  Returns its name, exit status and output."""
    for word in SCENES[name]:
        if word.startswith(BUILD) and not os.path.exists(word):
            return name, SKIPPED, f"{word} is not built"
    done = subprocess.run(
        ["timeout", "110", *SCENES[name]], check=False, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, errors="replace", env={
            **os.environ, "BUILD": BUILD, "SOURCE": SOURCE,
            **({"HOST_PIDS": "1"} if name == "live" else {})})
    return name, done.returncode, done.stdout


def main():
    names = os.environ.get("SCENES", " ".join(SCENES)).split()
    counts, failed, skipped = dict.fromkeys(KINDS, 0), 0, []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for name, status, text in pool.map(run, names):
            if status == SKIPPED:
                skipped.append(f"{name}: {text.strip()[-200:]}")
                continue
            n_bad = 0
            for kind, result, what in re.findall(
                    r"^case (\w+) (ok|failed): (.*)$", text, re.M):
                counts[kind] += 1
                if result == "failed":
                    n_bad += 1
                    print(f"cases: {kind}: {what}", file=sys.stderr)
            if status and not n_bad:
                n_bad = 1
            if status:
                said = re.findall("^.*FAILED.*$", text, re.M)
                print(f"cases: {name}: exit status {status}",
                      *(said or [text[-2000:]]), sep="\n", file=sys.stderr)
            failed += n_bad
    for text in skipped:
        print(f"skip: {text}", file=sys.stderr)
    if len(skipped) == len(names):
        print("skip: all of it")
        return SKIPPED
    print(json.dumps({"bench": "cases", "figures": {
        "failed": failed, "inputs": sum(counts.values()),
        **{f"inputs_{kind}": n for kind, n in counts.items()}}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
