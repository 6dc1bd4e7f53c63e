#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# gossip.py TRAINER NET PREFIX: trains eight peers in the namespaces PREFIX0...
# under each scheme to a fixed loss, and prints one JSON object; progress on
# standard error.  A network with one slow link, by a factor from 2 to 100, that
# moves every few seconds, the same moves for every scheme; and one of equal
# links.
import json
import random
import subprocess
import sys
import threading
import time

N = 8
RATE = 20e6                     # Bits a second of a link.
MOVE_S = 7                      # A link is slow for so long.
TARGET = 0.80                   # Loss of the held-out samples.
LIMIT_S = 75                    # Of a run.
PORT = 4000
ARGUMENTS = [
    "--shape", "64,128,128,10", "--batch", "256", "--learning-rate", "0.02",
    "--samples", "16384", "--held-out", "512", "--eval-every", "10",
    "--sample-cost-us", "1200", "--backend", "cpu", "--until", "1000000000",
]
trainer, net, prefix = sys.argv[1:4]


def set_link(i, j, rate):
    subprocess.run(["sh", net, "slow", prefix, str(i), str(j), "%d" % rate],
                   check=True)


def move_links(seed, stop):
    """Slows one link after the other until told to stop."""
    rng = random.Random(seed)
    while not stop.is_set():
        i, j = rng.sample(range(N), 2)
        factor = rng.uniform(2, 100)
        set_link(i, j, RATE / factor)
        stop.wait(MOVE_S)
        set_link(i, j, RATE)


class Peer:
    def __init__(self, scheme, rank):
        peers = ",".join("10.99.0.%d" % (i + 1) for i in range(N))
        self.points = []        # Wall time in s, iteration, loss.
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", prefix + str(rank), trainer, "peer",
             "--scheme", scheme, "--peers", peers, "--rank", str(rank),
             "--port", str(PORT), "--address", "10.99.0.%d" % (rank + 1),
             "--seed", "1"] + ARGUMENTS,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "progress" and event["loss"] is not None:
                if not self.points or self.points[-1][2] != event["loss"]:
                    self.points.append((event["time"] / 1000,
                                        event["iteration"], event["loss"]))


def losses_at(peers, when):
    return [next((p[2] for p in reversed(peer.points) if p[0] <= when),
                 peer.points[0][2]) for peer in peers]


def first_time(peers, measure, limit):
    """When 'measure' of all peers' losses first was at most TARGET; what
    did not get there counts as if it did at the end of its time."""
    for when in sorted(p[0] for peer in peers for p in peer.points):
        if measure(losses_at(peers, when)) <= TARGET:
            return when
    return limit


def mean(values):
    return sum(values) / len(values)


def train(scheme, seed):
    """Seconds until the mean of the peers' losses, and until the worst of
    them is the target; and iterations a second and peer."""
    stop = threading.Event()
    peers = [Peer(scheme, rank) for rank in range(N)]
    mover = threading.Thread(target=move_links, args=(seed, stop))
    try:
        while not all(peer.points for peer in peers):
            time.sleep(0.02)
        if seed is not None:
            mover.start()
        began = time.time()
        while time.time() - began < LIMIT_S:
            time.sleep(0.1)
            if all(min(p[2] for p in peer.points[-4:]) <= TARGET
                   for peer in peers):
                time.sleep(0.5)
                break
        took = time.time() - began
    finally:
        stop.set()
        if mover.is_alive():
            mover.join()
        for peer in peers:
            peer.process.terminate()
        for peer in peers:
            peer.process.wait()
            peer.thread.join()
    steps = mean([peer.points[-1][1] for peer in peers]) / took
    result = (first_time(peers, mean, began + LIMIT_S) - began,
              first_time(peers, max, began + LIMIT_S) - began, steps)
    print("%s%s: %.1f s, the last peer %.1f s, %.1f iterations a second"
          % (scheme, "" if seed is None else ", slow link %d" % seed,
             *result), file=sys.stderr, flush=True)
    return result


def main():
    schemes = sys.argv[4].split(",") if len(sys.argv) > 4 else [
        "netmax", "adpsgd", "allreduce", "prague"]
    slow = {scheme: train(scheme, 1) for scheme in schemes}
    equal = {scheme: train(scheme, None) for scheme in schemes
             if scheme in ("netmax", "adpsgd")}

    def ratio(of, which):
        if not {"netmax", of} <= set(slow):
            return None
        return round(slow[of][which] / slow["netmax"][which], 2)

    print(json.dumps({
        "bench": "gossip",
        "figures": {
            "netmax_vs_adpsgd": ratio("adpsgd", 0),
            "netmax_vs_allreduce": ratio("allreduce", 0),
            "netmax_vs_prague": ratio("prague", 0),
            "uniform_vs_adpsgd": round(equal["netmax"][0]
                                       / equal["adpsgd"][0], 3)
            if len(equal) == 2 else None,
        },
        "baseline": {
            "slow_s": {s: round(r[0], 2) for s, r in slow.items()},
            "slow_last_peer_s": {s: round(r[1], 2) for s, r in slow.items()},
            "slow_iterations_per_s": {s: round(r[2], 1)
                                      for s, r in slow.items()},
            "equal_s": {s: round(r[0], 2) for s, r in equal.items()},
            "netmax_vs_adpsgd_last_peer": ratio("adpsgd", 1),
            "limit_s": LIMIT_S,
            "link_moves_every_s": MOVE_S,
        },
    }))


main()
