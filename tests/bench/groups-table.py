# SPDX-License-Identifier: Apache-2.0
"""groups-table.py SCHEMES-VIRTUAL: the scheme "groups" beside stragglers, in
virtual time: eight workers train an MLP.

Prints one JSON object.  Its baseline has, for one and four stragglers and
three delays, a row for each number of groups:

   "2"        "groups=2"; workers are sorted by speed, so that stragglers
              share groups
   "2 apart"  the same without reports of times: four stragglers are in as
              many groups as possible
   "chosen"   the automatic choice

with the time of a gradient and the time to a loss, both relative to bsp
without a delay, and the accuracy that is lost after the same number of
gradients, each the mean of some orders of the samples."""

import json
import subprocess
import sys
import tempfile

N, SAMPLES, ITERATIONS = 8, 64, 150     # Samples of a gradient.
ORDERS = (1, 2, 3)


def measure(schemes, n_slow=0, delay=0.0, reports=True):
    """Returns outcomes by scheme, with 'n_slow' workers, as far from each
    other as possible, that take 'delay' longer."""
    profile = {"name": "stragglers", "workers": [
        {"samples_per_s": SAMPLES / (1 + delay * (
            (i + 1) * n_slow % N < n_slow)), "jitter": 0.03}
        for i in range(N)]}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(profile, file)
        file.flush()
        runs = [json.loads(subprocess.run(
            [sys.argv[1], file.name, *map(str, (
                N, N * SAMPLES, 0.1, 1.6, ITERATIONS, order, int(reports))),
             *schemes], check=True, capture_output=True, text=True).stdout)
            for order in ORDERS]
    return {scheme: {key: sum(run[scheme][key] for run in runs) / len(runs)
                     for key in ("step_s", "to_loss_s", "accuracy")}
            for scheme in schemes}


def relative(outcome, none):
    return {"time": round(outcome["step_s"] / none["step_s"], 3),
            "to_loss": round(outcome["to_loss_s"] / none["to_loss_s"], 3),
            "accuracy_loss": round(none["accuracy"] - outcome["accuracy"], 4)}


def main():
    none = measure(["bsp"])["bsp"]
    table = {}
    for n_slow in (1, 4):
        for delay in (0.5, 1, 3):
            rows = measure([f"groups,groups={n}" for n in (1, 2, 4, 8)]
                           + ["groups"], n_slow, delay)
            names = {s: s.split("=")[-1] for s in rows} | {"groups": "chosen"}
            row = {names[s]: relative(o, none) for s, o in rows.items()}
            if n_slow > 1:
                row |= {f"{names[s]} apart": relative(o, none)
                        for s, o in measure(
                            ["groups,groups=2", "groups,groups=4"], n_slow,
                            delay, False).items()}
            table[f"{n_slow} slow by {delay:.0%}".replace("%", " %")] = row
    chosen = [row["chosen"] for row in table.values()]
    print(json.dumps({"bench": "groups-table", "figures": {
        "one_slow_time": max(c["time"] for c in chosen[:3]),
        "four_slow_time": max(c["time"] for c in chosen[3:]),
        "accuracy_loss": max(c["accuracy_loss"] for c in chosen),
        "time_vs_best": round(max(
            row["chosen"]["time"] / min(row[n]["time"] for n in "1248")
            for row in table.values()), 3),
        "within": sum(c["time"] <= 1.2 and c["accuracy_loss"] <= 0.025
                      for c in chosen),
    }, "baseline": table}))


main()
