# SPDX-License-Identifier: Apache-2.0
"""What adapters of Python frameworks share; copy it beside them.

The agent of this host hears of progress and processes.  Stages go to the
controller over HTTP as the user: $STAGECOACH_REST, such as
https://c1:8443, with the files of "stagecoach pki issue client" in
$STAGECOACH_TLS, or the token in $STAGECOACH_TOKEN; without it, to the socket
rest.sock of a controller on this host, which has --rest-users."""
import functools
import http.client
import json
import logging
import math
import os
import re
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from urllib.parse import quote

SAID = []                       # The failure that was logged.
RUNDIR = "/run/stagecoach"


def quietly(call):              # No failure ends a search; the first is said.
    @functools.wraps(call)
    def guarded(*args, **info):
        try:
            return call(*args, **info)
        except Exception as error:
            if not SAID:
                SAID.append(call.__name__)
                logging.getLogger("stagecoach").warning(
                    "%s: %s: %s; going on without", call.__name__,
                    type(error).__name__, error)
    return guarded


def send(name, kind, message):
    rundir = os.environ.get("STAGECOACH_RUNDIR", RUNDIR)
    with closing(socket.socket(socket.AF_UNIX, kind)) as sock:
        sock.setblocking(False)
        sock.connect(f"{rundir}/{name}")
        sock.send(json.dumps(message, allow_nan=False).encode())


@quietly
def tell(cojob, job, iteration, stage, metric, value):
    message = {"cojob": cojob, "job": job, "iteration": int(iteration),
               "stage": stage}
    try:
        value = float(value)
    except (TypeError, ValueError):
        value = math.nan
    if math.isfinite(value):    # Else the iteration counts alone.
        message.update(metric=metric, value=value)
    send("progress.sock", socket.SOCK_DGRAM, message)


@quietly
def claim(cojob, job, pid):     # Process 'pid' of this host is of the job.
    send("agent.ctl", socket.SOCK_STREAM, {
        "id": 0, "method": "agent/claim",
        "params": ["registration", cojob, job, "pid", str(int(pid))]})


def connect():
    url, tls = (os.environ.get(f"STAGECOACH_{name}", "")
                for name in ("REST", "TLS"))
    if not url:
        rundir = os.environ.get("STAGECOACH_RUNDIR", f"{RUNDIR}/controller")
        with ExitStack() as stack:
            connection = http.client.HTTPConnection("localhost")
            stack.callback(connection.close)
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(6)
            connection.sock.connect(f"{rundir}/rest.sock")
            stack.pop_all()
            return connection
    address = re.fullmatch(r"https://([^/@\s]+:\d{1,5})/?", url)
    if not address:
        raise ValueError(f'STAGECOACH_REST: "{url}"; expected https://c1:8443')
    context = ssl.create_default_context(cafile=tls and f"{tls}/ca.pem" or None)
    if tls and os.path.exists(f"{tls}/identity.pem"):
        context.load_cert_chain(f"{tls}/identity.pem")
    return http.client.HTTPSConnection(address[1], timeout=6, context=context)


def ask(method, path, body=None):
    headers, token = {}, os.environ.get("STAGECOACH_TOKEN")
    if token:
        with open(token, encoding="ascii") as file:
            headers["Authorization"] = f"Bearer {file.read().strip()}"
    with closing(connect()) as connection:
        connection.request(method, path, body and json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    if answer.status >= 400 and answer.status != 404:
        raise OSError(f"{method} {path}: {text}")
    return answer.status


def rungs(iterations, n, factor):       # Of n jobs, one in factor goes on.
    keep = int(n // factor)
    if keep and iterations[1:]:
        return ([{"iterations": iterations[0], "keep": keep}]
                + rungs(iterations[1:], keep, factor))
    return [{"iterations": iterations[0]}]


def judged_together(search, iterations, jobs):
    return {"rungs": rungs(iterations, len(jobs), search.factor),
            "jobs": jobs, **search.needs}


def judged_one_by_one(search, iterations, factor, jobs, to_come):
    return {"method": "asynchronous", "eta": factor, "to_come": to_come,
            "rungs": [{"iterations": n} for n in iterations],
            "jobs": jobs, **search.needs}


@quietly
def announce(search, rung, stage):      # As it is now; None: it has ended.
    path = f"/v1/cojobs/{quote(search.cojob, '')}"
    place = f"{path}/stages/{rung}"
    if stage is None:
        ask("DELETE", place)
    elif ask("PUT", place, stage) == 404:
        ask("PUT", path, {"weight": 1})
        if ask("PUT", place, stage) == 404:
            raise OSError(f"PUT {place}: there is no such thing")


def begin(search, cojob, needs):        # What announce_changes() needs.
    search.cojob, search.needs = cojob, needs
    search.stages, search.pending = {}, {}
    search.lock, search.worker = threading.RLock(), ThreadPoolExecutor(1)


def announce_changes(search, stages):   # By rung; the caller has the lock.
    before, search.stages = search.stages, stages
    for rung in sorted({*before, *stages}):
        if before.get(rung) != stages.get(rung):
            waits = rung in search.pending      # Then only the last counts.
            search.pending[rung] = stages.get(rung)
            if not waits:
                search.worker.submit(announce_last, search, rung)


def announce_last(search, rung):
    with search.lock:
        stage = search.pending.pop(rung)
    announce(search, rung, stage)
