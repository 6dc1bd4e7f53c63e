#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""controller.py [ATTACK...]: what hosts, users and faults do to a controller.

Carries out each attack against the built programs, with emulated agents and an
emulated switch, and prints one JSON line for it: 'stolen' (orders of others
that it changed, or places before them), 'alarm_s' (from its first act to an
alarm that names who or what it concerns), 'refused_honest' (requests and hosts
of others that were refused).  Fails if one succeeds.  With HOSTILE_FULL=1 the
large numbers are those of the requirement.  Needs root for one of them only.
"""

import contextlib
import http.client
import json
import math
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUILD = pathlib.Path(os.environ["BUILD"])
SOURCE = pathlib.Path(os.environ["SOURCE"])
FULL = os.environ.get("HOSTILE_FULL") == "1"
STAGECOACH = BUILD / "cli/stagecoach"
SEEN_AT = "0fff693d"            # Each attack succeeded there.
ALARM_S = 5
HOUR = 3600 * 1000


class Rest(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))

    def ask(self, method, path, body=None):
        self.request(method, path, json.dumps(body) if body else None)
        answer = self.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None


class Agent(threading.Thread):
    """Reports as 'host', obeys leases, and remembers their generation."""

    def __init__(self, address, host, bind=None, **members):
        super().__init__(daemon=True)
        self.address, self.host, self.bind = address, host, bind
        self.members = members
        self.newest, self.obeys, self.jobs = members.get("generation", -1), 0, {}
        self.silent = self.ended = False
        self.connections = self.since = 0
        self.keys = set()       # Addresses of which it has a key.
        self.start()

    def report(self):
        jobs = [{"job": name, "tx_bytes": n, "rx_bytes": n, "registered": True,
                 **({"iteration": iteration} if iteration is not None else {}),
                 **({"uid": uid} if uid else {})}
                for name, (n, iteration, uid) in list(self.jobs.items())]
        report = {
            "version": 1, "host": self.host, "time": int(time.time() * 1000),
            "state": "ordered", "applied": 0, "ip_bytes": 0,
            "default_bytes": 0, "jobs": jobs,
            "ports": {"uplink": {"tx_bytes": 0, "rx_bytes": 0,
                                 "capacity_bps": 10**9}}}
        if self.newest >= 0:
            report["generation"] = self.newest
        report.update(self.members)
        return {"method": "telemetry", "params": [report], "id": None}

    def take(self, message):
        lease = (message.get("params") or [{}])[0]
        if message.get("method") == "keys":
            for change in lease:
                (self.keys.add if "key" in change
                 else self.keys.discard)(change["address"])
        if message.get("method") != "lease":
            return True
        if lease["generation"] < self.newest:
            return False
        if "generation" not in self.members:
            self.newest = lease["generation"]
        self.obeys = lease["generation"]
        return True

    def talk(self, sock):
        text, decoder, due = "", json.JSONDecoder(), 0
        self.connections += 1
        self.since = time.monotonic()
        while not self.ended:
            if time.monotonic() >= due and not (self.silent and due):
                sock.sendall(json.dumps(self.report()).encode())
                due = time.monotonic() + 0.2
            try:
                data = sock.recv(65536)
            except TimeoutError:
                continue
            if not data:
                return
            text += data.decode()
            with contextlib.suppress(ValueError):
                while text:
                    message, end = decoder.raw_decode(text)
                    text = text[end:].lstrip()
                    if not self.take(message):
                        return

    def run(self):
        while not self.ended:
            family = socket.AF_UNIX if isinstance(self.address, str) else (
                socket.AF_INET)
            with socket.socket(family) as sock, contextlib.suppress(OSError):
                if self.bind:
                    sock.bind((self.bind, 0))
                sock.settimeout(0.1)
                sock.connect(self.address)
                self.talk(sock)
            time.sleep(0.2)

    def stop(self):
        self.ended = True
        self.join()


class Switch(threading.Thread):
    """An OpenFlow switch that keeps the generation of its controllers."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.generation, self.obeys = None, 0
        self.start()

    def role(self, body):
        """Returns the type and the body of the reply to a role request."""
        wanted, generation = struct.unpack(">I4xQ", body[:16])
        if wanted in (2, 3):
            old = self.generation
            if old is not None and (generation - old) % 2**64 >= 2**63:
                return 1, struct.pack(">HH", 11, 0)
            self.generation = self.obeys = generation
        newest = 2**64 - 1 if self.generation is None else self.generation
        return 25, struct.pack(">I4xQ", 2, newest)

    def answer(self, kind, body):
        if kind == 0:
            return 0, b""
        if kind == 2:
            return 3, body
        if kind == 5:
            return 6, struct.pack(">QIBBHII", 1, 0, 254, 0, 0, 0, 0)
        if kind == 24:
            return self.role(body)
        if kind == 18:
            return 19, body[:2] + b"\0" * 6
        return None, b""

    def serve(self, sock):
        def read(n):
            data = b""
            while len(data) < n:
                piece = sock.recv(n - len(data))
                if not piece:
                    raise ConnectionError
                data += piece
            return data

        while True:
            _, kind, size, xid = struct.unpack(">BBHI", read(8))
            reply, body = self.answer(kind, read(size - 8))
            if reply is not None:
                sock.sendall(struct.pack(">BBHI", 4, reply, 8 + len(body), xid)
                             + body)

    def run(self):
        while True:
            sock, _ = self.listener.accept()
            with sock, contextlib.suppress(OSError):
                self.serve(sock)


class Cluster:
    """Databases and one controller with 'options', in a folder of their own."""

    def __init__(self, *options):
        self.options = options
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="sct-hostile-"))
        self.run, self.db = self.dir / "run", self.dir / "db"
        self.policy = self.dir / "policy.json"
        shutil.copy(SOURCE / "policies/stage.json", self.policy)
        self.env = {**os.environ, "STAGECOACH_RUNDIR": str(self.run)}
        self.processes, self.agents = [], []
        self.switch = Switch(self.dir / "sw.mgmt")
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        for agent in self.agents:
            agent.stop()
        self.stop()
        shutil.rmtree(self.dir)

    def sc(self, *args, check=True):
        return subprocess.run([str(STAGECOACH), *args], env=self.env,
                              timeout=60, check=check, capture_output=True,
                              text=True)

    def ctl(self, name):
        return self.run / "controller.ctl" if name == "c" else (
            self.dir / f"{name}.ctl")

    def start_controller(self, name="c", policy=None, telemetry=None):
        socks = self.dir / name
        process = subprocess.Popen([
            str(BUILD / "controller/stagecoach-controller"),
            f"--policy={policy or self.policy}",
            f"--intent=unix:{self.run}/intent.sock",
            f"--hosts=unix:{self.run}/hosts.sock",
            f"--telemetry={telemetry or f'ptcp:{self.port}:127.0.0.1'}",
            f"--unixctl={self.ctl(name)}", f"--rest=unix:{socks}.rest",
            *([f"--switch=unix:{self.dir}/sw.mgmt"] if name == "c" else []),
            *self.options, "-vconsole:off", "-vsyslog:off"])
        self.processes.append(process)
        self.until(lambda: self.ask("controller/status", name)["state"]
                   in ("active", "standby"))
        if name == "c":
            self.rest = Rest(f"{socks}.rest")
        return process

    def restart_controller(self):
        process = self.processes.pop()
        process.kill()
        process.wait()
        self.start_controller()

    def start(self, ahead_ms=0):
        """Starts all; the first generation is by a clock that goes ahead."""
        self.sc("controller", "start", "--dbdir", str(self.db), "--policy",
                str(self.policy))
        os.kill(int((self.run / "controller.pid").read_text()),
                signal.SIGTERM)
        self.until(lambda: not (self.run / "controller.pid").exists())
        if ahead_ms:
            self.transact("intent", "Stagecoach_Intent", {
                "op": "update", "table": "Leader", "where": [], "row": {
                    "generation": int(time.time() * 1000) + ahead_ms}})
        self.start_controller()
        self.until(lambda: self.status()["state"] == "active")

    def stop(self, lose=False):
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes = []
        self.sc("controller", "stop", check=False)
        if lose:
            shutil.rmtree(self.db)

    def agent(self, *args, **members):
        agent = Agent(("127.0.0.1", self.port), *args, **members)
        self.agents.append(agent)
        return agent

    def transact(self, name, schema, *operations):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(f"{self.run}/{name}.sock")
            sock.sendall(json.dumps({"method": "transact", "id": 1, "params": [
                schema, *operations]}).encode())
            text = ""
            while True:
                text += sock.recv(65536).decode()
                with contextlib.suppress(ValueError):
                    return json.loads(text)["result"]

    def ask(self, command, name="c", *args):
        text = subprocess.run(
            ["ovs-appctl", "-T", "10", "-t", str(self.ctl(name)),
             command, *args], timeout=20, check=True, capture_output=True,
            text=True).stdout
        return json.loads(text)

    def status(self):
        return self.ask("controller/status")

    def until(self, is_true, seconds=20):
        """Returns the seconds until it is true; INFINITY after 'seconds'."""
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            with contextlib.suppress(subprocess.SubprocessError, OSError,
                                     KeyError, IndexError):
                if is_true():
                    return time.monotonic() - began
            time.sleep(0.1)
        return math.inf

    def alarm(self, code, *names, seconds=ALARM_S + 3):
        """Returns the seconds until there is an alarm that has all names."""
        return self.until(lambda: any(
            a["code"] == code and all(name in a["text"] for name in names)
            for a in self.status()["alarms"]), seconds)

    def host_state(self, host):
        return {row["host"]: row["state"] for row in self.ask(
            "controller/hosts")["hosts"]}[host]

    def change(self, method, path, body=None):
        return self.rest.ask(method, path, body)[0] == 200


def lost_databases():
    with Cluster() as c:
        for _ in range(3):              # The lead has changed before.
            c.restart_controller()
            c.until(lambda: c.status()["state"] == "active")
        h0 = c.agent("h0")
        c.until(lambda: h0.obeys and c.switch.obeys)
        h0.obeys = c.switch.obeys = 0
        c.stop(lose=True)
        c.start()
        c.until(lambda: h0.obeys and c.switch.obeys, 10)
        return {"refused_honest": (not h0.obeys) + (not c.switch.obeys)}


def lost_databases_clock_back():
    with Cluster() as c:
        c.stop(lose=True)
        c.start(ahead_ms=2 * HOUR)
        h0 = c.agent("h0")
        c.until(lambda: h0.obeys and c.switch.obeys)
        h0.obeys = c.switch.obeys = 0
        c.stop(lose=True)
        c.start()
        alarm = c.alarm("generation", "h0", "sw.mgmt")
        refusing = alarm < math.inf and c.host_state("h0") == "refusing"
        c.sc("controller", "raise-generation", check=False)
        c.until(lambda: h0.obeys and c.switch.obeys, 10)
        return {"alarm_s": alarm,
                "refused_honest": (not refusing) + (not h0.obeys)
                + (not c.switch.obeys)}


def largest_generation():
    with Cluster() as c:
        h0 = c.agent("h0")
        c.until(lambda: h0.obeys)
        before = c.status()["generation"]
        c.agent("h6", generation=2**63 - 1)
        alarm = c.alarm("generation", "h6", str(2**63 - 1))
        c.sc("controller", "raise-generation", check=False)
        time.sleep(1)
        h0.obeys = 0
        c.until(lambda: h0.obeys, 5)
        return {"alarm_s": alarm, "refused_honest": int(not h0.obeys),
                "stolen": int(c.status()["generation"] != before)}


def large_row():
    def write(entries, length):
        health = ["map", [[f"what_{i}", "x" * length]
                          for i in range(entries)]]
        return c.transact("hosts", "Stagecoach_Hosts", {
            "op": "update", "table": "Host_Reported",
            "where": [["host", "==", "h5"]], "row": {"health": health}})

    def size():
        rows = c.transact("hosts", "Stagecoach_Hosts", {
            "op": "select", "table": "Host_Reported", "where": []})
        return len(json.dumps(rows))

    with Cluster() as c:
        c.agent("h5")
        c.until(lambda: "h5" in json.dumps(c.ask("controller/facts")))
        write(1000, 4000)               # 4 MB.
        write(1000, 90)                 # Within each limit but that of all.
        alarm = c.alarm("host-row", "h5")
        c.until(lambda: size() < 70000, 5)
        return {"alarm_s": alarm, "stolen": int(size() >= 70000)}


def many_stages():
    def announce(n):
        refused, began = 0, time.monotonic()
        for i in range(n):
            refused += not c.change("PUT", f"/v1/cojobs/s{i}", {"weight": 1})
            refused += not c.change("PUT", f"/v1/cojobs/s{i}/stages/0",
                                    {"iterations": 100, "jobs": ["t"]})
        return time.monotonic() - began, refused

    # With few stages the load of the machine decides the exponent.
    few, many = (2500, 10000) if FULL else (100, 400)
    results = []
    for n in (few, many):
        with Cluster() as c:
            results.append(announce(n))
    exponent = math.log(results[1][0] / results[0][0]) / math.log(many / few)
    return {"exponent": round(exponent, 2), "stages": many,
            "seconds": round(results[1][0], 1),
            "refused_honest": results[0][1] + results[1][1],
            "failed": FULL and exponent > 1.15}


def two_policies():
    with Cluster() as c:
        other = c.dir / "other.json"
        other.write_text(c.policy.read_text().replace(
            '"coalesce_ms": 20', '"coalesce_ms": 30'))
        if other.read_text() == c.policy.read_text():
            policy = json.loads(other.read_text())
            other.write_text(json.dumps({**policy, "coalesce_ms": 30}))
        c.start_controller("d", other, f"unix:{c.dir}/d.sock")
        return {"alarm_s": c.alarm("policies-differ", "d.sock")}


def twin_hosts():
    with Cluster() as c:
        h0 = c.agent("h0")
        c.agent("h7", "127.0.0.2")
        c.agent("h7", "127.0.0.3")
        alarm = c.alarm("twin-hosts", "h7", "127.0.0.2", "127.0.0.3")
        return {"alarm_s": alarm, "refused_honest": int(not h0.obeys)}


def later_agent():
    with Cluster() as c:
        c.agent("h7", version=2)
        return {"alarm_s": c.alarm("agent-version", "h7")}


def silent_agent():
    with Cluster() as c:
        h7 = c.agent("h7")
        c.until(lambda: h7.obeys)
        h7.silent = True
        return {"alarm_s": c.alarm("agent-silent", "h7")}


def revoked_host():
    with Cluster() as c:
        h7, h0 = (c.agent(name, peers={
            "own": [own], "remote": [{"address": peer, "refused": 0,
                                      "disobeyed": 0}]})
                  for name, own, peer in (("h7", "10.0.0.7", "10.0.0.1"),
                                          ("h0", "10.0.0.1", "10.0.0.7")))
        c.until(lambda: h7.obeys and h0.obeys and h0.keys
                and c.host_state("h7") == "ordered")
        began = time.monotonic()
        c.sc("host", "revoke", "h7", "--reason", "broken into", check=False)
        ended = c.until(lambda: h7.since > began and not h0.keys and (
            c.host_state("h7") == "revoked"), ALARM_S)
        h7.obeys = h0.obeys = 0
        rows = json.dumps(c.transact("hosts", "Stagecoach_Hosts", {
            "op": "select", "table": "Host_Reported", "where": []}))
        time.sleep(2)
        return {"alarm_s": ended, "refused_honest": int(not h0.obeys),
                "stolen": bool(h7.obeys) + ('"h7"' in rows)}


def full_disk():
    """Needs the right to mount."""
    with Cluster() as c:
        c.stop(lose=True)
        c.db.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs",
                           str(c.db)], capture_output=True,
                          check=False).returncode:
            return {}
        try:
            c.sc("controller", "start", "--dbdir", str(c.db), "--policy",
                 str(c.policy))
            fill = c.db / "fill"
            with contextlib.suppress(OSError), fill.open("wb", 0) as file:
                while True:
                    file.write(b"x" * 2**20)
            begin = ("stage", "begin", "--rung", "0", "--iterations", "9",
                     "--jobs", "t", "--cojob")
            for i in range(3):
                c.sc(*begin, f"a{i}", check=False)
            fill.unlink()
            back = c.until(lambda: not c.sc(*begin, "b",
                                            check=False).returncode, 30)
            return {"refused_honest": int(back == math.inf)}
        finally:
            c.sc("controller", "stop", check=False)
            subprocess.run(["umount", str(c.db)], check=True)


def slices(side_by_side):
    """Eve announces 100 iterations and more, five at a time; Ann announces 60
    of the same job.  Counts the orders in which a slice comes first once more
    than that has been served to Eve, or is announced by her."""
    size, n = 5, 22
    bytes_each = 10**6

    def begin(cojob, uid, iterations):
        ok = c.change("PUT", f"/v1/cojobs/{cojob}", {"uid": uid})
        ok &= c.change("PUT", f"/v1/cojobs/{cojob}/jobs/t", {
            "workers": [{"host": "h0"}, {"host": "h1", "index": 1}],
            "model_bytes": bytes_each})
        ok &= c.change("PUT", f"/v1/cojobs/{cojob}/stages/0",
                       {"iterations": iterations, "jobs": ["t"]})
        for host in hosts:
            host.jobs[f"{cojob}/t"] = (0, 0, uid)
        return ok

    def serve(cojob, uid):
        for i in range(1, size + 1):
            for host in hosts:
                host.jobs[f"{cojob}/t"] = (i * bytes_each, i, uid)
            time.sleep(0.21)

    def end(cojob):
        c.change("DELETE", f"/v1/cojobs/{cojob}")
        for host in hosts:
            del host.jobs[f"{cojob}/t"]

    def is_first(cojob):
        order = c.ask("controller/order")["order"]
        names = [row["cojob"] for row in order]
        return names.index(cojob) < names.index("ann")

    with Cluster() as c:
        hosts = [c.agent("h0"), c.agent("h1")]
        c.until(lambda: all(h.obeys for h in hosts))
        begin("ann", 2001, 60)
        if side_by_side:
            names = [f"eve{i}" for i in range(n)]
            for name in names:
                begin(name, 2002, size)
            time.sleep(2)
            return {"stolen": sum(map(is_first, names))}
        for i in range(n):
            begin(f"eve{i}", 2002, size)
            serve(f"eve{i}", 2002)
            end(f"eve{i}")
        begin("eve", 2002, size)
        time.sleep(1)
        stolen = is_first("eve")
        c.restart_controller()          # The next leader goes on with it.
        time.sleep(3)
        return {"stolen": stolen + is_first("eve")}


def slices_in_sequence():
    return slices(False)


def slices_side_by_side():
    return slices(True)


ATTACKS = [lost_databases, lost_databases_clock_back, largest_generation,
           large_row, many_stages, two_policies, twin_hosts, later_agent,
           silent_agent, revoked_host, full_disk, slices_in_sequence,
           slices_side_by_side]


def main():
    for program in ("ovsdb-server", "ovsdb-client", "ovs-appctl"):
        if not shutil.which(program):
            print(f"skip: no {program}")
            sys.exit(77)
    bad = []
    for attack in ATTACKS:
        name = attack.__name__.replace("_", "-")
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        result = attack()
        failed = (result.pop("failed", False) or result.get("stolen")
                  or result.get("refused_honest")
                  or result.get("alarm_s", 0) > ALARM_S)
        if "alarm_s" in result:
            result["alarm_s"] = round(min(result["alarm_s"], 999), 1)
        print(json.dumps({"attack": name, "worked_at": SEEN_AT, **result}),
              flush=True)
        bad += [name] if failed else []
    if bad:
        sys.exit(f"FAILED: {', '.join(bad)}")


if __name__ == "__main__":
    main()
