# SPDX-License-Identifier: Apache-2.0
"""Stagecoach("asha7", rungs=(4, 16, 64), metric="loss") is a callback of Tune;
on hosts but the driver's, trial ID calls claim("asha7", ID, os.getpid())."""
import bisect
import json
import os
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ray.tune import Callback


class Stagecoach(Callback):
    def __init__(self, cojob, rungs, metric, factor=float("inf"), **needs):
        self.cojob, self.rungs, self.metric = cojob, rungs, metric
        self.factor, self.needs = factor, options(needs)
        self.steps, self.stages = {}, {}
        self.worker, self.quiet_until = ThreadPoolExecutor(1), 0

    def on_trial_result(self, iteration, trials, trial, result, **info):
        job, step = trial.trial_id, int(result["training_iteration"])
        self.steps[job] = step
        if result.get("hostname") == socket.gethostname():
            claim(self.cojob, job, result["pid"])
        send("progress.sock", socket.SOCK_DGRAM, cojob=self.cojob, job=job,
             iteration=step, stage=bisect.bisect_left(self.rungs, step),
             metric=self.metric, value=float(result.get(self.metric, "nan")))

    def on_step_end(self, iteration, trials, **info):
        before, self.stages = self.stages, {}
        for job in (t.trial_id for t in trials if t.status == "RUNNING"):
            rung = bisect.bisect_right(self.rungs, self.steps.get(job, 0))
            self.stages.setdefault(rung, []).append(job)
        for rung in sorted({*before, *self.stages} - {len(self.rungs)}):
            if before.get(rung) != self.stages.get(rung):
                self.worker.submit(self.run, rung, self.stages.get(rung, []))

    def run(self, rung, jobs):              # After a failure not for 30 s.
        words = ["--jobs", ",".join(jobs), "--rungs", spell(
            self.rungs[rung:], len(jobs), self.factor),
            *self.needs] if jobs else []
        if time.monotonic() > self.quiet_until:
            self.quiet_until = time.monotonic() + 30
            subprocess.run(["stagecoach", "stage", "begin" if jobs else "end",
                            "--cojob", self.cojob, "--rung", str(rung)]
                           + words, timeout=6, check=True)
            self.quiet_until = 0


def spell(rungs, n, factor):    # "4:3,12:1,36" if 9 jobs begin.
    keep = n // factor
    return (f"{rungs[0]}:{keep}," + spell(rungs[1:], keep, factor)
            if keep and rungs[1:] else str(rungs[0]))


def options(needs):             # bytes_per_iteration=1e6, compute_s=0.02
    return [f"--{name.replace('_', '-')}={needs[name]:g}" for name in needs]


def claim(cojob, job, pid):
    send("agent.ctl", socket.SOCK_STREAM, id=0, method="agent/claim",
         params=["registration", cojob, job, "pid", str(pid)])


def send(name, kind, **message):
    path = os.environ.get("STAGECOACH_RUNDIR", "/run/stagecoach")
    with suppress(OSError), socket.socket(socket.AF_UNIX, kind) as sock:
        sock.setblocking(False)
        sock.connect(f"{path}/{name}")
        sock.send(json.dumps(message).encode())
