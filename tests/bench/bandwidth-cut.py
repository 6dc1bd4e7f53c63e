#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Eight workers that stand for GPUs of four kinds train through shaped links;
in the middle the fastest one's link loses half of its rate.  Prints as JSON
how many iterations pass until no worker's batch takes 1.1 times as long as
another's again.

usage: bandwidth-cut.py PROFILE [SCHEME]

Each worker, and the server, is in a network namespace, on a bridge in another
one.  A worker's link has the same rate both ways, by HTB.  A batch's time is
what its worker says, computing and transfers, as the median of three
iterations.  Needs root."""

import json
import os
import selectors
import subprocess
import sys
import time

N = 8
RATE, CUT_RATE = "100mbit", "50mbit"
SETTLE, AFTER = 80, 60          # Iterations before the cut, and behind it.
LIMIT = 1.1
LIMIT_S = 80
TRAINER = "build/trainer/stagecoach-trainer"
PREFIX = f"scb{os.getpid() % 100000}"
WORKER = ["--workers", str(N), "--batch", "1024", "--shape", "256,256,10",
          "--learning-rate", "0.02", "--eval-every", "1000", "--backend",
          "cpu", "--until", "0"]


def sh(command):
    subprocess.run(command, shell=True, check=True)


def shape(ns, dev, rate, what="add"):
    sh(f"tc -n {ns} class {what} dev {dev} parent 1: classid 1:1 htb "
       f"rate {rate} burst 16k cburst 16k quantum 60000")


def make_link(name, address):
    ns, bridge = f"{PREFIX}-{name}", f"{PREFIX}-f"
    sh(f"ip netns add {ns} && ip -n {ns} link set lo up && "
       f"ip -n {bridge} link add p{name} type veth peer name eth0 netns {ns} "
       f"&& ip -n {bridge} link set p{name} master sw up && "
       f"ip -n {ns} address add {address}/24 dev eth0 && "
       f"ip -n {ns} link set eth0 up")


def set_rate(name, rate, what):
    for ns, dev in ((f"{PREFIX}-{name}", "eth0"), (f"{PREFIX}-f", f"p{name}")):
        if what == "add":
            sh(f"tc -n {ns} qdisc add dev {dev} root handle 1: htb default 1")
        shape(ns, dev, rate, what)
        if what == "add":
            sh(f"tc -n {ns} qdisc add dev {dev} parent 1:1 bfifo limit 1m")


def start(name, *arguments):
    return subprocess.Popen(
        ["ip", "netns", "exec", f"{PREFIX}-{name}", TRAINER, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


class Run:
    def __init__(self, profile, scheme):
        self.began = time.monotonic()
        self.server = start("s", "server", "--workers", str(N), "--address",
                            "10.98.0.100", "--sync", scheme)
        port = json.loads(self.server.stdout.readline())["port"]
        self.workers = [
            start(f"w{i}", "worker", "--server", f"10.98.0.100:{port}",
                  "--rank", str(i), "--speed-profile", profile, *WORKER)
            for i in range(N)]
        self.selector = selectors.DefaultSelector()
        for i, worker in enumerate(self.workers):
            os.set_blocking(worker.stdout.fileno(), False)
            self.selector.register(worker.stdout, selectors.EVENT_READ, i)
        self.steps = [{} for _ in range(N)]     # Iteration -> seconds.
        self.when = {}          # Iteration of rank 0 -> when it was over.
        self.waiting = set()

    def listen(self):
        for key, _ in self.selector.select(1):
            for line in iter(key.fileobj.readline, ""):
                self.take(key.data, json.loads(line))
        if time.monotonic() - self.began > LIMIT_S:
            sys.exit("bandwidth-cut: it takes too long")
        for process in [self.server, *self.workers]:
            if process.poll():
                sys.exit("bandwidth-cut: a process failed")

    def take(self, rank, event):
        if event["event"] == "paused":
            self.waiting.add(rank)
        elif event["event"] == "progress" and event["step_s"] is not None:
            self.steps[rank][event["iteration"]] = event["step_s"]
            if not rank:
                self.when[event["iteration"]] = time.monotonic()

    def go_on(self, iterations):
        """Lets all train up to 'iterations'."""
        self.waiting.clear()
        for worker in self.workers:
            worker.stdin.write(f"until {iterations}\n")

    def until(self, iteration):
        while max(self.steps[0], default=0) < iteration:
            self.listen()
        return max(self.steps[0])

    def everybody_waits(self):
        while len(self.waiting) < N:
            self.listen()

    def ratio(self, first):
        """Slowest over fastest, of the medians of three iterations."""
        times = [sorted(w.get(k, 0) for k in range(first, first + 3))[1]
                 for w in self.steps]
        return max(times) / max(min(times), 1e-6)

    def end(self):
        for worker in self.workers:
            if worker.poll() is None:
                worker.stdin.write("stop\n")
        for process in [*self.workers, self.server]:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def iteration_s(run, first, last):
    return (run.when[last] - run.when[first]) / (last - first)


def measure(run):
    run.everybody_waits()
    run.go_on(SETTLE + AFTER)
    cut = run.until(SETTLE)
    set_rate("w0", CUT_RATE, "change")
    run.until(SETTLE + AFTER)
    run.everybody_waits()
    ratios = {k: run.ratio(k) for k in range(cut + 1, SETTLE + AFTER - 1)}
    widest = max(list(ratios)[:10], key=ratios.get)
    calm = [k for k in ratios if k > widest and ratios[k] < LIMIT]
    return {
        "recover_iterations": calm[0] + 2 - cut if calm else None,
        "ratio_before": round(run.ratio(cut - 4), 3),
        "ratio_after_cut": round(ratios[widest], 3),
        "ratio_at_end": round(run.ratio(SETTLE + AFTER - 3), 3),
        "iteration_s_before": round(iteration_s(run, cut - 10, cut), 4),
        "iteration_s_after_cut": round(
            iteration_s(run, cut + 1, cut + 4), 4),
        "iteration_s_at_end": round(
            iteration_s(run, SETTLE + AFTER - 10, SETTLE + AFTER), 4),
    }


def clean_up():
    for name in ["s", "f"] + [f"w{i}" for i in range(N)]:
        subprocess.run(["ip", "netns", "del", f"{PREFIX}-{name}"],
                       stderr=subprocess.DEVNULL, check=False)


def main():
    profile, scheme = (sys.argv[1:] + ["lbbsp-gpu"])[:2]
    run = None
    try:
        sh(f"ip netns add {PREFIX}-f && ip -n {PREFIX}-f link add name sw type "
           f"bridge && ip -n {PREFIX}-f link set sw up")
        make_link("s", "10.98.0.100")
        for i in range(N):
            make_link(f"w{i}", f"10.98.0.{i + 1}")
            set_rate(f"w{i}", RATE, "add")
        run = Run(profile, scheme)
        print(json.dumps(measure(run)))
    finally:
        try:
            if run:
                run.end()
        finally:
            clean_up()


if __name__ == "__main__":
    main()
