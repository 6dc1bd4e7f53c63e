#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-policy-export.py STAGECOACH: the configuration of switches that
`stagecoach policy export` prints has the classes of the policy, and refers
only to what it defines."""

import json
import os
import re
import subprocess
import sys
import tempfile

from case_lines import check, failures

POLICY = {"name": "three", "order": "stage", "min_share": 0.05,
          "levels": {"control_dscp": 56, "dscp": [46, 34, 18],
                     "default_dscp": 0}}
# Queue by DSCP; all other values have queue 0.
QUEUES = {56: 7, 46: 6, 34: 5, 18: 4}
USED = {0, 4, 5, 6, 7}
PORTS = ["swp1", "swp2"]


def export(*args):
    return subprocess.run([sys.argv[1], "policy", "export", *args], text=True,
                          timeout=30, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def queue(dscp):
    return QUEUES.get(dscp, 0)


def check_sonic(policy):
    r = export(policy, "--to", "sonic", "--ports", ",".join(PORTS),
               "--rate", "100Gbit")
    check("sonic", (r.returncode, r.stderr), (0, ""))
    db = json.loads(r.stdout)
    check("tables", set(db), {"DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP",
                              "SCHEDULER", "QUEUE", "PORT_QOS_MAP"})
    for port in PORTS:
        maps = db["PORT_QOS_MAP"][port]
        to_tc = db["DSCP_TO_TC_MAP"][maps["dscp_to_tc_map"]]
        to_queue = db["TC_TO_QUEUE_MAP"][maps["tc_to_queue_map"]]
        check("queue by DSCP", {int(d): int(to_queue[tc])
                                for d, tc in to_tc.items()},
              {d: queue(d) for d in range(64)})
        for number in USED:
            scheduler = db["SCHEDULER"][
                db["QUEUE"][f"{port}|{number}"]["scheduler"]]
            check("scheduler", scheduler,
                  {"type": "STRICT", "meter_type": "bytes",
                   "cir": "625000000"})
    check("queues", len(db["QUEUE"]), len(USED) * len(PORTS))
    check("ports", list(db["PORT_QOS_MAP"]), PORTS)


def check_cumulus(policy):
    r = export(policy, "--to", "cumulus", "--ports", ",".join(PORTS),
               "--rate", "100Gbit")
    check("cumulus", (r.returncode, r.stderr), (0, ""))
    lines = {}
    for line in r.stdout.splitlines():
        if line and not line.startswith("#"):
            name, value = line.split(" = ")
            check(f"{name} is there once", name in lines, False)
            lines[name] = value
    for section in ("source", "egress_sched", "shaping"):
        check(section, (lines.pop(f"{section}.port_group_list"),
                        lines.pop(f"{section}.stagecoach.port_set")),
              ("[stagecoach]", "swp1,swp2"))
    check("trust", lines.pop("source.stagecoach.packet_priority_source_set"),
          "[dscp]")
    check("default", lines.pop("source.stagecoach.port_default_priority"),
          "0")
    for number in range(8):
        check(f"DSCP of {number}", json.loads(lines.pop(
            f"source.stagecoach.cos_{number}.priority_source.dscp")),
              [d for d in range(64) if queue(d) == number])
        check("strict priority", lines.pop(
            f"egress_sched.stagecoach.egr_queue_{number}.bw_percent"), "0")
    for number in USED:
        check("minimum rate", lines.pop(
            f"shaping.stagecoach.egr_queue_{number}.shaper"),
              "[5000000, 100000000]")
    check("other lines", lines, {})
    check("meaning", re.findall(r"^# (\d): (\w+)$", r.stdout, re.M),
          [("7", "control"), ("6", "level0"), ("5", "level1"),
           ("4", "level2"), ("0", "default")])


def by_key(elements, key):
    """Returns the list of a YANG list as a dictionary; "config" has the key
    of its element."""
    for e in elements:
        check("key", e["config"][key], e[key])
    return {e[key]: e for e in elements}


def check_openconfig(policy):
    r = export(policy, "--to", "openconfig", "--ports", ",".join(PORTS))
    check("openconfig", (r.returncode, r.stderr),
          (0, "stagecoach policy export: the configuration lacks the "
           "policy's min_share, 0.05: a level may starve\n"))
    qos = json.loads(r.stdout)["openconfig-qos:qos"]
    groups = by_key(qos["forwarding-groups"]["forwarding-group"], "name")
    queues = by_key(qos["queues"]["queue"], "name")
    classifiers = by_key(qos["classifiers"]["classifier"], "name")
    policies = by_key(qos["scheduler-policies"]["scheduler-policy"], "name")
    interfaces = by_key(qos["interfaces"]["interface"], "interface-id")
    check("interfaces", list(interfaces), PORTS)
    for interface in interfaces.values():
        inputs = by_key(interface["input"]["classifiers"]["classifier"],
                        "type")
        check("types", set(inputs), {"IPV4", "IPV6"})
        for kind, reference in inputs.items():
            classifier = classifiers[reference["config"]["name"]]
            check("type", classifier["config"]["type"], kind)
            found = {}
            for term in by_key(classifier["terms"]["term"], "id").values():
                condition = term["conditions"][kind.lower()]["config"]
                group = groups[term["actions"]["config"]["target-group"]]
                output = queues[group["config"]["output-queue"]]
                for dscp in condition["dscp-set"]:
                    check(f"DSCP {dscp} is there once", dscp in found, False)
                    found[dscp] = output["config"]["queue-id"]
            check(kind, found, {d: queue(d) for d in range(64)})
        used = policies[
            interface["output"]["scheduler-policy"]["config"]["name"]]
        [scheduler] = used["schedulers"]["scheduler"]
        check("strict", scheduler["config"],
              {"sequence": 0, "priority": "STRICT"})
        weights = {}
        for e in by_key(scheduler["inputs"]["input"], "id").values():
            check("input", e["config"]["input-type"], "QUEUE")
            number = queues[e["config"]["queue"]]["config"]["queue-id"]
            weights[number] = int(e["config"]["weight"])
        check("inputs", set(weights), USED)
        check("priority", sorted(weights, key=weights.get), sorted(USED))


def check_errors(policy, starving):
    begin = "stagecoach policy export: "
    for args, message in (
            ((policy, "--ports", "a"), "--to: required option is missing"),
            ((policy, "--to", "sonic"), "--ports: required option is missing"),
            ((policy, "--to", "iosxr", "--ports", "a"),
             '--to: "iosxr" is not one of "sonic", "cumulus", "openconfig"'),
            ((policy, "--to", "sonic", "--ports", "a,,b"),
             '--ports: "" is not a name of a port; expected letters, digits and '
             '"._/:-"'),
            ((policy, "--to", "sonic", "--ports", "a b"),
             '--ports: "a b" is not a name of a port; expected letters, digits and '
             '"._/:-"'),
            ((policy, "--to", "sonic", "--ports", "a,b,a"),
             '--ports: "a" is there twice; expected each port once'),
            ((policy, "--to", "sonic", "--ports",
              ",".join(f"p{i}" for i in range(513))),
             "--ports: too many ports; expected at most 512"),
            ((policy, "--to", "sonic", "--ports", "a", "--rate", "100G"),
             '--rate: "100G" is not a rate from "1kbit" to '
             '"10000Gbit", such as "50Mbit"'),
            ((policy, "--to", "sonic", "--ports", "a"),
             "--rate is missing, the rate of the ports is needed for the "
             "policy's min_share, 0.05"),
            ((policy, "--to", "openconfig", "--ports", "a", "--rate",
              "1Gbit"),
             "--rate: OpenConfig has no minimum rate of a queue; expected --to "
             "sonic or cumulus")):
        r = export(*args)
        check(message, (r.returncode, r.stdout), (2, ""))
        check("message", r.stderr.startswith(begin + message), True)
        if not r.stderr.startswith(begin + message):
            print(r.stderr)
    check("unknown policy", export("nothing", "--to", "sonic", "--ports",
                                   "a").returncode, 1)

    r = export(starving, "--to", "sonic", "--ports", "a")
    check("no minimum", json.loads(r.stdout)["SCHEDULER"],
          {"stagecoach": {"type": "STRICT"}})


with tempfile.TemporaryDirectory() as folder:
    paths = []
    for name, policy in (("three", POLICY),
                         ("zero", {**POLICY, "min_share": 0})):
        paths.append(os.path.join(folder, f"{name}.json"))
        with open(paths[-1], "w", encoding="utf-8") as f:
            json.dump(policy, f)
    check_sonic(paths[0])
    check_cumulus(paths[0])
    check_openconfig(paths[0])
    check_errors(*paths)
sys.exit(bool(failures))
