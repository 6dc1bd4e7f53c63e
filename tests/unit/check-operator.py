#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""What `stagecoach status|users|explain|overrides|decisions` make of a controller's
recorded answers, and what pin and undo ask it for.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

STATUS = {
    "agents": 2, "alarms": [
        {"code": "order-not-applied",
         "text": "the last order is not in force on h0, h1"}],
    "bound_kind": "fluid", "bound_s": 1768.62, "bound_strict_s": 1700.5,
    "cojobs": 2, "coverage": 0.75,
    "decision_us_max": 53, "decisions": 8, "estimate_s": 3296.07,
    "gain": {"plain_mean_s": 3.0, "measured_mean_s": 2.5, "ratio": 0.8333,
             "stages": 200},
    "gap": 1.8636, "generation": 1, "gpu_s": 7200, "gpu_waited_s": 360, "hosts": 2, "order_age_s": 0.42,
    "order_lag_s": 0.1,
    "jobs": 2, "observe": True,
    "observed_by": {"at": 1795313889450, "ended": 0, "id": 4,
                    "kind": "observe", "reason": "first week", "target": "",
                    "until": 0, "actor": "eva"},
    "overrides": 1, "policy": "stage",
    "predicted": {"plain_mean_s": 924.5, "order_mean_s": 848.03,
                  "ratio": 0.9173, "stages": 2},
    "ranked": {"key": 6, "permutation": 2, "rule": 0}, "ranked_by": "key",
    "stages": 2, "state": "active", "version": 2,
}
STATUS_TEXT = """\
controller  active, generation 1, order 2, policy stage
cluster     2 cojobs, 2 jobs, 2 stages
hosts       2, 2 with a connected agent; the order is 0.4 s old, the slowest \
host 0.1 s behind
coverage    75.0 % of the traffic belongs to jobs
GPU time    2.0 hours, of which jobs waited 5.0 % for the network
decisions   8, the longest took 53 us
ranked by   key of iterating jobs; so far rule 0, permutation 2, key 6, plan 0
bound       distance to the bound of these stages, weighted: 1.86 (fluid \
form), 1.94 (strict form); bound: fluid
predicted   mean of the running 2 stages 848.0 s, without Stagecoach 924.5 s \
by simulation: 0.92 x
gain        mean of the last 200 stages 2.5 s, without Stagecoach 3.0 s by \
simulation: 0.83 x
overrides   1 in force, "stagecoach overrides" lists them
observing   since 2026-11-22 02:18:09, by eva, first week: no order is sent to \
hosts
ALARM       the last order is not in force on h0, h1
"""
EXPLAIN = {
    "alone_s": 80.39, "bound_kind": "ports", "bound_s": 1768.62,
    "estimate_s": 3296.07, "gap": 1.8636,
    "before": [{"job": "large/t0", "level": 0, "rank": 0,
                                  "seconds": 1607.8392}],
    "bottleneck": "h0:tx", "bursts": [], "cojob": "small",
    "completion_s": 1688.23, "counted": False, "dscp": 40, "early": True,
    "ends": {"earliest_s": 80.39, "estimate_s": 1688.23,
             "latest_s": 1700.0},
    "iteration": 20, "iterations_left": 99990, "job": "small/t0", "level": 1,
    "order": "stage", "override": "none", "override_id": 0,
    "period_s": 0.02, "policy": "stage", "rank": 1, "ranked_by": "key",
    "remaining_s": 80.39,
    "rung": 0, "slack_s": 1619.9, "stage_rank": 1, "unit": "stage",
    "version": 2,
    "waits_for": {"what": "network", "where": "h0:tx",
                  "words": "the network at h0:tx, where others go first"},
    "why": ["its stage small/0 is number 2 of 2",
            "the stage still needs 80.4 s of h0:tx"],
}
EXPLAIN_TEXT = """\
small/t0 is job 1 of order 2 by policy stage, which orders by stage; its \
level is 1 (DSCP 40)
ranked by: key of iterating jobs
it has done 20 iterations
  its stage small/0 is number 2 of 2
  the stage still needs 80.4 s of h0:tx
isolated, its 99990 iterations would take 80.4 s, including 80.4 s of h0:tx
it waits for the network at h0:tx, where others go first
its stage ends in about 1688.2 s: in 80.4 s without competing traffic, \
in 1700.0 s if all other traffic of its ports is served first
remaining transfers of the running stages, without computing, weighted: at \
most 1.86 x the best order (bound: ports)
rank  level  before it  h0:tx
   0      0  large/t0   1607.839 s
"""
NOTHING = {"requests": 0, "claims": 0, "entries": 0}
USERS = {"users": [
    {"user": "ann", "uid": 1000, "cojobs": 2, "jobs": 3, "places": 8,
     "weight": 1.5, "served_s": 12.34, "entries": 0,
     "refused": {"requests": 2, "claims": 1, "entries": 0},
     "why": "/weight: 9"},
    {"user": "namespace:ml", "cojobs": 1, "jobs": 0, "places": 0, "weight": 1,
     "served_s": 0, "entries": 0, "refused": NOTHING},
    {"user": "", "pod": "c3a1", "cojobs": 0, "jobs": 0, "places": 0,
     "weight": 0, "served_s": 0, "entries": 9000,
     "refused": {**NOTHING, "entries": 17}},
]}
USERS_TEXT = [
    "user uid cojobs jobs places weight served_s entries refused last refusal",
    "ann 1000 2 3 8 1.5 12.3 0 3 /weight: 9",
    "namespace:ml - 1 0 0 1 0.0 0 0 -",
    "c3a1 - 0 0 0 0 0.0 9000 17 -",
]
OVERRIDE = {"at": 1795313889450, "ended": 0, "id": 1, "kind": "pin",
            "reason": "a demo", "target": "large/0", "until": 1795317489450,
            "actor": "eva"}
OVERRIDES_TEXT = [
    "id kind target by since until ended reason",
    "1 pin large/0 eva 2026-11-22 02:18:09 2026-11-22 03:18:09 in force "
    "a demo",
]
OBSERVE_TEXT = """\
1: pin large/0 from now on; "stagecoach undo 1" ends it
"""
DECISIONS = {"last": 8, "decisions": [
    {"actor": "eva", "at": 1795313889450, "id": 7, "kind": "operator",
     "reason": "pin: 1, for 3600 s: a demo", "subject": "large/0"},
    {"actor": "stagecoach-controller", "at": 1795313889451, "id": 8,
     "kind": "order", "reason": "rank 0 of 2, now before small/0",
     "subject": "large/0"}]}
DECISIONS_TEXT = """\
02:18:09     7 operator large/0: pin: 1, for 3600 s: a demo (eva)
02:18:09     8 order    large/0: rank 0 of 2, now before small/0 \
(stagecoach-controller)
"""
ANSWERS = {
    "controller/status": STATUS, "controller/explain": EXPLAIN,
    "controller/overrides": {"overrides": [OVERRIDE]},
    "controller/users": USERS,
    "controller/decisions-after": DECISIONS,
    "controller/override": OVERRIDE, "controller/undo": OVERRIDE,
    "controller/host-remove": {"host": "h9"},
    "controller/host-revoke": {**OVERRIDE, "kind": "revoke", "target": "h9"},
    "controller/raise-generation": {"above": 7, "beyond": ["h6"]},
}
calls = []
states = []                     # Of the next replies to controller/status.
failures = 0


def serve(control):
    """Answers one request a connection, as the commands ask."""
    while True:
        connection, _ = control.accept()
        text = b""
        while True:
            text += connection.recv(65536)
            try:
                request = json.loads(text)
                break
            except ValueError:
                continue
        calls.append((request["method"], request["params"]))
        answer = ANSWERS[request["method"]]
        if answer is STATUS and states:
            answer = dict(STATUS, state=states.pop(0))
        connection.sendall(json.dumps({
            "id": request["id"], "error": None,
            "result": json.dumps(answer) + "\n",
        }).encode())
        connection.close()


def check(what, found, expected):
    global failures
    if found != expected:
        failures += 1
        print(f"{what}:\n{found}\nis not\n{expected}")


def main():
    with tempfile.TemporaryDirectory(prefix="sct-operator-") as rundir:
        control = socket.socket(socket.AF_UNIX)
        control.bind(os.path.join(rundir, "controller.ctl"))
        control.listen(5)
        threading.Thread(target=serve, args=(control,), daemon=True).start()
        env = dict(os.environ, STAGECOACH_RUNDIR=rundir, TZ="UTC",
                   SUDO_USER="eva")

        def ask(*args):
            done = subprocess.run([sys.argv[1], *args], env=env, text=True,
                                  timeout=20, capture_output=True)
            check(f"status of {args}", (done.returncode, done.stderr),
                  (0, ""))
            return done.stdout

        check("status", ask("status"), STATUS_TEXT)
        check("explain", ask("explain", "small/t0"), EXPLAIN_TEXT)
        for view, text in (("overrides", OVERRIDES_TEXT),
                           ("users", USERS_TEXT)):
            check(view, [" ".join(line.split()) for line
                         in ask(view).splitlines()], text)
        check("decisions", ask("decisions"), DECISIONS_TEXT)
        check("JSON", json.loads(ask("status", "--format", "json")), STATUS)
        check("pin", ask("pin", "large/0", "--for", "1.5h", "--reason", "x y"),
              '1: pin large/0 from now on; "stagecoach undo 1" ends it\n')
        check("undo", ask("undo"), "1: pin large/0 has ended\n")
        who = "eva" if os.getuid() == 0 else calls[-1][1][1]
        status = ("controller/status", [])
        check("calls", calls[-4:],
              [status,
               ("controller/override", ["pin", "large/0", "5400000", who,
                                        "x y"]),
               status, ("controller/undo", ["0", who])])

        check("host remove", ask("host", "remove", "h9", "--reason", "sold"),
              "h9: removed; it is listed again when its agent connects\n")
        check("calls of host remove", calls[-2:],
              [status, ("controller/host-remove", ["h9", who, "sold"])])

        check("host revoke", ask("host", "revoke", "h9"),
              'h9 is refused from now on; "stagecoach undo 1" accepts it '
              'again\n'.replace("h9", "1: h9", 1))
        check("raise-generation", ask("controller", "raise-generation"),
              "the next generation is above 7\nh6 claims one that no clock "
              "explains: restart its agent or revoke it\n")
        check("calls of these", calls[-4:],
              [status, ("controller/host-revoke", ["h9", who, ""]),
               status, ("controller/raise-generation", [who, ""])])

        # A controller that has just started has no intent database yet.
        states.extend(["disconnected", "starting"])
        check("observe", ask("observe"), OBSERVE_TEXT)
        check("calls of observe", [method for method, _ in calls[-4:]],
              ["controller/status"] * 3 + ["controller/override"])
        states.extend(["disconnected"] * 100000)
        done = subprocess.run([sys.argv[1], "observe"], env=env, text=True,
                              timeout=40, capture_output=True)
        check("without a database",
              (done.returncode, done.stdout, done.stderr),
              (1, "", 'stagecoach observe: after 10 s the controller is still '
               '"disconnected", see "stagecoach controller status"\n'))
        check("last call", calls[-1], status)
    return failures != 0


sys.exit(main())
