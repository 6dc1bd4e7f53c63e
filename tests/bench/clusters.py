# SPDX-License-Identifier: Apache-2.0
"""clusters.py SCHEMES-VIRTUAL cpu|gpu|shapes: emulated clusters in virtual time,
as LB-BSP's authors had them.  Prints a JSON object of figures and a baseline.

   cpu      32 machines of 8, 16 and 4 cores (EC2's m4, c5 and r4), and 4, 8 and
            16 of them
   gpu      12 and 16 GPUs of four kinds
   shapes   eight equal machines; one takes four times as long, always; each
            batch takes ten times as long by a chance of 1 in 20

In "changing" clusters other programs take a quarter to three quarters of every
second machine for a while, each machine by its own plan.  A gradient costs as
much as PIECE samples besides its own, as for an MLP of 784,1024,1024,10 on
two processors, so flexrr is the fastest of some numbers of pieces; "linear" is
without that cost.  Each scheme has the one of RATES, learning rates, with which
it is fastest in the mean of SEEDS.  Figures are times to a loss / that of
LB-BSP; "gain": of a batch, bsp / LB-BSP; "updates": batches to the loss / those
of bsp; "predictors": a step under other predictors / under narx, 32_changing."""

import json
import random
import statistics
import subprocess
import sys
import tempfile

PIECE = 22.7                    # Samples: "launch_samples" of schemes-cost.
RATES, TARGET = (0.2, 0.4, 0.8), 1.4
BATCHES = 90
NEVER = {"to_loss_s": 1e9, "to_loss": 1e9}
SEEDS = (1, 2)
OTHERS = ["bsp", "static", "ssp", "essp", "asp", "backup"]
PREDICTOR = "lbbsp-cpu,predictor="
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


def run(file, n, samples, rate, target, schemes):
    """Returns the means of outcomes by scheme."""
    runs = [json.loads(subprocess.run(
        [sys.argv[1], file, *map(str, (n, samples * n, rate, target, BATCHES,
                                       seed, 1)), *schemes],
        check=True, capture_output=True, text=True).stdout) for seed in SEEDS]
    return {s: {"rate": rate, **{
        key: round(statistics.mean((NEVER | r[s])[key] for r in runs), 4)
        for key in ("step_s", *NEVER)}} for s in schemes}


def measure(machines, samples, schemes, rates=RATES, target=TARGET):
    """Returns outcomes by scheme, of its fastest rate and pieces."""
    fastest = {}
    ratios = ":".join(f"{m['samples_per_s']:g}" for m in machines)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"name": "cluster", "workers": machines}, file)
        file.flush()
        for rate in rates:
            for scheme, outcome in run(
                    file.name, len(machines), samples, rate, target,
                    [s.replace("static", "static,ratios=" + ratios)
                     for s in schemes]).items():
                name = scheme.removeprefix(PREDICTOR).split(",")[0]
                if outcome["to_loss_s"] <= fastest.get(name, outcome)[
                        "to_loss_s"]:
                    fastest[name] = outcome | {"scheme": scheme[:20]}
    print(len(machines), fastest, file=sys.stderr)
    return fastest


def compare(kind):
    """Returns figures and outcomes of clusters of a kind."""
    ours = f"lbbsp-{kind}"
    flexrr = [f"flexrr,pieces={n}" for n in (2, 4, 8)]
    clusters = {
        "cpu": {"32": cpus(32), "32_changing": changing(cpus(32)),
                "32_linear": cpus(32, 0),
                **{f"{n}_changing": changing(cpus(n)) for n in (4, 8, 16)}},
        "gpu": {"12": GPUS * 3, "16": GPUS * 4,
                "16_changing": changing([dict(m) for m in GPUS * 4])},
    }[kind]
    table = {name: measure(machines, 64 if kind == "cpu" else 128,
                           [ours, "bsp"] if len(machines) in (4, 8)
                           else [ours, "bsp", "static", *flexrr]
                           if "linear" in name else
                           [ours, *OTHERS, *flexrr])
             for name, machines in clusters.items()}
    figures = {name: {scheme: round(o["to_loss_s"] / row[ours]["to_loss_s"], 3)
                      for scheme, o in row.items() if scheme != ours}
               for name, row in table.items() if len(row) > 2}
    if kind == "cpu":
        row = table["predictors"] = measure(
            changing(cpus(32)), 64, [PREDICTOR + p for p in (
                "memoryless", "ema", "arima", "rnn", "lstm", "narx")], (0.8,))
        figures["predictors"] = {p: round(o["step_s"] / row["narx"]["step_s"], 3)
                                 for p, o in row.items() if p != "narx"}
    figures["gain"] = {
        name: round(row["bsp"]["step_s"] / row[ours]["step_s"], 3)
        for name, row in table.items() if ours in row}
    row = next(iter(table.values()))
    figures["updates"] = {
        s: round(row[s]["to_loss"] / row["bsp"]["to_loss"], 3)
        for s in ("ssp", "essp", "asp")}
    return figures, table


def shapes():
    """Returns figures and outcomes of kinds of stragglers."""
    fast = {"samples_per_s": 1600, "jitter": 0.03}
    table = {name: measure(machines, 64, schemes, (0.1,), 1.5)
             for name, machines, schemes in (
                 ("equal", [fast] * 8, ["bsp"]),
                 ("straggler", [fast] * 7 + [fast | {"samples_per_s": 400}],
                  [s for s in OTHERS if s != "static"]),
                 ("spikes", [fast | {"spikes": {
                     "probability": 0.05, "factor": 0.1}}] * 8,
                  ["bsp", "backup"]))}
    none = table["equal"]["bsp"]
    figures = {f"straggler_{scheme}": {
        "time": round(o["to_loss_s"] / none["to_loss_s"], 3),
        "iteration": round(o["step_s"] / none["step_s"], 3)}
        for scheme, o in table["straggler"].items()}
    figures["spikes_backup_vs_bsp"] = round(
        table["spikes"]["backup"]["step_s"]
        / table["spikes"]["bsp"]["step_s"], 3)
    return figures, table


def main():
    kind = sys.argv[2]
    figures, table = shapes() if kind == "shapes" else compare(kind)
    print(json.dumps({"figures": figures, "baseline": table}))


main()
