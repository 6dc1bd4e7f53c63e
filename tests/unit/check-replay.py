# SPDX-License-Identifier: Apache-2.0
"""check-replay.py STAGECOACH-SHIM: what leaves a replay, when and how tagged.

Runs without root, huge pages and a directory that DPDK could write to.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
from random import Random

import capture
from capture import NS, tcp
from case_lines import case

SHIM = pathlib.Path(sys.argv[1]).resolve()
START = 1_700_000_000 * NS
RULES = {
    "host": {"addresses": ["10.0.0.1"]},
    "rate": "10Mbit",
    "jobs": [
        {"name": "a/high", "level": 1, "flows": [{"remote_port": 5001}]},
        {"name": "a/low", "level": 5, "flows": [{"remote_port": 5002}]},
    ],
}


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


def be_nobody():
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def run(folder, frames, rules, options=(), write=capture.write_pcap,
        status=0):
    """Returns (frames out, frames to the host, counts, standard error)."""
    if frames is not None:
        write(folder / "in.pcap", frames)
    (folder / "rules.json").write_text(json.dumps(rules))
    done = subprocess.run(
        [SHIM, "--replay", "in.pcap", "--out", "out.pcap", "--to-host",
         "host.pcap", "--rules", "rules.json", *options], cwd=folder,
        env={"XDG_RUNTIME_DIR": "/nonexistent"}, preexec_fn=be_nobody,
        capture_output=True, text=True, timeout=60, check=False)
    expect(done.returncode == status,
           f"status {done.returncode}: {done.stderr} {done.stdout}")
    if status:
        expect(len(done.stderr.splitlines()) == 1, done.stderr)
        return [], [], {}, done.stderr.strip()
    expect(not done.stderr, done.stderr)
    counts = {}
    for line in done.stdout.splitlines():
        words = line.split()
        key = " ".join(words[:2]) if words[0] == "job" else ""
        rest = words[2:] if key else words
        if words[0] == "bytes":
            key, rest = "bytes", words[1:]
        if words[0] == "bursts":
            key, rest = " ".join(words[:3]), words[3:]
        pairs = dict(zip(rest[::2], map(float, rest[1::2])))
        if key:
            counts[key] = pairs
        else:
            counts.update(pairs)
    return (capture.read_pcap(folder / "out.pcap"),
            capture.read_pcap(folder / "host.pcap"), counts, "")


def train(n, gap, size, remote, start=START):
    return [(start + i * gap, tcp("10.0.0.1:40000", remote, size))
            for i in range(n)]


def port(frame):
    return int.from_bytes(frame[36:38], "big")


def tos(frame):
    return frame[15]


def untagged(frame):
    return frame[:15] + frame[16:24] + frame[26:]


def paces_to_the_rate(folder):
    """1000 frames of 1514 bytes at once: 1.2112 s on 10 Mbit/s."""
    rules = dict(RULES, rate="10Mbit")
    frames = train(300, 1000, 1514, "10.0.0.2:5001")
    out, _, counts, _ = run(folder, frames, rules)
    expect(len(out) == 300 and counts["sent"] == 300, counts)
    times = [when for when, _, _ in out]
    expect(times == sorted(times), "times go back")
    burst = 10_000_000 // 8 // 2000 + 2 * (1500 + 18)
    sent = 0
    for when, frame, _ in out:
        sent += len(frame)
        allowed = burst + (when - START) * 10_000_000 // 8 // NS
        expect(sent <= allowed + 1, f"{sent} bytes; expected {allowed}")
    late = times[-1] - START - (300 * 1514 - burst) * 8 * 100
    expect(-NS // 1000 < late < NS // 1000, f"the last is {late} ns late")


def higher_goes_first_and_is_tagged(folder):
    frames = []
    for i in range(40):
        frames += train(1, 0, 1514, "10.0.0.2:5002", START + 2 * i)
        frames += train(1, 0, 1514, "10.0.0.2:5001", START + 2 * i + 1)
    out, host, counts, _ = run(folder, frames, RULES)
    expect(len(out) == 80 and not host, counts)
    by_port = {5001: [], 5002: []}
    for place, (_, frame, _) in enumerate(out):
        by_port[port(frame)].append(place)
        expect(tos(frame) == {5001: 35, 5002: 11}[port(frame)] * 4,
               f"TOS {tos(frame)} of {port(frame)}")
        expect(capture.checksum(frame[14:34]) == 0, "a wrong checksum")
    expect(sum(by_port[5001]) < sum(by_port[5002]) / 1.5, by_port)
    expect(sorted(untagged(f) for _, f, _ in out)
           == sorted(untagged(f) for _, f in frames), "a payload changed")
    expect(counts["job a/high"]["tx_packets"] == 40, counts)
    expect(counts["job a/low"]["tx_bytes"] == 40 * 1514, counts)


def knows_both_directions(folder):
    frames = [
        (START, tcp("10.0.0.1:40000", "10.0.0.2:5001", 100)),
        (START + 1000, tcp("10.0.0.2:5001", "10.0.0.1:40000", 60, tos=0x20)),
        (START + 2000, tcp("10.0.0.8:5001", "10.0.0.9:40000", 60)),
    ]
    out, host, counts, _ = run(folder, frames, RULES)
    expect(len(out) == 1 and len(host) == 2, counts)
    expect(host[0][1] == frames[1][1], "changed on the way to the host")
    expect(counts["job a/high"]["rx_packets"] == 2, counts)
    rules = dict(RULES, host={"addresses": ["10.0.0.0/29"],
                              "otherwise": "skip"})
    out, host, counts, _ = run(folder, frames, rules)
    expect(counts["skipped"] == 1 and len(host) == 0 and len(out) == 2,
           counts)
    rules = dict(RULES, host={"macs": ["02:00:00:00:00:01"]})
    out, host, counts, _ = run(folder, frames, rules)
    expect(len(out) == 3, counts)


def reads_pcapng_and_cut_frames(folder):
    frames = train(3, 1000, 700, "10.0.0.2:5001")
    out, _, _, _ = run(folder, frames, RULES, write=capture.write_pcapng)
    expect([when for when, _, _ in out] == [when for when, _ in frames],
           "times differ")
    capture.write_pcap(folder / "in.pcap", frames, snap=64)
    out, _, counts, _ = run(folder, None, RULES)
    expect([(len(f), n) for _, f, n in out] == [(64, 700)] * 3, out)
    expect(tos(out[0][1]) == 140, counts)


def sees_iterations(folder):
    frames = []
    for i in range(6):
        frames += train(50, 100_000, 1514, "10.0.0.2:5001",
                        START + i * 200_000_000)
    counts = run(folder, frames, RULES)[2]
    expect("bursts a/high tx" in counts, counts)
    bursts = counts["bursts a/high tx"]
    expect(abs(bursts["period_us"] - 200_000) < 1000
           and bursts["bytes"] == 50 * 1514, bursts)


def counts_what_it_drops(folder):
    frames = train(1000, 1000, 1514, "10.0.0.2:5002")
    frames += [(START + NS, b"\1\2\3"), (START + NS, b"\1" * 9000),
               (START, tcp("10.0.0.1:1", "10.0.0.2:9", 60))]
    out, host, counts, _ = run(folder, frames, RULES)
    expect(counts["queue_dropped"] > 0 and counts["too_long"] == 1
           and counts["reordered"] == 1 and counts["untagged"] == 1, counts)
    lost = (counts["skipped"] + counts["too_long"] + counts["queue_dropped"]
            + counts["port_dropped"])
    expect(len(out) + len(host) + lost == len(frames), counts)
    expect(counts["job a/low"]["tx_dropped"] == counts["queue_dropped"],
           counts)


def knows_frames_without_a_length(folder):
    """Unsegmented packets of all sizes, whole or cut, in both formats."""
    random = Random(12)
    for _ in range(12):
        sizes = [random.choice([90, 2000, 9000, 9015, 60_000, 120_000,
                                random.randrange(90, 9014),
                                random.randrange(9015, 262_145)])
                 for _ in range(5)]
        kind = random.choice(["ipv4", "ipv6", "jumbo"])
        remote = f"10.0.0.2:{random.choice([5001, 5002])}"
        frames = [(START + i * NS, capture.unsegmented(
            "10.0.0.1:40000", remote, size, kind))
                  for i, size in enumerate(sizes)]
        capture.write_pcap(folder / "in.pcap", frames,
                           snap=random.choice([96, 262_144]))
        if random.randrange(2):
            capture.write_pcapng(folder / "in.pcap", frames)
        rules = dict(RULES, mtu=9000, host={"macs": ["02:00:00:00:00:01"]})
        job = "job a/high" if remote.endswith("1") else "job a/low"
        sent = [size for size in sizes if size <= 9014]
        with case("captures", f"{kind} {sizes}"):
            counts = run(folder, None, rules)[2]
            expect(counts["frames"] == len(sizes) and counts["malformed"] == 0
                   and (counts["too_long"] + counts["port_dropped"]
                        == len(sizes) - len(sent))     # A tag would have room.
                   and counts[job]["tx_packets"] == len(sent)
                   and counts[job]["tx_bytes"] == sum(sent),
                   f"{kind} {sizes}: {counts}")


def has_memory_for_fast_links(folder):
    frames = train(50, 1000, 1514, "10.0.0.2:5001")
    for rate in ["2Gbit", "100Gbit"]:
        for mtu in [576, 1500, 9000]:
            rules = dict(RULES, rate=rate, mtu=mtu)
            counts = run(folder, frames, rules)[2]
            expect(counts["sent"] == (50 if mtu > 576 else 0), counts)


def keeps_what_it_has_when_interrupted(folder):
    """The capture comes from a pipe, and goes on after the signal."""
    capture.write_pcap(folder / "in.pcap",
                       train(20000, 1000, 1000, "10.0.0.2:9"))
    data = (folder / "in.pcap").read_bytes()
    (folder / "rules.json").write_text(json.dumps(RULES))
    with subprocess.Popen(
            [SHIM, "--replay", "/dev/stdin", "--out", "out.pcap", "--rules",
             "rules.json"], cwd=folder, bufsize=0, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"XDG_RUNTIME_DIR": "/nonexistent"}) as replay:
        half = len(data) // 8192 * 4096     # Much more than a pipe has.
        for at in range(0, half, 4096):
            replay.stdin.write(data[at:at + 4096])
        replay.send_signal(signal.SIGINT)
        out, errors = replay.communicate(data[half:], timeout=50)
    found = re.fullmatch(rb"interrupted after (\d+) frames\n", errors)
    expect(found and replay.returncode == 130, (replay.returncode, errors))
    n = int(found[1])
    counts = re.match(rb"frames (\d+) sent (\d+) ", out)
    expect(0 < n < 20000 and int(counts[1]) == n, (n, out))
    expect(len(capture.read_pcap(folder / "out.pcap")) == int(counts[2]), out)


def is_the_same_each_time(folder):
    frames = train(50, 100_000, 1514, "10.0.0.2:5001")
    first = run(folder, frames, RULES)
    expect(first == run(folder, frames, RULES), "it differs")


def says_what_is_wrong(folder):
    frames = train(3, 1000, 100, "10.0.0.2:5001")
    bad = folder / "in.pcap"
    for name, data, expected in [
            ("empty", b"", "in.pcap: "),
            ("text", b"hello, world, this is no capture", "in.pcap: "),
    ]:
        bad.write_bytes(data)
        error = run(folder, None, RULES, status=1)[3]
        expect(error.startswith(expected), f"{name}: {error}")
    capture.write_pcap(bad, frames, link=113)
    error = run(folder, None, RULES, status=1)[3]
    expect(error == "in.pcap: link type LINUX_SLL (113); expected only Ethernet"
           "", error)
    capture.write_pcap(bad, frames)
    bad.write_bytes(bad.read_bytes()[:-7])
    error = run(folder, None, RULES, status=1)[3]
    expect(error.startswith("in.pcap: frame 3: "), error)
    bad.unlink()
    error = run(folder, None, RULES, status=1)[3]
    expect(error == "in.pcap: No such file or directory", error)
    error = run(folder, frames, dict(RULES, speed=1), status=1)[3]
    expect(error.startswith("rules.json: /speed: "), error)
    error = run(folder, frames, RULES, ["--out", "in.pcap"], status=1)[3]
    expect(error == "--out: in.pcap is also in.pcap, another file is needed",
           error)
    expect(bad.stat().st_size > 100, "the capture was overwritten")


def main():
    tests = [paces_to_the_rate, higher_goes_first_and_is_tagged,
             knows_both_directions, reads_pcapng_and_cut_frames,
             sees_iterations, has_memory_for_fast_links,
             counts_what_it_drops, knows_frames_without_a_length,
             keeps_what_it_has_when_interrupted, is_the_same_each_time,
             says_what_is_wrong]
    if sys.argv[2:] == ["cases"]:
        tests = [knows_frames_without_a_length]
    failures = 0
    for test in tests:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            folder.chmod(0o777)
            try:
                test(folder)
                print(f"ok {test.__name__}")
            except Failure as failure:
                print(f"not ok {test.__name__}: {failure}")
                failures += 1
    return 1 if failures else 0


sys.exit(main())
