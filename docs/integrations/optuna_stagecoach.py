# SPDX-License-Identifier: Apache-2.0
"""Stagecoach(SuccessiveHalvingPruner(4, 3), "asha7", last=36, n_trials=81), a
pruner, tells Stagecoach of a study in which a trial has at most 36 steps;
announce is a callback."""
import os
import sys
from optuna.pruners import BasePruner
from optuna.study import StudyDirection
from optuna.trial import TrialState

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from stagecoach_client import (  # noqa: E402
    announce_changes, begin, judged_one_by_one, quietly, tell)


class Stagecoach(BasePruner):
    def __init__(self, pruner, cojob, last, metric=None, name=None, n_trials=0,
                 **needs):      # bytes_per_iteration=1000000, compute_s=0.02
        self.pruner, self.last, self.n_trials = pruner, last, n_trials
        self.metric, self.name = metric, name or "t{.number}".format
        begin(self, cojob, needs)

    @property
    def __class__(self):        # Samplers look for Hyperband, by its class.
        return type(object.__getattribute__(self, "pruner"))

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "pruner"), name)

    def prune(self, study, trial):          # After each report of a trial.
        stop = self.pruner.prune(study, trial)
        self.report(study, trial, stop)
        return stop

    @quietly
    def report(self, study, trial, stop):
        step = trial.last_step
        if step is not None:
            less = study.direction == StudyDirection.MINIMIZE
            tell(self.cojob, self.name(trial), step,
                 self.bracket_of(study, trial),
                 self.metric or ("loss" if less else "value"),
                 trial.intermediate_values[step])
            self.announce(study, trial if stop else None)

    def bracket_of(self, study, trial):     # Each is a stage.
        find = getattr(self.pruner, "_get_bracket_id", None)
        return find(study, trial) if find else 0

    def rungs_of(self, bracket):    # As far as the pruner knows them so far.
        pruner = (getattr(self.pruner, "_pruners", 0) or [self.pruner])[bracket]
        factor = getattr(pruner, "_reduction_factor", 3)
        step = ((getattr(pruner, "_min_resource", 0) or self.last) * factor
                ** getattr(pruner, "_min_early_stopping_rate", 0))
        rungs = []
        while step < self.last:
            rungs.append(step)
            step *= factor
        return rungs + [self.last], factor

    def to_come(self, bracket, n):  # Trials of the study that have not begun.
        budgets = getattr(self.pruner, "_trial_allocation_budgets", 0) or [1]
        return max(self.n_trials - n, 0) * budgets[bracket] // sum(budgets)

    @quietly
    def announce(self, study, gone=None):   # Other processes' trials, too.
        with self.lock:
            trials, jobs = [t for t in study.get_trials(deepcopy=False)
                            if t.state != TrialState.WAITING], {}
            for t in trials:
                running = jobs.setdefault(self.bracket_of(study, t), [])
                out = t.state.is_finished() or gone and gone.number == t.number
                if not out and self.name(t):
                    running.append(self.name(t))
            over = 0 < self.n_trials <= len(trials) and not any(jobs.values())
            announce_changes(self, {} if over else {
                b: judged_one_by_one(self, *self.rungs_of(b), jobs[b],
                                     self.to_come(b, len(trials)))
                for b in jobs})
