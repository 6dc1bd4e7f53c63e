# SPDX-License-Identifier: Apache-2.0
"""suite.py BUILD ALONE BUSY: see suite.sh.

results/suite-runs.json is a list of runs in the order of time, each an object:
"commit", "date", "busy" (whether busy loops ran beside), "load" (of the minute
before), "seconds", "passed", "skipped" (numbers), and "failed" (names)."""

import datetime
import json
import os
import statistics
import subprocess
import sys
import time

RUNS = "results/suite-runs.json"
SUITES = ("unit", "process", "lab")


def read_runs():
    if not os.path.exists(RUNS):
        return []
    with open(RUNS, encoding="utf-8") as f:
        return json.load(f)


def outcomes(build):
    """Returns the names of tests by their result, of the last run."""
    names = {"OK": [], "SKIP": [], "failed": []}
    with open(f"{build}/meson-logs/testlog.json", encoding="utf-8") as f:
        for line in f:
            test = json.loads(line)
            result = test["result"]
            names[result if result in names else "failed"].append(
                test["name"].split(" / ")[-1])
    return names


def run(build, busy):
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"],
                            check=True, capture_output=True, text=True)
    load = os.getloadavg()[0]
    command = os.environ.get("LOAD", "while :; do :; done")
    loops = [subprocess.Popen(["sh", "-c", command])
             for _ in range(os.cpu_count() if busy else 0)]
    begin = time.monotonic()
    try:
        subprocess.run(["meson", "test", "-C", build, "--no-rebuild",
                        "--num-processes", "5", "--print-errorlogs",
                        "--timeout-multiplier", "3"]
                       + [f"--suite={name}" for name in SUITES],
                       stdout=sys.stderr, check=False)
    finally:
        for loop in loops:
            loop.kill()
    names = outcomes(build)
    return {"commit": commit.stdout.strip(),
            "date": datetime.date.today().isoformat(), "busy": busy,
            "load": round(load, 2), "seconds": round(time.monotonic() - begin),
            "passed": len(names["OK"]), "skipped": len(names["SKIP"]),
            "failed": names["failed"]}


def main():
    build, alone, busy = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    runs = read_runs()
    for beside in [False] * alone + [True] * busy:
        runs.append(run(build, beside))
        with open(RUNS, "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(json.dumps(r) for r in runs) + "\n]\n")
    figures = {}
    for beside, prefix in ((False, ""), (True, "busy_")):
        kind = [r for r in runs if r["busy"] == beside]
        if kind:
            figures[prefix + "runs"] = len(kind)
            figures[prefix + "failed"] = sum(len(r["failed"]) for r in kind)
            figures[prefix + "seconds"] = statistics.median(
                r["seconds"] for r in kind)
    print(json.dumps({"bench": "suite", "figures": figures, "baseline": {}}))


if __name__ == "__main__":
    main()
