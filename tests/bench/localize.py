#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# localize.py TRAINER PREFIX [TASK,...]: trains tasks on nodes in the namespaces
# PREFIX0... by each kind of store, and prints one JSON object; progress on
# standard error.
#
# Speed: an epoch is stopped after some seconds, because the slow stores take
# minutes for work that the fast ones do in a fraction of a second.  The result
# is the time of an update, of all nodes together, in the fastest epoch after
# the first: in the first, keys move to the nodes that use them, and the
# fastest is the one least disturbed by other programs.  Each store is run
# equally often, one after the other in turn.  Quality: small data, whole
# epochs, and the same number of epochs.
#
# Nodes: so that two processors can show eight nodes of four threads, a sample
# takes COST_US for each thread of its node at least: a node makes as many
# samples a second whatever its threads, unless it waits.  Messages are real.
# Time that a thread waits for them counts as time of its samples, which favours
# stores that wait.  A figure is the samples a second of all nodes / those of
# one node under localize with as many threads.
import json
import os
import random
import subprocess
import sys
import tempfile

PORT = 4100
LIMIT_S = 60                    # Of one run.
NODES = (1, 2, 4, 8)            # Numbers of nodes for the time of an epoch.
THREADS = (1, 4)
COST_US = 100
trainer, prefix = sys.argv[1:3]
wanted = sys.argv[3].split(",") if len(sys.argv) > 3 else None

MF = ["--task", "factorise", "--dimension", "100", "--learning-rate", "0.02",
      "--weight-decay", "2"]
MF_BIG = MF + ["--samples", "2000000", "--rows", "8000", "--columns", "4000"]
KGE = ["--task", "knowledge", "--learning-rate", "0.1", "--negatives", "4"]
RESCAL = KGE + ["--embedding", "rescal", "--dimension", "100", "--entities",
                "5000", "--relations", "100", "--samples", "200000"]
W2V = ["--task", "skipgram", "--learning-rate", "0.025", "--dimension", "100",
       "--negatives", "5"]
W2V_BIG = W2V + ["--samples", "1000000", "--vocabulary", "20000"]

SMALL = {
    "mf": MF + ["--samples", "20000", "--rows", "300", "--columns", "200",
                "--dimension", "10", "--epochs", "20", "--validation", "1000"],
    "kge": KGE + ["--embedding", "complex", "--dimension", "30", "--entities",
                  "400", "--relations", "8", "--samples", "16000", "--epochs",
                  "4", "--validation", "800"],
    "w2v": W2V + ["--samples", "25000", "--vocabulary", "1000", "--dimension",
                  "20", "--epochs", "2", "--learning-rate", "0.05",
                  "--validation", "8000"],
}
EXCHANGE = {"mf": "256", "kge": "256", "w2v": "64"}
QUALITY = {"mf": "rmse", "kge": "mrr", "w2v": "held_out_loss"}


def run(store, n, arguments, more=()):
    """Returns the events of rank 0, and the last event of each node."""
    nodes = ",".join("10.98.0.%d" % (i + 1) for i in range(n))
    processes = [subprocess.Popen(
        ["ip", "netns", "exec", prefix + str(i), "timeout", str(LIMIT_S),
         trainer, "node", "--store", store, "--nodes", nodes, "--rank", str(i),
         "--address", "10.98.0.%d" % (i + 1), "--port", str(PORT)]
        + arguments + list(more),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        for i in range(n)]
    outputs = [p.communicate()[0] for p in processes]
    if any(p.returncode for p in processes):
        raise SystemExit("localize: %s on %d nodes ended with %s" % (
            store, n, [p.returncode for p in processes]))
    events = [[json.loads(line) for line in output.splitlines()]
              for output in outputs]
    return ([e for e in events[0] if e["event"] == "epoch"],
            [e for of_node in events for e in of_node if e["event"] == "keys"])


def measure(name, store, n, arguments, limit_s, n_epochs):
    """Returns the microseconds and the CPU microseconds of an update."""
    epochs, ends = run(store, n, arguments, [
        "--epochs", str(n_epochs), "--eval-every", "1000000", "--validation", "1",
        "--epoch-limit", str(limit_s)])
    later = epochs[1:] if len(epochs) > 1 else epochs
    us = min(e["seconds"] / e["updates"] for e in later) * 1e6
    cpu_us = min(e["cpu_s"] / e["updates"] for e in later) * 1e6
    local = sum(e["local"] for e in ends)
    remote = sum(e["remote"] for e in ends)
    print("%s, %s, %d nodes: %.4g us an update, %.4g us of processors, last "
          "epoch %d updates in %.3g s, %.2f %% of accesses by messages" % (
              name, store, n, us, cpu_us, later[-1]["updates"],
              later[-1]["seconds"], 100 * remote / max(1, local + remote)),
          file=sys.stderr, flush=True)
    return {"us": us, "cpu_us": cpu_us}


def judge(task, store):
    quality = run(store, 4, SMALL[task], ["--eval-every", "1000000"])[0][-1][
        QUALITY[task]]
    print("%s, %s: %s %.4g" % (task, store, QUALITY[task], quality),
          file=sys.stderr, flush=True)
    return quality


GRID = {"mf": MF_BIG, "kge": RESCAL + ["--dimension", "10"]}
STAYING = ["classic", "classic-local", "ssp", "essp"]


def grid():
    """Returns samples a second, relative, by task, threads, store and
    nodes."""
    rates = {}
    for task, arguments in GRID.items():
        for threads in THREADS:
            cells = {
                f"{store}-{n}": 1 / measure(
                    f"{task} x {threads}", store, n, arguments + [
                        "--sample-cost-us", str(COST_US * threads),
                        "--threads", str(threads)], 1, 2)["us"]
                for store in ["localize", *STAYING] for n in NODES}
            rates[f"{task}_x{threads}"] = {
                cell: round(rate / cells["localize-1"], 3)
                for cell, rate in cells.items()}
    return rates


# The same ratings, rank, batch and loss in PyTorch, by the best of some rates.
TORCH_RATES = ("0.01", "0.02", "0.04")
TORCH_EPOCHS = "8"


def write_ratings(file, n=200000, n_rows=2000, n_columns=1000, rank=8):
    """Writes ratings of a matrix of low rank, with noise."""
    chance = random.Random(1)
    rows, columns = ([[chance.gauss(0, rank ** -0.25) for _ in range(rank)]
                      for _ in range(n_of)] for n_of in (n_rows, n_columns))
    for i in range(n):
        row = i if i < n_rows else chance.randrange(n_rows)
        column = i if i < n_columns else chance.randrange(n_columns)
        value = sum(map(float.__mul__, rows[row], columns[column]))
        file.write("%d\t%d\t%.4f\n" % (row, column,
                                      value + chance.gauss(0, 0.3)))
    file.flush()


def run_torch(file, rate):
    """Returns the epochs of four ranks of PyTorch."""
    processes = [subprocess.Popen(
        ["ip", "netns", "exec", prefix + str(i), "timeout", str(3 * LIMIT_S),
         "/usr/bin/python3", "tests/bench/mf-torch.py", file, rate,
         EXCHANGE["mf"], TORCH_EPOCHS], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "RANK": str(i), "WORLD_SIZE": "4",
             "MASTER_ADDR": "10.98.0.1", "MASTER_PORT": "4200",
             "GLOO_SOCKET_IFNAME": "port"}) for i in range(4)]
    outputs = [p.communicate()[0] for p in processes]
    if any(p.returncode for p in processes):
        raise SystemExit("localize: PyTorch ended with %s" % [
            p.returncode for p in processes])
    return [json.loads(line) for line in outputs[0].splitlines()]


def seconds_to(epochs, rmse):
    """Returns the seconds until a loss, or None."""
    return next((e["seconds"] for e in epochs if e["rmse"] <= rmse), None)


def compare_torch():
    """Returns the times of PyTorch and of stores to an equal loss: 1 % above
    the least one that all reach."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"],
                      stderr=subprocess.DEVNULL).returncode:
        print("localize: no PyTorch, no mf_vs_torch", file=sys.stderr)
        return None
    runs = {}
    with tempfile.NamedTemporaryFile("w", suffix=".data") as file:
        write_ratings(file)
        for store in ["localize"] * REPEATS:
            epochs, _ = run(store, 4, MF + ["--weight-decay", "0", "--data",
                                            file.name, "--samples", "1000000",
                                            "--validation", "1000000",
                                            "--exchange", EXCHANGE["mf"],
                                            "--eval-every", "1", "--epochs",
                                            "20"])
            total = 0.0
            for e in epochs:
                total += e["seconds"]
                e["seconds"] = total
            runs.setdefault(store, []).append(epochs)
        runs["torch"] = [run_torch(file.name, rate) for rate in TORCH_RATES]
    rmse = 1.01 * max(min(e["rmse"] for epochs in of for e in epochs)
                      for of in runs.values())
    times = {of: min(filter(None, (seconds_to(epochs, rmse) for epochs in
                                   runs[of]))) for of in runs}
    print("mf to an error of %.4f: %s" % (rmse, times), file=sys.stderr)
    return {"rmse": round(rmse, 4), **times}


REPEATS = 2
ABLATION = ["classic", "classic-local", "localize-messages"]
STATIC = ["classic", "classic-local"]
SPEED = [
    # Task, arguments, stores, seconds of an epoch at most, epochs.
    ("mf", MF_BIG, ["localize", "manual"], 0, 40),
    ("mf", MF_BIG, ["ssp", "essp"], 2, 3),
    ("mf", MF_BIG, ABLATION, 2, 2),
    ("kge", RESCAL, ["localize"] + ABLATION, 2, 2),
    ("w2v", W2V_BIG, ["localize"] + ABLATION, 2, 2),
    # As strong as stores whose keys stay can be: many samples in a message,
    # and the next ones on their way.  Keys that move may be used alike.
    ("mf-batched", MF_BIG + ["--exchange", EXCHANGE["mf"]], STATIC, 2, 3),
    ("kge-batched", RESCAL + ["--exchange", EXCHANGE["kge"]],
     STATIC + ["localize"], 2, 3),
    ("w2v-batched", W2V_BIG + ["--exchange", EXCHANGE["w2v"]],
     STATIC + ["localize"], 2, 3),
]
STORES = ["localize", "localize-messages", "classic", "classic-local", "ssp",
          "essp"]


def main():
    times = {}
    for name, arguments, stores, limit_s, n_epochs in SPEED:
        if wanted and name not in wanted:
            continue
        for store in stores * REPEATS:
            us = measure(name, store, 4, arguments, limit_s, n_epochs)
            before = times.get((name, store), us)
            times[name, store] = {k: min(us[k], before[k]) for k in us}
    one = None
    if not wanted or "one" in wanted:
        one = measure("mf", "localize", 1, MF_BIG, 0, 8)
    nodes = grid() if not wanted or "nodes" in wanted else None
    torch = (compare_torch() if not wanted or "torch" in wanted else None)
    qualities = {}
    for task in SMALL:
        if not wanted or "quality" in wanted:
            stores = STORES + (["manual"] if task == "mf" else [])
            qualities[task] = {s: judge(task, s) for s in stores}

    def ratio(task, of, what="us"):
        if not {(task, of), (task, "localize")} <= set(times):
            return None
        return round(times[task, of][what] / times[task, "localize"][what], 2)

    def batched_ratio(task):
        """The faster static store with batches / localize with or without."""
        static = [times.get((task + "-batched", of)) for of in STATIC]
        ours = [t for t in (times.get((task, "localize")),
                            times.get((task + "-batched", "localize"))) if t]
        if None in static or not ours:
            return None
        return round(min(t["us"] for t in static)
                     / min(t["us"] for t in ours), 2)

    spreads = {task: round(max(q.values()) / min(q.values()) - 1, 4)
               for task, q in qualities.items()}
    manual = ratio("mf", "manual")
    print(json.dumps({
        "bench": "localize",
        "figures": {
            "mf_vs_classic": ratio("mf", "classic"),
            "mf_vs_classic_batched": batched_ratio("mf"),
            "kge_vs_classic": ratio("kge", "classic"),
            "kge_vs_classic_batched": batched_ratio("kge"),
            "w2v_vs_classic": ratio("w2v", "classic"),
            "w2v_vs_classic_batched": batched_ratio("w2v"),
            "mf_vs_messages": ratio("mf", "localize-messages"),
            "mf_cpu_vs_classic": ratio("mf", "classic", "cpu_us"),
            "mf_vs_ssp": ratio("mf", "ssp"),
            "mf_vs_essp": ratio("mf", "essp"),
            "mf_vs_torch": round(torch["torch"] / torch["localize"], 1)
            if torch else None,
            "mf_vs_manual": round(1 / manual, 2) if manual else None,
            "updates_per_core_m": one and round(1 / one["cpu_us"], 2),
            "moving_8": nodes and min(r["localize-8"] for r in nodes.values()),
            "classic_2": nodes and max(r["classic-2"] for r in nodes.values()),
            "staying_8": nodes and max(
                r[f"{store}-8"] / r["localize-8"]
                for r in nodes.values() for store in STAYING),
            "quality_spread": max(spreads.values()) if spreads else None,
        },
        "baseline": {
            "us": {"%s, %s" % key: round(t["us"], 4)
                   for key, t in times.items()},
            "cpu_us": {"%s, %s" % key: round(t["cpu_us"], 4)
                       for key, t in times.items()},
            "nodes": nodes,
            "torch": torch,
            "exchange": EXCHANGE,
            "qualities": qualities,
            "spreads": spreads,
        },
    }))


main()
