# SPDX-License-Identifier: Apache-2.0
"""Workers and a server of the trainer in network namespaces, for benches.

Each has a namespace of its own, connected to a bridge in another one.  HTB
limits a worker's link to the same rate in both directions; the server's link
is unlimited.  Needs root."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time

TRAINER = "build/trainer/stagecoach-trainer"
PREFIX = f"scb{os.getpid() % 100000}"
SERVER = "10.98.0.100"


def sh(command):
    subprocess.run(command, shell=True, check=True)


def make_link(name, address):
    ns, fabric = f"{PREFIX}-{name}", f"{PREFIX}-f"
    sh(f"ip netns add {ns} && ip -n {ns} link set lo up && "
       f"ip -n {fabric} link add p{name} type veth peer name eth0 netns {ns} "
       f"&& ip -n {fabric} link set p{name} master sw up && "
       f"ip -n {ns} address add {address}/24 dev eth0 && "
       f"ip -n {ns} link set eth0 up")


def set_rate(name, rate, what="change"):
    """Changes the rate of the link of 'name'; "add" sets the first one."""
    for ns, dev in ((f"{PREFIX}-{name}", "eth0"), (f"{PREFIX}-f", f"p{name}")):
        if what == "add":
            sh(f"tc -n {ns} qdisc add dev {dev} root handle 1: htb default 1")
        sh(f"tc -n {ns} class {what} dev {dev} parent 1: classid 1:1 htb "
           f"rate {rate} burst 16k cburst 16k quantum 60000")
        if what == "add":
            sh(f"tc -n {ns} qdisc add dev {dev} parent 1:1 bfifo limit 1m")


@contextlib.contextmanager
def network(n_workers, rate):
    names = ["s"] + [f"w{i}" for i in range(n_workers)]
    try:
        sh(f"ip netns add {PREFIX}-f && ip -n {PREFIX}-f link add name sw "
           f"type bridge && ip -n {PREFIX}-f link set sw up")
        make_link("s", SERVER)
        for i in range(n_workers):
            make_link(f"w{i}", f"10.98.0.{i + 1}")
            set_rate(f"w{i}", rate, "add")
        yield
    finally:
        for name in ["f", *names]:
            subprocess.run(["ip", "netns", "del", f"{PREFIX}-{name}"],
                           stderr=subprocess.DEVNULL, check=False)


def start(name, *arguments):
    return subprocess.Popen(
        ["ip", "netns", "exec", f"{PREFIX}-{name}", TRAINER, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


class Run:
    """A training with workers that wait for their first target."""

    def __init__(self, n_workers, scheme, arguments, limit_s):
        self.n = n_workers
        self.end_by = time.monotonic() + limit_s
        self.server = start("s", "server", "--workers", str(self.n),
                            "--address", SERVER, "--sync", scheme)
        port = json.loads(self.server.stdout.readline())["port"]
        self.workers = [
            start(f"w{i}", "worker", "--server", f"{SERVER}:{port}",
                  "--workers", str(self.n), "--rank", str(i), "--iterations", "0",
                  *arguments)
            for i in range(self.n)]
        self.selector = selectors.DefaultSelector()
        for i, worker in enumerate(self.workers):
            os.set_blocking(worker.stdout.fileno(), False)
            self.selector.register(worker.stdout, selectors.EVENT_READ, i)
        self.steps = [{} for _ in range(self.n)]   # Iteration -> seconds.
        self.when = {}          # Iteration of rank 0 -> when it was over.
        self.waiting = set()

    def __enter__(self):
        self.everybody_waits()
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            if worker.poll() is None:
                worker.stdin.write("stop\n")
        for process in [*self.workers, self.server]:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def listen(self):
        for key, _ in self.selector.select(1):
            for line in iter(key.fileobj.readline, ""):
                self.take(key.data, json.loads(line))
        if time.monotonic() > self.end_by:
            sys.exit("it takes too long")
        for process in [self.server, *self.workers]:
            if process.poll():
                sys.exit("a process failed")

    def take(self, rank, event):
        if event["event"] == "paused":
            self.waiting.add(rank)
        elif event["event"] == "progress" and event["step_s"] is not None:
            self.steps[rank][event["iteration"]] = event["step_s"]
            if not rank:
                self.when[event["iteration"]] = time.monotonic()

    def go_on(self, iterations):
        """Sets the target of all workers to 'iterations'."""
        self.waiting.clear()
        for worker in self.workers:
            worker.stdin.write(f"until {iterations}\n")

    def until(self, iteration):
        """Waits until rank 0 reaches 'iteration'; returns its iteration."""
        while max(self.steps[0], default=0) < iteration:
            self.listen()
        return max(self.steps[0])

    def everybody_waits(self):
        while len(self.waiting) < self.n:
            self.listen()

    def iteration_s(self, first, last):
        """Returns the mean seconds of an iteration of rank 0."""
        known = [k for k in sorted(self.when) if first <= k <= last]
        return ((self.when[known[-1]] - self.when[known[0]])
                / (known[-1] - known[0]))
