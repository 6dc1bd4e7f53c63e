# SPDX-License-Identifier: Apache-2.0
"""Stagecoach("asha7", rungs=(4, 16, 64), metric="loss") is a callback of Tune.
On hosts but the driver's, and where a trial is only a driver (Ray Train:
workers=True), each process calls claim("asha7", TRIAL_ID, os.getpid())."""
import bisect
import math
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from ray.tune import Callback

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from stagecoach_client import (  # noqa: E402
    announce_changes, claim, quietly, tell)


class Stagecoach(Callback):
    def __init__(self, cojob, rungs, metric, factor=math.inf, workers=False,
                 **needs):      # bytes_per_iteration=1000000, compute_s=0.02
        self.cojob, self.rungs, self.metric = cojob, rungs, metric
        self.factor, self.workers, self.needs = factor, workers, needs
        self.steps, self.stages, self.lock = {}, {}, threading.Lock()
        self.worker = ThreadPoolExecutor(1)

    @quietly
    def on_trial_result(self, iteration, trials, trial, result, **info):
        job, step = trial.trial_id, int(result["training_iteration"])
        with self.lock:
            self.steps[job] = step
        tell(self.cojob, job, step, bisect.bisect_left(self.rungs, step),
             self.metric, find(result, self.metric))
        if result.get("hostname") == socket.gethostname() and not self.workers:
            claim(self.cojob, job, result["pid"])

    @quietly
    def on_step_end(self, iteration, trials, **info):
        with self.lock:
            stages = {}
            for job in (t.trial_id for t in trials if t.status == "RUNNING"):
                rung = bisect.bisect_right(self.rungs, self.steps.get(job, 0))
                stages.setdefault(rung, []).append(job)
            announce_changes(self, stages)


def find(result, name):         # "a/b" is also member "b" of member "a".
    first, _, rest = name.partition("/")
    if not isinstance(result, dict) or not name:
        return None
    return result[name] if name in result else find(result.get(first), rest)
