#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# gossip.py TRAINER NET PREFIX [SCHEME,... [NETWORK,...]]: trains eight peers in
# the namespaces PREFIX0... under each scheme to a fixed loss, and prints one
# JSON object; progress on standard error.  There are three networks: "moving"
# has one slow link, slower by a factor from 2 to 100, that moves every few
# seconds, with the same moves for every scheme, and for netmax also with agents
# that know the links; "hosts-8" and "hosts-20" have three hosts, with fast
# links inside and 8 or 20 Mbit/s between any two peers of different hosts.
import collections
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "unit"))
from fake_agent import FakeAgent  # noqa: E402

N = 8
RATE = 20e6                     # Bits a second of a link.
MOVE_S = 7                      # A link is slow for so long.
TARGET = 0.80                   # Loss of the held-out samples.
LIMIT_S = 75                    # Of a run.
SEEDS = [1, 2, 3]               # Of weights, samples and moves.
HOSTS = [0, 0, 0, 1, 1, 1, 2, 2]        # Of the peers, in the other networks.
INSIDE = 200e6                  # Bits a second of a link inside a host.
NETWORKS = {"moving": RATE, "hosts-8": 8e6, "hosts-20": 20e6}
PORT = 4000
ARGUMENTS = [
    "--shape", "64,128,128,10", "--batch", "256", "--learning-rate", "0.02",
    "--samples", "16384", "--validation", "512", "--eval-every", "10",
    "--sample-cost-us", "1200", "--backend", "cpu", "--iterations", "1000000000",
    # NetMax was published with policies every 2 min, and links that move every
    # 5 min.
    "--policy-every", "%.1f" % (MOVE_S * 2 / 5),
]
trainer, net, prefix = sys.argv[1:4]


def set_link(i, j, rate):
    subprocess.run(["sh", net, "slow", prefix, str(i), str(j), "%d" % rate],
                   check=True)


def make_network(network):
    inside = RATE if network == "moving" else INSIDE
    for i in range(N):
        for j in range(i):
            set_link(j, i, inside if HOSTS[i] == HOSTS[j]
                     else NETWORKS[network])


def draw_moves(seed):
    """Yields the slow link and its factor, without end."""
    rng = random.Random(seed)
    while True:
        i, j = rng.sample(range(N), 2)
        yield min(i, j), max(i, j), rng.uniform(2, 100)


def move_links(seed, agents, moved, stop):
    """Slows one link after the other until stopped; appends the time and the
    link to 'moved', and notifies the agents."""
    for i, j, factor in draw_moves(seed):
        if stop.is_set():
            break
        set_link(i, j, RATE / factor)
        tell_agents(agents, i, j, RATE / factor)
        moved.append((time.time(), i, j, factor))
        stop.wait(MOVE_S)
        set_link(i, j, RATE)
        tell_agents(agents, i, j, RATE)


def tell_agents(agents, i, j, rate):
    for end, other in ((i, j), (j, i)):
        if agents:
            links = agents[end].answers["agent/links"]["links"]
            links[other]["bps"] = int(rate)


def make_agents():
    return [FakeAgent({"agent/links": {"links": [
        {"remote": "10.99.0.%d" % (j + 1), "bps": int(RATE)}
        for j in range(N)]}}) for _ in range(N)]


class Peer:
    def __init__(self, scheme, rank, seed, agent):
        peers = ",".join("10.99.0.%d" % (i + 1) for i in range(N))
        self.points = []        # Wall time in s, iteration, loss.
        self.policies = []      # Wall time in s, links that are avoided.
        environment = dict(os.environ)
        if agent:
            environment.update(STAGECOACH_COJOB="bench", STAGECOACH_JOB="t0",
                               STAGECOACH_RUNDIR=agent.rundir)
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", prefix + str(rank), trainer, "peer",
             "--scheme", scheme, "--peers", peers, "--rank", str(rank),
             "--port", str(PORT), "--address", "10.99.0.%d" % (rank + 1),
             "--seed", str(seed)] + ARGUMENTS,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "policy":
                self.policies.append((event["time"] / 1000,
                                      event["avoided"]))
            if event["event"] == "progress" and event["loss"] is not None:
                if not self.points or self.points[-1][2] != event["loss"]:
                    self.points.append((event["time"] / 1000,
                                        event["iteration"], event["loss"]))


def losses_at(peers, when):
    return [next((p[2] for p in reversed(peer.points) if p[0] <= when),
                 peer.points[0][2]) for peer in peers]


def first_time(peers, measure, limit):
    """Returns when 'measure' of all peers' losses first was at most TARGET, or
    the end of the run if that did not happen."""
    for when in sorted(p[0] for peer in peers for p in peer.points):
        if measure(losses_at(peers, when)) <= TARGET:
            return when
    return limit


def reactions(policies, moved):
    """Returns, for each link that became slow enough to be avoided, the
    seconds until a policy avoided it, or until the next link became slow."""
    seconds = []
    for k, (when, i, j, factor) in enumerate(moved):
        until = moved[k + 1][0] if k + 1 < len(moved) else time.time()
        if factor > 4 and until - when > MOVE_S * 0.9:
            seconds.append(min((t for t, avoided in policies
                                if when <= t < until and [i, j] in avoided),
                               default=until) - when)
    return seconds


def mean(values):
    return sum(values) / len(values)


# Seconds until the mean and the worst of the peers' losses reach the target;
# iterations per second and peer; and the seconds until policies avoided slow
# links.
Result = collections.namedtuple(
    "Result", ["seconds", "last", "steps", "reactions"])


def train(network, scheme, seed, agents=None):
    """Returns a Result."""
    stop = threading.Event()
    moved = []
    peers = [Peer(scheme, rank, seed, agents and agents[rank])
             for rank in range(N)]
    mover = threading.Thread(target=move_links,
                             args=(seed, agents, moved, stop))
    try:
        while not all(peer.points for peer in peers):
            time.sleep(0.02)
        if network == "moving":
            mover.start()
        began = time.time()
        while time.time() - began < LIMIT_S:
            time.sleep(0.1)
            if all(peer.points[-1][2] <= TARGET for peer in peers):
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
    result = Result(first_time(peers, mean, began + LIMIT_S) - began,
                    first_time(peers, max, began + LIMIT_S) - began, steps,
                    reactions(peers[0].policies, moved))
    print("%s, %s, %d%s: %.1f s, the last peer %.1f s, %.1f iterations a "
          "second, links avoided after %s"
          % (network, scheme, seed, ", agents" if agents else "", *result[:3],
             ["%.2f" % s for s in result.reactions]), file=sys.stderr, flush=True)
    return result


def ratios(results, scheme):
    """Returns, by network, the geometric mean of the times of 'scheme' /
    netmax."""
    return {network: math.exp(mean([
        math.log(a.seconds / b.seconds)
        for a, b in zip(of[scheme], of["netmax"])]))
        for network, of in results.items()}


def figures(results):
    rivals = {scheme: ratios(results, scheme)
              for scheme in next(iter(results.values())) if scheme != "netmax"}
    found = {"netmax_vs_" + scheme.removeprefix("netmax-"): math.prod(
        by.values()) ** (1 / len(by)) for scheme, by in rivals.items()}
    # Of the network in which the best rival is nearest.
    found["worst_network"] = min(
        min(by[network] for by in rivals.values()) for network in results)
    return {name: round(value, 3) for name, value in found.items()}


def values(results, which, digits):
    return {network: {scheme: [round(getattr(r, which), digits) for r in rs]
                      for scheme, rs in of.items()}
            for network, of in results.items()}


def main():
    schemes = sys.argv[4].split(",") if len(sys.argv) > 4 else [
        "netmax", "adpsgd", "netmax-published", "allreduce"]
    networks = sys.argv[5].split(",") if len(sys.argv) > 5 else NETWORKS
    results, told = {}, []
    for network in networks:
        make_network(network)
        results[network] = {scheme: [train(network, scheme, seed)
                                     for seed in SEEDS] for scheme in schemes}
        if network == "moving":
            told = [train(network, "netmax", seed, make_agents())
                    for seed in SEEDS]
    print(json.dumps({
        "bench": "gossip",
        "figures": figures(results),
        "baseline": {
            "seconds": values(results, "seconds", 2),
            "last_peer_s": values(results, "last", 2),
            "iterations_per_s": values(results, "steps", 1),
            "policy_after_move_s": [
                round(x, 2) for r in results.get("moving", {}).get("netmax", [])
                for x in r.reactions],
            "agents": {
                "seconds": [round(r.seconds, 2) for r in told],
                "policy_after_move_s": [round(x, 2) for r in told
                                        for x in r.reactions]},
            "limit_s": LIMIT_S,
            "link_moves_every_s": MOVE_S,
        },
    }))


main()
