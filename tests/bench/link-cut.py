#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts one of two uplinks of a rack while searches train.

The searches are those of lab/scenarios/racks.json, in two racks with two
spines.  Beside them, each host of a rack sends 50 datagrams a second to a host
of the other one, which returns them.  Prints one JSON object:

   cut_traffic_s   longest silence of these eight streams during the run
   cut_order_s     from the cut until the order has the other uplink alone
   cut_lost        stages that did not end, restarts, stalls
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

LAB = ["build/cli/stagecoach", "lab"]
N_HOSTS = 8
INTERVAL_US = 20000
BEATS = 1500                    # Of each stream: 30 s.
CUT_S = 8                       # From the first order with uplinks.
LIMIT_S = 60                    # Until then, and for the order after the cut.
name = f"c{os.getpid() % 1000000}"


def stream(host, folder):
    """Returns a job of a host that sends and one that returns."""
    remote = (host + N_HOSTS // 2) % N_HOSTS
    traffic = pathlib.Path("build/tests/lab/traffic").resolve()
    return {"name": f"t{host}", "hosts": [f"h{host}", f"h{remote}"],
            "command": ["sh", "-c", f"""
                if [ "$RANK" = 1 ]; then exec {traffic} echo 40000 7000; fi
                sleep 1
                exec {traffic} beat 10.77.0.{remote + 1} 7000 {BEATS} \
                    {INTERVAL_US} >{folder}/beat-{host}"""]}


def scenario(folder):
    with open("lab/scenarios/racks.json", encoding="utf-8") as f:
        top = json.load(f)
    top["fabric"]["leaf_spine"]["spines"] = 2
    top["policies"] = ["stage"]
    top["cojobs"] = [{"name": "beats", "weight": 1000,
                      "stages": [{"iterations": 1}],
                      "jobs": [stream(i, folder) for i in range(N_HOSTS)]}]
    return top


def ports():
    """Returns the ports of the order."""
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(f"/run/stagecoach/lab-{name}/controller.ctl")
        except OSError:
            return set()
        s.sendall(b'{"method": "controller/order", "params": [], "id": 0}')
        decoder, text = json.JSONDecoder(), ""
        while part := s.recv(65536):
            text += part.decode()
            try:
                reply, _ = decoder.raw_decode(text)
            except json.JSONDecodeError:
                continue
            order = json.loads(reply["result"])["order"]
            return {port for row in order for port in row["demand"]}
    return set()


def wait_for(run, present, absent):
    """Waits until the order has the port 'present' and not 'absent'."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until and run.poll() is None:
        now = ports()
        if present in now and absent not in now:
            return
        time.sleep(0.02)
    sys.exit(f"link-cut: the order does not get the port {present}")


def silence(file):
    """Returns the longest silence of a stream, seconds."""
    n = dict(line.split() for line in file.read_text().splitlines())
    lost = int(n["sent"]) - int(n["received"])
    return max(int(n["gap_us"]), lost * INTERVAL_US) / 1e6


def main():
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        file = folder / "cut.json"
        file.write_text(json.dumps(scenario(folder)))
        run = subprocess.Popen(
            [*LAB, "run", file, "--name", name, "--out", folder / "report"],
            stdout=sys.stderr)
        try:
            wait_for(run, "leaf0>spine0+spine1", None)
            time.sleep(CUT_S)
            subprocess.run([*LAB, "fault", "link", "leaf0-spine0", "down",
                            "--name", name], check=True)
            cut = time.monotonic()
            wait_for(run, "leaf0>spine1", "leaf0>spine0+spine1")
            order_s = time.monotonic() - cut
            if run.wait():
                sys.exit("link-cut: the run failed")
        finally:
            run.terminate()
            run.wait()
        report = json.loads((folder / "report/report.json").read_text())
        policy, = report["policies"]
        searches = json.loads(file.read_text())["searches"]
        stages = 1 + sum(len(s["search"]["rungs"]) for s in searches)
        print(json.dumps({
            "cut_traffic_s": max(silence(folder / f"beat-{i}")
                                 for i in range(N_HOSTS)),
            "cut_order_s": round(order_s, 3),
            "cut_lost": stages - policy["stages"] + policy["restarts"]
            + policy["stalls"],
        }))


main()
