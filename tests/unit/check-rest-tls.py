#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-rest-tls.py STAGECOACH CONTROLLER POLICY: HTTP over TLS of a detached
controller whose files of TLS were named relative to another directory, before
and after its certificate was replaced."""

import contextlib
import hashlib
import http.client
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

STAGECOACH, CONTROLLER, POLICY = (os.path.abspath(a) for a in sys.argv[1:])
TIMEOUT_S = 20


def await_that(what, is_true):
    end = time.monotonic() + TIMEOUT_S
    while not is_true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def is_running(pid):
    """False if process 'pid' has ended, be it reaped or not."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


class Controller:
    """A detached controller, started in the folder of its certificates."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.pki("init")
        self.pki("issue", "controller", "c1", "alice")
        subprocess.run(
            [CONTROLLER, f"--policy={POLICY}", "--detach",
             f"--pidfile={folder}/pid", f"--log-file={folder}/log",
             "-vconsole:off", "-vsyslog:off", f"--unixctl={folder}/ctl",
             f"--telemetry=unix:{folder}/telemetry",
             f"--intent=unix:{folder}/intent", f"--hosts=unix:{folder}/hosts",
             f"--rest=pssl:{self.port}:127.0.0.1", "--rest-client=alice",
             "--private-key=identity.pem", "--certificate=identity.pem",
             "--ca-cert=ca.pem"],
            cwd=self.identity().parent, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_S, check=True)
        self.pid = int((folder / "pid").read_text(encoding="utf-8"))

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        await_that("the controller ends", lambda: not is_running(self.pid))

    def identity(self, name="c1"):
        """The file of a key and its certificate."""
        return self.folder / "pki/controllers" / name / "identity.pem"

    def pki(self, *words):
        subprocess.run([STAGECOACH, "pki", *words, "--dir",
                        self.folder / "pki"], stdout=subprocess.DEVNULL,
                       timeout=TIMEOUT_S, check=True)

    def log(self):
        return (self.folder / "log").read_text(encoding="utf-8")

    def connect(self):
        """A connection of alice."""
        alice = self.identity("alice")
        context = ssl.create_default_context(cafile=alice.parent / "ca.pem")
        context.check_hostname = False
        context.load_cert_chain(alice)
        client = http.client.HTTPConnection("localhost", timeout=TIMEOUT_S)
        client.sock = context.wrap_socket(socket.create_connection(
            ("127.0.0.1", self.port), TIMEOUT_S))
        return client

    def ask(self):
        """The status of a request, and the certificate of the controller."""
        with contextlib.closing(self.connect()) as client:
            shown = client.sock.getpeercert(True)
            return status_of(client), hashlib.sha1(shown).digest()


def status_of(client):
    client.request("GET", "/v1")
    response = client.getresponse()
    response.read()
    return response.status


def issued(identity):
    """The certificate in a file."""
    text = identity.read_text(encoding="utf-8")
    pem = text[text.index("-----BEGIN CERTIFICATE"):]
    pem = pem[:pem.index("-----END CERTIFICATE-----") + 25]
    return hashlib.sha1(ssl.PEM_cert_to_DER_cert(pem)).digest()


def main():
    with tempfile.TemporaryDirectory() as folder:
        controller = Controller(pathlib.Path(folder))
        try:
            await_that("the controller leaves the folder of the files",
                       lambda: os.readlink(f"/proc/{controller.pid}/cwd")
                       == "/")
            first = issued(controller.identity())
            assert controller.ask() == (200, first)

            kept = controller.connect()
            assert status_of(kept) == 200
            controller.pki("rotate", "c1")
            second = issued(controller.identity())
            assert second != first
            await_that("a replaced certificate is used and a connection stays",
                       lambda: status_of(kept) == 200
                       and controller.ask() == (200, second))
            assert status_of(kept) == 200
            kept.close()

            controller.identity().write_text("no key\n", encoding="utf-8")
            await_that("a file that is no certificate is reported",
                       lambda: "keeps the previous" in controller.log())
            assert controller.ask() == (200, second)

            controller.pki("issue", "controller", "c1")
            third = issued(controller.identity())
            await_that("a certificate after a wrong file is used",
                       lambda: controller.ask() == (200, third))
        finally:
            controller.stop()


if __name__ == "__main__":
    main()
