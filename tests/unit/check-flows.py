# SPDX-License-Identifier: Apache-2.0
"""check-flows.py STAGECOACH: flows, bursts and jobs of made captures."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

import capture
from capture import NS, tcp

STAGECOACH = pathlib.Path(sys.argv[1]).resolve()
START = 1_700_000_000 * NS
MS = NS // 1000
failures = 0


def expect(condition, what):
    global failures
    if not condition:
        print(f"not ok: {what}")
        failures += 1


def job(rng, ends, period, n, size):
    """Flows that burst together, a worker's after one another by chance."""
    frames, now = [], START + rng.randrange(period)
    while now < START + 20 * NS:
        for end in ends:
            late = rng.randrange(period // 50)
            for i in range(n):
                when = now + late + i * MS // 2 + rng.randrange(MS // 10)
                frames.append((when, tcp(end, "10.0.9.1:5000", size)))
                if i % 2:
                    frames.append((when + MS // 4,
                                   tcp("10.0.9.1:5000", end, 60)))
        now += int(period * rng.uniform(0.97, 1.03))
    return frames


def run(path, *options, status=0):
    done = subprocess.run([STAGECOACH, "flows", path, *options],
                          capture_output=True, text=True, timeout=60,
                          check=False)
    expect(done.returncode == status, f"{options}: {done.stderr}")
    return done.stdout, done.stderr


def main(folder):
    rng = random.Random(1)
    a = ["10.0.0.1:1001", "10.0.0.2:1002", "10.0.0.3:1003"]
    b = ["10.0.1.1:1001", "10.0.1.2:1002"]
    frames = job(rng, a, 400 * MS, 40, 1000) + job(rng, b, 730 * MS, 60, 900)
    frames += [(START + i * 10 * MS, tcp("10.0.2.1:9", "10.0.9.1:9", 500))
               for i in range(2000)]
    frames.append((START, capture.ethernet(b"\0" * 46, 0x0806)))
    path = folder / "in.pcap"
    capture.write_pcap(path, sorted(frames, key=lambda f: f[0]))
    out, _ = run(path, "--format", "json")
    profile = json.loads(out)
    expect(profile["frames"] == len(frames) and profile["other_frames"] == 1
           and len(profile["flows"]) == 6, "counts")
    expect(profile["bytes"] == sum(len(f) for _, f in frames), "bytes")
    groups = {}
    for flow in profile["flows"]:
        ends = flow["a"] if "10.0.9.1" in flow["b"] else flow["b"]
        groups.setdefault(flow["group"], set()).add(ends)
    expect(sorted(map(sorted, groups.values()))
           == sorted([a, b, ["10.0.2.1:9"]]), f"groups {groups}")
    for number, ends in groups.items():
        group = profile["groups"][number]
        if ends == set(a) or ends == set(b):
            period, size = (0.4, 3 * 40 * 1000 + 3 * 20 * 60) if (
                ends == set(a)) else (0.73, 2 * 60 * 900 + 2 * 30 * 60)
            expect(abs(group["period_s"] - period) < 0.03 * period
                   and abs(group["burst_bytes"] - size) < 0.03 * size
                   and group["confidence"] > 0.7, f"group {group}")
    table, _ = run(path)
    expect("10.0.0.1:1001" in table and "confidence" in table, table)
    path.write_bytes(b"no capture at all, but text of 24 bytes or more")
    _, error = run(path, status=1)
    expect(error.startswith(str(path)) and error.count("\n") == 1, error)
    run(path, "--format", "xml", status=2)
    run(path, str(path), status=2)
    capture.write_pcap(path, [])
    expect(json.loads(run(path, "--format", "json")[0])["flows"] == [],
           "an empty capture")


with tempfile.TemporaryDirectory() as name:
    main(pathlib.Path(name))
print(f"{failures} failures")
sys.exit(failures > 0)
