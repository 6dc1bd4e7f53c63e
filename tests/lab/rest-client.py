#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""rest-client.py SOCKET COMMAND [ARG...]: queries a controller over HTTP.

get PATH          prints the status and the body
put PATH BODY     the same
pages             the dashboard is served, with the order
views CONTROL     every view has the same structure as the control socket's
errors            invalid requests get JSON and the right status
hostile           garbage, floods and idle connections harm no other client
slow SECONDS      a slow request is disconnected within SECONDS
"""

import contextlib
import http.client
import json
import re
import select
import socket
import subprocess
import sys
import time

VIEWS = {
    "cojobs": "controller/cojobs",
    "jobs": "controller/jobs",
    "status": "controller/status",
    "order": "controller/order",
    "decisions": "controller/decisions",
    "hosts": "controller/hosts",
    "overrides": "controller/overrides",
    "stages": "controller/stages",
    "switches": "controller/switches",
    "policy": "policy/show",
    "rollout": "controller/rollout",
}
PROBES = ["/healthz", "/readyz"]
PAGES = ["/", "/ui/now.html", "/ui/main.js"]


class Client(http.client.HTTPConnection):
    """HTTP over the unix socket."""

    def __init__(self):
        super().__init__("localhost", timeout=20)

    def connect(self):
        self.sock = connect()


def connect():
    """Returns a connected socket; may wait for room in the queue."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(SOCKET)
    sock.settimeout(20)
    return sock


def ask(path, method="GET", **kwargs):
    """Returns status, headers and body of the answer."""
    with contextlib.closing(Client()) as client:
        # If the server rejects the request head, it may close the connection
        # while the body is sent; the reply can still be read.
        with contextlib.suppress(BrokenPipeError):
            client.request(method, path, **kwargs)
        answer = client.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def expect(what, is_true):
    if not is_true:
        sys.exit(f"rest-client.py: {what}")


def shape(value):
    """Returns the types in 'value', which are the same for all numbers and
    for all members of an array."""
    if isinstance(value, dict):
        return {name: shape(member) for name, member in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


def get(path):
    status, _, body = ask(path)
    print(status, body.rstrip("\n"))


def put(path, body):
    status, _, answer = ask(path, "PUT", body=body)
    print(status, answer.rstrip("\n"))


def views(control):
    for name, command in VIEWS.items():
        status, headers, body = ask("/v1/" + name)
        told = json.loads(subprocess.run(
            ["ovs-appctl", "-t", control, command], check=True,
            capture_output=True, timeout=20).stdout)
        expect(f"/v1/{name}: {status}", status == 200)
        expect(f"/v1/{name}: {headers}",
               headers["Content-Type"] == "application/json")
        expect(f"/v1/{name} {body} is not {told}",
               shape(json.loads(body)) == shape(told))
        status, headers, rest = ask("/v1/" + name, "HEAD")
        expect(f"HEAD /v1/{name}: {status} {rest}",
               status == 200 and not rest
               and int(headers["Content-Length"]) > 0)
    with contextlib.closing(Client()) as client:
        for _ in range(200):
            client.request("GET", "/v1/status")
            client.getresponse().read()


def pages():
    """The dashboard loads only files of this server, and cached files are not
    sent again."""
    for path in PAGES:
        status, headers, body = ask(path)
        expect(f"{path}: {status}", status == 200 and body)
        expect(f"{path}: {headers}",
               headers["Content-Security-Policy"].startswith(
                   "default-src 'self';")
               and headers["X-Content-Type-Options"] == "nosniff")
        kept = {"If-None-Match": headers["ETag"] or ""}
        status, _, body = ask(path, headers=kept)
        expect(f"{path} again: {status}",
               (status, body) == (304, "") if headers["ETag"]
               else status == 200)
    _, _, page = ask("/")
    for path in re.findall(r'(?:src|href)="([^"#]+)"', page):
        expect(f"{path} is not there", ask(path)[0] == 200)
    for row in ('<th scope="row">small/0</th>', "needs h", "no stage is before"):
        expect(f"{row} is not in {page}", row in page)


def fails(status, path, *args, **kwargs):
    got, headers, body = ask(path, *args, **kwargs)
    error = json.loads(body)["error"]
    expect(f"{path}: {got} {error}", got == status)
    return headers, error


def errors():
    _, error = fails(404, "/v1/x")
    expect(error, error.startswith("/v1/x: not found; expected one of /v1/cojobs, ")
           and error.endswith("/healthz, /readyz"))
    _, error = fails(404, "/v1/explain/no/such")
    expect(error, error.startswith("/v1/explain/no/such: no such job; "))
    fails(405, "/v1/explain/no/such", "POST")
    for path in ("/ui", "/ui/", "/ui/index.html", "/v1/", "/v1/explain",
                 "/v1/explain/",
                 "/v1/explain/" + "x/" * 999,
                 "/v1/status/", "//v1/status",
                 "/V1/status", "/v1/" + "x" * 4000, "/v1/%ff%01%22",
                 "/../etc/passwd"):
        fails(404, path)
    fails(400, "/v1/explain/%00")
    for path in ["/v1/" + name for name in VIEWS] + PROBES + PAGES:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "X"):
            headers, error = fails(405, path, method)
            expect(f"{method} {path}: {headers} {error}",
                   headers["Allow"] == "GET, HEAD"
                   and error.startswith(f"{path}: "))
    for method in ("PUT", "POST", "DELETE", "OPTIONS"):
        _, error = fails(403, "/v1/cojobs/page", method, body="{}",
                         headers={"Origin": "http://localhost:8080"})
        expect(error, "has an Origin" in error)
    expect("a page may not read", ask("/v1/status", headers={
        "Origin": "http://localhost:8080"})[0] == 200)
    for headers in ({"Host": "rebound.example:8080"},
                    {"Sec-Fetch-Site": "cross-site"}):
        fails(403, "/v1/status", headers=headers)
    fails(405, "/v1/status", "POST", body="x" * 60000)
    fails(405, "/v1/status", "PUT", body=iter([b"x" * 100] * 100),
          encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    fails(413, "/v1/status", body="{}")
    for method in ("GET", "POST", "X"):
        fails(413, "/v1/status", method, headers={"Content-Length": "70000",
                                                  "Expect": "100-continue"})
    fails(400, "/v1/status?format=table")


def tell(text):
    """Returns the first line of what is answered to 'text', if anything."""
    with contextlib.closing(connect()) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(text)
            sock.shutdown(socket.SHUT_WR)
        sock.settimeout(0.3)
        with contextlib.suppress(ConnectionError, TimeoutError):
            return sock.recv(4096).split(b"\r\n")[0].decode()
        return ""


def hostile():
    head = b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n"
    for text in (b"", b"\0" * 5000, b"\xff\xfe" * 9000, b"GET\r\n\r\n",
                 b"GET  HTTP/1.1\r\n\r\n", head + b"x" * 100000,
                 b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET /v1/status HTTP/1.1\r\n\r\n",
                 head + b"Content-Length: -1\r\n\r\n",
                 head + b"Content-Length: 9" + b"9" * 40 + b"\r\n\r\n",
                 head + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1000000,
                 head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                 head + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff"
                 b"\r\n" + b"x" * 100000,
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
        line = tell(text)
        expect(f"{text[:60]}: {line}",
               not line or line.split()[1][0] in "45")
        expect("no answer any more", ask("/healthz")[0] == 200)

    # One client that sends requests without reading, and many idle ones.
    deaf = connect()
    deaf.setblocking(False)
    with contextlib.suppress(BlockingIOError, ConnectionError):
        for _ in range(20000):
            deaf.send(head + b"\r\n")
    idle = [connect() for _ in range(100)]
    began = time.monotonic()
    for _ in range(10):
        expect("no answer beside idle connections",
               ask("/v1/status")[0] == 200)
    expect("slow beside idle connections", time.monotonic() - began < 3)
    for sock in idle + [deaf]:
        sock.close()
    expect("no answer after idle connections", ask("/healthz")[0] == 200)


def slow(seconds):
    began = time.monotonic()
    with contextlib.closing(connect()) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(b"GET /v1/status HTTP/1.1\r\nX: ")
            while not select.select([sock], [], [], 0.5)[0]:
                expect("still connected",
                       time.monotonic() - began < float(seconds))
                sock.sendall(b"x")
    expect("cut off too early", time.monotonic() - began > 5)


SOCKET = sys.argv[1]
{"get": get, "put": put, "pages": pages, "views": views, "errors": errors,
 "hostile": hostile, "slow": slow}[sys.argv[2]](*sys.argv[3:])
