# SPDX-License-Identifier: Apache-2.0
"""lbbsp-real.py TRAINER PREDICTORS DATA: iterations a second on a shared
machine, under lbbsp-cpu, bsp and others.

CifarNet on CIFAR-10 (the binary files in the folder DATA, which may be
compressed) is trained by four workers on this
machine.  Nothing is emulated: each worker has a cgroup with a quota of
processor time, of the kernel's default period, and programs of others come and
go.  Each run has the same plan, which repeats after WINDOW_S seconds, and
lasts a whole number of such windows:

   worker 0    0.25 of a processor
   worker 1    0.25, and 0.125 in every second half of 40 s
   worker 2    0.25, but in every second half of 30 s another program, nice 5,
               computes in its cgroup
   worker 3    0.25, and 0.1 in the first half of 60 s
   memory hog  copies 256 MB again and again, with a quota of 0.25, in the last
               15 s of every 40 s

All of them together have ten times the weight of another program on the
machine, so that such a program hardly counts.

With a batch of 128 a machine stays as it is for 10 to 50 iterations; with 512
it does for two to ten, and changes within every second one.  The losses of bsp
and of lbbsp-cpu at equal iterations show that only their speed differs.

PREDICTORS is the program of the bench "predictors".  It computes the error of
each predictor from what the workers measured under lbbsp-cpu, with both
predictors: their speeds, and the use of the machine by others, or none, as if
it were unknown.

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
BATCHES = (128, 512)
WINDOW_S = 120
PERIOD_US = 100000              # The kernel's default.
SKIPPED = 10                    # Iterations before the first sizes settle.
EVERY = 10                      # Iterations between two evaluations.
SCHEMES = {                     # And their windows.
    "lbbsp": ("lbbsp-cpu", 3),
    "bsp": ("bsp", 3),
    "memoryless": ("lbbsp-cpu,predictor=memoryless", 1),
    # By the mean of the processor that each worker has.
    "static": ("static,ratios=25:19:22:18", 1),
    "ssp": ("ssp", 1),
    "flexrr": ("flexrr", 1),
}
ARGUMENTS = [
    "--model", "cifarnet", "--learning-rate", "0.02", "--validation", "200",
    "--eval-every", str(EVERY), "--backend", "cpu"]
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

    def __init__(self, cgroups, processes, folders, name):
        self.cgroups, self.processes = cgroups, processes
        self.folders = folders
        self.tenant = cgroups.make(cgroups.top, f"{name}-tenant")
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
        self.switch("copy", t % 40 >= 25, self.tenant,
                    [sys.executable, "-c", COPY])


class Training:
    """A training of some windows, under one scheme."""

    def __init__(self, cgroups, processes, name, batch, trainer, data):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE,
                 "text": True, "bufsize": 1}
        self.name = f"{name}-{batch}"
        scheme, windows = SCHEMES[name]
        self.ends = [WINDOW_S * (i + 1) for i in range(windows)]
        server = processes.start(
            cgroups.make(cgroups.top, f"{self.name}-server"),
            [trainer, "server", "--workers", str(N), "--sync", scheme,
             "--address", "127.0.0.1"], **pipes)
        port = json.loads(server.stdout.readline())["port"]
        folders = [cgroups.make(cgroups.top, f"{self.name}-{rank}")
                   for rank in range(N)]
        self.workers = [processes.start(
            folders[rank],
            [trainer, "worker", "--server", f"127.0.0.1:{port}", "--workers",
             str(N), "--rank", str(rank), "--iterations", "0", "--batch",
             str(batch), "--data", f"cifar10:{data}", *ARGUMENTS], **pipes)
            for rank in range(N)]
        self.selector = selectors.DefaultSelector()
        for rank, worker in enumerate(self.workers):
            os.set_blocking(worker.stdout.fileno(), False)
            self.selector.register(worker.stdout, selectors.EVENT_READ, rank)
        self.others = Others(cgroups, processes, folders, self.name)
        self.waiting = set()    # Workers without a target.
        self.loads = [[] for _ in range(N)]
        self.iterations = [0.0] * N     # As of now, of each worker.
        self.counts = []        # Iterations of a worker, by window.
        self.losses = {}        # Iteration of an evaluation -> loss.

    def run(self):
        started = time.monotonic()
        while len(self.waiting) < N:
            self.read()
            if time.monotonic() > started + 60:
                sys.exit("lbbsp-real: the workers do not start")
        began = time.monotonic()
        for worker in self.workers:
            worker.stdin.write("until 1000000\n")
        while len(self.counts) < len(self.ends):
            t = time.monotonic() - began
            self.others.follow(t)
            self.read()
            if t >= self.ends[len(self.counts)]:
                self.counts.append(sum(self.iterations) / N
                                   - sum(self.counts))
                print(f"{self.name}: {t:.0f} s, {self.counts[-1]:.0f} "
                      "iterations", file=sys.stderr)
        return self

    def rate(self):
        """Returns iterations a second."""
        return sum(self.counts) / self.ends[-1]

    def read(self):
        for key, _ in self.selector.select(0.05):
            for line in iter(key.fileobj.readline, ""):
                self.take(key.data, json.loads(line))
        if any(worker.poll() is not None for worker in self.workers):
            sys.exit(f"lbbsp-real: {self.name}: a worker ended")

    def take(self, rank, event):
        if event["event"] == "paused":
            self.waiting.add(rank)
        elif event["event"] == "load":
            self.loads[rank].append(event)
        elif event["event"] == "progress":
            self.iterations[rank] = event["iteration"]
            if not rank and event["loss"] is not None:
                self.losses.setdefault(event["iteration"] // EVERY * EVERY,
                                       event["loss"])


def speed(load):
    return load["samples"] / load["seconds"]


def predictor_errors(loads, program, known=True):
    """Returns the errors, as an object of the program."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for rank, events in enumerate(loads):
            files.append(os.path.join(folder, str(rank)))
            with open(files[-1], "w", encoding="ascii") as f:
                for e in events[1:]:
                    f.write(f"{speed(e):.4f} {1000 * known * e['cpu']:.2f} "
                            f"{1000 * known * e['memory']:.2f}\n")
        return json.loads(subprocess.run(
            [program, "--of", *files], check=True, capture_output=True,
            text=True).stdout)


def ideal_rate(loads, batch):
    """Returns the iterations a second of the measured ones, if each part had
    been in proportion to the speed of the same iteration."""
    measured = list(zip(*loads))[SKIPPED:]
    return len(measured) / sum(batch / sum(map(speed, events))
                               for events in measured)


def loss_difference(a, b):
    """Returns the largest difference at equal iterations."""
    return max(abs(a[i] - b[i]) for i in a.keys() & b.keys())


def measure(cgroups, batch, programs, data):
    """Returns figures and baseline of a batch size."""
    trainer, predictors = programs
    done = {}
    for name in SCHEMES:
        with Processes() as processes:
            done[name] = Training(cgroups, processes, name, batch, trainer,
                                  data).run()
    rates = {name: training.rate() for name, training in done.items()}
    rates["ideal"] = ideal_rate(done["lbbsp"].loads, batch)
    figures = {f"lbbsp_vs_{name}_{batch}": round(rates["lbbsp"] / rate, 3)
               for name, rate in rates.items() if name != "lbbsp"}
    figures[f"loss_difference_{batch}"] = round(
        loss_difference(done["lbbsp"].losses, done["bsp"].losses), 4)
    errors = {f"{name}{'' if known else '-unknown'}": predictor_errors(
        done[name].loads, predictors, known)
        for name in ("lbbsp", "memoryless") for known in (True, False)}
    figures[f"narx_vs_memoryless_{batch}"] = round(
        max(e["narx"] / e["memoryless"] for e in errors.values()), 3)
    return figures, {
        "iterations_s": {name: round(rate, 3) for name, rate in rates.items()},
        "windows": {name: training.counts for name, training in done.items()},
        "errors": errors}


def main():
    trainer, predictors, data = sys.argv[1:4]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    figures, baseline = {}, {}
    with tempfile.TemporaryDirectory() as folder, Cgroups() as cgroups:
        unpack(data, folder)
        for batch in BATCHES:
            found, baseline[str(batch)] = measure(
                cgroups, batch, (trainer, predictors), folder)
            figures |= found
    print(json.dumps({"bench": "lbbsp-real", "figures": figures,
                      "baseline": baseline}))


if __name__ == "__main__":
    main()
