#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-cni.py STAGECOACH-CNI: the plug-in speaks the protocol of container
runtimes, claims the pod's network namespace for its job, and never keeps a pod
from starting because of the agent.
"""

import json
import struct
import subprocess
import sys
import time
import unittest

from fake_agent import FakeAgent

CNI = sys.argv.pop()
RESULT = {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0"}],
          "ips": [{"address": "10.1.0.5/16", "interface": 0}],
          "dns": {}, "x-unknown": [1, 2.5, None, "\u00e4"]}
ARGS = "IgnoreUnknown=1;K8S_POD_NAMESPACE=ml;K8S_POD_NAME=bert-worker-0;" \
    "K8S_POD_UID=c3a1f0d2-0f1e-4b7c-9d58-1234567890ab"
NETNS = "/run/netns/cni-1234"
PT_INTERP = 3


def call(command, config, args=ARGS, netns=NETNS):
    """Runs the plug-in as a runtime does.  Returns its status, what it printed
    as JSON (None if nothing), and its standard error."""
    text = config if isinstance(config, str) else json.dumps(config)
    done = subprocess.run(
        [CNI], input=text, capture_output=True, text=True, timeout=20,
        check=False,
        env={"CNI_COMMAND": command, "CNI_CONTAINERID": "abc",
             "CNI_IFNAME": "eth0", "CNI_PATH": "/opt/cni/bin",
             **({"CNI_ARGS": args} if args else {}),
             **({"CNI_NETNS": netns} if netns else {})})
    return (done.returncode,
            json.loads(done.stdout) if done.stdout else None, done.stderr)


def configure(agent, **members):
    return {"cniVersion": "1.0.0", "name": "net", "type": "stagecoach-cni",
            "rundir": agent.rundir if agent else "/nonexistent",
            "capabilities": {"io.kubernetes.cri.pod-annotations": True},
            "prevResult": RESULT, **members}


def annotate(**annotations):
    return {"runtimeConfig": {"io.kubernetes.cri.pod-annotations": {
        "stagecoach.dev/" + name: value
        for name, value in annotations.items()}}}


class Cni(unittest.TestCase):
    def setUp(self):
        self.agent = FakeAgent()

    def test_claims_an_annotated_pod(self):
        status, result, _ = call("ADD", configure(
            self.agent, **annotate(stage="asha7/2")))
        self.assertEqual((status, result), (0, RESULT))
        self.assertEqual(self.agent.get_calls(1), [
            ["agent/claim", "launcher", "asha7", "bert-worker-0", "netns",
             NETNS, "namespace=ml", "rung=2"]])

    def test_takes_the_claim_back(self):
        config = configure(self.agent, **annotate(stage="asha7/2", job="t1"))
        del config["prevResult"]
        self.assertEqual(call("DEL", config)[:2], (0, None))
        self.assertEqual(self.agent.get_calls(1), [
            ["agent/unclaim", "launcher", "asha7", "t1", "netns", NETNS]])
        self.assertEqual(call("DEL", config, netns=None), (0, None, ""))
        self.assertEqual(self.agent.get_calls(), [])

    def test_claims_again_when_checked(self):
        config = configure(self.agent, **annotate(stage="asha7"))
        self.assertEqual(call("CHECK", config)[:2], (0, None))
        self.assertEqual(self.agent.get_calls(1), [
            ["agent/claim", "launcher", "asha7", "bert-worker-0", "netns",
             NETNS, "namespace=ml"]])

    def test_claims_all_pods_if_told(self):
        call("ADD", configure(self.agent, claim="all"))
        self.assertEqual(self.agent.get_calls(1), [
            ["agent/claim", "launcher", "ml", "bert-worker-0", "netns",
             NETNS, "namespace=ml"]])

    def test_leaves_other_pods_alone(self):
        for args in ARGS, None, "", ";;=;K8S_POD_NAME", "K8S_POD_NAME=":
            status, result, errors = call(
                "ADD", configure(self.agent), args=args)
            self.assertEqual((status, result, errors), (0, RESULT, ""))
        call("ADD", configure(self.agent, claim="all"), args=None)
        self.assertEqual(self.agent.get_calls(), [])

    def test_passes_over_a_bad_annotation(self):
        status, result, errors = call("ADD", configure(
            self.agent, **annotate(stage="asha 7\n")))
        self.assertEqual((status, result), (0, RESULT))
        self.assertIn("ml/bert-worker-0: stagecoach.dev/stage: \"asha 7?\"",
                      errors)
        self.assertEqual(self.agent.get_calls(), [])

    def test_goes_on_without_an_agent(self):
        status, result, errors = call("ADD", configure(
            None, **annotate(stage="asha7/2")))
        self.assertEqual((status, result), (0, RESULT))
        self.assertIn("going on without", errors)
        self.assertEqual(call("DEL", configure(
            None, **annotate(stage="asha7/2")))[:2], (0, None))

    def test_goes_on_beside_an_agent_that_hangs(self):
        agent = FakeAgent(mute=True)
        began = time.monotonic()
        status, result, errors = call("ADD", configure(
            agent, **annotate(stage="asha7/2")))
        self.assertEqual((status, result), (0, RESULT))
        self.assertIn("going on without", errors)
        self.assertLess(time.monotonic() - began, 10)

    def test_tells_its_versions(self):
        for config, version in (({"cniVersion": "0.4.0"}, "0.4.0"),
                                ("", "1.0.0")):
            status, result, _ = call("VERSION", config, args=None, netns=None)
            self.assertEqual(status, 0)
            self.assertEqual(result["cniVersion"], version)
            self.assertEqual(set(result["supportedVersions"]),
                             {"0.3.0", "0.3.1", "0.4.0", "1.0.0"})

    def test_refuses_what_is_not_allowed(self):
        good = configure(self.agent)
        alone = {k: v for k, v in good.items() if k != "prevResult"}
        for command, config, code, said in (
                ("ADD", alone, 7, "prevResult"),
                ("ADD", {**good, "prevResult": 7}, 7, "prevResult"),
                ("ADD", {**good, "cniVersion": "2.0.0"}, 1, "2.0.0"),
                ("ADD", {**good, "cniVersion": 1}, 7, "cniVersion"),
                ("ADD", {**good, "claim": "some"}, 7, "claim"),
                ("ADD", {**good, "rundir": ""}, 7, "rundir"),
                ("ADD", "{", 6, "standard input:1:"),
                ("ADD", "[]", 6, "standard input"),
                ("ADD", "", 6, "standard input"),
                ("GC", good, 4, "CNI_COMMAND"),
                ("", good, 4, "CNI_COMMAND")):
            status, result, _ = call(command, config)
            self.assertEqual(status, 1)
            self.assertEqual(result["code"], code)
            self.assertIn(said, result["msg"])
            self.assertIn("allowed", result["msg"])
            self.assertIn("cniVersion", result)
        self.assertEqual(self.agent.get_calls(), [])

    def test_needs_no_library(self):
        """A plug-in that does not load keeps all pods of a host from
        starting."""
        with open(CNI, "rb") as program:
            text = program.read()
        start, = struct.unpack_from("<Q", text, 32)
        size, n = struct.unpack_from("<HH", text, 54)
        kinds = [struct.unpack_from("<I", text, start + i * size)[0]
                 for i in range(n)]
        watched = b"__asan_init" in text
        self.assertTrue(watched or PT_INTERP not in kinds)


unittest.main()
