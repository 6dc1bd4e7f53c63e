#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# bpf.py BUILD: what the programs of agent/identify/bpf cost, and what they miss.
# Parts, of which $PARTS selects some (default "short long"):
#
#    cost        TCP between two network namespaces over a veth, with the programs
#                at its egress (1,000 claims, DSCP and counters) and without
#                them, in turns of 1 s: $ROUNDS (default 11), and more up to 33
#                until two turns without them differ by at most 3 %
#    udp         the same for UDP
#    untagged    share of a job's bytes that is not counted as the job's, by the
#                way in which its processes reach the network
#    update      what the orders of 1,000 jobs take
#    idle        runs of the programs without traffic
#    scale       agent and programs with many cgroups and sockets / few
#    short       all of these, 5 minutes
#    order mixed pytorch observe
#                bpf_lab.py
#    long        all of these, 40 minutes
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import bpf_lab

build = os.path.abspath(sys.argv[1])
traffic = f"{build}/tests/lab/traffic"
hold = f"{build}/tests/bench/identity-hold"
PARTS = {"short": ["cost", "udp", "untagged", "update", "idle", "scale"],
         "long": ["order", "mixed", "pytorch", "observe"]}
parts = [part for name in os.environ.get("PARTS", "short long").split()
         for part in PARTS.get(name, [name])]
rounds = int(os.environ.get("ROUNDS", 11))
MAX_ROUNDS = 3 * rounds
SAME = 0.03
MS = 1000
IDLE_S = 10
UDP_BYTES = 1400
FEW, MANY = (10, 1000), (1000, 100000)      # Cgroups and sockets.
PREFIX = f"scbpf-{os.getpid()}"
PINS = f"/sys/fs/bpf/{PREFIX}"
MOUNT = next((line.split()[1] for line in open("/proc/mounts")
              if line.split()[2] == "cgroup2"), None)
CGROUP = f"{MOUNT}/{PREFIX}"
A, B, POD = (f"{PREFIX}-{name}" for name in "abp")
FAR = "10.96.0.2"


def skip(why):
    print(json.dumps({"bench": "bpf", "skipped": why}))
    sys.exit(0)


def sh(command):
    subprocess.run(command, shell=True, check=True)


def in_ns(netns, command, cgroup=None, **options):
    """Starts a command in a namespace and a cgroup."""
    enter = f"echo $$ > {cgroup}/cgroup.procs; " if cgroup else ""
    return subprocess.Popen(
        ["sh", "-c",
         f"{enter}exec nsenter --net=/run/netns/{netns} {command}"],
        stdout=subprocess.PIPE, text=True, **options)


def await_port(netns, kind, port):
    for _ in range(500):
        if in_ns(netns, f"ss -Hl{kind}n sport = :{port}").communicate()[0]:
            return
        time.sleep(0.01)
    raise SystemExit(f"bpf: nothing listens on port {port}")


class Hold:
    """The programs at the uplink of A, for the sockets of a cgroup."""

    def __init__(self, n=1000, cgroup=MOUNT):
        self.process = in_ns(A, f"{hold} {PINS} {cgroup} {CGROUP} eth0 {n}",
                             stdin=subprocess.PIPE)
        self.read("ready")

    def read(self, wanted=None):
        line = self.process.stdout.readline().strip()
        assert line and wanted in (None, line), (wanted, line)
        return line

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ask(self, command):
        self.tell(command)
        return self.read()

    def close(self):
        self.process.communicate()
        assert self.process.returncode == 0


def make_pair(mtu):
    sh(f"ip netns add {A}; ip netns add {B}; ip netns add {POD}")
    for netns in A, B, POD:
        sh(f"ip netns exec {netns} sysctl -qw"
           " net.ipv6.conf.all.disable_ipv6=1"
           " net.ipv6.conf.default.disable_ipv6=1 net.ipv4.ip_forward=1")
    sh(f"ip link add eth0 mtu {mtu} netns {A} type veth"
       f" peer name eth0 mtu {mtu} netns {B}")
    sh(f"ip -n {A} addr add 10.96.0.1/24 dev eth0; ip -n {A} link set eth0 up")
    sh(f"ip -n {B} addr add {FAR}/24 dev eth0; ip -n {B} link set eth0 up")


def remove_pair():
    for netns in A, B, POD:
        done = subprocess.run(["ip", "netns", "pids", netns],
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        for pid in done.stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", netns],
                       stderr=subprocess.DEVNULL)


def cpu_s():
    """Processor time of all: user, nice, system, irq, softirq."""
    with open("/proc/stat", encoding="utf-8") as f:
        fields = [int(x) for x in f.readline().split()[1:]]
    return sum(fields[i] for i in (0, 1, 2, 5, 6)) / os.sysconf("SC_CLK_TCK")


def tcp(flows):
    """Returns Mbit/s of payload, and processor seconds of a Gbit.  The ends of
    one flow have a processor each: where the kernel puts them decides more
    than the programs do."""
    pins = [f"taskset -c {i} " if flows == 1 else "" for i in (0, 1)]
    sink = in_ns(B, f"{pins[1]}{traffic} sink {MS + 300} 7001")
    await_port(B, "t", 7001)
    before = cpu_s()
    sources = [in_ns(A, f"{pins[0]}{traffic} bulk {FAR} 7001 {MS}", CGROUP)
               for _ in range(flows)]
    for source in sources:
        source.communicate()
    busy = cpu_s() - before
    out = sink.communicate()[0]
    got = sum(int(line.split()[2]) for line in out.splitlines())
    return got * 8 / MS / 1000, busy / (got * 8 / 1e9)


def udp():
    """Returns Mbit/s of payload that a sender sends, and processor seconds of
    a Gbit."""
    sink = in_ns(B, "/usr/bin/python3 -c 'import socket, sys; s = socket.socket("
                 "type=socket.SOCK_DGRAM); s.bind((\"\", 7002));"
                 " sys.stdin.read()'", stdin=subprocess.PIPE)
    await_port(B, "u", 7002)
    before = cpu_s()
    source = in_ns(A, f"{traffic} blast {FAR} 7002 {MS} {UDP_BYTES}", CGROUP)
    sent = int(source.communicate()[0].split()[1]) * UDP_BYTES
    busy = cpu_s() - before
    sink.communicate()
    return sent * 8 / MS / 1000, busy / (sent * 8 / 1e9)


def pairs(measure):
    """Medians over the rounds of the ratios with / without the programs, and
    of two measurements without."""
    ratios, same = [], []
    while len(same) < rounds or (
            len(same) < MAX_ROUNDS
            and abs(statistics.median(s[0] for s in same) - 1) > SAME):
        first = measure()
        held = Hold()
        on = measure()
        held.close()
        second = measure()
        between = [(x + y) / 2 for x, y in zip(first, second)]
        ratios.append([x / y for x, y in zip(on, between)])
        same.append([x / y for x, y in zip(first, second)])
        print("bpf:", ratios[-1], "same:", same[-1], file=sys.stderr)
    return ([statistics.median(r) for r in zip(*ratios)],
            [statistics.median(r) for r in zip(*same)])


def cost(figures):
    for mtu in 1500, 9000:
        make_pair(mtu)
        (one, cpu_one), (same, same_cpu) = pairs(lambda: tcp(1))
        (eight, cpu_eight), (same_eight, _) = pairs(lambda: tcp(8))
        figures[f"vs_veth_{mtu}"] = round(min(one, eight), 3)
        figures[f"vs_veth_{mtu}_one"] = round(one, 3)
        figures[f"vs_veth_{mtu}_eight"] = round(eight, 3)
        figures[f"same_{mtu}"] = round(same, 3)
        figures[f"same_{mtu}_eight"] = round(same_eight, 3)
        figures[f"cpu_{mtu}"] = round(max(cpu_one, cpu_eight), 3)
        figures[f"same_cpu_{mtu}"] = round(same_cpu, 3)
        remove_pair()
    figures["cpu_vs_plain"] = max(figures["cpu_1500"], figures["cpu_9000"])


def cost_udp(figures):
    make_pair(1500)
    (ratio, cpu), (same, _) = pairs(udp)
    figures["udp_vs_plain"] = round(ratio, 3)
    figures["udp_cpu_vs_plain"] = round(cpu, 3)
    figures["same_udp"] = round(same, 3)
    remove_pair()


def join(kind):
    """Joins the pod's namespace to A; the far end is FAR or behind it."""
    sh(f"ip link add pod netns {A} type veth peer name eth0 netns {POD}")
    sh(f"ip -n {A} link set pod up; ip -n {POD} link set eth0 up")
    if kind == "bridged":
        sh(f"ip -n {A} link add br0 type bridge; ip -n {A} link set br0 up;"
           f" ip -n {A} link set pod master br0;"
           f" ip -n {A} addr flush dev eth0; ip -n {A} link set eth0 master"
           f" br0; ip -n {POD} addr add 10.96.0.9/24 dev eth0")
        return FAR
    sh(f"ip -n {A} addr add 10.97.0.1/24 dev pod;"
       f" ip -n {POD} addr add 10.97.0.9/24 dev eth0;"
       f" ip -n {POD} route add default via 10.97.0.1")
    if kind == "routed":
        sh(f"ip -n {B} route add 10.97.0.0/24 via 10.96.0.1")
        return FAR
    for netns, here, there in (A, "10.96.0.1", FAR), (B, FAR, "10.96.0.1"):
        last = here[-1]
        sh(f"ip -n {netns} link add vx0 type vxlan id 5 dstport 4789 local"
           f" {here} remote {there}; ip -n {netns} addr add"
           f" 10.98.0.{last}/24 dev vx0; ip -n {netns} link set vx0 up")
    sh(f"ip -n {B} route add 10.97.0.0/24 via 10.98.0.1")
    return "10.98.0.2"


def untagged(kind):
    """Returns the share of the sent bytes that is not the job's."""
    make_pair(1500)
    netns, address = A, FAR
    if kind in ("bridged", "routed", "vxlan"):
        netns, address = POD, join(kind)
        # So that no ARP, which is of no job, follows inside VXLAN.
        in_ns(netns, f"{traffic} flood {address} 7009 20 10").communicate()
    held = None if kind == "before" else Hold()
    late = kind == "late"
    before = (0, 0)
    if kind == "accepted":
        server = in_ns(A, f"{traffic} sink {MS + 300} 7001", CGROUP)
        await_port(A, "t", 7001)
        in_ns(B, f"{traffic} bulk 10.96.0.1 7001 {MS}").communicate()
        server.communicate()
    else:
        sink = in_ns(B, f"{traffic} sink {MS + 800} 7001")
        await_port(B, "t", 7001)
        source = in_ns(netns, f"{traffic} bulk {address} 7001 {MS}",
                       None if late else CGROUP)
        time.sleep(0.4)
        held = held or Hold()
        if late:
            held.ask(f"claim {source.pid}")
            time.sleep(0.01)    # For a packet that was being looked up.
            before = [int(n) for n in held.ask("show").split()]
        source.communicate()
        sink.communicate()
    job, all_bytes = (int(n) for n in held.ask("show").split())
    held.close()
    remove_pair()
    share = 1 - (job - before[0]) / (all_bytes - before[1])
    print(f"bpf: {kind}: {share:.2g} of {all_bytes} bytes are not the job's",
          file=sys.stderr)
    return share


def updates(figures):
    make_pair(1500)
    held = Hold()
    calls, ms = held.ask("update 1000").split()
    held.close()
    remove_pair()
    figures["update_1000_calls"] = int(calls)
    figures["update_1000_ms"] = float(ms)


def idle(figures):
    make_pair(1500)
    held = Hold(cgroup=CGROUP)
    runs, wakes = held.ask(f"idle {IDLE_S}").split()
    held.close()
    remove_pair()
    figures["idle_runs"] = int(runs)
    figures["idle_wakeups"] = int(wakes)


class Crowd:
    """Processes with sockets, each in a cgroup of its own."""

    def __init__(self, kind, cgroups, sockets):
        self.folder = f"{CGROUP}/{kind}"
        self.cgroups = [f"{self.folder}/bench/j{i}" for i in range(cgroups)]
        ready, self.end = os.pipe(), os.pipe()
        self.pids = []
        for path in self.cgroups:
            os.makedirs(path)
            self.pids.append(os.fork())
            if not self.pids[-1]:
                self.hold(path, sockets // cgroups, ready[1])
        os.close(ready[1])
        for _ in self.cgroups:
            assert os.read(ready[0], 1), "a process has failed"

    def hold(self, path, sockets, ready):
        """What a process does; never returns."""
        try:
            os.close(self.end[1])
            with open(f"{path}/cgroup.procs", "w", encoding="utf-8") as f:
                f.write(str(os.getpid()))
            held = [socket.socket(type=socket.SOCK_DGRAM)
                    for _ in range(sockets)]
            os.write(ready, b"1")
            os.read(self.end[0], 1)
            del held
        finally:
            os._exit(0)

    def close(self):
        os.close(self.end[1])
        for pid in self.pids:
            os.waitpid(pid, 0)
        sh(f"find {self.folder} -depth -type d -delete")


def agent_share(kind, size):
    """Returns the processor seconds of a second of an agent whose host has
    ten jobs, and cgroups and sockets of "jobs" or "others"."""
    cgroup = os.path.relpath(CGROUP, MOUNT)
    with tempfile.TemporaryDirectory() as folder:
        agent = in_ns(
            A, f"{build}/agent/stagecoach-agent --host=h0 --uplink=eth0"
            f" --pins={PINS} --kernel-cgroup={cgroup} --cgroup={cgroup}/jobs"
            f" --rundir={folder} -vconsole:warn -vsyslog:off")
        crowds = [Crowd(kind, *size)]
        if kind != "jobs":
            crowds.append(Crowd("jobs", *FEW))
        time.sleep(6)           # It gets to know them.
        used = [0, 0]
        for i in 0, 1:
            time.sleep(i * IDLE_S)
            for task in os.listdir(f"/proc/{agent.pid}/task"):
                with open(f"/proc/{agent.pid}/task/{task}/schedstat",
                          encoding="utf-8") as f:
                    used[i] += int(f.read().split()[0])
        agent.terminate()
        agent.communicate()
    sh(f"nsenter --net=/run/netns/{A} {build}/agent/stagecoach-agent"
       f" --unload --pins={PINS}")
    for crowd in reversed(crowds):
        crowd.close()
    return (used[1] - used[0]) / 1e9 / IDLE_S


def segment_ns(size):
    """Returns the time of a segment in the program at the uplink."""
    held = Hold(size[0])
    crowd = Crowd("others", *size)
    times = []
    for _ in range(rounds):
        held.tell("cost")
        tcp(1)
        times.append(float(held.ask("")))
    crowd.close()
    held.close()
    return statistics.median(times)


def scale(figures):
    make_pair(9000)
    few, many, jobs = (agent_share(*of) for of in (
        ("others", FEW), ("others", MANY), ("jobs", MANY)))
    figures["agent_share"] = round(few, 5)
    figures["scale_agent"] = round(many / few, 3)
    figures["scale_jobs"] = round(jobs / few, 3)
    few, many = segment_ns(FEW), segment_ns(MANY)
    figures["segment_ns"] = few
    figures["scale_segment"] = round(many / few, 3)
    figures["scale"] = max(figures["scale_agent"], figures["scale_segment"])
    remove_pair()


def cases(figures):
    shares = {kind: untagged(kind) for kind in
              ("host", "bridged", "routed", "vxlan", "accepted", "late",
               "before")}
    figures["untagged"] = max(shares.values())
    figures.update((f"untagged_{kind}", share)
                   for kind, share in shares.items())


def main():
    if os.geteuid():
        skip("needs root")
    if not os.path.exists(hold):
        skip("built without the agent")
    os.mkdir(CGROUP)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    figures = {}
    measures = {"cost": cost, "udp": cost_udp, "untagged": cases,
                "update": updates, "idle": idle, "scale": scale,
                **bpf_lab.MEASURES}
    try:
        for part in parts:
            measures[part](figures)
    finally:
        remove_pair()
        sh(f"rm -rf {PINS}; find {CGROUP} -depth -type d -delete")
    print(json.dumps({"bench": "bpf", "figures": figures}))


main()
