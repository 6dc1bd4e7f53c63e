#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures packets per CPU-second of the shim's pipeline and of dpdk-testpmd.

Both move 1024 frames of 64 bytes, all of one flow, from ring port to ring port
on one CPU, in bursts of 64.  Ours alone also moves a million frames of one
flow, of 1,000, 100,000 and a million: testpmd's rings hold 1023.  The programs
run alternately, so that other load on the machine affects all of them; each
figure is the median of the rounds, a ratio the median of the ratios of a round.
"cycles" are those of the time-stamp counter that a stage adds to the stages
before it.  "queued" is the whole path while other packets wait for the uplink,
"full" while none do, see shim-pps.c.
"""

import json
import os
import statistics
import subprocess
import sys
import time

BUILD = os.environ.get("BUILD", "build")
ROUNDS = int(os.environ.get("SHIM_PPS_ROUNDS", "3"))
SECONDS = float(os.environ.get("SHIM_PPS_SECONDS", "0.7"))
BURST = 64
FEW, MANY = 1024, int(os.environ.get("SHIM_PPS_MANY", "1000000"))
TSC_HZ = 0                      # Printed by shim-pps.


class Testpmd:
    """Runs testpmd with its worker alone on its CPU."""

    def __init__(self, mode, cpus, huge):
        argv = ["stdbuf", "-oL", "dpdk-testpmd", "-l", f"{cpus[0]},{cpus[-1]}", "--no-pci",
                "--no-telemetry", "--no-shconf", "-m", "160",
                "--in-memory" if huge else "--no-huge",
                "--vdev=net_ring0", "--vdev=net_ring1", "--", "-i",
                f"--forward-mode={mode}", "--nb-cores=1", f"--burst={BURST}",
                f"--total-num-mbufs={FEW + 4096}"]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.read_until("Done")     # It says so after it started the ports.

    def read_until(self, text):
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if text in line:
                return lines
        raise RuntimeError("dpdk-testpmd: " + "".join(lines[-5:]))

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def worker_ns(self):
        path = f"/proc/{self.process.pid}/task"
        for task in os.listdir(path):
            with open(f"{path}/{task}/comm", encoding="ascii") as f:
                if "-worker-" not in f.read():
                    continue
            with open(f"{path}/{task}/schedstat", encoding="ascii") as f:
                return int(f.read().split()[0])
        raise RuntimeError("dpdk-testpmd: it has no worker")

    def rate(self, seconds):
        before = self.worker_ns()
        self.say(f"start tx_first {FEW // 2 // BURST}")
        time.sleep(seconds)
        self.say("stop")
        self.read_until("Accumulated forward statistics")
        packets = int(self.process.stdout.readline().split()[1])
        self.read_until("Done.")
        return packets * 1e9 / (self.worker_ns() - before)

    def close(self):
        self.say("quit")
        self.process.communicate(timeout=20)


def testpmd_rate(mode, cpus, huge):
    program = Testpmd(mode, cpus, huge)
    try:
        return program.rate(SECONDS)
    finally:
        program.close()


def our_rate(mode, flows, frames, cpus, huge):
    env = dict(os.environ, SHIM_PPS_CPU=str(cpus[-1]))
    if not huge:
        env["SHIM_PPS_NO_HUGE"] = "1"
    out = subprocess.run(
        [BUILD + "/tests/bench/shim-pps", mode, str(flows), str(frames),
         str(SECONDS)],
        env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    values = dict(line.split() for line in out.splitlines())
    global TSC_HZ
    TSC_HZ = int(values["tsc_hz"])
    return int(values["packets"]) * 1e9 / int(values["cpu_ns"])


def free_huge_pages():
    with open("/proc/meminfo", encoding="ascii") as f:
        for line in f:
            if line.startswith("HugePages_Free"):
                return int(line.split()[1])
    return 0


def have_testpmd():
    try:
        subprocess.run(["dpdk-testpmd", "--version"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return True
    except FileNotFoundError:
        return False


# name -> (mode, flows, frames); a mode of testpmd has none of these.
RUNS = {
    "5tswap_1": ("5tswap", None, None),
    "macswap_1": ("macswap", None, None),
    "queued_1": ("queued", 1, FEW),
    "io_1": ("io", 1, FEW),
    "parse_1": ("parse", 1, FEW),
    "lookup_1": ("lookup", 1, FEW),
    "tag_1": ("tag", 1, FEW),
    "classify_1": ("classify", 1, FEW),
    "full_1": ("full", 1, FEW),
}
for many, n_flows in [("1_many", 1), ("1k", MANY // 1000),
                      ("100k", MANY // 10), ("1m", MANY)]:
    for our_mode in ("classify", "full"):
        RUNS[f"{our_mode}_{many}"] = (our_mode, n_flows, MANY)

# The cost of a stage: the run on its left less the run on its right.
STAGES = {
    "rx_tx": ("io_1", None),
    "parse": ("parse_1", "io_1"),
    "lookup": ("lookup_1", "parse_1"),
    "tag": ("tag_1", "lookup_1"),
    "count": ("classify_1", "tag_1"),
    "order_pace": ("full_1", "classify_1"),
    "order_pace_queued": ("queued_1", "classify_1"),
    "flows_100k": ("classify_100k", "classify_1_many"),
    "flows_1m": ("classify_1m", "classify_1_many"),
}

RATIOS = {
    "classify_vs_5tswap_1": ("classify_1", "5tswap_1"),
    "full_vs_5tswap_1": ("full_1", "5tswap_1"),
    "queued_vs_5tswap_1": ("queued_1", "5tswap_1"),
    "full_vs_macswap_1": ("full_1", "macswap_1"),
    "full_1k_vs_1": ("full_1k", "full_1_many"),
    "full_100k_vs_1": ("full_100k", "full_1_many"),
    "full_1m_vs_1": ("full_1m", "full_1_many"),
}


def main():
    cpus = sorted(os.sched_getaffinity(0))
    huge = free_huge_pages() >= 210
    testpmd = have_testpmd()
    if not testpmd:
        print("shim-pps: dpdk-testpmd is not installed (package dpdk-dev), "
              "ratios to it are left out", file=sys.stderr)
    rates = {name: [] for name in RUNS}
    for _ in range(ROUNDS):
        for name, (mode, flows, frames) in RUNS.items():
            if not flows and testpmd:
                rates[name].append(testpmd_rate(mode, cpus, huge))
            elif flows:
                rates[name].append(our_rate(mode, flows, frames, cpus, huge))
    figures = {}
    for name, (over, under) in RATIOS.items():
        pairs = zip(rates[over], rates[under])
        if rates[under]:
            figures[name] = round(statistics.median(a / b for a, b in pairs),
                                  3)
    cycles = {}
    for name, (with_it, without) in STAGES.items():
        cycles[name] = round(statistics.median(
            TSC_HZ / rates[with_it][i]
            - (TSC_HZ / rates[without][i] if without else 0)
            for i in range(ROUNDS)), 1)
    figures["cycles"] = cycles
    baseline = {name: round(statistics.median(r) / 1e6, 1)
                for name, r in rates.items() if r}
    print(json.dumps({"bench": "shim-pps", "figures": figures,
                      "baseline": {"mpps": baseline, "huge_pages": huge}}))


if __name__ == "__main__":
    main()
