#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""rest-check.py PLACE COMMAND [ARG...]: checks a controller's HTTP API.

PLACE is a unix socket, or HOST:PORT,KEY,CERTIFICATE,CA of TLS.

openapi FILE      replies match docs/openapi.json, and all of it is served
writes ACTOR COJOB        changes, repeated and wrong ones
trials COJOB      a search that judges its trials one by one
away              a database that hangs causes 503, also for many requests
metrics FILE...   Prometheus format; all metrics and labels used by the files
                  exist, and no label is one that Prometheus sets
status            prints the status of GET /v1/status
limited COJOB OTHER       changes of a user, within its limits, and none of
                  OTHER, which another client has begun
"""

import contextlib
import http.client
import json
import re
import socket
import ssl
import sys
import time

import jsonschema


# What Prometheus and its operator add to each sample of a scrape.
SCRAPED = {"job", "instance", "namespace", "pod", "container", "service",
           "endpoint", "node"}


class Client(http.client.HTTPConnection):
    """HTTP over the place."""

    def __init__(self, timeout=30):
        super().__init__("localhost", timeout=timeout)

    def connect(self):
        if "," not in PLACE:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(PLACE)
            return
        address, key, certificate, ca_cert = PLACE.split(",")
        host, port = address.rsplit(":", 1)
        context = ssl.create_default_context(cafile=ca_cert)
        context.check_hostname = False
        if key:
            context.load_cert_chain(certificate, key)
        self.sock = context.wrap_socket(
            socket.create_connection((host, int(port)), self.timeout))


def expect(what, is_true):
    if not is_true:
        sys.exit(f"rest-check.py: {what}")


def ask(method, path, body=None):
    """Returns the status and the body, parsed if it is JSON."""
    with contextlib.closing(Client()) as client:
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        client.request(method, path, body)
        answer = client.getresponse()
        text = answer.read().decode()
        kind = answer.headers["Content-Type"].split(";")[0]
        return answer.status, kind, (json.loads(text)
                                     if kind == "application/json" else text)


def answers(status, method, path, body=None, error=""):
    got, _, reply = ask(method, path, body)
    expect(f"{method} {path} {body}: {got} {reply}",
           got == status and (not error or error in reply["error"]))
    return reply


class Contract:
    """docs/openapi.json."""

    def __init__(self, file):
        with open(file, encoding="utf-8") as stream:
            self.doc = json.load(stream)
        self.resolver = jsonschema.RefResolver("", self.doc)

    def operation(self, method, pattern):
        return self.doc["paths"][pattern][method.lower()]

    def check(self, schema, value):
        jsonschema.Draft4Validator(
            schema, resolver=self.resolver).validate(value)

    def check_answer(self, method, pattern, path, body=None):
        """Asks, and returns the status, which must be a described one."""
        status, kind, reply = ask(method, path, body)
        described = self.operation(method, pattern)["responses"]
        expect(f"{method} {path}: {status} is not described: {reply}",
               str(status) in described)
        content = described[str(status)]["content"]
        expect(f"{method} {path}: {kind}", kind in content)
        self.check(content[kind]["schema"], reply)
        return status


# Pattern -> what to ask in its place, and with which bodies.
NAMES = {"{cojob}": "contract", "{job}": "t0", "{rung}": "0",
         "{kind}": "stages"}
BODIES = {
    "/v1/cojobs/{cojob}": {"weight": 2},
    "/v1/cojobs/{cojob}/jobs/{job}": {
        "workers": [{"host": "h0"}, {"host": "h1", "role": "server",
                                     "index": 0}], "model_bytes": 1000},
    "/v1/cojobs/{cojob}/stages/{rung}": {
        "rungs": [{"iterations": 10, "keep": 1}, {"iterations": 30}],
        "jobs": ["t0"]},
    "/v1/cojobs/{cojob}/jobs/{job}/progress": {
        "iteration": 3, "metric": "loss", "value": 0.5},
}
ORDER = {"PUT": 0, "POST": 1, "GET": 2, "DELETE": 3}


def openapi(file):
    contract = Contract(file)
    described = {(method.upper(), path)
                 for path, item in contract.doc["paths"].items()
                 for method in item if method != "parameters"}
    there = {(route["method"], route["path"])
             for route in ask("GET", "/v1")[2]["routes"]}
    expect(f"not described: {there - described}, "
           f"not there: {described - there}", there == described)

    # All that begins, in the order of paths, then all that can be read.
    for method, pattern in sorted(
            described, key=lambda r: (ORDER[r[0]], len(r[1]) * (
                -1 if r[0] == "DELETE" else 1))):
        path = pattern
        for name, value in NAMES.items():
            path = path.replace(name, value)
        body = BODIES.get(pattern) if method in ("PUT", "POST") else None
        if body:
            content = contract.operation(method, pattern)["requestBody"]
            contract.check(content["content"]["application/json"]["schema"],
                           body)
        status = contract.check_answer(method, pattern, path, body)
        expect(f"{method} {path}: {status}",
               status == 200 or pattern.startswith("/v1/explain/"))
        if "{" in pattern and method in ("GET", "DELETE"):
            path = re.sub(r"{\w+}", "999", pattern)
            status = contract.check_answer(method, pattern, path)
            expect(f"{method} {path}: {status}", status in (400, 404))
        if body:
            for wrong in ({"x": 1}, [], "{", "\0", {"iterations": 0},
                          {"weight": -1}, {"workers": 1}, {"jobs": [""]},
                          {"iteration": -1}):
                status = contract.check_answer(method, pattern, path, wrong)
                expect(f"{method} {path} {wrong}: {status}", status == 400)


def writes(actor, name):
    cojob = "/v1/cojobs/" + name
    answers(404, "PUT", cojob + "/jobs/t0", {}, f'cojob "{name}": unknown')
    answers(404, "DELETE", cojob)
    expect("begins", answers(200, "PUT", cojob, {"weight": 3}) ==
           {"cojob": name, "changed": True})
    expect("begins again", not answers(200, "PUT", cojob, {"weight": 3})
           ["changed"])
    workers = {"workers": [{"host": "h0"}, {"host": "h1", "index": 0,
                                            "role": "server"}]}
    for changed in (True, False):
        reply = answers(200, "PUT", cojob + "/jobs/t0", workers)
        expect(f"a job: {reply}", reply == {
            "cojob": name, "job": "t0", "changed": changed})
    for changed in (True, False):
        reply = answers(200, "PUT", cojob + "/stages/0",
                        {"rungs": [{"iterations": 50, "keep": 1},
                                   {"iterations": 90}],
                         "jobs": ["t0", "t1", "t0"]})
        expect(f"a stage: {reply}", reply == {
            "cojob": name, "rung": 0, "changed": changed})
    for _ in range(100):
        status, _, reply = ask("GET", cojob)
        if status == 200 and reply["stages"]:
            break
        time.sleep(0.05)
    expect(f"what has begun: {reply}", reply["weight"] == 3
           and reply["owner"] == actor
           and [job["job"] for job in reply["jobs"]]
           == [name + "/t0", name + "/t1"] and reply["state"] == "running"
           and reply["stages"][0]["iterations"] == 50)
    progress = cojob + "/jobs/t0/progress"
    expect("progress", answers(200, "POST", progress, {
        "iteration": 7, "metric": "loss", "value": 0.4, "time": 1})
        == {"job": name + "/t0", "iteration": 7})
    job = answers(200, "GET", cojob + "/jobs/t0")
    expect(f"what was told: {job}",
           job["iteration"] == 7 and job["metric"] == "loss")
    answers(404, "POST", cojob + "/jobs/t9/progress", {"iteration": 1})

    for path, body, error in (
            ("/stages/1001", {"iterations": 1, "jobs": ["a"]}, "/rung: "),
            ("/stages/-1", {"iterations": 1, "jobs": ["a"]}, "/rung: "),
            ("/stages/1", {"iterations": 1, "jobs": []}, "/jobs: "),
            ("/stages/1", {"iterations": 0, "jobs": ["a"]}, "/iterations: "),
            ("/stages/1", {"iterations": 1, "jobs": ["a/b"]}, "/jobs/0: "),
            ("/stages/1", {"rungs": [{"iterations": 1, "keep": 2}],
                           "jobs": ["a"]}, "/rungs/0/keep: "),
            ("/jobs/t0", {"workers": [{"host": "h0", "role": "boss"}]},
             "/workers/0/role: "),
            ("/jobs/t0", {"workers": [{}]}, "/workers/0"),
            ("/jobs/.t0", {}, 'job: ".t0" is not a name'),
            ("", {"weight": 0}, "/weight: "), ("", {"wieght": 1}, "/wieght")):
        answers(400, "PUT", cojob + path, body, error)
    answers(400, "DELETE", cojob + "/jobs/t0?outcome=x", error="/outcome: ")
    answers(400, "DELETE", cojob + "/jobs/t0?state=done", error="query")
    answers(404, "PUT", "/v1/cojobs/" + "x" * 256, {})
    answers(400, "PUT", "/v1/cojobs/" + "x" * 254, {})
    answers(405, "PATCH", cojob, {}, "expected GET, HEAD, PUT, DELETE")
    with contextlib.closing(Client()) as client:
        client.request("PUT", cojob, headers={"Content-Length": "65537"})
        expect("too large", client.getresponse().status == 413)
    answers(400, "PUT", cojob, "x" * 65536)

    answers(200, "DELETE", cojob + "/jobs/t1?outcome=stopped")
    expect("ends", answers(200, "DELETE", cojob + "/stages/0")["changed"])
    expect("ends again", not answers(200, "DELETE", cojob + "/stages/0")
           ["changed"])
    expect("the cojob ends", answers(200, "DELETE", cojob)["changed"])
    expect("again", not answers(200, "DELETE", cojob)["changed"])
    log = [d for d in ask("GET", "/v1/decisions")[2]["decisions"]
           if d["kind"] == "operator" and d["subject"] == name]
    expect(f"the log: {log}", [d["reason"] for d in log] == [
        f"cojob {name} begins", f"job {name}/t0 begins",
        f"stage {name}/0 begins", f"job {name}/t1 ends (stopped)",
        f"stage {name}/0 ends", f"cojob {name} ends"]
        and {d["actor"] for d in log} == {actor})


def explain(job, beginning):
    """Returns the explanation of 'job' once it has a sentence that begins
    so."""
    for _ in range(100):
        reply = ask("GET", f"/v1/explain/{job}")[2]
        if any(re.match(beginning, why) for why in reply.get("why", ())):
            return reply
        time.sleep(0.1)
    sys.exit(f"rest-check.py: {job}: no {beginning}: {reply}")


def trials(name):
    cojob = "/v1/cojobs/" + name
    stage = {"method": "asynchronous", "eta": 3, "to_come": 6, "rungs": [
        {"iterations": n} for n in (12, 36, 108)]}
    answers(200, "PUT", cojob)
    for i in range(4):
        answers(200, "PUT", f"{cojob}/jobs/t{i}", {
            "workers": [{"host": "h0"}], "model_bytes": 1000000})
    for wrong, error in (({"eta": 1}, "/eta: "), ({"method": "x"}, "/method: "),
                         ({"trials": "x"}, "/trials: "),
                         ({"rungs": []}, "/rungs: "),
                         ({"method": "synchronous"}, "/keep: ")):
        answers(400, "PUT", cojob + "/stages/0",
                {**stage, "jobs": ["t0"], **wrong}, error)
    for changed in (True, False):
        expect("trials", answers(200, "PUT", cojob + "/stages/0", {
            **stage, "jobs": ["t0", "t1", "t2"]})["changed"] == changed)
    explain(f"{name}/t0", "its search judges trials one by one")
    for job, limit, last in ("t0", 0.8, 12), ("t1", 0.3, 10), ("t2", 0.9, 10):
        for k in range(1, last + 1):
            answers(200, "POST", f"{cojob}/jobs/{job}/progress", {
                "iteration": k, "metric": "accuracy",
                "value": limit - limit / (1 + k)})
    for left in range(100, 0, -1):      # Those that begin are not yet.
        if len({explain(f"{name}/t{i}", "its search ")["rank"]
                for i in range(3)}) == 1:
            break
        expect("equal", left > 1)
        time.sleep(0.1)
    began = ask("GET", cojob)[2]["stages"][0]["began"]

    # t0 was at the rung with 0.74 and is gone, and t3 begins.
    answers(200, "PUT", cojob + "/stages/0", {
        **stage, "jobs": ["t1", "t2", "t3"], "trials": "promising"})
    best = explain(f"{name}/t2", "chance [5-9][0-9] % .* (first of its search$"
                   "|behind trial t3, )")   # Which begins.
    explain(f"{name}/t1", "chance [12]?[0-9] % to pass the rung at iteration "
            "12 by .* behind trial t[23], and it keeps the min share ")
    explain(f"{name}/t3", "chance 33 % ")
    expect(f"{best}", best["next_rung"] == 12 and best["chance"] > 0.5
           and best["search_work_s"] > 0)
    reply = ask("GET", cojob)[2]
    expect(f"one stage: {reply}", [
        (s["began"], sorted(s["jobs"]), s["method"], s["iterations"])
        for s in reply["stages"]] == [
            (began, ["t1", "t2", "t3"], "asynchronous", 108)])
    expect("none", answers(200, "PUT", cojob + "/stages/0", {
        **stage, "jobs": []})["changed"])
    for path in "/stages/0", "":
        answers(200, "DELETE", cojob + path)


def limited(name, other):
    cojob = "/v1/cojobs/" + name
    answers(403, "PUT", cojob, {"uid": 1}, "/uid: ")
    answers(403, "PUT", cojob, {"weight": 2}, "/weight: 2 ")
    answers(200, "PUT", cojob)
    for i in range(9):
        answers(200, "PUT", f"{cojob}-{i}")
    answers(403, "PUT", f"{cojob}-9", None,
            "weight 1 makes 11 of all running cojobs")
    for i in range(9):
        answers(200, "DELETE", f"{cojob}-{i}")
    answers(200, "PUT", f"{cojob}-9")
    for path in (f"{cojob}-9", cojob):
        answers(200, "DELETE", path)
    answers(403, "DELETE", "/v1/cojobs/" + other, None, "belongs to ")
    answers(403, "PUT", f"/v1/cojobs/{other}/jobs/t0", {}, "belongs to ")


def away():
    """More changes than there may be connections: the oldest make room."""
    clients = [Client(timeout=20) for _ in range(90)]
    for i, client in enumerate(clients):
        client.request("PUT", f"/v1/cojobs/away-{i}", "{}")
        if i % 30 == 0:
            expect("reads wait too", ask("GET", "/v1/status")[0] == 200)
    counts = {}
    for client in clients:
        try:
            answer = client.getresponse()
            reply = json.loads(answer.read())["error"]
            expect(reply, "the intent database did not reply" in reply)
            kind = answer.status
        except (ConnectionError, http.client.HTTPException):
            kind = "closed"
        counts[kind] = counts.get(kind, 0) + 1
        client.close()
    expect(f"{counts}", set(counts) == {503, "closed"} and counts[503] > 40)


def metrics(*files):
    answers(200, "PUT", "/v1/cojobs/seen", {})
    answers(200, "PUT", "/v1/cojobs/seen/jobs/t0", {})
    status, kind, text = ask("GET", "/metrics")
    answers(200, "DELETE", "/v1/cojobs/seen")
    expect(f"{status} {kind}", status == 200 and kind == "text/plain")
    described, seen = {}, set()
    for line in text.splitlines():
        match = re.fullmatch(r"# (HELP|TYPE) (\w+) (.+)", line)
        if match:
            described.setdefault(match[2], {})[match[1]] = match[3]
            continue
        match = re.fullmatch(r'(\w+)(?:{(\w+="[^"\\]*",?)*})? '
                             r"-?[0-9.e+-]+", line)
        name = match and re.sub("(_seconds)_(bucket|sum|count)$", r"\1", match[1])
        expect(line, match and set(described[name]) == {"HELP", "TYPE"})
        expect(f"{name}: a counter's name",
               (described[name]["TYPE"] == "counter")
               == name.endswith("_total"))
        expect(f"{line} twice", line.split(" ")[0] not in seen)
        seen.add(line.split(" ")[0])
    for name in ('stagecoach_agent_connected{host="h0"}',
                 'stagecoach_shim_ip_bytes_total{host="h1"}',
                 'stagecoach_state{state="active"}',
                 'stagecoach_order_decisions_total'):
        expect(f"no {name}", name in seen)
    for sample in ('stagecoach_shim_queue_dropped_packets_total{host="h0"} 7',
                   'stagecoach_shim_queue_sent_bytes_total'
                   '{host="h0",queue="1"} 8',
                   'stagecoach_shim_queue_jobs_dropped_packets_total'
                   '{host="h1",queue="7"} 2'):
        expect(f"no {sample}", sample in text.splitlines())
    labels = set(re.findall(r'[{,](\w+)="', text))
    expect(f"{labels & SCRAPED} of Prometheus", not labels & SCRAPED)
    hosts = sum('host="h0"' in name for name in seen)
    expect(f"{hosts} series of a host", hosts <= 50)
    for file in files:
        with open(file, encoding="utf-8") as stream:
            uses = stream.read()
        for name in re.findall(r"\bstagecoach_\w+", uses):
            expect(f"{file}: no {name}", name in described)
        for names in re.findall(r"\bby \(([\w, ]*)\)", uses):
            expect(f"{file}: by {names}", set(names.split(", ")) <= labels)


def status():
    print(ask("GET", "/v1/status")[0])


PLACE = sys.argv[1]
{"openapi": openapi, "writes": writes, "trials": trials, "away": away,
 "metrics": metrics, "status": status, "limited": limited}[
     sys.argv[2]](*sys.argv[3:])
