# SPDX-License-Identifier: Apache-2.0
"""clusters.py SCHEMES-VIRTUAL cpu|gpu: emulated clusters in virtual time, as
LB-BSP's authors had them.  Prints a JSON object of figures and a baseline.

   cpu   32 machines of 8, 16 and 4 cores (EC2's m4, c5 and r4), and 4, 8 and
         16 of them
   gpu   12 and 16 GPUs of four kinds

In "changing" clusters other programs take a quarter to three quarters of every
second machine for a while, each machine by its own plan.  A gradient costs as
much as PIECE samples besides its own, as for an MLP of 784,1024,1024,10 on
two processors, so flexrr is the fastest of some numbers of pieces; "linear" is
without that cost.  The learning rate is one at which staleness harms.  Each
figure is the mean of SEEDS."""

import json
import random
import statistics
import subprocess
import sys
import tempfile

PIECE = 22.7                    # Samples: "launch_samples" of schemes-cost.
RATE, TARGET, BATCHES = 0.4, 1.5, 100
SEEDS = (1, 2, 3)
OTHERS = ["bsp", "static", "ssp", "essp", "asp", "backup"]
GPUS = json.load(open("trainer/balance/profiles/gpu-4.json"))["workers"]


def cpus(n, piece=PIECE):
    """Returns 'n' of the machines, always with the largest and the least."""
    cores = [8] * (n - max(n // 16, 1) - 1) + [16] * max(n // 16, 1) + [4]
    return [{"samples_per_s": 100 * c, "launch_s": piece / (100 * c),
             "jitter": 0.03} for c in cores]


def changing(machines):
    plan = random.Random(1)
    for machine in machines[::2]:
        begin, length = plan.uniform(1, 6), plan.uniform(3, 8)
        machine |= {
            "repeat_s": round(begin + length + plan.uniform(3, 8), 2),
            "steps": [{"at_s": round(begin, 2),
                       "factor": plan.choice([0.25, 0.5, 0.75])},
                      {"at_s": round(begin + length, 2), "factor": 1}]}
    return machines


def measure(machines, samples, schemes):
    """Returns outcomes by scheme."""
    n = len(machines)
    ratios = ":".join(f"{m['samples_per_s']:g}" for m in machines)
    arguments = [f"static,ratios={ratios}" if s == "static" else s
                 for s in schemes]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"name": "cluster", "workers": machines}, file)
        file.flush()
        runs = [json.loads(subprocess.run(
            [sys.argv[1], file.name, *map(str, (
                n, samples * n, RATE, TARGET, BATCHES, seed, 1)), *arguments],
            check=True, capture_output=True, text=True).stdout)
            for seed in SEEDS]
    outcomes = {s: {key: round(statistics.mean(run[a][key] for run in runs), 4)
                    for key in ("batch_s", "to_loss_s", "to_loss")}
                for s, a in zip(schemes, arguments)}
    pieces = [s for s in schemes if s.startswith("flexrr")]
    if pieces:
        outcomes["flexrr"] = min((outcomes[s] for s in pieces),
                                 key=lambda o: o["to_loss_s"])
    print(n, outcomes, file=sys.stderr)
    return outcomes


def main():
    kind = sys.argv[2]
    ours = f"lbbsp-{kind}"
    flexrr = [f"flexrr,pieces={n}" for n in (2, 4, 8)]
    clusters = {
        "cpu": {"32": cpus(32), "32_changing": changing(cpus(32)),
                "32_linear": cpus(32, 0)},
        "gpu": {"12": GPUS * 3, "16": GPUS * 4,
                "16_changing": changing([dict(m) for m in GPUS * 4])},
    }[kind]
    table = {name: measure(machines, 64 if kind == "cpu" else 128,
                           [ours, *OTHERS, *flexrr])
             for name, machines in clusters.items()}
    figures = {f"{name}.{scheme}": round(
        outcomes[scheme]["to_loss_s"] / outcomes[ours]["to_loss_s"], 3)
        for name, outcomes in table.items() for scheme in (*OTHERS, "flexrr")}
    name = next(iter(table))
    for scheme in ("ssp", "essp", "asp"):
        figures[f"{name}.{scheme}_updates"] = round(
            table[name][scheme]["to_loss"] / table[name]["bsp"]["to_loss"], 3)
    for n in (4, 8, 16) if kind == "cpu" else ():
        outcomes = table[f"{n}_changing"] = measure(
            changing(cpus(n)), 64, [ours, "bsp"])
        figures[f"{n}_changing.bsp"] = round(
            outcomes["bsp"]["to_loss_s"] / outcomes[ours]["to_loss_s"], 3)
    print(json.dumps({"figures": figures, "baseline": table}))


main()
