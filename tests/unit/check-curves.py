#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The same job has the same loss curve, whatever it runs on.

Usage: check-curves.py TRAINER cpu|cuda

Under bsp and with the same seed, the losses of every iteration on one worker
in one process, on one and on four workers, through one server and three, in
parts and in one piece, and of workers that compute on BACKEND, are those of
the CPU: but for the order in which numbers are added.  Exits with 77 if there
is no such backend.
"""

import json
import os
import subprocess
import sys

TRAINER, BACKEND = sys.argv[1:]
TOLERANCE = {"cpu": 1e-4, "cuda": 1e-3}[BACKEND]
N_ITERATIONS = 8
# Workers and servers.  What they send does not depend on the backend.
TEAMS = (((4, 1), (1, 3)) if BACKEND == "cpu" else ()) + ((1, 1), (4, 3))
MODELS = {
    # A gradient of several parts at each server.
    "mlp": ["--shape", "300,400,300,10", "--batch", "30"],
    "cifarnet": ["--model", "cifarnet", "--image", "8x8x3", "--batch", "12"],
    "linear": ["--model", "linear", "--features", "300", "--batch", "40"],
}
DATA = ["--samples", "60", "--validation", "24", "--eval-every", "1"]


def start(*arguments, **streams):
    return subprocess.Popen([TRAINER, *arguments], text=True, bufsize=1,
                            stdout=subprocess.PIPE, **streams)


def await_event(process, name):
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == name:
            return event
    sys.exit(f"{process.args}: ended before it was {name}")


def curve_of(process):
    """Makes a worker pause after each iteration, which it then reports."""
    curve = []
    for i in range(1, N_ITERATIONS + 1):
        event = await_event(process, "progress")
        while event["iteration"] < i:
            event = await_event(process, "progress")
        curve.append((event["loss"], event["batch_loss"]))
        await_event(process, "paused")
        if i < N_ITERATIONS:
            process.stdin.write(f"until {i + 1}\n")
    process.stdin.close()
    return curve


def finish(processes):
    for process in processes:
        process.stdout.read()
        if process.wait(timeout=20):
            sys.exit(f"{process.args}: {process.returncode}")


def train(model, backend, n_workers, n_servers, *arguments):
    job = [*MODELS[model], *DATA, "--backend", backend, *arguments]
    servers, workers, addresses = [], [], []
    for _ in range(n_servers):
        servers.append(start("server", "--workers", str(n_workers),
                             stdin=subprocess.DEVNULL))
        port = await_event(servers[-1], "listening")["port"]
        addresses += ["--server", f"127.0.0.1:{port}"]
    for rank in range(n_workers - 1, 0, -1):
        workers.append(start("worker", *addresses, *job, "--rank", str(rank),
                             "--workers", str(n_workers), "--iterations",
                             str(N_ITERATIONS), stdin=subprocess.DEVNULL))
    workers.append(start("worker", *addresses, *job, "--iterations", "1",
                         "--workers", str(n_workers), stdin=subprocess.PIPE))
    curve = curve_of(workers[-1])
    finish(workers + servers)
    return curve


def train_alone(model, backend):
    process = start("local", *MODELS[model], *DATA, "--backend", backend,
                    "--iterations", "1", stdin=subprocess.PIPE)
    curve = curve_of(process)
    finish([process])
    return curve


def check(what, curve, right):
    for i, (mine, others) in enumerate(zip(curve, right, strict=True)):
        for a, b in zip(mine, others):
            if not abs(a - b) <= TOLERANCE * abs(b):
                sys.exit(f"{what}, iteration {i + 1}: loss {a}, {b} is right")


def check_memory():
    """A batch for which the emulated device has no memory is refused by one
    line, before anything is allocated for it."""
    for batch, status in ((64, 0), (4096, 1)):
        done = subprocess.run(
            [TRAINER, "local", *MODELS["cifarnet"], *DATA, "--batch",
             str(batch), "--iterations", "1", "--backend", BACKEND],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={**os.environ, "EMULATOR_MEMORY": str(128 << 20)})
        if done.returncode != status or (
                "memory allow" in done.stderr) != bool(status):
            sys.exit(f"batch of {batch}: {done}")


def main():
    if BACKEND != "cpu":
        probe = start("local", "--iterations", "1", *DATA,
                      stdin=subprocess.DEVNULL)
        if await_event(probe, "backend")["name"] != BACKEND:
            sys.exit(77)
        finish([probe])
    for model in MODELS:
        right = train_alone(model, "cpu")
        if not right[-1][0] < right[0][0]:
            sys.exit(f"{model}: learns nothing, {right}")
        for n_workers, n_servers in TEAMS:
            curve = train(model, BACKEND, n_workers, n_servers)
            check(f"{model}, {n_workers} workers, {n_servers} servers", curve,
                  right)
        whole = train(model, BACKEND, 4, 3, "--overlap", "off")
        if BACKEND == "cpu" and whole != curve:
            sys.exit(f"{model}: {whole} in one piece, {curve} in parts")
        check(f"{model} in one piece", whole, right)
    if "emulated" in TRAINER:
        check_memory()


if __name__ == "__main__":
    main()
