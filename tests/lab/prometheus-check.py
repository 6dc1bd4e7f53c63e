#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""prometheus-check.py PROMETHEUS SOCKET DASHBOARD RULES: what a Prometheus
makes of the controller with the REST socket SOCKET: names of jobs that a seed
chooses keep their labels, and the panels of DASHBOARD and the alerts of RULES
work."""

import http.client
import json
import random
import re
import socket
import string
import sys
import time
import urllib.parse

PROMETHEUS, SOCKET, DASHBOARD, RULES = sys.argv[1:]

# As in the configuration of the scrape.
TARGET = {"job": "stagecoach", "namespace": "ns", "pod": "p-0",
          "container": "c", "service": "s", "endpoint": "rest", "node": "n1"}

# Panels that are empty without a shim and traffic of jobs.
EMPTY = ("shim_ip_bytes", "shim_capacity")


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


def put(path, body):
    client = Unix("localhost")
    client.request("PUT", path, json.dumps(body))
    answer = client.getresponse()
    assert answer.status == 200, (path, answer.read())


def ask(path, **query):
    client = http.client.HTTPConnection(PROMETHEUS, timeout=10)
    client.request("GET", f"/api/v1/{path}?" + urllib.parse.urlencode(query))
    answer = json.loads(client.getresponse().read())
    assert answer["status"] == "success", (path, query, answer)
    return answer["data"]


def await_that(what, is_true):
    end = time.monotonic() + 40
    while time.monotonic() < end:
        try:
            if is_true():
                return
        except (OSError, ValueError):
            pass
        time.sleep(0.2)
    sys.exit(f"prometheus-check.py: {what}")


def query(expression):
    return ask("query", query=expression)["result"]


def choose_names():
    """The case's job, names of labels, and random ones: (COJOB, JOB)."""
    chance = random.Random(338)
    names = {("asha", "t0"), ("job", "instance"), ("exported_job", "job")}
    while len(names) < 9:
        names.add(tuple(
            chance.choice(string.ascii_letters) + "".join(
                chance.choices(string.ascii_letters + string.digits + "._-",
                               k=chance.randrange(30)))
            for _ in range(2)))
    return names


def main():
    jobs = choose_names()
    for cojob, job in sorted(jobs):
        put(f"/v1/cojobs/{cojob}", {})
        put(f"/v1/cojobs/{cojob}/jobs/{job}", {"workers": [{"host": "h0"}]})
    await_that("the jobs are not scraped twice", lambda: len(query(
        "count_over_time(stagecoach_job_level[1m]) > 1")) == len(jobs))

    series = ask("series", **{"match[]": '{__name__=~"stagecoach_.*"}'})
    for labels in series:
        assert not [n for n in labels if n.startswith("exported_")], labels
        assert TARGET.items() <= labels.items(), labels
    print(f"ok: {len(series)} series")

    with open(DASHBOARD, encoding="utf-8") as stream:
        panels = json.load(stream)["panels"]
    targets = [t for panel in panels for t in panel.get("targets", ())]
    for target in targets:
        lines = query(target["expr"])
        print(f"{len(lines)} lines of {target['expr']}")
        assert lines or re.search("|".join(EMPTY), target["expr"]), target
        named = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert all(named == set(line["metric"]) for line in lines), lines
        if "cojob" in named:
            assert {(line["metric"]["cojob"], line["metric"]["job_name"])
                    for line in lines} == jobs, lines
    assert len(targets) > 10, targets

    for names in jobs:
        print(f"case kubernetes ok: a Prometheus with {names}")

    with open(RULES, encoding="utf-8") as stream:
        wanted = set(re.findall(r"alert: (\w+)", stream.read()))

    def alerts():
        return {rule["name"]: rule for group in ask("rules")["groups"]
                for rule in group["rules"]}

    await_that("no alert for a second host", lambda: {
        a["labels"]["host"] for a in alerts()["StagecoachAgentAway"]["alerts"]
    } == {"gone"})
    found = alerts()
    assert set(found) == wanted, found
    for name, rule in found.items():
        assert rule["health"] == "ok" and not rule.get("lastError"), rule
        assert not rule["alerts"] or name == "StagecoachAgentAway", rule
    print(f"ok: {len(found)} alerts")


main()
