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
from random import Random

import jsonschema

from case_lines import case, check, failures

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


def as_slurm_reads(random, text):
    """'text', a topology.conf, written in another way."""
    end = random.choice(["\n", "\r\n"])
    blank = random.choice(["", " ", "\t "])
    lines = []
    for line in text.splitlines():
        if random.randrange(2):
            lines.append(random.choice([
                "# A comment: \\", "", "  ", "#SwitchName=x Nodes=y"]))
        line = line.replace("=", random.choice(["=", " = ", "\t="]))
        for at in sorted(random.sample(range(1, len(line)), 2), reverse=True):
            line = (line[:at] + "\\" + blank + random.choice(
                ["", "", " # cut, not joined \\"]) + end + line[at:])
        lines.append(line + random.choice(["", " # SwitchName \\", " "]))
    return random.choice(["", "\ufeff"]) + end.join(lines)


def check_slurm_grammar(folder):
    """However a topology.conf is written, and however long its names are, the
    topology is the same."""
    plain = folder.topology("slurm", SLURM)
    simple = "".join(line.split("   #")[0].replace("\\\n", "") + "\n"
                     for line in SLURM.replace("\\\n", "").splitlines()
                     if line[:1] != "#" and line)
    leaf, more = simple.split("\n", 1)
    random = Random(10)
    for _ in range(12):
        texts = [simple, ADDRESSES, SWITCHES, json.dumps(plain)]
        for old in "login", "spine":
            new = old + "".join(random.choices("abc.-_09", k=random.choice(
                [0, 0, 27, random.randrange(248)])))
            texts = [text.replace(old, new) for text in texts]
        text = as_slurm_reads(random, texts[0])
        for name, words in ("addresses", texts[1]), ("switches", texts[2]):
            folder.write(name, random.choice(["", "\ufeff"]) + words.replace(
                "\n", random.choice(["\n", "\r\n", " \n\n"])))
        with case("importers", text):
            check("slurm", folder.topology("slurm", text),
                  json.loads(texts[3]))
    folder.write("addresses", ADDRESSES)
    folder.write("switches", SWITCHES)
    os.mkdir(os.path.join(folder.path, "conf"))
    folder.write("conf/more.conf", f"include  leaf.conf # All.\n{more}")
    folder.write("conf/leaf.conf", leaf)
    for text in (f"Include {folder.path}/conf/more.conf",
                 "INCLUDE conf/more.conf   # Comment.",
                 *(SLURM.replace("node[01-02],login", f'"{nodes}"')
                   for nodes in ("node01,,node02,node01,login,",
                                 "node0[1-2] login,node01"))):
        with case("importers", text):
            check("slurm", folder.topology("slurm", text), plain)


def check_yaml(folder):
    """YAML 1.1 has many booleans, and a member without a value."""
    plain = folder.topology("topograph", YAML)
    for yes in ("y", "Y", "yes", "Yes", "YES", "True", "TRUE", "on", "On"):
        no = {"y": "n", "o": "off"}.get(yes[0].lower(), "No")
        text = YAML.replace("true", yes).replace("false", no)
        text = text.replace(f"flat: {yes}", "flat:")
        text = text.replace("        nodes: node08", "        children: ~")
        with case("importers", f"YAML with {yes} and {no}"):
            check(yes, folder.topology("topograph", text), plain)


def selector(random, names, labels=True):
    """Selectors that together select 'names', of hosts or HyperNodes."""
    name = names[0]
    ways = [[{"exactMatch": {"name": n}} for n in names],
            [{"regexMatch": {"pattern": f"^({'|'.join(names)})$"}}],
            [{"regexMatch": {"pattern": f"{n}$"}} for n in names]]
    if labels:
        ways += [[{"labelMatch": {"matchLabels": {"name": n}}} for n in names],
                 [{"labelMatch": {"matchExpressions": [
                     {"key": "group", "operator": "In", "values": names},
                     {"key": "spare", "operator": "DoesNotExist"}]}}],
                 [{"labelMatch": {
                     "matchLabels": {"kind": "gpu"}, "matchExpressions": [
                         {"key": "name", "operator": "Exists"},
                         {"key": "name", "operator": "NotIn",
                          "values": [n for n in HOSTS if n not in names]}]}}],
                 [{"regexMatch": {"pattern": name}},
                  {"labelMatch": {"matchExpressions": [
                      {"key": "name", "operator": "In", "values": names}]}}]]
    return random.choice(ways)


def check_selectors(folder):
    nodes = [{"metadata": {"name": n, "labels": {
        "name": n, "group": n, "kind": "gpu"}}}
             for n in HOSTS]
    nodes += [{"metadata": {"name": "other"}},
              {"metadata": {"name": "spare", "labels": {
                  "name": "spare", "group": "login", "spare": "",
                  "kind": "cpu"}}}]
    folder.write("nodes", json.dumps({"kind": "List", "items": nodes}))
    plain = folder.topology("volcano", json.dumps(HYPERNODES))
    random = Random(7)
    for _ in range(12):
        objects = json.loads(json.dumps(HYPERNODES))
        for item in objects["items"]:
            members = item["spec"]["members"]
            names = [m["selector"]["exactMatch"]["name"] for m in members]
            kind = members[0]["type"]
            item["spec"]["members"] = [
                {"type": kind, "selector": s}
                for s in selector(random, names, kind == "Node")]
        with case("importers", objects["items"][-1]["spec"]):
            top = folder.topology("volcano", json.dumps(objects), "--nodes",
                                  "nodes")
            check(f"{objects['items']}", (
                {n: h[1] for n, h in hosts(top).items()}, links(top)), (
                {n: h[1] for n, h in hosts(plain).items()}, links(plain)))


def check_options(folder):
    top = folder.topology("slurm", SLURM, "--ports", "ports",
                          "--uplink-rate", "leaf1=12.5Mbit",
                          "--rate", "1.5kbit")
    check("ports", {n: h[2:] for n, h in hosts(top).items()},
          {"node01": (11, "1.5kbit"), "node02": (12, "1.5kbit"),
           "login": (13, "1.5kbit"), "node08": (1, "1.5kbit"),
           "node09": (2, "1.5kbit"), "node10": (3, "1.5kbit")})
    check("links", links(top),
          {("leaf0", 48, "spine", 1): "50Gbit",
           ("leaf1", 48, "spine", 2): "12500kbit"})


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
    rest = ("is no list; expected node[01-16,20], 9 digits and 255 "
            "characters at most",
            "a name of 1 to 253 letters, digits, '.', '_' and '-' that begins "
            "with a letter, a digit or '_'")
    exact = json.dumps(HYPERNODES)
    for source, text, message in (
            ("slurm", "", "1: no switch; expected at least one"),
            ("slurm", "BlockName=b Nodes=x",
             '1: "BlockName" is not supported; expected SwitchName, Switches, '
             "Nodes or LinkSpeed"),
            ("slurm", one_switch("SwitchName"),
             '2: "SwitchName" has no value; expected KEY=VALUE'),
            ("slurm", one_switch("SwitchName=b Nodes= "),
             '2: "Nodes" has no value; expected KEY=VALUE'),
            ("slurm", one_switch('SwitchName="b'),
             '2: "SwitchName" has no value; expected KEY=VALUE'),
            ("slurm", one_switch("SwitchName=b SwitchName=c"),
             "2: SwitchName is there twice; expected it once"),
            ("slurm", one_switch("SwitchName=b"),
             '2: no Switches or Nodes; expected "SwitchName=a Nodes=b"'),
            ("slurm", one_switch("Nodes=y"),
             '2: no SwitchName; expected "SwitchName=a Nodes=b"'),
            ("slurm", one_switch("Include none"),
             "2: none: No such file or directory"),
            ("slurm", one_switch("Include source"),
             '1: "a" is in line 1 too; expected once'),
            ("slurm", "Include source\n",
             "1: one file too many; expected 64 at most"),
            ("slurm", "\\\n\\\n\nSwitchName=a Nodes=x\nSwitchName=a Nodes=y",
             '5: "a" is in line 4 too; expected once'),
            ("slurm", one_switch("SwitchName=b Nodes=x"),
             '2: "x" is below "a" too; expected one'),
            ("slurm", one_switch("SwitchName=b Switches=c"),
             '2: no switch "c"; expected one of the file'),
            ("slurm", one_switch("SwitchName=b Switches=a\n"
                                 "SwitchName=c Switches=a"),
             '3: "a" is below "b" too; expected one'),
            ("slurm", "SwitchName=a Switches=b\nSwitchName=b Switches=a",
             '2: "a" is below itself; expected a tree'),
            ("slurm", "SwitchName=a Nodes=x[1-3",
             f'1: "x[1-3" {rest[0]}'),
            ("slurm", "SwitchName=a Nodes=x[3-1]",
             f'1: "x[3-1]" {rest[0]}'),
            ("slurm", "SwitchName=a Nodes=x[]",
             f'1: "x[]" {rest[0]}'),
            ("slurm", "SwitchName=a Nodes=x[1-y]",
             f'1: "x[1-y]" {rest[0]}'),
            ("slurm", "SwitchName=a Nodes=x1]",
             f'1: "x1]" {rest[0]}'),
            ("slurm", "SwitchName=a Nodes=x[1-1234567890]",
             f'1: "x[1-1234567890]" {rest[0]}'),
            ("slurm", "SwitchName=a Nodes=x[1-999999999]",
             "1: more than 4096 hosts; expected as many at most"),
            ("slurm", "SwitchName=a Nodes=x" + "[1]" * 100000,
             f'1: "x{"1" * 31}{"[1]" * 10}[1" {rest[0]}'),
            ("slurm", many(4096) + ",h0",
             "1: more than 4096 hosts; expected as many at most"),
            ("slurm", many(4096) + "\nSwitchName=b Nodes=h0",
             "2: more than 4096 hosts; expected as many at most"),
            ("slurm", "SwitchName=a Switches=s[1-256]",
             "1: more than 256 switches; expected as many at most"),
            ("slurm", "SwitchName=a Nodes=" + "x" * 254,
             f'1: "{"x" * 64}" is not {rest[1]}'),
            ("slurm", "SwitchName=ä Nodes=x",
             f'1: "ä" is not {rest[1]}'),
            ("slurm", "SwitchName=new Nodes=node01",
             '1: switch "new" is not in switches; expected all'),
            ("slurm", "SwitchName=leaf0 Nodes=new",
             '1: no address of "new" in addresses; expected all, by '
             "--addresses"),
            ("topograph", "", "1: no tree; expected one, or --tree=NAME"),
            ("topograph", YAML.replace("true", "false"),
             "1: no tree; expected one, or --tree=NAME"),
            ("topograph", "switches: []",
             "1: not a list; expected a list of topologies"),
            ("topograph", "- tree: [", "2: did not find expected node "
             "content; expected YAML or JSON"),
            ("topograph", YAML.replace("nodes: node[08", "nods: node[08"),
             '13: "nods" is not a member of a switch, but switch children '
             "nodes are"),
            ("topograph", YAML.replace("switches:", "switch:"),
             '7: "switch" is not a member of a tree, but switches are'),
            ("topograph", YAML.replace("  flat:", "  topology:"),
             '3: "topology" is there twice; expected texts, once'),
            ("topograph", YAML.replace("children: leaf[0-1]",
                                       "children: [leaf0, leaf1]"),
             '9: no text "children", which is required'),
            ("topograph", YAML.replace("- switch: leaf0", "-"),
             '11: no text "switch", which is required'),
            ("volcano", "[]", "1: an object is not a mapping; expected a mapping"),
            ("volcano", "{}", '1: no text "kind", which is required'),
            ("volcano", '{"kind": "Pod", "apiVersion": "v1"}',
             '1: kind "Pod" of "v1"; expected HyperNode of '
             "topology.volcano.sh/"),
            ("volcano", '{"kind": "P\\nod", "apiVersion": "v1"}',
             '1: kind "P?od" of "v1"; expected HyperNode of '
             "topology.volcano.sh/"),
            ("volcano", MANIFESTS.replace("type: Node", "type: Rack"),
             "9: no type Node or HyperNode; expected one of them"),
            ("volcano", MANIFESTS.replace("exactMatch", "exact"),
             "10: expected one of exactMatch, regexMatch, labelMatch"),
            ("volcano", MANIFESTS.replace("type: Node", "type: HyperNode")
             .replace("exactMatch", "labelMatch"),
             "10: expected one of exactMatch, regexMatch"),
            ("volcano", MANIFESTS.replace("exactMatch", "regexMatch")
             .replace("name: node01", "pattern: node["),
             '11: "node[" is no expression; expected ^n[0-9]+$'),
            ("volcano", MANIFESTS.replace("exactMatch", "regexMatch")
             .replace("name: node01", "pattern: node"),
             "10: no nodes of the cluster; expected --nodes=FILE"),
            ("volcano", "kind: List\napiVersion: v1\nitems: 7",
             '3: no list "items", which is required'),
            ("volcano", "kind: List\napiVersion: v1\nitems:\n- kind: List\n"
             "  apiVersion: v1\n  items: []",
             '4: kind "List" of "v1"; expected HyperNode of '
             "topology.volcano.sh/")):
        r = folder.run(source, text)
        check(f"{source}: {text[:60]}", (r.returncode, r.stdout, r.stderr),
              (1, "", f"source:{message}\n"))

    folder.write("words", "leaf0 tcp:192.0.2.1:6653\n")
    folder.write("twice", ADDRESSES.replace("10.0.0.2", "10.0.0.1"))
    folder.write("path", SWITCHES.replace("tcp:", "udp:"))
    folder.write("port", PORTS.replace("48", "0"))
    begin = "stagecoach topology import: "
    for args, status, message in (
            (("--switches", "words"), 1, "words:1: not three words; expected "
             "\"NAME TARGET DATAPATH\""),
            (("--switches", "none"), 1, "none: "),
            (("--addresses", "twice"), 1, begin + "topology: /hosts/1/ip: "
             '"node01" has it too'),
            (("--switches", "path"), 1, begin + "topology: "
             '/switches/0/target: "udp:192.0.2.1:6653"; '),
            (("--ports", "words"), 1, "words:1: not three words; expected "
             "\"SWITCH NEIGHBOUR PORT\""),
            (("--ports", "port"), 1, 'port:4: "0" is no port; expected 1 to '
             "65279"),
            (("--ports", "/dev/null"), 1, 'source:2: no port of "leaf0" to '
             '"node01" in /dev/null; expected all'),
            (("--nodes", "none"), 2, begin + "--nodes requires --from "
             "volcano"),
            (("--uplink-rate", "spine=1Gbit"), 1, '--uplink-rate: "spine" is '
             "not a switch with a parent; expected the name of one"),
            (("--uplink-rate", "fast"), 2, begin + '--uplink-rate: "fast" is '
             "not a rate"),
            (("--rate", "fast"), 2, begin + '--rate: "fast" is not a '
             "rate"),
            (("--tree", "x"), 2, begin + "--tree requires --from topograph")):
        r = folder.run("slurm", SLURM, *args)
        check(f"{args}", (r.returncode, r.stdout), (status, ""))
        check(f"{args}", r.stderr[:len(message)], message)
    r = subprocess.run([STAGECOACH, "topology", "import", "source", "--from",
                        "slurm", "--rate", "1Gbit", "--switches", "switches",
                        "--addresses", "addresses"], cwd=folder.path,
                       text=True, timeout=30, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    check("no rate", r.stderr, 'source:2: "leaf0" has a parent; expected '
          "--uplink-rate\n")


with tempfile.TemporaryDirectory() as path:
    f = Folder(path)
    check_sources(f)
    check_slurm_grammar(f)
    check_yaml(f)
    check_selectors(f)
    check_options(f)
    check_controller(f)
    check_errors(f)
sys.exit(bool(failures))
