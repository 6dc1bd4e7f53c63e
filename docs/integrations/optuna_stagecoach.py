# SPDX-License-Identifier: Apache-2.0
"""Stagecoach(SuccessiveHalvingPruner(4, 3), "asha7", rungs=(4, 12, 36),
factor=3), a pruner, tells Stagecoach of a study; announce is a callback."""
import bisect
import json
import os
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor as Pool
from contextlib import suppress
from optuna.pruners import BasePruner


class Stagecoach(BasePruner):
    def __init__(self, pruner, cojob, rungs, metric="value", name=None,
                 factor=float("inf"), **needs):     # One of them continues.
        self.pruner, self.cojob, self.metric = pruner, cojob, metric
        self.factor, self.needs = factor, options(needs)
        self.rungs, self.name = rungs, name or "t{.number}".format
        self.stages, self.quiet_until, self.worker = {}, 0, Pool(1)

    def prune(self, study, trial):          # After each report of a trial.
        stop, step = self.pruner.prune(study, trial), trial.last_step
        if step is not None:
            tell(cojob=self.cojob, job=self.name(trial), iteration=step,
                 stage=bisect.bisect_left(self.rungs, step),
                 metric=self.metric, value=trial.intermediate_values[step])
            self.announce(study, trial if stop else None)
        return stop

    def announce(self, study, gone=None):   # Other processes' trials, too.
        before, self.stages = self.stages, {}
        for t in study.get_trials(deepcopy=False):
            rung = bisect.bisect_right(self.rungs, t.last_step or 0)
            out = t.state.is_finished() or gone and gone.number == t.number
            if not out and self.name(t):
                self.stages.setdefault(rung, []).append(self.name(t))
        for rung in sorted({*before, *self.stages} - {len(self.rungs)}):
            if before.get(rung) != self.stages.get(rung):
                self.worker.submit(self.run, rung, self.stages.get(rung))

    def run(self, rung, jobs):              # After a failure not for 30 s.
        words = ["end", "--cojob", self.cojob, "--rung", str(rung)]
        if jobs:
            words[0] = "begin"
            words += ["--jobs", ",".join(jobs), "--rungs",
                      spell(self.rungs[rung:], len(jobs), self.factor)]
            words += self.needs
        if time.monotonic() > self.quiet_until:
            self.quiet_until = time.monotonic() + 30
            subprocess.run(["stagecoach", "stage", *words], timeout=6,
                           check=True)
            self.quiet_until = 0


def spell(rungs, n, factor):    # "4:3,12:1,36" if 9 jobs begin.
    keep = n // factor
    return (f"{rungs[0]}:{keep}," + spell(rungs[1:], keep, factor)
            if keep and rungs[1:] else str(rungs[0]))


def options(needs):             # bytes_per_iteration=1e6, compute_s=0.02
    return [f"--{name.replace('_', '-')}={needs[name]:g}" for name in needs]


def tell(**progress):
    path = os.environ.get("STAGECOACH_RUNDIR", "/run/stagecoach")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        with suppress(OSError):
            sock.sendto(json.dumps(progress).encode(), socket.MSG_DONTWAIT,
                        path + "/progress.sock")
