#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-pods.py STAGECOACH-PODS: it claims the cgroups of pods that work for
a job, as a kubelet (here: a server of HTTP on TCP or a unix socket, or a
file) lists them, and explains each failure in one line.
"""

import http.server
import json
import os
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest

from fake_agent import FakeAgent

PODS = sys.argv.pop()
UIDS = [f"{i}3a1f0d2-0f1e-4b7c-9d58-1234567890ab" for i in range(5)]


def make_pod(uid, name, labels=None, annotations=None, gpus=0):
    return {"metadata": {"name": name, "namespace": "ml", "uid": uid,
                         "labels": labels or {},
                         "annotations": annotations or {}},
            "spec": {"nodeName": "n1", "containers": [
                {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]},
            "status": {"phase": "Running"}}


LIST = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [
    make_pod(UIDS[0], "bert-worker-0",
             {"training.kubeflow.org/job-name": "bert"},
             {"stagecoach.dev/stage": "asha7/2"}, gpus=8),
    make_pod(UIDS[1], "x1-worker-0", {"katib.kubeflow.org/trial": "x1",
                                      "katib.kubeflow.org/experiment": "x"}),
    make_pod(UIDS[2], "web"),
    make_pod(UIDS[3], "elsewhere", {"ray.io/cluster": "r"}),
]}


class Kubelet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path == "/pods" and self.headers.get(
            "Authorization", "Bearer t0ken") == "Bearer t0ken"
        body = json.dumps(LIST).encode() if found else b"no"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "kubelet"            # A unix socket's peer has none.

    def log_message(self, *_):
        pass


class UnixServer(socketserver.ThreadingUnixStreamServer):
    pass


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Pods(unittest.TestCase):
    def setUp(self):
        self.agent = FakeAgent()
        self.folder = tempfile.TemporaryDirectory(prefix="sct-pods-")
        self.mount = os.path.join(self.folder.name, "cgroup")
        self.paths = [os.path.join(self.mount, path) for path in (
            "kubepods.slice/kubepods-burstable.slice/"
            f"kubepods-burstable-pod{UIDS[0].replace('-', '_')}.slice",
            f"kubepods/besteffort/pod{UIDS[1]}",
            f"kubepods/pod{UIDS[2]}",
            f"kubepods/pod{UIDS[4]}")]
        for path in self.paths:
            os.makedirs(os.path.join(path, "0123456789abcdef" * 4))
        os.mkdir(os.path.join(self.mount, "system.slice"))
        self.list = os.path.join(self.folder.name, "pods.json")
        self.write(LIST)
        self.claims = [
            ["agent/claim", "launcher", "asha7", "bert", "cgroup",
             self.paths[0], "rung=2", "gpus=8"],
            ["agent/claim", "launcher", "x", "x1", "cgroup", self.paths[1]]]

    def tearDown(self):
        self.folder.cleanup()

    def write(self, pods):
        with open(self.list, "w", encoding="utf-8") as stream:
            stream.write(pods if isinstance(pods, str) else json.dumps(pods))

    def run_once(self, *words, rundir=None):
        done = subprocess.run(
            [PODS, "--once", "--cgroup-mount", self.mount, "--rundir",
             rundir or self.agent.rundir, *words],
            capture_output=True, text=True, timeout=30, check=False)
        return done.returncode, done.stderr

    def run_on_file(self, **how):
        return self.run_once("--pods", f"file://{self.list}", **how)

    def test_claims_what_a_file_lists(self):
        self.assertEqual(self.run_on_file(), (0, ""))
        self.assertEqual(sorted(self.agent.get_calls()), self.claims)

    def test_asks_a_kubelet_over_tcp(self):
        server = serve(http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                       Kubelet))
        url = f"http://127.0.0.1:{server.server_port}"
        self.assertEqual(self.run_once("--pods", url + "/pods"), (0, ""))
        self.assertEqual(sorted(self.agent.get_calls()), self.claims)
        status, said = self.run_once("--pods", url + "/podz")
        self.assertEqual(status, 1)
        self.assertIn("404", said)
        server.shutdown()
        server.server_close()

    def test_asks_a_kubelet_over_a_unix_socket(self):
        path = os.path.join(self.folder.name, "kubelet.sock")
        server = serve(UnixServer(path, Kubelet))
        token = os.path.join(self.folder.name, "token")
        words = ["--pods", "http://localhost/pods", "--socket", path,
                 "--token", token]
        status, said = self.run_once(*words)
        self.assertEqual(status, 1)
        self.assertIn("token is allowed", said)
        for text, wanted in ("t0ken\n", 0), ("other", 1):
            with open(token, "w", encoding="utf-8") as stream:
                stream.write(text)
            self.assertEqual(self.run_once(*words)[0], wanted)
        self.assertEqual(sorted(self.agent.get_calls()), self.claims)
        server.shutdown()
        server.server_close()

    def test_repeats_for_an_agent_that_comes_late(self):
        with subprocess.Popen(
                [PODS, "--interval", "1", "--pods", f"file://{self.list}",
                 "--cgroup-mount", self.mount, "--rundir",
                 self.folder.name], stderr=subprocess.PIPE,
                text=True) as process:
            self.assertIn("does not answer", process.stderr.readline())
            os.symlink(os.path.join(self.agent.rundir, "agent.ctl"),
                       os.path.join(self.folder.name, "agent.ctl"))
            calls = []
            while len(calls) < 4:
                calls += self.agent.get_calls()
            process.kill()
            self.assertEqual(process.stderr.read(), "")
        self.assertEqual(sorted(calls[:2]), self.claims)

    def test_says_what_does_not_work(self):
        status, said = self.run_on_file(rundir="/nonexistent")
        self.assertEqual(status, 1)
        self.assertIn("/nonexistent/agent.ctl: the agent", said)
        self.write("{")
        self.assertIn("a list of pods is allowed", self.run_on_file()[1])
        self.write({"items": [make_pod(UIDS[2], "web", None, {
            "stagecoach.dev/stage": "a b"})]})
        status, said = self.run_on_file()
        self.assertEqual(status, 1)
        self.assertIn("ml/web: stagecoach.dev/stage: \"a b\"", said)
        self.assertIn("passed over", said)
        self.mount = "/nonexistent"
        self.write(LIST)
        self.assertIn("/nonexistent: the cgroups", self.run_on_file()[1])
        self.assertEqual(self.agent.get_calls(), [])

    def test_refuses_bad_options(self):
        for words in (["--interval", "0"], ["--interval", "1x"], ["--podz"],
                      ["x"]):
            self.assertEqual(self.run_once(*words)[0], 2)


unittest.main()
