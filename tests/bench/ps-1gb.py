#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the processes of bench ps-1gb.

   ps-1gb.py TRAINER

The optimiser is sgd, which has no state for each parameter.
"""

import json
import os
import secrets
import statistics
import subprocess
import sys
import time

TRAINER = sys.argv[1]
SHAPE = "8192,8192,8192,8192,8192,8"
N_PARAMETERS = 4 * 8193 * 8192 + 8193 * 8
N_SERVERS = N_WORKERS = 2
N_ITERATIONS = 4
MIB = 1 << 20
MODEL_MIB = N_PARAMETERS * 4 / MIB
ENV = dict(os.environ, STAGECOACH_TOKEN=secrets.token_hex(16))


def start(*arguments):
    return subprocess.Popen([TRAINER, *arguments], text=True, env=ENV,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def await_event(process, name):
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == name:
            return event
        if event["event"] == "weights":
            print(f"{event['made'] / event['parameters']:.0%} of the first "
                  "weights", file=sys.stderr)
    sys.exit(f"{process.args[1]}: ended before it was {name}")


def most_mib(process):
    """Returns the greatest memory that a running process has had."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / MIB
    return 0


def train(servers, workers):
    """Returns the figures."""
    begin = time.monotonic()
    for _ in range(N_SERVERS):
        servers.append(start("server", "--workers", str(N_WORKERS)))
    ports = [await_event(server, "listening")["port"] for server in servers]
    for rank in range(N_WORKERS):
        workers.append(start(
            "worker", "--workers", str(N_WORKERS), "--rank", str(rank),
            *(f"--server=127.0.0.1:{port}" for port in ports), "--shape",
            SHAPE, "--batch", str(N_WORKERS), "--samples", "8",
            "--validation", "2", "--eval-every", "1000", "--optimiser",
            "sgd", "--backend", "cpu", "--iterations", "0"))
    for worker in workers:
        await_event(worker, "paused")
    started = time.monotonic()
    seconds = []
    for i in range(1, N_ITERATIONS + 1):
        before = time.monotonic()
        for worker in workers:
            worker.stdin.write(f"until {i}\n")
            worker.stdin.flush()
        for worker in workers:
            await_event(worker, "paused")
        seconds.append(time.monotonic() - before)
        print(f"iteration {i}: {seconds[-1]:.1f} s", file=sys.stderr)
    server_mib = max(map(most_mib, servers))
    worker_mib = max(map(most_mib, workers))
    for process in workers + servers:
        process.stdin.close()
        if process.wait():
            sys.exit(f"{process.args[1]}: exit status {process.returncode}")
    return {
        "start_s": round(started - begin, 1),
        "server_rss_mib": round(server_mib),
        "server_rss_vs_shard": round(server_mib * N_SERVERS / MODEL_MIB, 3),
        "worker_rss_mib": round(worker_mib),
        "worker_rss_vs_model": round(worker_mib / MODEL_MIB, 3),
        "iteration_s": round(statistics.median(seconds), 2),
    }


def main():
    servers, workers = [], []
    try:
        figures = train(servers, workers)
    finally:
        for process in servers + workers:
            process.kill()
            process.wait()
    print(json.dumps({"bench": "ps-1gb", "figures": figures,
                      "baseline": {"parameters": N_PARAMETERS}}))


main()
