#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-optuna.py FILE: an Optuna study with successive halving reports the
progress of its trials and its rungs to Stagecoach, and has the same results
without an agent.
"""

import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest

import optuna

from fake_agent import FakeAgent
from fake_rest import FakeRest

FILE = sys.argv.pop()
optuna.logging.set_verbosity(optuna.logging.ERROR)
# Values of six trials; each third of a rung goes on, the first always.
VALUES = [5, 6, 3, 7, 1, 4]


def load():
    sys.modules.pop("stagecoach_client", None)  # It logs again.
    spec = importlib.util.spec_from_file_location("optuna_stagecoach", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_study(fail=None, agent=None):
    """Six trials of at most 18 steps, rungs at 2, 6, 18.  Returns the steps
    that each did, and the pruner, which reported each of them to 'agent'."""
    inner = optuna.pruners.SuccessiveHalvingPruner(2, 3)
    pruner = load().Stagecoach(inner, "asha7", rungs=(2, 6, 18),
                               metric="loss")
    study = optuna.create_study(pruner=pruner)

    def objective(trial):
        for step in range(1, 19):
            trial.report(VALUES[trial.number] + 1 / step, step)
            if trial.number == fail:
                raise ValueError("a trial that fails")
            stop = trial.should_prune()
            if agent:
                rung = 0 if step <= 2 else 1 if step <= 6 else 2
                assert agent.get_progress() == {
                    "cojob": "asha7", "job": f"t{trial.number}",
                    "stage": rung, "iteration": step, "metric": "loss",
                    "value": VALUES[trial.number] + 1 / step}
            if stop:
                raise optuna.TrialPruned()
        return VALUES[trial.number]

    study.optimize(objective, n_trials=6, callbacks=[pruner.announce],
                   catch=(ValueError,))
    pruner.worker.shutdown()
    return [trial.last_step for trial in study.trials], pruner


class Optuna(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sct-optuna-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(os.environ.pop, "STAGECOACH_RUNDIR", None)
        os.environ["STAGECOACH_RUNDIR"] = self.folder

    def make_rest(self, status=None, rundir=None):
        rest = FakeRest(rundir or self.folder, status)
        self.addCleanup(rest.server_close)
        self.addCleanup(rest.shutdown)
        return rest

    def test_tells_stages_and_progress(self):
        agent = FakeAgent()
        os.environ["STAGECOACH_RUNDIR"] = agent.rundir
        rest = self.make_rest(rundir=agent.rundir)
        steps, _ = run_study(agent=agent)
        wanted = []
        for number, last in enumerate(steps):
            job = f"t{number}"
            wanted += [("begin", 0, "2", job), ("end", 0)]
            if last > 2:
                wanted += [("begin", 1, "6", job), ("end", 1)]
            if last > 6:
                wanted += [("begin", 2, "18", job), ("end", 2)]
        self.assertIn(18, steps)
        self.assertIn(2, steps)
        self.assertEqual(rest.get_stages(), wanted)
        self.assertIsNone(agent.get_progress(timeout=0.01))

    def test_is_the_same_study_where_nobody_listens(self):
        rest = self.make_rest()
        wanted, _ = run_study()
        rest.status = 403
        with self.assertLogs("stagecoach") as logs:
            self.assertEqual(run_study()[0], wanted)
        self.assertEqual(len(logs.output), 1)
        os.environ["STAGECOACH_RUNDIR"] = "/nonexistent"
        self.assertEqual(run_study()[0], wanted)

    def test_outlives_trials_that_fail(self):
        rest = self.make_rest()
        steps, pruner = run_study(fail=1)
        self.assertEqual(len(steps), 6)
        self.assertEqual(pruner.stages, {})
        self.assertNotIn(("begin", 1, "6", "t1"), rest.get_stages())

    def test_a_stage_is_all_trials_in_it(self):
        """Also those that other processes run."""
        rest = self.make_rest()
        pruner = load().Stagecoach(optuna.pruners.NopPruner(), "asha7",
                                   rungs=(2, 6), factor=2,
                                   bytes_per_iteration=4000000)
        study = optuna.create_study(pruner=pruner)
        trials = [study.ask() for _ in range(3)]
        for trial in trials[1:]:
            trial.report(1, 2)
            trial.should_prune()
        study.tell(trials[1], 1)
        pruner.announce(study, study.trials[1])
        pruner.worker.shutdown()
        self.assertEqual(rest.get_stages(), [
            ("begin", 0, "2:1,6", "t0,t2"), ("begin", 1, "6", "t1"),
            ("begin", 0, "2", "t0"), ("begin", 1, "6", "t1,t2"),
            ("begin", 1, "6", "t2")])
        self.assertEqual(rest.asked[0][2]["bytes_per_iteration"], 4000000)

    def test_values_that_are_none_lose_no_iteration(self):
        agent = FakeAgent()
        os.environ["STAGECOACH_RUNDIR"] = agent.rundir
        pruner = load().Stagecoach(optuna.pruners.NopPruner(), "asha7", (4,))
        study = optuna.create_study(pruner=pruner)
        for value in float("nan"), float("inf"):
            trial = study.ask()
            trial.report(value, 3)
            trial.should_prune()
            progress = agent.get_progress()
            self.assertEqual(progress["iteration"], 3)
            self.assertNotIn("value", progress)

    def test_is_short(self):
        lines = pathlib.Path(FILE).read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(len(lines), 80)


unittest.main()
