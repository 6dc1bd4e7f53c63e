#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-print-env.py STAGECOACH: "stagecoach run --print-env" prints the class
that the agent knows, else the one of --level, and nothing that it does not
know.
"""

import os
import re
import subprocess
import sys
import unittest

from fake_agent import FakeAgent

STAGECOACH = sys.argv.pop()
JOBS = {"jobs": [{"job": "asha/t0", "dscp": 40, "queue": 2, "rank": 1},
                 {"job": "asha/waits", "dscp": 0, "queue": 7}]}
OTHER = {**JOBS, "dscps": [50, 45, 44, 43, 42, 41, 33, 5]}


def run(agent, *words):
    rundir = agent.rundir if agent else "/nonexistent"
    done = subprocess.run(
        [STAGECOACH, "run", "--print-env", *words], timeout=20,
        capture_output=True, text=True, check=False,
        env={**os.environ, "STAGECOACH_RUNDIR": rundir})
    lines = dict(line.split("=", 1) for line in done.stdout.splitlines())
    return done.returncode, lines, done.stderr


class PrintEnv(unittest.TestCase):
    def test_prints_what_the_agent_knows(self):
        agent = FakeAgent({"agent/jobs": JOBS})
        status, lines, errors = run(agent, "--interface", "ib0", "--level",
                                    "5", "asha", "t0")
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(lines, {"NCCL_IB_TC": "160", "NCCL_IB_SL": "5",
                                 "NCCL_IB_FIFO_TC": "156",
                                 "UCX_IB_TRAFFIC_CLASS": "160",
                                 "UCX_IB_SL": "5",
                                 "NCCL_SOCKET_IFNAME": "=ib0",
                                 "GLOO_SOCKET_IFNAME": "ib0"})
        self.assertEqual(agent.get_calls(), [["agent/jobs"]])

    def test_prints_the_level_of_a_job_without_one(self):
        for agent in None, FakeAgent({"agent/jobs": JOBS}):
            status, lines, _ = run(agent, "--level", "0", "asha", "waits")
            self.assertEqual(status, 0)
            self.assertEqual(lines["NCCL_IB_TC"], "140")
            self.assertEqual(lines["NCCL_IB_SL"], "6")

    def test_takes_the_dscp_of_a_level_from_the_agents_policy(self):
        for level, tos, sl in (0, "180", "6"), (5, "132", "1"):
            status, lines, _ = run(FakeAgent({"agent/jobs": OTHER}),
                                   "--level", str(level), "asha", "waits")
            self.assertEqual((status, lines["NCCL_IB_TC"],
                              lines["NCCL_IB_SL"]), (0, tos, sl))
            self.assertEqual(lines["NCCL_IB_FIFO_TC"], "200")

    def test_prints_no_class_that_nobody_knows(self):
        agent = FakeAgent({"agent/jobs": JOBS})
        for job in "waits", "other":
            status, lines, errors = run(agent, "asha", job)
            self.assertEqual(status, 0)
            self.assertNotIn("NCCL_IB_TC", lines)
            self.assertIn("--level", errors)

    def test_outlives_a_strange_agent(self):
        for answer in [], {"jobs": 7}, {"jobs": [7, {"job": 7}]}, \
                {"jobs": [{"job": "asha/t0", "rank": 0, "dscp": 640}]}:
            status, lines, _ = run(FakeAgent({"agent/jobs": answer}),
                                   "asha", "t0")
            self.assertEqual(status, 0)
            self.assertNotIn("NCCL_IB_TC", lines)

    def test_refuses_what_is_not_allowed(self):
        for words, said in (
                (["--level", "6", "asha", "t0"], "--level"),
                (["--interface", "a;b", "asha", "t0"], "--interface"),
                (["asha", "../t0"], "is not a name"),
                (["asha"], "usage"),
                (["--cojob", "asha", "asha", "t0"], "usage")):
            status, lines, errors = run(None, *words)
            self.assertEqual((status, lines), (2, {}))
            self.assertIn(said, errors)


class Pods(unittest.TestCase):
    def test_maps_of_levels_have_what_is_printed(self):
        with open(os.path.join(os.path.dirname(__file__), "../../docs",
                               "integrations/kubernetes/rdma-levels.yaml"),
                  encoding="utf-8") as f:
            maps = f.read().split("\n---\n")
        for level, text in enumerate(maps):
            _, lines, _ = run(None, "--level", str(level), "asha", "t0")
            self.assertIn(f"name: stagecoach-level-{level}\n", text)
            found = dict(re.findall(r'^  (\w+): "(\d+)"$', text, re.M))
            self.assertEqual(found, {name: value for name, value
                                     in lines.items() if "IFNAME" not in name})
        self.assertEqual(len(maps), 6)


unittest.main()
