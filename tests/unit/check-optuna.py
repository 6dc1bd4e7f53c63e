#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-optuna.py FILE: an Optuna study with successive halving or Hyperband
reports its trials and their progress to Stagecoach, and has the same results
without an agent and without Stagecoach.
"""

import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest

import optuna

from fake_agent import FakeAgent
from fake_rest import AtOnce, FakeRest

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


def wrap(inner, last=18, **more):
    pruner = load().Stagecoach(inner, "asha7", last, **more)
    pruner.worker = AtOnce()
    return pruner


def run_study(fail=None, agent=None):
    """Six trials of at most 18 steps, rungs at 2, 6, 18.  Returns the steps
    that each did, and the pruner, which reported each of them to 'agent'."""
    pruner = wrap(optuna.pruners.SuccessiveHalvingPruner(2, 3), n_trials=6)
    study = optuna.create_study(pruner=pruner)

    def objective(trial):
        for step in range(1, 19):
            trial.report(VALUES[trial.number] + 1 / step, step)
            if trial.number == fail:
                raise ValueError("a trial that fails")
            stop = trial.should_prune()
            if agent:
                assert agent.get_progress() == {
                    "cojob": "asha7", "job": f"t{trial.number}",
                    "stage": 0, "iteration": step, "metric": "loss",
                    "value": VALUES[trial.number] + 1 / step}
            if stop:
                raise optuna.TrialPruned()
        return VALUES[trial.number]

    study.optimize(objective, n_trials=6, callbacks=[pruner.announce],
                   catch=(ValueError,))
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

    def test_tells_one_stage_and_progress(self):
        agent = FakeAgent()
        os.environ["STAGECOACH_RUNDIR"] = agent.rundir
        rest = self.make_rest(rundir=agent.rundir)
        steps, _ = run_study(agent=agent)
        wanted = []
        for number in range(6):
            wanted += [("begin", 0, "2,6,18", f"t{number}"),
                       ("begin", 0, "2,6,18", "")]
        wanted[-1] = ("end", 0)
        self.assertIn(18, steps)
        self.assertIn(2, steps)
        self.assertEqual(rest.get_stages(), wanted)
        stages = [body for method, path, body, status in rest.asked
                  if body and "jobs" in body and status == 200]
        self.assertEqual({(stage["method"], stage["eta"])
                          for stage in stages}, {("asynchronous", 3)})
        self.assertEqual([stage["to_come"] for stage in stages],
                         [5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0])
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
        self.assertEqual(rest.get_stages()[-1], ("end", 0))

    def test_a_stage_is_all_trials_in_it(self):
        """Also those that other processes run."""
        rest = self.make_rest()
        pruner = wrap(optuna.pruners.NopPruner(), 6,
                      bytes_per_iteration=4000000, trials="promising")
        study = optuna.create_study(pruner=pruner, direction="maximize")
        trials = [study.ask() for _ in range(3)]
        study.enqueue_trial({})         # It has not begun.
        for trial in trials[1:]:
            trial.report(1, 2)
            trial.should_prune()
        study.tell(trials[1], 1)
        pruner.announce(study, study.trials[1])
        self.assertEqual(rest.get_stages(), [
            ("begin", 0, "6", "t0,t1,t2"), ("begin", 0, "6", "t0,t2")])
        self.assertEqual(rest.asked[0][2]["bytes_per_iteration"], 4000000)
        self.assertEqual(rest.asked[0][2]["trials"], "promising")

    def test_rungs_may_be_known_late(self):
        rest = self.make_rest()
        pruner = wrap(optuna.pruners.SuccessiveHalvingPruner("auto", 4), 50)
        study = optuna.create_study(pruner=pruner)
        for _ in range(2):
            trial = study.ask()
            pruner.announce(study)
            for step in range(200, 401, 100):
                trial.report(1, step)
                trial.should_prune()
            study.tell(trial, 1)
        self.assertEqual([stage[2] for stage in rest.get_stages()],
                         ["50", "50", "4,16,50"])

    def test_a_bracket_is_a_stage(self):
        """And samplers see Hyperband: the study is what it is alone."""
        rest, found = self.make_rest(), []

        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            for step in range(1, 10):
                trial.report((x - 0.3) ** 2 + 1 / step, step)
                if trial.should_prune():
                    raise optuna.TrialPruned()
            return x

        for wraps in False, True:
            pruner = optuna.pruners.HyperbandPruner(1, 9, 3)
            pruner = wrap(pruner, 9, n_trials=60) if wraps else pruner
            study = optuna.create_study(
                study_name="s", pruner=pruner,
                sampler=optuna.samplers.TPESampler(seed=1))
            study.optimize(objective, n_trials=60,
                           callbacks=[pruner.announce] if wraps else [])
            found.append([(t.params, t.last_step) for t in study.trials])
        self.assertEqual(*found)
        self.assertLess({("begin", 0, "1,3,9"), ("begin", 1, "3,9"),
                         ("begin", 2, "9"), ("end", 2)},
                        {stage[:3] for stage in rest.get_stages()})
        self.assertEqual(pruner.stages, {})

    def test_trials_run_in_threads(self):
        rest = self.make_rest()
        pruner = load().Stagecoach(
            optuna.pruners.SuccessiveHalvingPruner(2, 2), "asha7", 8,
            n_trials=24)
        study = optuna.create_study(pruner=pruner)

        def objective(trial):
            for step in range(1, 9):
                trial.report(trial.number % 7, step)
                if trial.should_prune():
                    raise optuna.TrialPruned()
            return 1

        study.optimize(objective, 24, n_jobs=4, callbacks=[pruner.announce])
        pruner.worker.shutdown()
        self.assertEqual(pruner.pending, {})
        self.assertEqual(rest.get_stages()[-1], ("end", 0))

    def test_only_the_last_state_waits(self):
        """A controller that does not answer holds up no study."""
        rest, submitted = self.make_rest(), []
        pruner = wrap(optuna.pruners.NopPruner())
        pruner.worker.submit = lambda *call: submitted.append(call)
        study = optuna.create_study(pruner=pruner)
        for _ in range(5):
            study.ask()
            pruner.announce(study)
        for call, *args in submitted:
            call(*args)
        self.assertEqual(rest.get_stages(),
                         [("begin", 0, "18", "t0,t1,t2,t3,t4")])

    def test_values_that_are_none_lose_no_iteration(self):
        agent = FakeAgent()
        os.environ["STAGECOACH_RUNDIR"] = agent.rundir
        pruner = wrap(optuna.pruners.NopPruner(), 4)
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
