#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-rest-tls.py STAGECOACH CONTROLLER POLICY CLIENT: HTTP over TLS of a
detached controller whose files of TLS were named relative to another
directory, before and after its certificate was replaced, what certificates
allow, what tokens allow that an API server reviews, and how CLIENT, of the
adapters of frameworks, uses both."""

import contextlib
import functools
import hashlib
import http.client
import http.server
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from random import Random
from unittest import mock

from case_lines import case

STAGECOACH, CONTROLLER, POLICY, CLIENT = map(os.path.abspath, sys.argv[1:])
TIMEOUT_S = 20
ROLES = ("read", "user", "operator")


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


class ApiServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Reviews tokens as Kubernetes does: "tok-slow" once 'go' is set, "tok-lost"
    too late."""
    daemon_threads = True
    USERS = {"tok-good": "system:serviceaccount:ml:trainer",
             "tok-other": "system:serviceaccount:ops:x", "tok-person": "eva",
             "tok-slow": "system:serviceaccount:ml:slow"}

    def __init__(self, path):
        super().__init__(str(path), Review)
        self.reviewed = []
        self.go = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Review(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(
            int(self.headers["Content-Length"])))
        token = review["spec"]["token"]
        self.server.reviewed.append(token)
        assert self.path == "/apis/authentication.k8s.io/v1/tokenreviews"
        assert review["kind"] == "TokenReview"
        assert review["spec"]["audiences"] == ["stagecoach"]
        if token == "tok-slow":
            self.server.go.wait(TIMEOUT_S)
        elif token == "tok-lost":
            time.sleep(TIMEOUT_S)
        user = self.server.USERS.get(token)
        status = {"authenticated": False}
        if user:
            status = {"authenticated": True, "user": {"username": user},
                      "audiences": ["other" if token == "tok-other"
                                    else "stagecoach"]}
        body = json.dumps({"kind": "TokenReview", "status": status}).encode()
        with contextlib.suppress(OSError):
            self.send_response(201)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def address_string(self):
        return "controller"

    def log_message(self, *_):
        pass


class Controller:
    """A detached controller, started in the folder of its certificates."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.pki("init")
        self.pki("issue", "controller", "c1")
        self.pki("issue", "agent", "alice")
        for role in ROLES:
            self.pki("issue", "client", role, "--role", role)
        subprocess.run(
            [CONTROLLER, f"--policy={POLICY}", "--detach",
             f"--pidfile={folder}/pid", f"--log-file={folder}/log",
             "-vconsole:off", "-vsyslog:off", f"--unixctl={folder}/ctl",
             f"--telemetry=unix:{folder}/telemetry",
             f"--intent=unix:{folder}/intent", f"--hosts=unix:{folder}/hosts",
             f"--rest=pssl:{self.port}:127.0.0.1",
             "--rest-ca-cert=clients-ca.pem",
             f"--api-server=unix:{folder}/api",
             "--private-key=identity.pem", "--certificate=identity.pem",
             "--ca-cert=ca.pem"],
            cwd=self.identity().parent, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_S, check=True)
        self.pid = int((folder / "pid").read_text(encoding="utf-8"))

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        await_that("the controller ends", lambda: not is_running(self.pid))

    def identity(self, name="controllers/c1"):
        """The file of a key and its certificate."""
        return self.folder / "pki" / name / "identity.pem"

    def pki(self, *words):
        subprocess.run([STAGECOACH, "pki", *words, "--dir",
                        self.folder / "pki"], stdout=subprocess.DEVNULL,
                       timeout=TIMEOUT_S, check=True)

    def log(self):
        return (self.folder / "log").read_text(encoding="utf-8")

    def connect(self, name="clients/read"):
        """A connection with this certificate, None for none."""
        context = ssl.create_default_context(
            cafile=self.folder / "pki/agents/alice/ca.pem")
        context.check_hostname = False
        if name:
            context.load_cert_chain(self.identity(name))
        client = http.client.HTTPConnection("localhost", timeout=TIMEOUT_S)
        client.sock = context.wrap_socket(socket.create_connection(
            ("127.0.0.1", self.port), TIMEOUT_S))
        return client

    def ask(self):
        """The status of a request, and the certificate of the controller."""
        with contextlib.closing(self.connect()) as client:
            shown = client.sock.getpeercert(True)
            return status_of(client), hashlib.sha1(shown).digest()

    def status(self, name, *request, **headers):
        """The status of a request by the client with this certificate."""
        with contextlib.closing(self.connect(name)) as client:
            return status_of(client, *request, headers=headers)


def status_of(client, method="GET", path="/v1", body=None, headers=None):
    client.request(method, path, body, headers or {})
    response = client.getresponse()
    response.read()
    return response.status


def issued(identity):
    """The certificate in a file."""
    text = identity.read_text(encoding="utf-8")
    pem = text[text.index("-----BEGIN CERTIFICATE"):]
    pem = pem[:pem.index("-----END CERTIFICATE-----") + 25]
    return hashlib.sha1(ssl.PEM_cert_to_DER_cert(pem)).digest()


def check_roles(controller):
    """There is no job and no database: a change that is allowed gets 404 or
    503."""
    for stranger in ("agents/alice", "controllers/c1", None):
        assert controller.status(stranger) == 403, stranger
    change = ("POST", "/v1/cojobs/a/jobs/b/progress", '{"iteration": 1}')
    wide = ("PUT", "/v1/cojobs/a", '{"weight": 3, "uid": 1000}')
    for role, *statuses in (("read", 200, 403, 403), ("user", 200, 404, 403),
                            ("operator", 200, 404, 503)):
        for request, status in zip(((), change, wide), statuses):
            got = controller.status(f"clients/{role}", *request)
            assert got == status, (role, request, got)
    for name, status in (("c1:8443", 200), ("127.0.0.1", 200), ("c2", 403),
                         ("rebound.example", 403)):
        assert controller.status("clients/read", Host=name) == status, name


def check_tokens(controller, api):
    """A token has the role user, and nobody waits for its review but the
    request that has it."""
    def status(token, *request):
        return controller.status(None, *request,
                                 Authorization=f"Bearer tok-{token}")

    change = ("POST", "/v1/cojobs/a/jobs/b/progress", '{"iteration": 1}')
    for token, statuses in (("good", (200, 404, 403)), ("person", (403,) * 3),
                            ("other", (403,) * 3), ("unknown", (403,) * 3)):
        for request, expected in zip((
                (), change, ("PUT", "/v1/cojobs/a", '{"uid": 1000}')),
                                     statuses):
            got = status(token, *request)
            assert got == expected, (token, request, got)
    assert sorted(api.reviewed) == [
        "tok-good", "tok-other", "tok-person", "tok-unknown"]

    with contextlib.closing(controller.connect(None)) as client:
        assert status_of(client, headers={
            "Authorization": "Bearer tok-good"}) == 200
        assert status_of(client) == 403, "each request has its own"
    with contextlib.closing(controller.connect(None)) as client:
        client.request("GET", "/v1", None, {"Authorization": "Bearer tok-slow"})
        await_that("the review begins", lambda: "tok-slow" in api.reviewed)
        begun = time.monotonic()
        assert controller.status("clients/read") == 200
        assert time.monotonic() < begun + 2, "the controller waits"
        api.go.set()
        assert client.getresponse().status == 200

    begun = time.monotonic()
    assert status("lost") == 503
    assert 4 < time.monotonic() - begun < 9
    api.shutdown()
    api.server_close()
    assert status("good") == 200, "it is known"
    assert status("late") == 503
    assert "tok-" not in controller.log()
    assert "a token was not reviewed" in controller.log()


def load_client():
    spec = importlib.util.spec_from_file_location("stagecoach_client", CLIENT)
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    return client


def check_client(controller):
    """The client of adapters has the certificate or the token of its user,
    talks only to the controller of the name, and only by TLS."""
    client, connect = load_client(), socket.create_connection
    pki, token = controller.folder / "pki", controller.folder / "token"
    user, stranger = pki / "clients/user", controller.folder / "stranger"
    token.write_text("tok-good\n", encoding="ascii")
    stranger.mkdir()
    shutil.copy(user / "ca.pem", stranger)
    here = f"https://c1:{controller.port}"

    def ask(rest, tls, token=""):
        """The status of a request, or the text of its error.  The name of any
        machine means this one."""
        with mock.patch.dict(os.environ, {
                "STAGECOACH_REST": rest, "STAGECOACH_TLS": str(tls),
                "STAGECOACH_TOKEN": str(token)}), mock.patch(
                    "socket.create_connection", lambda address, *more: connect(
                        ("127.0.0.1", address[1]), *more)):
            try:
                return client.ask("GET", "/v1")
            except (OSError, ValueError) as error:
                return str(error)

    for url, *files in ((here, user), (f"{here}/", user),
                        (here, stranger, token)):
        assert ask(url, *files) == 200, (url, files)
    for url, tls, why in (
            (here, stranger, "GET /v1: "),
            (here, pki / "agents/alice", "GET /v1: "),
            (here.replace("c1", "c2"), user, "CERTIFICATE_VERIFY_FAILED"),
            (here, "", "CERTIFICATE_VERIFY_FAILED")):
        assert why in (got := ask(url, tls)), (url, tls, got)
    for url in ("http://c1:8443", "c1:8443", "https://c1", "https://:8443",
                "https://c1:x", "https://c1:8443/v1", "https://a@c1:8443"):
        assert ask(url, user, token) == (
            f'STAGECOACH_REST: "{url}"; expected https://c1:8443'), url


def status_of_raw(controller, target, *fields, method="PUT", body="{}"):
    """The status of a request that is sent as it stands."""
    head = "\r\n".join([f"{method} {target} HTTP/1.1", "Host: localhost",
                        *fields])
    with contextlib.closing(controller.connect("clients/operator")) as client:
        client.sock.sendall(f"{head}\r\n\r\n{body}".encode())
        return int(client.sock.recv(4096).split()[1])


def check_requests_of_two_meanings(controller):
    """A null character in a path, and a body with two ends."""
    random = Random(9)
    length, chunks = "Content-Length: 16", "Transfer-Encoding: chunked"
    ask = functools.partial(status_of_raw, controller)
    for _ in range(6):
        name = "".join(random.choices("abc.-_%2e", k=random.randrange(1, 9)))
        at = random.randrange(len(name) + 1)
        cut = f"{name[:at]}%00{name[at:]}"
        for target in (f"/v1/cojobs/{cut}", f"/v1/cojobs/a?{cut}={name}",
                       f"/v1/cojobs/a?b={cut}", f"/{cut}/cojobs/a"):
            method = random.choice(("PUT", "DELETE", "GET", "POST"))
            with case("http", f"{method} {target}"):
                got = ask(target, length, method=method)
                assert got == 400, got
        other = f"Content-Length: {random.randrange(3, 10)}"
        fields = random.choice([[length, other], [other, length],
                                [length, chunks], [chunks, other],
                                [chunks, "Transfer-Encoding: identity"],
                                [random.choice(["Transfer-Encoding: xchunked",
                                                "Transfer-Encoding: gzip"])]])
        fields.insert(random.randrange(len(fields) + 1), "X-Other: 1")
        fields = [random.choice([str, str.lower])(field) for field in fields]
        with case("http", fields):
            got = ask("/v1/cojobs/a", *fields)
            assert got == 400, got
    step = '{"iteration": 1}'
    for fields, body in (((length,), step), ((length, length), step),
                         ((chunks,), f"10\r\n{step}\r\n0\r\n\r\n")):
        with case("http", (fields, body)):
            got = ask("/v1/cojobs/a/jobs/b/progress", *fields, method="POST",
                      body=body)
            assert got == 404, got


def main():
    with tempfile.TemporaryDirectory() as folder:
        api = ApiServer(pathlib.Path(folder) / "api")
        controller = Controller(pathlib.Path(folder))
        try:
            await_that("the controller leaves the folder of the files",
                       lambda: os.readlink(f"/proc/{controller.pid}/cwd")
                       == "/")
            first = issued(controller.identity())
            assert controller.ask() == (200, first)

            check_roles(controller)
            check_tokens(controller, api)
            check_client(controller)
            check_requests_of_two_meanings(controller)
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
