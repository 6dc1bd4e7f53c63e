#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""jobs.py overlap|sharing|others|search|curves [DATA]: jobs of the trainer with
workers on a GPU, over loopback.  Prints one JSON object.

overlap: milliseconds of an iteration of a worker with a server, with gradients
  that leave in parts, and as a whole.
sharing: milliseconds of an iteration of two workers under bsp and lbbsp-gpu:
  both on one GPU, both there beside a third program that uses it, and one on
  the GPU and one on the CPU.
others: what a worker under lbbsp-cpu measures of the use of its GPU by others,
  without and beside a third program that uses it.
search: a search by successive halving; its workers use the GPU.
curves: losses and accuracies on CIFAR-10 on the CPU and on the GPU, at the
  iterations that both report.
"""

import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

TRAINER = "build/trainer/stagecoach-trainer"
MLP = ["--shape", "784,1024,1024,10", "--samples", "8192", "--validation",
       "64", "--eval-every", "1000"]


started = []


def start(*arguments):
    started.append(subprocess.Popen([TRAINER, *arguments], text=True,
                                    stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE))
    return started[-1]


def events(process, name):
    """Reads the output to its end.  Returns the events of this name."""
    found = [json.loads(line) for line in process.stdout]
    if process.wait(timeout=20):
        sys.exit(f"{process.args}: exit status {process.returncode}")
    return [event for event in found if event["event"] == name]


def train(backends, scheme, iterations, *arguments):
    """Trains with a worker on each of these backends.  Returns the median
    milliseconds of an iteration in the second half."""
    n = str(len(backends))
    server = start("server", "--workers", n, "--sync", scheme)
    port = json.loads(server.stdout.readline())["port"]
    workers = [start("worker", "--server", f"127.0.0.1:{port}", *MLP,
                     "--workers", n, "--rank", str(rank), "--backend",
                     backend, "--iterations", str(iterations), *arguments)
               for rank, backend in enumerate(backends)]
    steps = [events(worker, "progress") for worker in workers][0]
    events(server, "done")
    middle = [step for step in steps
              if step["iteration"] >= iterations // 2]
    return round((middle[-1]["time"] - middle[0]["time"])
                 / (middle[-1]["iteration"] - middle[0]["iteration"]), 3)


def overlap():
    result = {}
    for batch in ("256", "2048"):
        for mode in ("on", "off"):
            times = [train(["cuda"], "bsp", 200, "--batch", batch,
                           "--eval-every", "20", "--overlap", mode)
                     for _ in range(3)]
            result[f"batch_{batch}_{mode}_ms"] = statistics.median(times)
    return result


def sharing():
    result = {}
    for name, backends, hog in (("one_gpu", ["cuda", "cuda"], False),
                                ("with_hog", ["cuda", "cuda"], True),
                                ("gpu_and_cpu", ["cuda", "cpu"], False)):
        other = hog and subprocess.Popen(
            ["build/tests/gpu/gpu-step", "cuda", "1000000", "fp32"],
            stdout=subprocess.DEVNULL)
        started.extend([other] if other else [])
        for scheme in ("bsp", "lbbsp-gpu"):
            result[f"{name}_{scheme}_ms"] = train(
                backends, scheme, 100, "--batch", "2048", "--threads", "4",
                "--eval-every", "10")
        if other:
            other.kill()
            other.wait()
    return result


def others():
    result = {}
    for name in ("alone", "with_hog"):
        server = start("server", "--workers", "1", "--sync", "lbbsp-cpu")
        port = json.loads(server.stdout.readline())["port"]
        hog = name == "with_hog" and subprocess.Popen(
            ["build/tests/gpu/gpu-step", "cuda", "1000000", "fp32"],
            stdout=subprocess.DEVNULL)
        started.extend([hog] if hog else [])
        loads = events(start(
            "worker", "--server", f"127.0.0.1:{port}", *MLP, "--workers", "1",
            "--rank", "0", "--backend", "cuda", "--batch", "2048",
            "--iterations", "500"), "load")
        events(server, "done")
        if hog:
            hog.kill()
            hog.wait()
        for key in ("cpu", "memory"):
            result[f"{name}_{key}"] = statistics.median(
                load[key] for load in loads[len(loads) // 2:])
    return result


def search():
    with tempfile.TemporaryDirectory() as folder:
        cluster = {"hosts": [
            {"name": f"h{i}", "address": "127.0.0.1", "launch": "local",
             "rundir": f"{folder}/h{i}", "slots": 8} for i in range(2)]}
        spec = {
            "name": "gpu", "seed": 2, "trials": 4,
            "space": {"learning_rate": [0.05, 0.00001], "width": [512],
                      "batch": [256]},
            "rungs": [{"iterations": 50, "keep": 2}, {"iterations": 150}],
            "placements": [{"workers": ["h0", "h1"], "servers": ["h1"]}],
            "model": {"inputs": 784, "hidden_layers": 2, "classes": 10},
            "data": {"kind": "generated", "samples": 4096},
            "backend": "cuda",
        }
        for name, what in (("cluster", cluster), ("search", spec)):
            with open(f"{folder}/{name}.json", "w", encoding="utf-8") as f:
                json.dump(what, f)
        for i in range(2):
            os.mkdir(f"{folder}/h{i}")
        run = subprocess.run(
            ["build/cli/stagecoach", "search", "run", f"{folder}/search.json",
             "--cluster", f"{folder}/cluster.json", "--bare", "--format",
             "json"], stdout=subprocess.PIPE, text=True, check=True)
    found = [json.loads(line) for line in run.stdout.splitlines()]
    end = [e for e in found if e["event"] == "search-end"][0]
    if not end["best"]:
        sys.exit("the search has no result")
    return {"best": end["best"], "seconds": end["seconds"],
            "jobs": [[e["job"], e["outcome"], e["loss"]] for e in found
                     if e["event"] == "job-end"]}


def curves(data):
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("data_batch_8k.bin", "test_batch_1k.bin"):
            with gzip.open(f"{data}/images/cifar10/{name}.gz") as packed, \
                    open(f"{folder}/{name}", "wb") as f:
                shutil.copyfileobj(packed, f)
        for model, rate, iterations in (("cifarnet", "0.002", "100"),
                                        ("resnet32", "0.05", "40")):
            runs = {
                backend: start("local", "--model", model, "--data",
                               f"cifar10:{folder}", "--samples", "8000",
                               "--validation", "500", "--batch", "128",
                               "--learning-rate", rate, "--momentum", "0.9",
                               "--iterations", iterations, "--eval-every",
                               "10", "--threads", "6", "--backend", backend)
                for backend in ("cuda", "cpu")}
            losses = {backend: {e["iteration"]: [e["loss"], e["accuracy"]]
                                for e in events(run, "progress")}
                      for backend, run in runs.items()}
            # A fast worker does not report each iteration.
            result[model] = {
                iteration: {backend: losses[backend][iteration]
                            for backend in runs}
                for iteration in sorted(set(losses["cpu"])
                                        & set(losses["cuda"]))}
    return result


def main():
    jobs = {"overlap": overlap, "sharing": sharing, "others": others,
            "search": search, "curves": curves}
    name = sys.argv[1]
    try:
        print(json.dumps({name: jobs[name](*sys.argv[2:])}))
    finally:
        for process in started:
            process.kill()
            process.wait()


main()
