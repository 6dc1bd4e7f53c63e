#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Injects one fault into a lab in which searches train, and measures.

   fault-measure.py RUNDIR FAULT [--hold S] [--alarm TEXT]
                    [--lasting TEXT]... [--port PORT] [--searches DIR]
                    [--check COMMAND] [--gone COJOB] BEGIN [END]

Runs the shell command BEGIN, waits for S seconds, runs END, and waits until
the order is back: a controller leads, has both databases and no alarm that it
did not have before, but those that the stranger causes and those with a TEXT
of --lasting; each host follows its order, through its shim; each stage that
runs is in the order; the jobs of each stage have a level on their hosts; the
jobs go on, except those of COJOB; COMMAND succeeds; and all this for a second.
Prints one JSON line:

order_back_s      seconds from the end of the fault, which is END if S is not 0
                  and otherwise BEGIN, until the order is back
alarm_s           seconds from BEGIN until an alarm of a controller has
                  contained the TEXT of --alarm, or no controller has answered
                  if TEXT is "controller", and alarms of the controller that
                  leads have contained each TEXT of --lasting; null without
                  these options
lost_rows         searches, jobs and stages that the intent database had, or
                  that the searches have announced by their output
                  DIR/COJOB.out, and that it does not have afterwards
false_ends        stages that ended in the database, or left the order, and
                  that their searches had not ended
stolen_priority   packets to PORT, which belongs to nobody's job, that arrived
                  on eth0 with a level's DSCP

Exits with 1 if a measure is not as it must be: 5 s at most, or 0."""

import argparse
import glob
import json
import os
import socket
import subprocess
import sys
import threading
import time

POLL_S = 0.05
LIMIT_S = 5
GIVE_UP_S = 30
ANSWER_S = 0.4
SETTLED_S = 1           # For which the order must stay.
NEW_STAGE_S = 2         # A stage may be announced and not yet be ordered.
PROGRESS_BYTES = 10000
# Alarms that the stranger causes, at a new leader also after the fault.
STRANGERS = ["jobs were refused on h0", "traffic belongs to no known job"]

parser = argparse.ArgumentParser()
parser.add_argument("rundir")
parser.add_argument("fault")
parser.add_argument("--hold", type=float, default=0)
parser.add_argument("--alarm")
parser.add_argument("--lasting", action="append", default=[])
parser.add_argument("--port", type=int)
parser.add_argument("--searches")
parser.add_argument("--check", default="true")
parser.add_argument("--gone")
parser.add_argument("begin")
parser.add_argument("end", nargs="?", default="true")
options = parser.parse_args()


def call(path, method, params):
    """Returns the result of a JSON-RPC request, None without an answer."""
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(ANSWER_S)
            s.connect(path)
            s.sendall(json.dumps({"method": method, "params": params,
                                  "id": 1}).encode())
            data = b""
            while True:
                part = s.recv(1 << 20)
                if not part:
                    return None
                data += part
                try:
                    return json.loads(data)["result"]
                except ValueError:
                    continue
    except OSError:
        return None


def ask(path, command):
    result = call(path, command, [])
    return json.loads(result) if result else None


def ask_leader():
    """Returns the control socket and status of the active controller with
    the highest generation, or (None, None), and the alarms of all."""
    best, alarms = (None, None), []
    for path in glob.glob(options.rundir + "/controller*.ctl"):
        status = ask(path, "controller/status")
        if status:
            status["alarms"] = [alarm["text"] for alarm in status["alarms"]]
            alarms += status["alarms"]
        if status and status["state"] == "active" and (
                not best[1] or status["generation"] > best[1]["generation"]):
            best = (path, status)
    return *best, alarms


def read_intent():
    """Returns {uuid: (table, name)} of all rows, {(cojob, rung): state} of
    stages and the number of events of stages that were ended as silent; None
    if no database answers."""
    request = ["Stagecoach_Intent"] + [
        {"op": "select", "table": table, "where": where, "columns": columns}
        for table, where, columns in (
            ("Cojob", [], ["_uuid", "name", "stages"]),
            ("Job", [], ["_uuid", "name"]),
            ("Stage", [], ["_uuid", "rung", "state"]),
            ("Event", [["what", "==", "stage-inactive"]], ["why"]))]
    for path in sorted(glob.glob(options.rundir + "/intent.sock")
                       + glob.glob(options.rundir + "/*/intent.sock")):
        result = call(path, "transact", request)
        if result and all("rows" in part for part in result):
            break
    else:
        return None
    cojobs, jobs, stages, silent = (part["rows"] for part in result)
    rows = {row["_uuid"][1]: ("cojob", row["name"]) for row in cojobs}
    rows |= {row["_uuid"][1]: ("job", row["name"]) for row in jobs}
    by_id = {row["_uuid"][1]: row for row in stages}
    states = {}
    for cojob in cojobs:
        kind, value = cojob["stages"]
        for _, uuid in value if kind == "set" else [cojob["stages"]]:
            if uuid in by_id:
                rows[uuid] = ("stage", by_id[uuid]["rung"])
                states[cojob["name"], by_id[uuid]["rung"]] = (
                    by_id[uuid]["state"])
    return rows, states, len(silent)


def read_searches(event):
    """Returns the (cojob, rung) of each such event in the searches' output."""
    stages = set()
    for path in glob.glob((options.searches or "/nowhere") + "/*.out"):
        with open(path, encoding="utf-8") as f:
            for line in f:
                if f'"event":"{event}"' in line and line.endswith("\n"):
                    entry = json.loads(line)
                    stages.add((entry["cojob"], entry["rung"]))
    return stages


class Sniffer(threading.Thread):
    """Counts the packets to the stranger's port that have a level."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen = self.stolen = 0
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM,
                                    socket.htons(0x0800))
        self.socket.bind(("eth0", 0x0800))

    def run(self):
        while True:
            head, address = self.socket.recvfrom(64)
            size = (head[0] & 15) * 4
            if address[2] == socket.PACKET_OUTGOING or len(head) < size + 4:
                continue
            if int.from_bytes(head[size + 2:size + 4], "big") == options.port:
                self.seen += 1
                self.stolen += head[1] >> 2 != 0


class Watch:
    """What was seen, from the moment before the fault on."""

    def __init__(self):
        self.rows, self.states, self.silent = {}, {}, 0
        self.progress = {}      # {cojob: bytes} of the last look.
        self.moved = set()      # Cojobs whose bytes have grown.
        self.old_alarms = set()
        self.alarms = []
        self.awaits_alarm = bool(options.alarm)
        self.awaited = set(options.lasting)
        self.look()
        self.old_alarms = set(self.alarms)
        self.silent_before = self.silent

    def look(self):
        """Returns why the order is not back, None if it is."""
        intent = read_intent()
        if intent:
            self.rows |= intent[0]
            self.states, self.silent = intent[1], intent[2]
            self.here = intent[0]
        path, status, self.all_alarms = ask_leader()
        self.leads = bool(status)
        if not status:
            return "no controller leads"
        self.alarms = status["alarms"]
        new = [alarm for alarm in self.alarms
               if alarm not in self.old_alarms
               and not any(text in alarm
                           for text in STRANGERS + options.lasting)]
        order = ask(path, "controller/order")
        hosts = ask(path, "controller/hosts")
        if not (intent and status["intent_connected"]
                and status["hosts_connected"]):
            return "a database does not answer"
        if new:
            return "alarms: " + "; ".join(new)
        if not order or not hosts:
            return "the controller does not answer"
        for host in hosts["hosts"]:
            if (not host["connected"] or host["state"] != "ordered"
                    or host["bypass"]):
                return f"host {host}"
        return (self.missing_stage(order) or self.missing_level(order)
                or self.standing(order) or self.failed_check())

    def missing_stage(self, order):
        ordered = {(s["cojob"], s["rung"]) for s in order["order"]}
        ended = read_searches("stage-end")
        for stage, state in self.states.items():
            if state == "running" and stage not in ordered | ended:
                return f"stage {stage} is not in the order"
        return None

    def missing_level(self, order):
        levels, moved = {}, {}
        for path in glob.glob(options.rundir + "/hosts/*/agent.ctl"):
            for job in (ask(path, "agent/jobs") or {"jobs": []})["jobs"]:
                if job["registered"]:
                    levels.setdefault(job["job"], []).append(job["dscp"])
                    cojob = job["job"].split("/")[0]
                    moved[cojob] = moved.get(cojob, 0) + job["tx_bytes"]
        for cojob, n in moved.items():
            if n > self.progress.get(cojob, n) + PROGRESS_BYTES:
                self.moved.add(cojob)
        self.progress = moved
        for stage in order["order"]:
            for job in [] if stage["cojob"] == options.gone else stage["jobs"]:
                if not levels.get(job) or not all(levels[job]):
                    return f"{job} has the levels {levels.get(job)}"
        return None

    def standing(self, order):
        for stage in order["order"]:
            if stage["cojob"] not in self.moved | {options.gone}:
                return f"{stage['cojob']} stands still"
        return None

    @staticmethod
    def failed_check():
        if subprocess.run(options.check, shell=True, check=False,
                          stdout=subprocess.DEVNULL).returncode:
            return f"{options.check} fails"
        return None

    def alarmed(self):
        """Returns true once all alarms have been there."""
        if options.alarm == "controller":
            self.awaits_alarm &= self.leads
        elif options.alarm:
            self.awaits_alarm &= not any(options.alarm in alarm
                                         for alarm in self.all_alarms)
        self.awaited = {text for text in self.awaited
                        if not any(text in alarm for alarm in self.alarms)}
        return not self.awaits_alarm and not self.awaited


def run(command):
    subprocess.run(command, shell=True, check=True)


alarms = bool(options.alarm or options.lasting)
sniffer = Sniffer() if options.port else None
if sniffer:
    sniffer.start()
watch = Watch()
alarm_s = back_s = None
begin = time.monotonic()
run(options.begin)
while time.monotonic() < begin + options.hold:
    watch.look()
    if alarms and alarm_s is None and watch.alarmed():
        alarm_s = time.monotonic() - begin
    time.sleep(POLL_S)
if options.hold:
    run(options.end)
end = time.monotonic() if options.hold else begin
watch.moved.clear()
watch.progress.clear()
reason, since = "not yet looked", None     # Why, or since when it is back.
while time.monotonic() < end + GIVE_UP_S:
    reason = watch.look()
    now = time.monotonic()
    since = None if reason else since or now
    if alarms and alarm_s is None and watch.alarmed():
        alarm_s = now - begin
    alarmed = not alarms or alarm_s or now > begin + LIMIT_S
    if since and now > since + SETTLED_S and alarmed:
        break
    if reason and now > end + LIMIT_S:
        print(f"{options.fault}: {reason}", file=sys.stderr)
        time.sleep(0.5)
    time.sleep(POLL_S)
back_s = (since or time.monotonic()) - end
# An announcement may still be on its way, so each kind is read in this order.
begun, ended = read_searches("stage-begin"), read_searches("stage-end")
time.sleep(NEW_STAGE_S)
watch.look()
lost = [row for uuid, row in watch.rows.items() if uuid not in watch.here]
lost += [stage for stage in begun if stage not in watch.states]
lost += [stage for stage in ended if watch.states.get(stage) != "done"]
ended = read_searches("stage-end")
false = [stage for stage, state in watch.states.items()
         if state != "running" and stage not in ended]
measures = {
    "fault": options.fault,
    "order_back_s": round(back_s, 2),
    "alarm_s": None if alarm_s is None else round(alarm_s, 2),
    "lost_rows": len(lost),
    "false_ends": len(false) + watch.silent - watch.silent_before,
    "stolen_priority": sniffer.stolen if sniffer else 0,
}
print(json.dumps(measures), flush=True)
wrong = []
if back_s > LIMIT_S:
    wrong.append(f"the order is not back after {LIMIT_S} s: {reason}")
if alarms and (alarm_s is None or alarm_s > LIMIT_S):
    wrong.append(f"no alarm within {LIMIT_S} s, there are {watch.all_alarms}")
if lost:
    wrong.append(f"lost: {lost}")
if measures["false_ends"]:
    wrong.append(f"ended: {false}, {watch.silent} as silent")
if sniffer and (sniffer.stolen or not sniffer.seen):
    wrong.append(f"{sniffer.stolen} of {sniffer.seen} packets of a stranger "
                 "had a level")
for line in wrong:
    print(f"{options.fault}: {line}", file=sys.stderr)
sys.exit(1 if wrong else 0)
