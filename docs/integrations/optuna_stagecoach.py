# SPDX-License-Identifier: Apache-2.0
"""Stagecoach(SuccessiveHalvingPruner(4, 3), "asha7", rungs=(4, 12, 36),
factor=3), a pruner, tells Stagecoach of a study; announce is a callback."""
import bisect
import math
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from optuna.pruners import BasePruner

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from stagecoach_client import announce_changes, quietly, tell  # noqa: E402


class Stagecoach(BasePruner):
    def __init__(self, pruner, cojob, rungs, metric="value", name=None,
                 factor=math.inf, **needs):     # One in factor goes on.
        self.pruner, self.cojob, self.metric = pruner, cojob, metric
        self.factor, self.needs, self.rungs = factor, needs, rungs
        self.name = name or "t{.number}".format
        self.stages, self.lock = {}, threading.Lock()
        self.worker = ThreadPoolExecutor(1)

    def prune(self, study, trial):          # After each report of a trial.
        stop = self.pruner.prune(study, trial)
        self.report(study, trial, stop)
        return stop

    @quietly
    def report(self, study, trial, stop):
        step = trial.last_step
        if step is not None:
            tell(self.cojob, self.name(trial), step,
                 bisect.bisect_left(self.rungs, step), self.metric,
                 trial.intermediate_values[step])
            self.announce(study, trial if stop else None)

    @quietly
    def announce(self, study, gone=None):   # Other processes' trials, too.
        with self.lock:
            stages = {}
            for t in study.get_trials(deepcopy=False):
                rung = bisect.bisect_right(self.rungs, t.last_step or 0)
                out = t.state.is_finished() or gone and gone.number == t.number
                if not out and self.name(t):
                    stages.setdefault(rung, []).append(self.name(t))
            announce_changes(self, stages)
