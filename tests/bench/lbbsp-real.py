# SPDX-License-Identifier: Apache-2.0
"""lbbsp-real.py TRAINER PREDICTORS DATA: the time to a loss on a shared
machine, under bsp and under lbbsp-cpu.

CifarNet on CIFAR-10 (the binary files in the folder DATA, which may be
compressed) is trained by four workers on this
machine.  Nothing is emulated: each worker has a cgroup with a quota of
processor time, of the kernel's default period, and programs of others come and
go.  Each run has the same plan:

   worker 0    0.25 of a processor
   worker 1    0.25, and 0.125 in every second half of 40 s
   worker 2    0.25, but in every second half of 30 s another program, nice 5,
               computes in its cgroup
   worker 3    0.25, and 0.1 in the first half of 60 s
   memory hog  copies 256 MB again and again, with a quota of 0.25, in the last
               15 s of every 35 s

All of them together have ten times the weight of another program on the
machine, so that such a program hardly counts.

PREDICTORS is the program of the bench "predictors".  It computes the error of
each predictor from what the workers measured under lbbsp-cpu: their speeds,
and the use of the machine by others.

Prints one JSON object on standard output, progress on standard error.  Exits
with 77 if the data are missing, or if no cgroup with a quota can be made."""

import contextlib
import glob
import gzip
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

N = 4
BATCH = 512
LOSS = 1.45                     # Of the validation samples.
LIMIT_S = 300                   # Of one training.
PERIOD_US = 100000              # The kernel's default.
SKIPPED = 10                    # Iterations before the first sizes settle.
ARGUMENTS = [
    "--model", "cifarnet", "--batch", str(BATCH), "--learning-rate", "0.02",
    "--validation", "200", "--eval-every", "10", "--backend", "cpu"]
SPIN = "while :; do :; done"
COPY = "a = bytearray(1 << 28); b = bytearray(1 << 28)\nwhile True: a[:] = b"


def quota(rank, t):
    """Returns the processors that worker 'rank' has 't' seconds after the
    start."""
    if rank == 1 and t % 40 >= 20:
        return 0.125
    if rank == 3 and t % 60 < 30:
        return 0.1
    return 0.25


def skip(why):
    print(f"lbbsp-real: {why}", file=sys.stderr)
    sys.exit(77)


def unpack(data, folder):
    """Writes the files of CIFAR-10 to 'folder'."""
    for kind in ("data_batch", "test_batch"):
        paths = glob.glob(os.path.join(data, kind + "*.bin*"))
        if not paths:
            skip(f"needs {kind}*.bin of CIFAR-10 in {data}, or in $CIFAR10")
        for path in paths:
            opened = gzip.open if path.endswith(".gz") else open
            name = os.path.basename(path).removesuffix(".gz")
            with (opened(path, "rb") as source,
                  open(os.path.join(folder, name), "wb") as to):
                shutil.copyfileobj(source, to)


class Cgroups:
    """Cgroups with quotas, in a new one at the top of the hierarchy."""

    def __init__(self):
        self.folders = []

    def __enter__(self):
        with open("/proc/mounts", encoding="utf-8") as f:
            mounts = [line.split() for line in f]
        v1 = [m[1] for m in mounts
              if m[2] == "cgroup" and "cpu" in m[3].split(",")]
        v2 = [m[1] for m in mounts if m[2] == "cgroup2"]
        self.v1 = bool(v1)
        try:
            self.top = self.make((v1 or v2)[0],
                                 f"stagecoach-bench-{os.getpid()}")
            self.set_quota(self.top, os.cpu_count())
            self.write(self.top, *(("cpu.shares", "10240") if self.v1 else
                                   ("cpu.weight", "1000")))
        except (IndexError, OSError) as error:
            self.__exit__()
            skip(f"needs a cgroup with a quota: {error}")
        return self

    def __exit__(self, *_):
        for folder in reversed(self.folders):
            for _ in range(50):     # Killed processes take a moment to end.
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
                    break
                time.sleep(0.1)

    def write(self, folder, name, text):
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(text)

    def make(self, above, name):
        if not self.v1:
            self.write(above, "cgroup.subtree_control", "+cpu")
        folder = os.path.join(above, name)
        os.mkdir(folder)
        self.folders.append(folder)
        return folder

    def set_quota(self, folder, processors):
        us = int(processors * PERIOD_US)
        if self.v1:
            self.write(folder, "cpu.cfs_quota_us", str(us))
        else:
            self.write(folder, "cpu.max", f"{us} {PERIOD_US}")


class Processes:
    """Processes that end with the training."""

    def __init__(self):
        self.all = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in list(self.all):
            self.end(process)

    def start(self, folder, arguments, **options):
        """Starts a program in the cgroup 'folder'."""
        self.all.append(subprocess.Popen(
            ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"',
             folder, *arguments],
            env=dict(os.environ, OPENBLAS_NUM_THREADS="1"), **options))
        return self.all[-1]

    def end(self, process):
        process.kill()
        process.wait()
        self.all.remove(process)


class Others:
    """The programs of others, and the quotas of workers, by the plan."""

    def __init__(self, cgroups, processes, folders, scheme):
        self.cgroups, self.processes = cgroups, processes
        self.folders = folders
        self.tenant = cgroups.make(cgroups.top, f"{scheme}-tenant")
        cgroups.set_quota(self.tenant, 0.25)
        self.quotas = [None] * N
        self.running = {}       # Name -> process.

    def switch(self, name, wanted, folder, arguments):
        if wanted and name not in self.running:
            self.running[name] = self.processes.start(folder, arguments)
        elif not wanted and name in self.running:
            self.processes.end(self.running.pop(name))

    def follow(self, t):
        for rank in range(N):
            if quota(rank, t) != self.quotas[rank]:
                self.quotas[rank] = quota(rank, t)
                self.cgroups.set_quota(self.folders[rank], self.quotas[rank])
        self.switch("spin", t % 30 >= 15, self.folders[2],
                    ["nice", "-n", "5", "/bin/sh", "-c", SPIN])
        self.switch("copy", t % 35 >= 20, self.tenant,
                    [sys.executable, "-c", COPY])


class Training:
    """A training until the loss, under one scheme."""

    def __init__(self, cgroups, processes, scheme, trainer, data):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE,
                 "text": True, "bufsize": 1}
        self.scheme = scheme
        server = processes.start(
            cgroups.make(cgroups.top, f"{scheme}-server"),
            [trainer, "server", "--workers", str(N), "--sync", scheme,
             "--address", "127.0.0.1"], **pipes)
        port = json.loads(server.stdout.readline())["port"]
        folders = [cgroups.make(cgroups.top, f"{scheme}-{rank}")
                   for rank in range(N)]
        self.workers = [processes.start(
            folders[rank],
            [trainer, "worker", "--server", f"127.0.0.1:{port}", "--workers",
             str(N), "--rank", str(rank), "--iterations", "0", "--data",
             f"cifar10:{data}", *ARGUMENTS], **pipes) for rank in range(N)]
        self.selector = selectors.DefaultSelector()
        for rank, worker in enumerate(self.workers):
            os.set_blocking(worker.stdout.fileno(), False)
            self.selector.register(worker.stdout, selectors.EVENT_READ, rank)
        self.others = Others(cgroups, processes, folders, scheme)
        self.waiting = set()    # Workers without a target.
        self.loads = [[] for _ in range(N)]
        self.last = None        # Evaluation: seconds, event.

    def run(self):
        started = time.monotonic()
        while len(self.waiting) < N:
            self.read(0)
            if time.monotonic() > started + 60:
                sys.exit("lbbsp-real: the workers do not start")
        began = time.monotonic()
        for worker in self.workers:
            worker.stdin.write("until 1000000\n")
        while not self.last or self.last[1]["loss"] > LOSS:
            t = time.monotonic() - began
            if t > LIMIT_S:
                sys.exit(f"lbbsp-real: {self.scheme}: no loss of "
                         f"{LOSS} after {LIMIT_S} s")
            self.others.follow(t)
            self.read(t)
        return self.last

    def read(self, t):
        for key, _ in self.selector.select(0.05):
            for line in iter(key.fileobj.readline, ""):
                self.take(key.data, json.loads(line), t)
        if any(worker.poll() is not None for worker in self.workers):
            sys.exit(f"lbbsp-real: {self.scheme}: a worker ended")

    def take(self, rank, event, t):
        if event["event"] == "paused":
            self.waiting.add(rank)
        elif event["event"] == "load":
            self.loads[rank].append(event)
        elif (event["event"] == "progress" and not rank
              and event["loss"] is not None
              and (not self.last or event["loss"] != self.last[1]["loss"])):
            self.last = t, event
            print(f"{self.scheme}: {t:.0f} s, iteration {event['iteration']}, "
                  f"loss {event['loss']:.3f}, accuracy {event['accuracy']}",
                  file=sys.stderr)


def speed(load):
    return load["samples"] / load["seconds"]


def predictor_errors(loads, program):
    """Returns the errors, as an object of the program."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for rank, events in enumerate(loads):
            files.append(os.path.join(folder, str(rank)))
            with open(files[-1], "w", encoding="ascii") as f:
                for e in events[1:]:
                    f.write(f"{speed(e):.4f} {1000 * e['cpu']:.2f} "
                            f"{1000 * e['memory']:.2f}\n")
        return json.loads(subprocess.run(
            [program, "--of", *files], check=True, capture_output=True,
            text=True).stdout)


def vs_ideal(loads):
    """Returns the mean time of the slowest worker / that of parts in
    proportion to the speeds of the same iteration."""
    slowest = ideal = 0
    for events in list(zip(*loads))[SKIPPED:]:
        slowest += max(e["seconds"] for e in events)
        ideal += BATCH / sum(map(speed, events))
    return slowest / ideal


def main():
    trainer, predictors, data = sys.argv[1:4]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    baseline, seconds = {"loss": LOSS}, {}
    with tempfile.TemporaryDirectory() as folder, Cgroups() as cgroups:
        unpack(data, folder)
        for scheme in ("lbbsp-cpu", "bsp"):
            with Processes() as processes:
                training = Training(cgroups, processes, scheme, trainer,
                                    folder)
                seconds[scheme], last = training.run()
            baseline[scheme] = {
                "seconds": round(seconds[scheme], 1),
                "iterations": last["iteration"],
                "accuracy": last["accuracy"],
                "iteration_s": round(seconds[scheme] / last["iteration"], 3)}
            if scheme == "lbbsp-cpu":
                loads = training.loads
    baseline["lbbsp_vs_ideal"] = round(vs_ideal(loads), 3)
    figures = {"bsp_vs_lbbsp": round(seconds["bsp"] / seconds["lbbsp-cpu"],
                                     3)}
    for name, error in predictor_errors(loads, predictors).items():
        figures[f"error_{name}"] = error
    print(json.dumps({"bench": "lbbsp-real", "figures": figures,
                      "baseline": baseline}))


if __name__ == "__main__":
    main()
