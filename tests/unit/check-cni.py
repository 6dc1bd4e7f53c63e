#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-cni.py STAGECOACH-CNI: the plug-in speaks the protocol of container
runtimes, claims the pod's network namespace for its job, and never keeps a pod
from starting because of the agent.
"""

import json
import random
import struct
import subprocess
import sys
import time
import unittest

from case_lines import case
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
        for command in "CHECK", "DEL":
            self.assertEqual(call(command, configure(
                None, **annotate(stage="asha7/2"))), (0, None, ""))

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
                                ("", "1.1.0")):
            status, result, _ = call("VERSION", config, args=None, netns=None)
            self.assertEqual(status, 0)
            self.assertEqual(result["cniVersion"], version)
            self.assertEqual(set(result["supportedVersions"]),
                             {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"})

    def test_passes_on_results_of_any_version(self):
        """Of 1.1.0, and of versions and with results of a seed."""
        chance = random.Random(7)
        for version in ["1.1.0", "9.9.9", ""] + [
                ".".join(str(chance.randrange(12)) for _ in range(3))
                + chance.choice(["", "-rc1", " "]) for _ in range(6)]:
            result = {"cniVersion": version, "interfaces": [
                {"name": "eth0", "sandbox": NETNS,
                 "mtu": chance.randrange(9000)}],
                f"x{chance.random()}": [chance.getrandbits(62), None]}
            config = configure(self.agent, prevResult=result,
                               **annotate(stage="asha7/2"))
            if version:
                config["cniVersion"] = version
            else:
                del config["cniVersion"]
            with case("kubernetes", f"cniVersion {version}"):
                for command, wanted in ("ADD", result), ("CHECK", None), \
                        ("DEL", None):
                    self.assertEqual(call(command, config), (0, wanted, ""))
                self.assertEqual(
                    [words[0] for words in self.agent.get_calls(3)],
                    ["agent/claim", "agent/claim", "agent/unclaim"])

    def test_is_ready_and_has_nothing_to_collect(self):
        """Whatever the agent does, and whatever the configuration is."""
        mute = FakeAgent(mute=True)
        for command in "STATUS", "GC":
            for config in (configure(self.agent), configure(None), "", "{",
                           configure(mute, **annotate(stage="asha7/2")),
                           configure(self.agent, cniVersion="9.9.9"),
                           configure(None, claim="some")):
                with case("kubernetes", (command, config)):
                    self.assertEqual(call(command, config, None, None),
                                     (0, None, ""))
        self.assertEqual(self.agent.get_calls() + mute.get_calls(), [])

    def test_refuses_what_is_not_allowed(self):
        good = configure(self.agent)
        alone = {k: v for k, v in good.items() if k != "prevResult"}
        for command, config, code, said in (
                ("ADD", alone, 7, "prevResult"),
                ("ADD", {**good, "prevResult": 7}, 7, "prevResult"),
                ("ADD", {**good, "cniVersion": 1}, 7, "cniVersion"),
                ("ADD", {**good, "claim": "some"}, 7, "claim"),
                ("ADD", {**good, "rundir": ""}, 7, "rundir"),
                ("ADD", "{", 6, "standard input:1:"),
                ("ADD", "[]", 6, "standard input"),
                ("ADD", "", 6, "standard input"),
                ("GCC", good, 4, "CNI_COMMAND"),
                ("", good, 4, "CNI_COMMAND")):
            status, result, _ = call(command, config)
            self.assertEqual(status, 1)
            self.assertEqual(result["code"], code)
            self.assertIn(said, result["msg"])
            self.assertIn("expected", result["msg"])
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
