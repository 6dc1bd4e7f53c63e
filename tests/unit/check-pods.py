#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-pods.py STAGECOACH-PODS: it claims the cgroups of pods that work for
a job, as an API server lists and watches them (here: a server of HTTP over
TLS), or a kubelet (a unix socket) or a file lists them, and explains each
failure in one line.  It asks no server without a certificate of its authority.
"""

import http.server
import json
import os
import random
import shutil
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from case_lines import case
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


# Labels of jobs in their order; the last two count for indexed jobs alone.
LABELS = ["katib.kubeflow.org/trial", "jobset.sigs.k8s.io/jobset-name",
          "leaderworkerset.sigs.k8s.io/name", "training.kubeflow.org/job-name",
          "pytorch-job-name", "tf-job-name", "mpi-job-name",
          "volcano.sh/job-name", "ray.io/cluster",
          "scheduling.k8s.io/group-name", "kueue.x-k8s.io/pod-group-name",
          "scheduling.x-k8s.io/pod-group", "batch.kubernetes.io/job-name",
          "job-name"]


class Kubelet(http.server.BaseHTTPRequestHandler):
    pods = LIST

    def is_allowed(self):
        return self.headers.get("Authorization",
                                "Bearer t0ken") == "Bearer t0ken"

    def do_GET(self):
        found = (self.path.partition("?")[0] == "/pods"
                 and self.is_allowed())
        body = json.dumps(self.pods).encode() if found else b"no"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "kubelet"            # A unix socket's peer has none.

    def log_message(self, *_):
        pass


class ApiServer(Kubelet):
    """Has one pod of the list in version 5, and another in version 6; who
    watches version 6 is told that it is too old, and the list is empty."""

    protocol_version = "HTTP/1.1"
    pods = dict(LIST, metadata={"resourceVersion": "5"}, items=LIST["items"][:1])
    asked = []

    def do_GET(self):
        path, _, query = self.path.partition("?")
        ApiServer.asked.append(query)
        if "watch=true" not in query:
            if len(ApiServer.asked) > 1:
                ApiServer.pods = dict(LIST, items=[])
            return super().do_GET()
        pod = json.loads(json.dumps(LIST["items"][1]))
        pod["metadata"]["resourceVersion"] = "6"
        event = {"type": "ADDED", "object": pod}
        if "resourceVersion=6" in query:
            event = {"type": "ERROR", "object": {"code": 410}}
        text = json.dumps(event).encode() + b"\n"
        self.send_response(200 if path == "/pods" else 404)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in text[:20], text[20:]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        return None


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
             self.paths[0], "namespace=ml", "rung=2", "gpus=8"],
            ["agent/claim", "launcher", "x", "x1", "cgroup", self.paths[1],
             "namespace=ml"]]

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

    def test_passes_over_what_a_user_has_made(self):
        if os.geteuid():
            self.skipTest("needs root")
        for path in self.paths[:2]:
            os.chown(os.path.dirname(path), 1000, 1000)
        os.rename(os.path.join(self.mount, "kubepods"),
                  os.path.join(self.mount, "system.slice/kubepods"))
        self.assertEqual(self.run_on_file(), (0, ""))
        self.assertEqual(self.agent.get_calls(), [])

    def serve_tls(self, name):
        """Serves as an API server with a certificate for this host.  Returns
        the server, and the file of the certificate."""
        files = [os.path.join(self.folder.name, name + end)
                 for end in (".key", ".pem")]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj",
             "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", files[0], "-out", files[1]],
            check=True, capture_output=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files[1], files[0])
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return serve(server), files[1]

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_watches_an_api_server(self):
        server, ca = self.serve_tls("api")
        url = f"https://127.0.0.1:{server.server_port}/pods?fieldSelector=a"
        with subprocess.Popen(
                [PODS, "--interval", "1", "--pods", url, "--ca", ca,
                 "--cgroup-mount", self.mount, "--rundir",
                 self.agent.rundir], stderr=subprocess.PIPE,
                text=True) as process:
            calls = []
            deadline = time.monotonic() + 20
            while (self.claims[1] not in calls or len(ApiServer.asked) < 4) \
                    and time.monotonic() < deadline:
                calls += self.agent.get_calls()
                time.sleep(0.01)
            self.assertIn(self.claims[1], calls)
            self.assertEqual(calls[0], self.claims[0])
            process.kill()
            self.assertEqual(process.stderr.read(), "")
        self.assertEqual(
            [query.partition("resourceVersion=")[2]
             for query in ApiServer.asked[:4]], ["", "5", "6", ""])
        self.assertTrue(all(query.startswith("fieldSelector=a")
                            for query in ApiServer.asked))
        server.shutdown()
        server.server_close()

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_believes_no_stranger(self):
        server, _ = self.serve_tls("stranger")
        _, ca = self.serve_tls("authority")
        url = f"https://127.0.0.1:{server.server_port}/pods"
        status, said = self.run_once("--pods", url, "--ca", ca)
        self.assertEqual(status, 1)
        self.assertIn("certificate", said)
        for words in ["--insecure"], ["--pods", url.replace("s:", ":")]:
            self.assertNotEqual(self.run_once("--pods", url, *words)[0], 0)
        self.assertEqual(self.agent.get_calls(), [])
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
        self.assertIn("expected a file with a token", said)
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
            self.assertIn("does not reply", process.stderr.readline())
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
        self.assertIn("expected a list of pods", self.run_on_file()[1])
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

    def test_the_first_label_of_the_table_decides(self):
        """Pods with some of the labels, and others, which a seed chooses,
        and some of them are annotations."""
        chance = random.Random(51)
        for _ in range(20):
            parts = {"app.kubernetes.io/name": "x"}, {}
            indexed = chance.choice([True, False])
            keys = [key for key in LABELS if chance.random() < 0.2]
            for key in keys:
                chance.choice(parts)[key] = f"j{LABELS.index(key)}"
            if indexed:
                chance.choice(parts)[
                    "batch.kubernetes.io/job-completion-index"] = "0"
            jobs = [["ml", f"j{LABELS.index(key)}"] for key in keys
                    if indexed or key not in LABELS[-2:]]
            self.write({"items": [make_pod(UIDS[0], "p", *parts)]})
            with case("kubernetes", parts):
                self.assertEqual(self.run_on_file(), (0, ""))
                self.assertEqual(
                    [call[2:4] for call in self.agent.get_calls()], jobs[:1])

    def test_knows_the_labels_of_a_file(self):
        """They come before those that are known."""
        labels = os.path.join(self.folder.name, "labels")
        for end in "\n", "\r\n":
            with open(labels, "w", encoding="utf-8-sig", newline="") as file:
                file.write(end.join((
                    "# Ours.", "", "search\texample.com/sweep  # Of it.",
                    "job  example.com/run example.com/rank",
                    "  job example.com/team", "")))
            for labels_of_pod, wanted in (
                    ({"run": "r7", "rank": "0"}, ["bert-sweep", "r7"]),
                    ({"run": "r7", "team": "t1"}, ["bert-sweep", "t1"]),
                    ({"run": "r7"}, ["bert-sweep", "known"])):
                pod = make_pod(UIDS[0], "p", {
                    "ray.io/cluster": "known",
                    "example.com/sweep": "bert-sweep",
                    **{"example.com/" + key: value
                       for key, value in labels_of_pod.items()}})
                self.write({"items": [pod]})
                self.assertEqual(self.run_once(
                    "--pods", f"file://{self.list}", "--labels", labels),
                    (0, ""))
                self.assertEqual(self.agent.get_calls()[0][2:4], wanted)

    def test_names_the_line_of_a_bad_label(self):
        labels = os.path.join(self.folder.name, "labels")
        for text in ("jobs a/b", "job", "job a b c", "search a,b", "job \xe4",
                     "a/b", "job " + 400 * "x"):
            with open(labels, "w", encoding="utf-8") as file:
                file.write(f"job a/b\n\n{text}\n")
            status, said = self.run_once(
                "--pods", f"file://{self.list}", "--labels", labels)
            self.assertEqual(status, 2)
            self.assertIn(f"--labels: {labels}:3: \"{text[:4]}", said)
            self.assertIn("; expected \"job LABEL\"", said)
            self.assertEqual(said.count("\n"), 1)
        chance = random.Random(51)
        for _ in range(20):
            with open(labels, "wb") as file:
                file.write(bytes(chance.choices(b"job search/a.-# \r\n\t\0\xff",
                                                k=chance.randrange(60))))
            status, said = self.run_once(
                "--pods", f"file://{self.list}", "--labels", labels)
            self.assertEqual(said.count("\n"), {0: 0, 2: 1}[status])
        self.agent.get_calls()
        for path in "/nonexistent", self.folder.name:
            status, said = self.run_once(
                "--pods", f"file://{self.list}", "--labels", path)
            self.assertEqual(status, 2)
            self.assertIn(f"--labels: {path}: cannot be ", said)
        self.assertEqual(self.agent.get_calls(), [])

    def test_refuses_bad_options(self):
        for words in (["--interval", "0"], ["--interval", "1x"], ["--podz"],
                      ["x"]):
            self.assertEqual(self.run_once(*words)[0], 2)


unittest.main()
