#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-topology-import.py STAGECOACH CONTROLLER SCHEMA POLICY: `stagecoach
topology import` makes topology files that the controller reads from those of Slurm,
Topograph and Volcano, and refuses others with their line."""

import json
import os
import subprocess
import sys
import tempfile

import jsonschema

STAGECOACH, CONTROLLER, SCHEMA, POLICY = map(os.path.abspath, sys.argv[1:])

SLURM = """\
# Two leaves.
SwitchName=leaf0 Nodes=node[01-02],login LinkSpeed=100
switchname=leaf1 \\
    nodes="node[08-10]"   # The last rack.

SwitchName=spine Switches=leaf[0-1]
"""

YAML = """\
- topology: flat
  cluster_default: false
  flat: true
- topology: main
  cluster_default: true
  tree:
    switches:
      - switch: spine
        children: leaf[0-1]
      - switch: leaf0
        nodes: node[01-02],login
      - switch: leaf1
        nodes: node[08-10]
- topology: other
  cluster_default: false
  tree:
    switches:
      - switch: leaf1
        nodes: node08
"""


def hypernode(name, kind, members):
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
            "metadata": {"name": name, "uid": "1"},
            "spec": {"tier": 1, "members": [
                {"type": kind, "selector": {"exactMatch": {"name": m}}}
                for m in members]},
            "status": {"nodeCount": len(members)}}


HYPERNODES = {
    "apiVersion": "v1", "kind": "List", "metadata": {}, "items": [
        hypernode("spine", "HyperNode", ["leaf0", "leaf1"]),
        hypernode("leaf0", "Node", ["node01", "node02", "login"]),
        hypernode("leaf1", "Node", ["node08", "node09", "node10"])]}

MANIFESTS = """\
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata:
  name: leaf0
spec:
  tier: 1
  members:
    - type: Node
      selector:
        exactMatch:
          name: node01
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf1}
spec: {tier: 1, members: []}
"""

ADDRESSES = """\
127.0.0.1 localhost
127.0.1.1 node01
::1 node02 localhost
10.0.0.1 node01.example node01
10.0.0.2 node02    # Comment.
10.0.0.3 login
10.0.1.8 node08
10.0.1.9 node09
10.0.1.10 node10
"""

SWITCHES = """\
# NAME TARGET DATAPATH
leaf0 tcp:192.0.2.1:6653 0000000000000001
leaf1 tcp:192.0.2.2:6653 0000000000000002
spine ssl:192.0.2.3:6653 000000000000000a
unused tcp:192.0.2.4:6653 0000000000000004
"""

PORTS = """\
leaf0 node01 11
leaf0 node02 12
leaf0 login 13
leaf0 spine 48
leaf1 node08 1
leaf1 node09 2
leaf1 node10 3
leaf1 spine 48
spine leaf0 1
spine leaf1 2
"""

failures = 0


def check(what, found, expected):
    global failures
    if found != expected:
        failures += 1
        print(f"{what}: {found!r} is not {expected!r}")


class Folder:
    def __init__(self, path):
        self.path = path
        self.write("addresses", ADDRESSES)
        self.write("switches", SWITCHES)
        self.write("ports", PORTS)

    def write(self, name, text):
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def run(self, source, text, *args):
        """Imports 'text' with all options that are required, which 'args'
        may replace."""
        self.write("source", text)
        command = [STAGECOACH, "topology", "import", "source", "--from",
                   source, "--rate", "25Gbit", "--uplink-rate", "50Gbit",
                   "--switches", "switches", "--addresses", "addresses"]
        return subprocess.run(command + list(args), cwd=self.path, text=True,
                              timeout=30, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def topology(self, source, text, *args):
        r = self.run(source, text, *args)
        check(f"{source} {args}", (r.returncode, r.stderr), (0, ""))
        top = json.loads(r.stdout or "{}")
        with open(SCHEMA, encoding="utf-8") as f:
            jsonschema.validate(top, json.load(f))
        return top


def links(top):
    """Returns {(switch, port, switch, port): capacity}."""
    return {tuple(v for end in link["ends"]
                  for v in (end["switch"], end["port"])): link["capacity"]
            for link in top["links"]}


def hosts(top):
    return {h["name"]: (h["ip"], h["at"]["switch"], h["at"]["port"],
                        h["capacity"]) for h in top["hosts"]}


HOSTS = {"node01": ("10.0.0.1", "leaf0", 1, "25Gbit"),
         "node02": ("10.0.0.2", "leaf0", 2, "25Gbit"),
         "login": ("10.0.0.3", "leaf0", 3, "25Gbit"),
         "node08": ("10.0.1.8", "leaf1", 1, "25Gbit"),
         "node09": ("10.0.1.9", "leaf1", 2, "25Gbit"),
         "node10": ("10.0.1.10", "leaf1", 3, "25Gbit")}
LINKS = {("leaf0", 4, "spine", 1): "50Gbit",
         ("leaf1", 4, "spine", 2): "50Gbit"}


def check_sources(folder):
    for source, text in (("slurm", SLURM), ("topograph", YAML),
                         ("volcano", json.dumps(HYPERNODES, indent=4)),
                         ("volcano", json.dumps(HYPERNODES))):
        top = folder.topology(source, text)
        check(f"hosts of {source}", hosts(top), HOSTS)
        check(f"links of {source}", links(top), LINKS)
        check(f"switches of {source}",
              {s["name"]: (s["target"], s["datapath"])
               for s in top["switches"]},
              {"leaf0": ("tcp:192.0.2.1:6653", "0000000000000001"),
               "leaf1": ("tcp:192.0.2.2:6653", "0000000000000002"),
               "spine": ("ssl:192.0.2.3:6653", "000000000000000a")})

    top = folder.topology("volcano", MANIFESTS)
    check("hosts of manifests", list(hosts(top)), ["node01"])
    check("switches of manifests", [s["name"] for s in top["switches"]],
          ["leaf0", "leaf1"])
    top = folder.topology("topograph", YAML, "--tree", "other")
    check("another tree", list(hosts(top)), ["node08"])
    old = YAML.replace("cluster_default", "clusterDefault")
    check("old name", folder.topology("topograph", old),
          folder.topology("topograph", YAML))


def check_options(folder):
    top = folder.topology("slurm", SLURM, "--ports", "ports",
                          "--uplink-rate", "leaf1=12.5Mbit",
                          "--rate", "1.5kbit")
    check("ports", {n: h[2:] for n, h in hosts(top).items()},
          {"node01": (11, "1.500kbit"), "node02": (12, "1.500kbit"),
           "login": (13, "1.500kbit"), "node08": (1, "1.500kbit"),
           "node09": (2, "1.500kbit"), "node10": (3, "1.500kbit")})
    check("links", links(top),
          {("leaf0", 48, "spine", 1): "50Gbit",
           ("leaf1", 48, "spine", 2): "12500.000kbit"})


def check_controller(folder):
    """The controller reads the file and stops after it, at its socket."""
    for name, text in (("good.json", folder.run("slurm", SLURM).stdout),
                       ("bad.json", '{"switches": []}')):
        path = folder.write(name, text)
        r = subprocess.run([CONTROLLER, f"--topology={path}",
                            f"--policy={POLICY}",
                            "--unixctl=/nonexistent/controller.ctl"],
                           text=True, timeout=30, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        check(f"exit status for {name}", r.returncode != 0, True)
        check(f"error about {name}", name in r.stdout, name == "bad.json")
        check(f"socket with {name}", "cannot listen" in r.stdout,
              name == "good.json")


def one_switch(line):
    return f"SwitchName=a Nodes=x\n{line}\n"


def many(n):
    return f"SwitchName=a Nodes=h[1-{n}]"


def check_errors(folder):
    rest = ("names such as node[01-16,20] are allowed",
            "such as [01-16,20] with at most 9 digits is allowed",
            "1 to 31 letters, digits and \"._-\" are allowed, a letter or "
            "digit first")
    exact = json.dumps(HYPERNODES)
    for source, text, message in (
            ("slurm", "", "1: no switch, at least one is required"),
            ("slurm", "BlockName=b Nodes=x",
             '1: "BlockName" is not a parameter of topology/tree, SwitchName, '
             "Switches, Nodes and LinkSpeed are allowed"),
            ("slurm", one_switch("SwitchName"),
             '2: "SwitchName" has no value, KEY=VALUE is allowed'),
            ("slurm", one_switch("SwitchName= Nodes=y"),
             "2: SwitchName is empty, a value is required"),
            ("slurm", one_switch('SwitchName="b'),
             "2: the value of SwitchName has no closing quote, \"VALUE\" is "
             "allowed"),
            ("slurm", one_switch("SwitchName=b SwitchName=c"),
             "2: SwitchName is there twice, once is allowed"),
            ("slurm", one_switch("SwitchName=b"),
             "2: Switches or Nodes is missing, SwitchName with Switches or "
             "Nodes is allowed"),
            ("slurm", one_switch("Nodes=y"),
             "2: SwitchName is missing, SwitchName with Switches or Nodes is "
             "allowed"),
            ("slurm", "\\\n\\\n\nSwitchName=a Nodes=x\nSwitchName=a Nodes=y",
             '5: switch "a" is in line 4 too, each switch once is allowed'),
            ("slurm", one_switch("SwitchName=b Nodes=x"),
             '2: host "x" is at switch "a" too, one switch is allowed'),
            ("slurm", one_switch("SwitchName=b Switches=c"),
             '2: switch "c" is not in the file, a name of one of its '
             "switches is allowed"),
            ("slurm", one_switch("SwitchName=b Switches=a\n"
                                 "SwitchName=c Switches=a"),
             '3: switch "a" is below "b" too, one parent is allowed'),
            ("slurm", "SwitchName=a Switches=b\nSwitchName=b Switches=a",
             '1: switch "a" is below itself, a tree is allowed'),
            ("slurm", "SwitchName=a Nodes=x,,y",
             f"1: a name is empty, {rest[0]}"),
            ("slurm", "SwitchName=a Nodes=x[1-3",
             f'1: "[1-3" is not a list of numbers, {rest[1]}'),
            ("slurm", "SwitchName=a Nodes=x[3-1]",
             f'1: "[3-1]" is not a list of numbers, {rest[1]}'),
            ("slurm", "SwitchName=a Nodes=x[]",
             f'1: "[]" is not a list of numbers, {rest[1]}'),
            ("slurm", "SwitchName=a Nodes=x[1-y]",
             f'1: "[1-y]" is not a list of numbers, {rest[1]}'),
            ("slurm", "SwitchName=a Nodes=x1]",
             f'1: "x1]" has "]" without "[", {rest[0]}'),
            ("slurm", "SwitchName=a Nodes=x[1-1234567890]",
             f'1: "[1-1234567890]" is not a list of numbers, {rest[1]}'),
            ("slurm", "SwitchName=a Nodes=x[1-999999999]",
             "1: more than 4096 names, as many are allowed"),
            ("slurm", "SwitchName=a Nodes=x" + "[1]" * 100000,
             "1: a name is longer than 255 characters, which are allowed"),
            ("slurm", many(4096) + ",h0",
             "1: more than 4096 names, as many are allowed"),
            ("slurm", many(4096) + "\nSwitchName=b Nodes=h0",
             "2: more than 4096 hosts, as many are allowed"),
            ("slurm", "SwitchName=a Switches=s[1-256]",
             "1: more than 256 switches, as many are allowed"),
            ("slurm", "SwitchName=a Nodes=" + "x" * 32,
             f'1: "{"x" * 32}" is not a name, {rest[2]}'),
            ("slurm", "SwitchName=ä Nodes=x",
             f'1: "ä" is not a name, {rest[2]}'),
            ("slurm", "SwitchName=new Nodes=node01",
             '1: switch "new" is not in switches, each switch is required '
             "there"),
            ("slurm", "SwitchName=leaf0 Nodes=new",
             '1: host "new" has no IPv4 address in addresses, each host is '
             "required there (another file: --addresses)"),
            ("topograph", "", "1: no tree, or several without a default one, "
             "a single tree or --tree=NAME is allowed"),
            ("topograph", YAML.replace("true", "false"),
             "1: no tree, or several without a default one, a single tree or "
             "--tree=NAME is allowed"),
            ("topograph", "switches: []",
             "1: not a list, a list of topologies is allowed"),
            ("topograph", "- tree: [", "2: did not find expected node "
             "content, YAML or JSON is allowed"),
            ("topograph", YAML.replace("nodes: node[08", "nods: node[08"),
             '13: "nods" is not a member of a switch, a member of its format '
             "is allowed"),
            ("topograph", YAML.replace("switches:", "switch:"),
             '7: "switch" is not a member of a tree, a member of its format '
             "is allowed"),
            ("topograph", YAML.replace("  flat:", "  topology:"),
             '3: "topology" is there twice, once is allowed'),
            ("topograph", YAML.replace("children: leaf[0-1]",
                                       "children: [leaf0, leaf1]"),
             '9: "children" is not a text, a text is required'),
            ("topograph", YAML.replace("- switch: leaf0", "-"),
             '11: "switch" is missing, a text is required'),
            ("volcano", "[]", "1: an object is not a mapping, a mapping is "
             "allowed"),
            ("volcano", "{}", '1: "kind" is missing, a text is required'),
            ("volcano", '{"kind": "Pod", "apiVersion": "v1"}',
             '1: kind "Pod" of "v1", HyperNode of topology.volcano.sh/ and a '
             "list of them are allowed"),
            ("volcano", '{"kind": "P\\nod", "apiVersion": "v1"}',
             '1: kind "P?od" of "v1", HyperNode of topology.volcano.sh/ and '
             "a list of them are allowed"),
            ("volcano", MANIFESTS.replace("type: Node", "type: Rack"),
             '9: type "Rack", Node and HyperNode are allowed'),
            ("volcano", exact.replace("exactMatch", "regexMatch"),
             '1: the selector has no "exactMatch", only names are allowed '
             "because the nodes of the cluster are not in the file"),
            ("volcano", "kind: List\napiVersion: v1\nitems: 7",
             '3: "items" is of another type, a list is required'),
            ("volcano", "kind: List\napiVersion: v1\nitems:\n- kind: List\n"
             "  apiVersion: v1\n  items: []",
             '4: kind "List" of "v1", HyperNode of topology.volcano.sh/ and '
             "a list of them are allowed")):
        r = folder.run(source, text)
        check(f"{source}: {text[:60]}", (r.returncode, r.stdout, r.stderr),
              (1, "", f"source:{message}\n"))

    folder.write("words", "leaf0 tcp:192.0.2.1:6653\n")
    folder.write("twice", ADDRESSES.replace("10.0.0.2", "10.0.0.1"))
    folder.write("path", SWITCHES.replace("tcp:", "udp:"))
    folder.write("port", PORTS.replace("48", "0"))
    begin = "stagecoach topology import: "
    for args, status, message in (
            (("--switches", "words"), 1, "words:1: not three words, \"NAME "
             "TARGET DATAPATH\" is allowed"),
            (("--switches", "none"), 1, "none: "),
            (("--addresses", "twice"), 1, begin + "topology: /hosts/1/ip: "
             '"node01" has it too'),
            (("--switches", "path"), 1, begin + "topology: "
             '/switches/0/target: "udp:192.0.2.1:6653", '),
            (("--ports", "words"), 1, "words:1: not three words, \"SWITCH "
             "NEIGHBOUR PORT\" is allowed"),
            (("--ports", "port"), 1, "port:4: the third word is not a port, "
             "1 to 65279 is allowed"),
            (("--ports", "/dev/null"), 1, 'source:2: the port of switch '
             '"leaf0" to "node01" is not in /dev/null, each port is '
             "required there"),
            (("--uplink-rate", "spine=1Gbit"), 1, '--uplink-rate: "spine" is '
             "not a switch with a parent, the name of one is allowed"),
            (("--uplink-rate", "fast"), 2, begin + '--uplink-rate: "fast" is '
             "not allowed, a rate"),
            (("--rate", "fast"), 2, begin + '--rate: "fast" is not allowed, '
             "a rate"),
            (("--tree", "x"), 2, begin + "--tree requires --from topograph")):
        r = folder.run("slurm", SLURM, *args)
        check(f"{args}", (r.returncode, r.stdout), (status, ""))
        check(f"{args}", r.stderr[:len(message)], message)
    r = subprocess.run([STAGECOACH, "topology", "import", "source", "--from",
                        "slurm", "--rate", "1Gbit", "--switches", "switches",
                        "--addresses", "addresses"], cwd=folder.path,
                       text=True, timeout=30, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    check("no rate", r.stderr, 'source:2: switch "leaf0" has a parent, '
          "--uplink-rate is required\n")


with tempfile.TemporaryDirectory() as path:
    f = Folder(path)
    check_sources(f)
    check_options(f)
    check_controller(f)
    check_errors(f)
sys.exit(failures > 0)
