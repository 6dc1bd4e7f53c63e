#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-optuna.py FILE: an Optuna study with successive halving reports the
progress of its trials and its rungs to Stagecoach, and has the same results
without an agent.
"""

import importlib.util
import os
import pathlib
import stat
import sys
import tempfile
import unittest

import optuna

from fake_agent import FakeAgent

FILE = sys.argv.pop()
optuna.logging.set_verbosity(optuna.logging.ERROR)
# Values of six trials; each third of a rung goes on, the first always.
VALUES = [5, 6, 3, 7, 1, 4]


def load():
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
        self.folder = pathlib.Path(folder.name)
        self.log = self.folder / "log"
        self.log.touch()
        self.path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", self.path)
        self.addCleanup(os.environ.pop, "STAGECOACH_RUNDIR", None)
        os.environ["STAGECOACH_RUNDIR"] = str(self.folder)

    def make_command(self, status):
        """A program "stagecoach" that logs its arguments."""
        program = self.folder / "stagecoach"
        program.write_text(f'#!/bin/sh\necho "$*" >>{self.log}\n'
                           f'exit {status}\n', encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        os.environ["PATH"] = f"{self.folder}:{self.path}"

    def get_stages(self):
        """The log, as ("begin", rung, rungs, jobs) and ("end", rung)."""
        stages = []
        for line in self.log.read_text(encoding="utf-8").splitlines():
            words = line.split()
            self.assertEqual(words[0], "stage")
            values = dict(zip(words[2::2], words[3::2]))
            self.assertEqual(values["--cojob"], "asha7")
            stages.append((words[1], int(values["--rung"]))
                          + ((values["--rungs"], values["--jobs"])
                             if words[1] == "begin" else ()))
        return stages

    def test_tells_stages_and_progress(self):
        agent = FakeAgent()
        os.environ["STAGECOACH_RUNDIR"] = agent.rundir
        self.make_command(0)
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
        self.assertEqual(self.get_stages(), wanted)
        self.assertIsNone(agent.get_progress(timeout=0.01))

    def test_is_the_same_study_where_nobody_listens(self):
        self.make_command(0)
        wanted, _ = run_study()
        os.environ["PATH"] = "/nonexistent"
        self.assertEqual(run_study()[0], wanted)
        self.log.write_text("", encoding="utf-8")
        self.make_command(3)
        self.assertEqual(run_study()[0], wanted)
        self.assertEqual(len(self.get_stages()), 1)     # And not again.

    def test_outlives_trials_that_fail(self):
        self.make_command(0)
        steps, pruner = run_study(fail=1)
        self.assertEqual(len(steps), 6)
        self.assertEqual(pruner.stages, {})
        self.assertNotIn(("begin", 1, "6", "t1"), self.get_stages())

    def test_a_stage_is_all_trials_in_it(self):
        """Also those that other processes run."""
        self.make_command(0)
        pruner = load().Stagecoach(optuna.pruners.NopPruner(), "asha7",
                                   rungs=(2, 6), factor=2,
                                   bytes_per_iteration=4e6)
        study = optuna.create_study(pruner=pruner)
        trials = [study.ask() for _ in range(3)]
        for trial in trials[1:]:
            trial.report(1, 2)
            trial.should_prune()
        study.tell(trials[1], 1)
        pruner.announce(study, study.trials[1])
        pruner.worker.shutdown()
        self.assertEqual(self.get_stages(), [
            ("begin", 0, "2:1,6", "t0,t2"), ("begin", 1, "6", "t1"),
            ("begin", 0, "2", "t0"), ("begin", 1, "6", "t1,t2"),
            ("begin", 1, "6", "t2")])
        self.assertIn(" --bytes-per-iteration=4e+06\n",
                      self.log.read_text(encoding="utf-8"))

    def test_is_short(self):
        lines = pathlib.Path(FILE).read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(len(lines), 72)


unittest.main()
