# SPDX-License-Identifier: Apache-2.0
"""control.py scale|fanout [RETAG]: runs controllers and their databases on
this machine with the agents of control-scale.c, and prints the figures of
control-scale or control-fanout as a JSON object.  "emulate" is of its own use.

RETAG is the output of fanout-retag.  Variables make it smaller: $AGENTS and
$ROUNDS of fanout; $SIZES, $EVENTS, $IDLE, $BIG and $SWITCHES of scale, and
$PARTS, those of its parts to run; figures of others are absent."""

import asyncio
import importlib.util
import json
import math
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.getcwd()
BUILD = os.path.realpath(os.environ.get("BUILD", "build"))
SCHEMAS = {"intent": "Stagecoach_Intent", "hosts": "Stagecoach_Hosts"}
QUIET = ["-vconsole:off", "-vsyslog:off"]


def number(name, default):
    return int(os.environ.get(name, default))


def run(*command, **kwargs):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE, **kwargs).stdout


def wait_for(what, test, seconds=60):
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            sys.exit(f"control: never: {what}")
        time.sleep(0.1)


def succeeds(*command):
    return subprocess.run(command, check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(") ", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


class Control:
    """Databases of some members and controllers, in the working directory."""

    def __init__(self, members=1, controllers=1, pki=None, options=()):
        self.folder = tempfile.mkdtemp(prefix="sct-control-", dir="/tmp")
        os.chdir(self.folder)
        os.environ.update(OVS_RUNDIR=self.folder, OVS_DBDIR=self.folder)
        self.pki, self.options = pki, options
        self.processes, self.controllers = [], {}
        self.remotes = {"intent": [], "hosts": []}
        self.agents, self.telemetry = [], []   # Addresses for agents.
        for i in range(members):
            for db in SCHEMAS:
                self.add_member(db, i)
        for i in range(controllers):
            self.add_controller(i)
        wait_for("a leader", self.leader)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        os.chdir(ROOT)
        shutil.rmtree(self.folder)

    def tls(self):
        """Returns the options of a program with TLS."""
        identity = f"{self.pki}/controllers/c1/identity.pem"
        return ["-p", identity, "-c", identity, "-C",
                f"{self.pki}/controllers/c1/ca.pem"] if self.pki else []

    def start(self, *command):
        # pylint: disable=consider-using-with
        # A session of its own has its own part of a busy machine.
        self.processes.append(subprocess.Popen(command,
                                               start_new_session=True))
        return self.processes[-1]

    def address(self, name, addresses):
        """Returns what a server listens at, and adds what agents use."""
        port = free_port()
        addresses.append(f"ssl:127.0.0.1:{port}" if self.pki
                         else f"unix:{name}")
        return f"pssl:{port}:127.0.0.1" if self.pki else f"punix:{name}"

    def add_member(self, db, i):
        file, raft = f"{db}{i}.db", f"unix:{db}{i}.raft"
        if i == 0:
            run("ovsdb-tool", "--election-timer=1000", "create-cluster", file,
                f"{ROOT}/wire/{db}.ovsschema", raft)
        else:
            run("ovsdb-tool", "join-cluster", file, SCHEMAS[db], raft,
                f"unix:{db}0.raft")
        remotes = {f"punix:{db}{i}.sock"}
        if db == "hosts":
            remotes.add(self.address(f"{db}{i}.sock", self.agents))
        self.start("ovsdb-server", f"--unixctl={self.folder}/{db}{i}.ctl",
                   "--no-chdir", *QUIET, *self.tls(),
                   *(f"--remote={remote}" for remote in remotes), file)
        wait_for(f"{db}{i}", lambda: succeeds(
            "ovsdb-client", "-t", "2", "list-tables", f"unix:{db}{i}.sock",
            SCHEMAS[db]))
        self.remotes[db].append(f"unix:{db}{i}.sock")

    def add_controller(self, n):
        self.controllers[n] = self.start(
            f"{BUILD}/controller/stagecoach-controller",
            *(f"--{db}={','.join(self.remotes[db])}" for db in SCHEMAS),
            "--telemetry=" + self.address(f"telemetry{n}.sock",
                                          self.telemetry),
            "--rest=none", f"--unixctl={self.folder}/controller{n}.ctl",
            f"--policy={ROOT}/policies/stage.json", *self.options,
            *self.tls(), *QUIET)

    def stop_controller(self, i):
        process = self.controllers.pop(i)
        self.processes.remove(process)
        process.kill()
        process.wait()
        self.telemetry.clear()

    def ask(self, i, command):
        """Returns the answer of controller 'i', {} without one."""
        try:
            return json.loads(run("ovs-appctl", "-T", "60", "-t",
                                  f"{self.folder}/controller{i}.ctl", command,
                                  stderr=subprocess.DEVNULL))
        except subprocess.CalledProcessError:
            return {}

    def leader(self):
        """Returns the process of the controller that leads, or None."""
        for i, process in self.controllers.items():
            if self.ask(i, "controller/status").get("state") == "active":
                return process
        return None

    def wait_programmed(self, i):
        """Returns the seconds until all switches are in sync, and those of the
        processor."""
        began = time.monotonic()
        wait_for("switches in sync", lambda: {
            row["state"] for row in self.ask(i, "controller/switches").get(
                "switches", [])} == {"in sync"}, 300)
        return [round(time.monotonic() - began, 2),
                cpu_seconds(self.controllers[i].pid)]

    def log_entries(self):
        """Returns the number of transactions ever of both databases."""
        lines = "".join(run("ovs-appctl", "-t", f"{self.folder}/{db}0.ctl",
                            "cluster/status", name)
                        for db, name in SCHEMAS.items()).splitlines()
        return sum(int(line.split(",")[1].strip(" ]")) for line in lines
                   if line.startswith("Log: "))

    def rss_mib(self):
        with open(f"/proc/{self.leader().pid}/status", encoding="ascii") as f:
            line = next(line for line in f if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    def drive(self, agents, searches=0, changes=0, idle_s=12, events=0,
              jobs=1, on=0, kill=0, rows=True):
        """Runs the agents.  The first process is the leader."""
        pids = [self.leader().pid] + [
            process.pid for process in self.processes
            if process not in self.controllers.values()]
        return json.loads(run(
            f"{BUILD}/tests/bench/control-scale",
            ",".join(self.remotes["intent"]),
            ",".join(self.agents) if rows else "", ",".join(self.telemetry),
            *map(str, [agents, searches, changes, idle_s, events, jobs, on,
                       kill, self.pki or "", *pids])))


def percentile(values, percent):
    """By nearest rank."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


def order_ms():
    return float(run(f"{BUILD}/tests/bench/order-time", "full"))


def fanout(retag):
    agents, rounds = number("AGENTS", 1000), number("ROUNDS", 60)
    times, rss, writes = {}, [], []
    for name, members, n in (("hundred", 1, agents // 10),
                             ("standalone", 1, agents), ("raft", 3, agents)):
        with Control(members) as control:
            began, before = time.monotonic(), control.log_entries()
            times[name] = control.drive(n, events=rounds, on=n)
            writes.append((control.log_entries() - before)
                          / (time.monotonic() - began))
            rss.append(control.rss_mib())
    with open(retag, encoding="ascii") as f:
        times["retag"] = {"event_ms": [float(line) for line in f]}
    figures = {f"{name}_p{percent}_ms": percentile(run["event_ms"], percent)
               for name, run in times.items() for percent in (50, 99)}
    return {"agents": agents,
            "connect_s": times["standalone"]["connect_ms"] / 1000, **figures,
            "fanout_vs_order": figures["standalone_p99_ms"] / order_ms(),
            "controller_rss_mib": max(rss), "write_txn_per_s": max(writes)}


def fabric(folder, switches, hosts):
    """Writes a topology of leaves and spines, with 16 leaves a spine and four
    spines a leaf, whose switches listen in 'folder'."""
    spines = max(4, switches // 17)
    leaves = switches - spines
    links = [{"ends": [{"switch": f"s{spines + leaf}", "port": 1 + i},
                       {"switch": f"s{(leaf + i) % spines}",
                        "port": 1 + leaf * 4 + i}],
              "capacity": "100Gbit"} for leaf in range(leaves)
             for i in range(4)]
    with open(f"{folder}/fabric.json", "w", encoding="ascii") as f:
        json.dump({"switches": [{"name": f"s{i}", "datapath": f"{i + 1:016x}",
                                 "target": f"unix:{folder}/s{i}.mgmt"}
                                for i in range(switches)],
                   "links": links,
                   "hosts": [{"name": f"h{i}", "capacity": "100Gbit",
                              "ip": f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}",
                              "at": {"switch": f"s{spines + i % leaves}",
                                     "port": 10 + i // leaves}}
                             for i in range(hosts)]}, f)


async def emulate(folder, n):
    """Emulates 'n' switches of 64 ports; prints the number of dumps when its
    input has a line."""
    spec = importlib.util.spec_from_file_location(
        "fake_switch", f"{ROOT}/tests/lab/fake-switch.py")
    fake = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fake)

    class Emulated(fake.Obedient):
        def __init__(self, i):
            super().__init__(f"s{i}")
            self.datapath = i + 1
            self.rows = {fake.FLOWS: [], fake.GROUPS: [], 13: [
                struct.pack(">I4x6s2x16s8I", port, b"\2\0\0\0\0\1",
                            b"p%d" % port, *[0] * 8) for port in range(1, 65)]}

        async def answer(self, out, kind, xid, body):
            if kind == fake.FLOW_MOD:
                self.rows[fake.FLOWS].append(fake.dumped(body))
            elif kind == 15:    # A group: its number, its kind, its buckets.
                self.rows[fake.GROUPS].append(
                    struct.pack(">H", len(body)) + body[2:])
            else:
                await super().answer(out, kind, xid, body)

        async def dump(self, out, xid, part):
            rows = self.rows[part]
            size = 60000 // max(map(len, rows), default=1)
            for i in range(0, max(1, len(rows)), size):
                more = i + size < len(rows)
                out.write(fake.message(
                    fake.MULTIPART, struct.pack(">HHI", part, more, 0)
                    + b"".join(rows[i:i + size]), xid))

    switches = [Emulated(i) for i in range(n)]
    for switch in switches:
        await asyncio.start_unix_server(switch.serve,
                                        f"{folder}/{switch.name}.mgmt")
    while True:
        print(sum(switch.dumps for switch in switches), flush=True)
        if not await asyncio.to_thread(sys.stdin.readline):
            break


class Scale:
    def __init__(self):
        self.sizes = [int(n) for n in
                      os.environ.get("SIZES", "300 1000 3000").split()]
        self.middle = self.sizes[-2]
        self.big = number("BIG", 10000)
        self.results = {}
        self.pki = tempfile.mkdtemp(prefix="sct-pki-", dir="/tmp")

    def issue(self, n):
        pki = [f"{BUILD}/cli/stagecoach", "pki"]
        run(*pki, "init", "--dir", self.pki)
        run(*pki, "issue", "controller", "c1", "--dir", self.pki)
        run(*pki, "issue", "agent", *(f"h{i}" for i in range(n)), "--dir",
            self.pki)

    def load(self, control, n, **more):
        return control.drive(n, n // 5, 1, number("IDLE", 20), **more)

    def events(self, n, members=1):
        with Control(members, pki=self.pki) as control:
            return self.load(control, n, events=number("EVENTS", 200), jobs=2,
                             on=min(n // 2 * 2, 16))

    def part(self, name):
        if name.isdigit():
            return self.events(int(name))
        if name == "raft":
            return self.events(self.middle, 3)
        if name == "kill":
            with Control(controllers=2, pki=self.pki) as control:
                return self.load(control, self.middle,
                                 kill=control.leader().pid)
        if name == "order":
            return order_ms()
        if name == "switches":
            return self.switches()
        with Control(pki=self.pki) as control:
            control.drive(self.big, self.big // 5, rows=False)
            return control.rss_mib()

    def switches(self):
        """Returns seconds, and those of the controller's processor, until all
        switches are programmed, and until a new controller has seen that; and
        the load of an idle controller with them and without."""
        n, hosts = number("SWITCHES", 500), self.middle
        result = {}
        with Control(pki=self.pki) as control:
            alone = self.load(control, hosts)
        folder = tempfile.mkdtemp(prefix="sct-fabric-", dir="/tmp")
        fabric(folder, n, hosts)
        with subprocess.Popen([sys.executable, __file__, "emulate", folder,
                               str(n)], stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE) as emulator:
            emulator.stdout.readline()
            control = Control(pki=self.pki, options=[
                f"--topology={folder}/fabric.json"])
            with control:
                result["program"] = control.wait_programmed(0)
                control.stop_controller(0)
                control.add_controller(1)
                result["restart"] = control.wait_programmed(1)
                def dumps():
                    emulator.stdin.write("\n")
                    emulator.stdin.flush()
                    return int(emulator.stdout.readline())

                before = dumps()
                loaded = self.load(control, hosts)
                result["dumps"] = dumps() - before
            emulator.stdin.close()
        shutil.rmtree(folder)
        return {**result, "idle_core": [alone["idle_cpu"][0],
                                        loaded["idle_cpu"][0]]}

    def run(self):
        parts = os.environ.get("PARTS", " ".join(
            [*map(str, self.sizes), "raft", "kill", "order", "switches", "big"])).split()
        try:
            self.issue(max(self.sizes + [self.big] * ("big" in parts)))
            for part in parts:
                self.results[part] = self.part(part)
                print(part, json.dumps(self.results[part]), file=sys.stderr)
        finally:
            shutil.rmtree(self.pki)
        return self.figures()

    def figures(self):
        def p99(part):
            return percentile(self.results[part]["event_ms"], 99)

        def exponent(what):
            small, large = (what(self.results[str(n)])
                            for n in (self.sizes[0], self.sizes[-1]))
            return (math.log(max(large, 1e-6) / max(small, 1e-6))
                    / math.log(self.sizes[-1] / self.sizes[0]))

        middle = str(self.middle)
        figures = {
            "event_vs_order": lambda: p99(middle) / self.results["order"],
            "event_growth": lambda: p99(middle) / p99(str(self.sizes[0])),
            "exponent_event": lambda: exponent(lambda r: r["event_cpu"]),
            "exponent_idle": lambda: exponent(lambda r: sum(r["idle_cpu"])),
            "idle_vs_parse": lambda: sum(
                self.results[middle]["idle_cpu"]) * 1e6 / (
                    self.middle * self.results[middle]["parse_us"]),
            "messages_per_host": lambda: (
                self.results[middle]["messages"]
                / max(1, self.results[middle]["concerned"])),
            "raft_vs_one": lambda: p99("raft") / p99(middle),
            "lease_lost": lambda: self.results["kill"]["lost"],
            "rss_mib": lambda: self.results["big"],
            "event_p99_ms": lambda: p99(middle),
            "program_s": lambda: self.results["switches"]["program"][0],
            "restart_s": lambda: self.results["switches"]["restart"][0],
            "dumps": lambda: self.results["switches"]["dumps"],
            "idle_core": lambda: self.results["switches"]["idle_core"][0],
            "idle_core_switches":
                lambda: self.results["switches"]["idle_core"][1],
        }
        found = {}
        for name, figure in figures.items():
            try:
                found[name] = round(figure(), 3)
            except KeyError:    # Of a part that was not run.
                pass
        return found


if sys.argv[1] == "emulate":
    asyncio.run(emulate(sys.argv[2], int(sys.argv[3])))
    sys.exit()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
figures = fanout(sys.argv[2]) if sys.argv[1] == "fanout" else Scale().run()
print(json.dumps({"bench": f"control-{sys.argv[1]}", "figures": figures}))
