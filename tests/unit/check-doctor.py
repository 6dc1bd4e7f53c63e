#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# check-doctor.py STAGECOACH: the doctor on hosts that are folders of files.
import json
import os
import subprocess
import sys
import tempfile

stagecoach = sys.argv[1]
ALL = "000001ffffffffff"

HEALTHY = {
    "proc/mounts": "none /cg cgroup2 rw 0 0\n",
    "proc/self/status": "Name:\tx\nCapEff:\t%s\n" % ALL,
    "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "proc/sys/net/ipv4/tcp_rto_max_ms": "1000\n",
    "proc/kallsyms": "0 t ingress_init\n0 T u32_classify\t[cls_u32]\n",
    "lib/modules/6.1.0-18-amd64/modules.dep":
        "kernel/net/sched/act_mirred.ko: kernel/x.ko\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "64\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource":
        "tsc\n",
    "sys/class/net/up0/mtu": "9000\n",
    "sys/class/net/small/mtu": "1500\n",
    "dev/net/tun": "",
    "sys/fs/bpf/x": "",
    "cg/stagecoach/x": "",
}


def examine(changes, *options):
    """Findings and exit status of a healthy host with changes."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in dict(HEALTHY, **changes).items():
            if text is not None:
                path = os.path.join(root, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if text.startswith("-> "):
                    os.symlink(text[3:], path)
                    continue
                with open(path, "w") as stream:
                    stream.write(text)
        done = subprocess.run(
            [stagecoach, "agent", "doctor", "--root", root, "--format",
             "json", *options], stdout=subprocess.PIPE, text=True)
        table = subprocess.run(
            [stagecoach, "agent", "doctor", "--root", root, *options],
            stdout=subprocess.PIPE, text=True)
    assert table.returncode == done.returncode
    report = json.loads(done.stdout)
    assert report["well"] == (done.returncode == 0), report
    for finding in report["findings"]:
        assert finding["what"] in table.stdout, finding
        assert (finding["mend"] is None) == (finding["result"] == "ok")
    return report["findings"], done.returncode


def expect(changes, options, status, check, result, *words):
    findings, code = examine(changes, *options)
    hits = [f for f in findings if f["check"] == check
            and f["result"] == result]
    assert hits, (check, result, findings)
    for word in words:
        assert any(word in f["what"] + " " + (f["mend"] or "")
                   for f in hits), (word, hits)
    assert code == status, findings


findings, code = examine({})
assert code == 0 and all(f["result"] == "ok" for f in findings), findings

expect({"proc/mounts": "none /x tmpfs rw 0 0\n"}, [], 1, "cgroup", "missing",
       "mount -t cgroup2")
expect({}, ["--cgroup", "other/tree"], 0, "cgroup", "ok", "/cg/other/tree")
# Without CAP_NET_ADMIN and CAP_SYS_ADMIN.
expect({"proc/self/status": "CapEff:\t000001ffffdfefff\n"}, [], 1,
       "capabilities", "missing", "CAP_NET_ADMIN")
expect({"proc/self/status": "CapEff:\t000001ffffdfffff\n"}, [], 0,
       "capabilities", "note", "CAP_SYS_ADMIN")
expect({"proc/self/status": "CapEff:\t000001ffffdfffff\n"}, ["--netns"], 1,
       "capabilities", "missing", "CAP_SYS_ADMIN")
expect({"proc/sys/kernel/osrelease": "5.10.0\n"}, [], 1, "identity",
       "missing", "6.1")
expect({"proc/self/status": "CapEff:\t000001ffffffffff\n"}, [], 0, "identity",
       "ok")
expect({"proc/self/status": "CapEff:\t0000017fffffffff\n"}, [], 1, "identity",
       "missing", "CAP_BPF")
expect({"sys/fs/bpf/x": None}, [], 1, "identity", "missing", "/sys/fs/bpf")
pages = "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"
expect({pages: "3\n"}, [], 0, "memory", "note", "3 huge pages",
       "nr_hugepages")
expect({pages: None}, ["--port", "tap:t0"], 0, "memory", "note")
expect({}, ["--port", "pci:0000:01:00.0"], 1, "ports", "missing",
       "dpdk-devbind.py --bind=vfio-pci 0000:01:00.0")
driver = "sys/bus/pci/devices/0000:01:00.0/driver"
for name, device in ("vfio-pci", "vfio/vfio"), ("mlx5_core", "infiniband"):
    change = {driver: "-> ../../drivers/" + name}
    expect(change, ["--port", "pci:0000:01:00.0"], 1, "ports", "missing",
           "/dev/" + device)
    expect(dict(change, **{"dev/" + device: ""}),
           ["--port", "pci:0000:01:00.0"], 0, "ports", "ok", device)
expect({}, ["--port", "af_packet:up0"], 0, "ports", "ok", "MTU 9000")
expect({}, ["--port", "af_packet:up1"], 1, "ports", "missing", "up1")
expect({}, ["--port", "af_xdp:up0"], 1, "ports", "missing",
       "ip link set up0 mtu 2984")
expect({}, ["--port", "af_xdp:small"], 0, "ports", "ok")
expect({}, ["--port", "tap:t0"], 0, "ports", "ok", "/dev/net/tun")
expect({}, ["--port", "virtio_user:v0"], 1, "ports", "missing", "vhost")
expect({"proc/kallsyms": None}, [], 0, "queueing", "note", "sch_ingress")
expect({"proc/kallsyms": None}, ["--bypass"], 1, "queueing", "missing",
       "CONFIG_NET_CLS_U32")
rto = "proc/sys/net/ipv4/tcp_rto_max_ms"
expect({rto: None}, [], 0, "tcp", "note", "min_share")
expect({rto: "120000\n"}, [], 0, "tcp", "note", "120000", "sysctl")
expect({"sys/devices/system/clocksource/clocksource0/current_clocksource":
        "hpet\n"}, [], 0, "clock", "note", "hpet")

usage = subprocess.run([stagecoach, "agent", "doctor", "--format", "xml"],
                       stderr=subprocess.PIPE, text=True)
assert usage.returncode == 2 and "--format" in usage.stderr, usage

# This host: whatever it lacks, the daemons of nowhere are among it.
live = subprocess.run(
    [stagecoach, "agent", "doctor", "--format", "json", "--db",
     "unix:/nowhere/db", "--controller", "none", "--shim", "none"],
    stdout=subprocess.PIPE, text=True)
assert live.returncode == 1, live.stdout
daemons = [f for f in json.loads(live.stdout)["findings"]
           if f["check"] == "daemons"]
assert [f["result"] for f in daemons] == ["missing"], daemons
assert "/nowhere/db" in daemons[0]["what"], daemons
