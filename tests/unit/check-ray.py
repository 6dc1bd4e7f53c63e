#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-ray.py FILE: the callback for Ray Tune reports trials that run,
pause and stop, and does no harm without an agent.

Ray is not there: the classes that the file meets, Callback, Trial and what
runs trials, are stubs that call in Ray's order.
"""

import importlib.util
import os
import pathlib
import socket
import sys
import types
import unittest

from case_lines import case
from fake_agent import FakeAgent
from fake_rest import AtOnce, FakeRest

FILE = sys.argv.pop()


class Callback:
    """ray.tune.Callback: all hooks are there and do nothing."""

    def on_step_end(self, iteration, trials, **info):
        pass

    def on_trial_result(self, iteration, trials, trial, result, **info):
        pass

    def on_trial_complete(self, iteration, trials, trial, **info):
        pass

    def on_experiment_end(self, trials, **info):
        pass


class Trial:
    def __init__(self, number):
        self.trial_id = f"a1b2c_{number:05}"
        self.status = "PENDING"
        self.step = 0


class Runner:
    """What Tune does with trials, one step of one trial at a time."""

    def __init__(self, callback, n):
        self.callback = callback
        self.trials = [Trial(i) for i in range(n)]
        self.iteration = 0

    def end_step(self):
        self.iteration += 1
        self.callback.on_step_end(iteration=self.iteration,
                                  trials=self.trials)

    def start(self, number):
        self.trials[number].status = "RUNNING"
        self.end_step()

    def report(self, number, decision="RUNNING", hostname=None, **metrics):
        trial = self.trials[number]
        trial.step += 1
        self.callback.on_trial_result(
            iteration=self.iteration, trials=self.trials, trial=trial,
            result={"training_iteration": trial.step, "pid": 4000 + number,
                    "hostname": hostname or socket.gethostname(),
                    "done": decision == "TERMINATED", **metrics})
        trial.status = decision
        if decision == "TERMINATED":
            self.callback.on_trial_complete(
                iteration=self.iteration, trials=self.trials, trial=trial)
        self.end_step()


def load():
    sys.modules.pop("stagecoach_client", None)  # It logs again.
    ray, tune = types.ModuleType("ray"), types.ModuleType("ray.tune")
    ray.tune, tune.Callback = tune, Callback
    sys.modules.update({"ray": ray, "ray.tune": tune})
    spec = importlib.util.spec_from_file_location("ray_stagecoach", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ray(unittest.TestCase):
    def setUp(self):
        self.addCleanup(os.environ.pop, "STAGECOACH_RUNDIR", None)
        self.agent = FakeAgent()
        os.environ["STAGECOACH_RUNDIR"] = self.agent.rundir
        self.rest = FakeRest(self.agent.rundir)
        self.addCleanup(self.rest.server_close)
        self.addCleanup(self.rest.shutdown)
        self.begin(synchronous=False)

    def begin(self, synchronous):
        self.callback = load().Stagecoach("asha7", rungs=(2, 4),
                                          metric="loss", factor=2,
                                          synchronous=synchronous,
                                          compute_s=0.5)
        self.callback.worker = AtOnce()
        self.callback.setup(stop=None, num_samples=2, total_num_samples=3)
        self.runner = Runner(self.callback, 2)

    def get_stages(self):
        return self.rest.get_stages()

    def test_a_search_is_one_stage(self):
        runner = self.runner
        runner.end_step()
        runner.start(0)
        runner.start(1)
        for number in 0, 1:
            for _ in range(2):
                runner.report(number, loss=number)
        runner.report(0, "PAUSED", loss=1)      # PBT copies a checkpoint.
        runner.start(0)
        runner.report(0, "TERMINATED", loss=1)
        runner.report(1, "TERMINATED", loss=3)
        self.callback.on_experiment_end(runner.trials)
        both = "a1b2c_00000,a1b2c_00001"
        self.assertEqual(self.get_stages(), [
            ("begin", 0, "2,4", "a1b2c_00000"), ("begin", 0, "2,4", both),
            ("begin", 0, "2,4", "a1b2c_00001"), ("begin", 0, "2,4", both),
            ("begin", 0, "2,4", "a1b2c_00001"), ("begin", 0, "2,4", ""),
            ("end", 0)])
        stages = [body for _, path, body, status in self.rest.asked
                  if body and "jobs" in body and status == 200]
        self.assertEqual([stage["to_come"] for stage in stages],
                         [2, 1, 1, 1, 1, 1])
        self.assertEqual({(stage["method"], stage["eta"], stage["compute_s"])
                          for stage in stages}, {("asynchronous", 2, 0.5)})

    def test_tells_stages(self):
        self.begin(synchronous=True)
        runner = self.runner
        runner.start(0)
        runner.start(1)
        runner.report(0, loss=2)
        runner.report(0, loss=1)                # Goes on to rung 1.
        runner.report(1, loss=4)
        runner.report(1, "TERMINATED", loss=3)  # The rung's end is its end.
        runner.report(0, loss=1)
        runner.report(0, "TERMINATED", loss=1)
        self.assertEqual(self.get_stages(), [
            ("begin", 0, "2", "a1b2c_00000"),
            ("begin", 0, "2:1,4", "a1b2c_00000,a1b2c_00001"),
            ("begin", 0, "2", "a1b2c_00001"),
            ("begin", 1, "4", "a1b2c_00000"), ("end", 0), ("end", 1)])
        self.assertEqual(self.rest.asked[0][2]["compute_s"], 0.5)

    def test_a_trial_that_pauses_is_in_no_stage(self):
        self.begin(synchronous=True)
        self.runner.start(0)
        self.runner.report(0, loss=2)
        self.runner.report(0, "PAUSED", loss=1)
        self.runner.start(0)
        self.runner.report(0, "ERROR", loss=1)
        self.assertEqual([stage[:2] for stage in self.get_stages()],
                         [("begin", 0), ("end", 0), ("begin", 1), ("end", 1)])

    def test_tells_progress_and_processes(self):
        self.runner.start(0)
        for step in range(1, 5):
            self.runner.report(0, loss=1 / step)
            self.assertEqual(self.agent.get_progress(), {
                "cojob": "asha7", "job": "a1b2c_00000", "iteration": step,
                "stage": 0, "metric": "loss",
                "value": 1 / step})
        calls = self.agent.get_calls(1)
        self.assertEqual(calls[0], ["agent/claim", "registration", "asha7",
                                    "a1b2c_00000", "pid", "4000"])

    def test_claims_no_process_of_another_host(self):
        self.runner.start(0)
        self.runner.report(0, hostname="elsewhere", loss=1)
        self.assertIsNotNone(self.agent.get_progress())
        load().claim("asha7", "t1", 4711)       # What a trainable does there.
        calls = self.agent.get_calls(1)
        self.assertEqual(calls, [["agent/claim", "registration", "asha7",
                                  "t1", "pid", "4711"]])

    def test_a_driver_of_workers_is_not_claimed(self):
        self.callback.workers = True
        self.runner.start(0)
        self.runner.report(0, loss=1)
        self.assertIsNotNone(self.agent.get_progress())
        load().claim("asha7", "t1", 4711)       # A worker of it.
        self.assertEqual(self.agent.get_calls(1)[0][-1], "4711")

    def test_odd_results_lose_no_iteration(self):
        """Whatever a trainable returns, nothing is raised into Tune."""
        good = {"training_iteration": 3, "pid": 4711, "loss": 0.5,
                "hostname": socket.gethostname(), "a": {"b/c": {"d": 7}}}
        trial = self.runner.trials[0]
        for metric, change, told in (
                ("loss", {}, 0.5), ("loss", {"pid": None}, 0.5),
                ("loss", {"hostname": None}, 0.5), ("loss", {"loss": "1"}, 1),
                ("loss", {"loss": None}, None), ("loss", {"loss": [1]}, None),
                ("loss", {"loss": float("nan")}, None),
                ("loss", {"loss": float("-inf")}, None),
                ("none", {}, None), ("a/b/c", {}, None),
                ("a/b", {"a": 3}, None), ("a/b", {"a": {"b": 0.25}}, 0.25),
                ("a/b", {"a": {"b": 1}, "a/b": 2}, 2)):
            self.callback.metric = metric
            with case("progress", ("a result of Ray", metric, change)):
                self.callback.on_trial_result(1, [trial], trial,
                                              {**good, **change})
                progress = self.agent.get_progress()
                self.assertEqual(progress["iteration"], 3)
                self.assertEqual(progress.get("value"), told)
        for result in {}, *({**good, "training_iteration": step}
                            for step in (None, "x", [], float("nan"))):
            with case("progress", ("a result of Ray", result)):
                self.callback.on_trial_result(1, [trial], trial, result)
                self.assertIsNone(self.agent.get_progress(timeout=0.01))

    def test_does_no_harm_where_nobody_listens(self):
        os.environ["STAGECOACH_RUNDIR"] = "/nonexistent"
        with self.assertLogs("stagecoach") as logs:
            self.runner.start(0)
            self.runner.report(0)               # Not even a metric.
            self.runner.report(0, "TERMINATED", loss=1)
            self.callback.on_experiment_end(self.runner.trials)
            self.assertEqual(self.get_stages(), [])
        self.assertEqual(len(logs.output), 1)

    def test_is_short(self):
        lines = pathlib.Path(FILE).read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(len(lines), 80)


unittest.main()
