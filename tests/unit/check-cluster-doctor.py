#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-cluster-doctor.py STAGECOACH: what `stagecoach doctor` finds in the
replies of a controller."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_agent import FakeAgent

stagecoach = sys.argv[1]
version = subprocess.run([stagecoach, "--version"], text=True,
                         capture_output=True).stdout.split()[1]
DAY = 86400000
DOCS = pathlib.Path(__file__).parents[2] / "docs"
REFERENCE = re.compile(r'([a-z.-]+\.(?:md|[158])), "([^"]+)"')
NOW = int(time.time() * 1000)


def cluster(n=3):
    """Replies of a controller with nothing to find."""
    return {
        "controller/status": {
            "state": "active", "program": version, "alarms": [],
            "observe": False,
            "certificate": {"name": "c1", "expires": NOW + 60 * DAY}},
        "controller/switches": {"switches": [
            {"switch": "tcp:1", "name": "leaf0", "driver": "openflow",
             "state": "in sync", "reason": ""}]},
        "controller/hosts": {"hosts": [
            {"host": f"h{i}", "connected": True, "bypass": False,
             "state": "ordered", "silent_ms": 100, "clock_ms": -3}
            for i in range(n)]},
        "controller/facts": {"facts": [
            {"host": f"h{i}", "agent": version, "health": {
                "shim": "connected", "bypass": "down", "kernel": "6.1",
                "certificate": f"h{i}",
                "certificate_expires": str(NOW + 60 * DAY),
                "shim_version": version, "shim_uplink": "af_packet:eth0",
                "shim_driver": "ixgbe", "shim_mtu": "9000",
                "shim_uplink_mtu": "9000", "shim_merges": "none",
                "shim_host_tso": "off", "shim_memory": "huge",
                "shim_cc": "on", "shim_switch_queues": "one", "shim_tag": "on"}}
            for i in range(n)]},
    }


def clean(text):
    return "".join("?" if c < " " else c for c in text)


def examine(replies):
    """Returns the JSON report and the text of a cluster's examination."""
    controller = FakeAgent(replies, name="controller.ctl")
    env = dict(os.environ, STAGECOACH_RUNDIR=controller.rundir)

    def run(*options):
        return subprocess.run([stagecoach, "doctor", *options], env=env,
                              text=True, timeout=20, capture_output=True)

    done, text = run("--format", "json"), run()
    controller.control.close()
    assert done.stderr == text.stderr == "", (done.stderr, text.stderr)
    report = json.loads(done.stdout)
    errors = [f for f in report["findings"] if f["level"] == "error"]
    assert report["well"] == (not errors), report
    assert done.returncode == text.returncode == (1 if errors else 0), report
    for finding in report["findings"]:
        assert finding["remedy"], finding
        for page, part in REFERENCE.findall(finding["remedy"]):
            words = (DOCS / page).read_text(encoding="utf-8")
            assert f"\n## {part}\n" in words, (page, part)
        assert clean(finding["what"]) in text.stdout, (finding, text.stdout)
        assert finding["remedy"] in text.stdout, (finding, text.stdout)
    return report, text.stdout


def expect(change, level, places, *words):
    """Exactly one finding, after 'change' of the replies."""
    replies = cluster()
    change(replies)
    report, text = examine(replies)
    assert len(report["findings"]) == 1, report
    finding = report["findings"][0]
    assert finding["level"] == level, finding
    assert finding["places"] == places, finding
    for word in words:
        assert word in finding["what"] + "\n" + finding["remedy"], (
            word, finding)
    assert text.startswith(f"{level:8} {', '.join(places)}: "), text


def expect_none(change):
    """No finding, after 'change' of the replies."""
    replies = cluster()
    change(replies)
    report, _ = examine(replies)
    assert report["findings"] == [], report


def fact(name, value, *hosts):
    def change(replies):
        for i in hosts:
            replies["controller/facts"]["facts"][i]["health"][name] = value
    return change


def check(name, result, what, remedy, *hosts):
    def change(replies):
        for key, value in (("check", result), ("what", what),
                           ("remedy", remedy)):
            fact(f"{key}_{name}", value, *hosts)(replies)
    return change


def without(name, *hosts):
    def change(replies):
        for i in hosts:
            del replies["controller/facts"]["facts"][i]["health"][name]
    return change


def member(request, name, value, i=None, array=None):
    def change(replies):
        target = replies["controller/" + request]
        if array:
            target = target[array][i]
        target[name] = value
    return change


def alarm(code, text):
    return member("status", "alarms", [{"code": code, "text": text}])


report, text = examine(cluster())
assert report == {"well": True, "hosts": 3, "findings": []}, report
assert text == "3 hosts; errors: 0, warnings: 0, notes: 0\n", text

# Versions, clocks, certificates.
expect(member("facts", "agent", "0.0.1", 1, "facts"), "warning", ["h1"],
       "agent has version 0.0.1", version, "upgrade")
expect(fact("shim_version", "0.0.1", 0, 2), "warning", ["h0", "h2"],
       "shim has version 0.0.1")
expect(member("hosts", "clock_ms", 2500, 1, "hosts"), "warning", ["h1"],
       "2.5 s ahead", "chrony")
expect(member("hosts", "clock_ms", -400000, 1, "hosts"), "error", ["h1"],
       "400.0 s behind")
expect(fact("certificate_expires", str(NOW + 10 * DAY + DAY // 2), 2),
       "warning", ["h2"], "expires in 10 days", "pki rotate")
expect(fact("certificate_expires", str(NOW - DAY), 2), "error", ["h2"],
       "has expired")
expect(fact("certificate", "h7", 2), "error", ["h2"], 'for "h7"')
expect(member("status", "certificate", {"name": "c1", "expires": NOW + DAY}),
       "error", ["controller"], "expires in", "pki rotate")

# The shim and its uplink.
expect(member("hosts", "bypass", True, 0, "hosts"), "error", ["h0"],
       "shim is down", "systemctl restart stagecoach-shim")
expect(fact("shim", "disconnected", 1), "warning", ["h1"], "neither a shim nor")
expect(fact("shim_version", "", 1), "warning", ["h1"], "older version",
       "systemctl reload stagecoach-shim")
expect(fact("shim_merges", "gro,lro", 0), "warning", ["h0"], "gro,lro",
       "ethtool -K")
expect(fact("shim_host_tso", "on", 1), "error", ["h1"],
       "drops packets longer than the MTU", "systemctl reload stagecoach-shim")
expect_none(without("shim_host_tso", 0, 1, 2))          # Older shims.
expect(fact("shim_memory", "ordinary", 0, 1, 2), "note", ["h0", "h1", "h2"],
       "huge pages", "nr_hugepages")
expect(fact("shim_cc", "off", 2), "warning", ["h2"],
       "congestion control off, on on most hosts", "--cc")
expect(fact("shim_switch_queues", "strict", 0, 1, 2), "note", ["switches"],
       "in order", "policy export")
expect(fact("shim_cc", "off", 0, 1, 2), "warning", ["switches"],
       "no queues and no congestion control")
expect(fact("shim_tag", "off", 1), "warning", ["h1"], "DSCP", "--no-tag")
expect(fact("shim_uplink", "pci:0000:01:00.0", 1), "note", ["h1"],
       "no kernel bypass")
expect(fact("shim_driver", "net_e1000_em", 1), "note", ["h1"],
       "receive interrupts")

# What an agent has found.
expect(check("cgroup", "missing", "no cgroup v2 file system", "mount -t x", 1),
       "error", ["h1"], "no cgroup v2 file system", "mount -t x")
expect(check("tcp", "note", "missing: no tcp_rto_max_ms", "sysctl -w y", 0, 1,
             2),
       "note", ["h0", "h1", "h2"], "no tcp_rto_max_ms", "sysctl -w y")

# Alarms: those of hosts and switches are not repeated.
# The level and the remedy follow from the code, whatever the text is.
expect(alarm("policy-refused", "shim down on h0"), "error", ["controller"],
       "shim down on h0", "policy check")
expect(alarm("stage-idle", "typo/0 has no process"), "warning",
       ["controller"], "typo/0", "stagecoach stage end")
expect(alarm("new-code", "the policy file is refused"), "warning",
       ["controller"], "policy file", "operations.md")
report, _ = examine({**cluster(), "controller/status": {
    **cluster()["controller/status"], "alarms": [
        {"code": "shim-down", "text": "x"},
        {"code": "switch", "text": "x"}]}})
assert report["findings"] == [], report

# Switches.
expect(member("switches", "state", "refused", 0, "switches"), "error",
       ["leaf0"], "switch refused (openflow)", "operations.md")

expect(member("switches", "reason", "the switch refuses changes: X", 0,
              "switches"), "error", ["leaf0"], "refuses changes: X",
       "operations.md")

# A disconnected host has this finding only.
replies = cluster()
fact("shim_cc", "off", 1)(replies)
check("cgroup", "missing", "x", "y", 1)(replies)
member("hosts", "connected", False, 1, "hosts")(replies)
member("hosts", "silent_ms", 65000, 1, "hosts")(replies)
report, _ = examine(replies)
assert [(f["level"], f["places"]) for f in report["findings"]] == [
    ("error", ["h1"])], report
assert "65 s old" in report["findings"][0]["what"], report
del replies["controller/hosts"]["hosts"][1]["silent_ms"]
report, _ = examine(replies)
assert "not connected since" in report["findings"][0]["what"], report

# An MTU below the shim's is an error, and differs from that of most hosts.
replies = cluster()
fact("shim_uplink_mtu", "1500", 0)(replies)
report, text = examine(replies)
assert [(f["level"], f["places"]) for f in report["findings"]] == [
    ("error", ["h0"]), ("warning", ["h0"])], report
assert "MTU of the uplink 1500, 9000 on most hosts" in text, text

# A controller of another version.
replies = cluster()
replies["controller/status"]["program"] = "0.0.1"
report, text = examine(replies)
assert any(f["places"] == ["controller"] and "0.0.1" in f["what"]
           for f in report["findings"]), report

# Many hosts are one finding; a terminal gets no control characters.
replies = cluster(1000)
check("tcp", "note", "\x1b[2Jx", "sysctl -w y", *range(1000))(replies)
report, text = examine(replies)
assert len(report["findings"]) == 1, report["findings"][:3]
assert len(report["findings"][0]["places"]) == 1000
assert "h0, h1, h2, h3, h4 and 995 others: ?[2Jx" in text, text

# Without a host nothing works.
replies = cluster()
replies["controller/hosts"]["hosts"] = []
replies["controller/facts"]["facts"] = []
report, _ = examine(replies)
assert [(f["level"], f["places"]) for f in report["findings"]] == [
    ("error", ["controller"])], report
assert "no host is connected" in report["findings"][0]["what"], report

# A standby controller has no telemetry.
replies = cluster()
replies["controller/status"]["state"] = "standby"
report, _ = examine(replies)
assert len(report["findings"]) == 1, report
assert "standby" in report["findings"][0]["what"], report

# Without a controller.
env = dict(os.environ, STAGECOACH_RUNDIR="/nowhere")
done = subprocess.run([stagecoach, "doctor"], env=env, text=True,
                      capture_output=True)
assert done.returncode == 3 and "/nowhere" in done.stderr, done
