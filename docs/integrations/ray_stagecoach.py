# SPDX-License-Identifier: Apache-2.0
"""Stagecoach("asha7", rungs=(4, 16, 64), metric="loss") is a callback of Tune.
On hosts but the driver's, and where a trial is only a driver (Ray Train:
workers=True), each process calls claim("asha7", TRIAL_ID, os.getpid())."""
import bisect
import os
import socket
import sys
from ray.tune import Callback

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from stagecoach_client import (  # noqa: E402
    announce_changes, begin, claim, judged_one_by_one, judged_together,
    quietly, tell)


class Stagecoach(Callback):
    def __init__(self, cojob, rungs, metric, factor=4, synchronous=False,
                 workers=False, **needs):   # trials="promising", compute_s=0.1
        self.rungs, self.metric, self.factor = rungs, metric, factor
        self.synchronous, self.workers = synchronous, workers
        self.steps, self.total = {}, 0
        begin(self, cojob, needs)

    def setup(self, *args, total_num_samples=None, **info):
        self.total = total_num_samples or 0

    def rung_of(self, place, step):     # The stage.
        return place(self.rungs, step) if self.synchronous else 0

    @quietly
    def on_trial_result(self, iteration, trials, trial, result, **info):
        job, step = trial.trial_id, int(result["training_iteration"])
        with self.lock:
            self.steps[job] = step
        tell(self.cojob, job, step, self.rung_of(bisect.bisect_left, step),
             self.metric, find(result, self.metric))
        if result.get("hostname") == socket.gethostname() and not self.workers:
            claim(self.cojob, job, result["pid"])

    @quietly
    def on_step_end(self, iteration, trials, **info):
        with self.lock:
            jobs = {}
            for job in (t.trial_id for t in trials if t.status == "RUNNING"):
                step = self.steps.get(job, 0)
                jobs.setdefault(self.rung_of(bisect.bisect_right, step),
                                []).append(job)
            announce_changes(self, self.together(jobs) if self.synchronous
                             else self.one_by_one(jobs, trials))

    def together(self, jobs):
        return {rung: judged_together(self, self.rungs[rung:], jobs[rung])
                for rung in jobs if rung < len(self.rungs)}

    def one_by_one(self, jobs, trials):
        begun = sum(t.status != "PENDING" for t in trials)
        if not jobs and not self.stages:
            return {}
        return {0: judged_one_by_one(self, self.rungs, self.factor,
                                     jobs.get(0, []),
                                     max(self.total - begun, 0))}

    @quietly
    def on_experiment_end(self, trials, **info):
        with self.lock:
            announce_changes(self, {})


def find(result, name):         # "a/b" is also member "b" of member "a".
    first, _, rest = name.partition("/")
    if not isinstance(result, dict) or not name:
        return None
    return result[name] if name in result else find(result.get(first), rest)
