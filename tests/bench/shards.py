#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# shards.py TRAINER: trains eight peers on this machine under each scheme, for
# the same number of iterations, with samples that are divided at random and by
# label.  Prints one JSON object; progress on standard error.
import json
import os
import socket
import subprocess
import sys

N = 8
ITERATIONS = 300
SCHEMES = ["allreduce", "adpsgd", "prague", "netmax", "netmax-published"]
ARGUMENTS = [
    "--shape", "64,128,128,10", "--batch", "256", "--learning-rate", "0.02",
    "--samples", "16384", "--validation", "2048", "--eval-every",
    str(ITERATIONS), "--iterations", str(ITERATIONS), "--backend", "cpu",
    "--sample-cost-us", "1200", "--policy-every", "2.8",
]
trainer = sys.argv[1]


def free_ports():
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(N)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def losses(scheme, shards):
    """Returns the loss of each peer at its last iteration."""
    peers = ",".join("127.0.0.%d:%d" % (i + 1, port)
                     for i, port in enumerate(free_ports()))
    processes = [subprocess.Popen(
        [trainer, "peer", "--scheme", scheme, "--shards", shards, "--peers",
         peers, "--rank", str(rank), "--address", "127.0.0.%d" % (rank + 1)]
        + ARGUMENTS,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
        for rank in range(N)]
    results = []
    for process in processes:
        events = [json.loads(line) for line in process.communicate()[0]
                  .splitlines()]
        if process.returncode:
            raise SystemExit("shards: %s ended with %d"
                             % (scheme, process.returncode))
        results.append(next(e["loss"] for e in events
                            if e["event"] == "done"))
    print("%s, %s: mean %.3f, worst %.3f" % (
        scheme, shards, sum(results) / N, max(results)), file=sys.stderr,
        flush=True)
    return results


def main():
    figures, baseline = {}, {}
    for scheme in SCHEMES:
        mean = {}
        for shards in ("iid", "by-label"):
            results = losses(scheme, shards)
            mean[shards] = sum(results) / N
            baseline["%s, %s" % (scheme, shards)] = {
                "mean": round(mean[shards], 4),
                "worst": round(max(results), 4),
            }
        figures[scheme.replace("-", "_") + "_loss_ratio"] = round(
            mean["by-label"] / mean["iid"], 3)
    print(json.dumps({"bench": "shards", "figures": figures, "baseline": {
        "peers": N, "iterations": ITERATIONS, "losses": baseline}}))


main()
