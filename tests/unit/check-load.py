#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-load.py TRAINER: what others use of a worker's machine, as it reports
that to lbbsp-cpu, is what a speed profile defines, and otherwise measured.
"""

import json
import os
import subprocess
import sys
import tempfile

TRAINER = os.path.abspath(sys.argv[1])
PROFILE = {"name": "busy", "workers": [
    {"samples_per_s": 100000,
     "steps": [{"at_s": 0, "factor": 0.4, "memory": 0.9}]}]}


def loads_of(*options):
    """Returns the events "load" of the only worker of a job."""
    server = subprocess.Popen(
        [TRAINER, "server", "--workers", "1", "--sync", "lbbsp-cpu"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = json.loads(server.stdout.readline())["port"]
    worker = subprocess.run(
        [TRAINER, "worker", "--server", f"127.0.0.1:{port}", "--workers", "1",
         "--rank", "0", "--shape", "512,512,10", "--batch", "512",
         "--samples", "1024", "--iterations", "15", "--backend", "cpu",
         *options],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=True)
    server.communicate(timeout=60)
    assert server.returncode == 0, server
    events = [json.loads(line) for line in worker.stdout.splitlines()]
    loads = [e for e in events if e["event"] == "load"]
    assert loads, worker
    for load in loads:
        assert load["samples"] == 512 and load["seconds"] > 0, load
        assert 0 <= load["cpu"] <= 1 and 0 <= load["memory"] <= 1, load
    return loads


def memory_by_others():
    """Returns the part of this machine's memory that is in use."""
    with open("/proc/meminfo", encoding="ascii") as f:
        sizes = dict(line.split()[:2] for line in f)
    return 1 - int(sizes["MemAvailable:"]) / int(sizes["MemTotal:"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "busy.json")
        with open(profile, "w", encoding="ascii") as f:
            json.dump(PROFILE, f)
        for load in loads_of("--speed-profile", profile):
            assert abs(load["cpu"] - 0.6) < 0.1, load
            assert abs(load["memory"] - 0.9) < 0.1, load

    # A measured use is that of this machine, and more if tasks wait for memory.
    before = memory_by_others()
    least = min(load["memory"] for load in loads_of())
    uses = [before, memory_by_others()]
    assert min(uses) / 2 < least < max(uses) + 0.2, (least, uses)


main()
