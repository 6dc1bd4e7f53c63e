#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that hosts order in the guest's kernel: the jobs of a lab train to the
# end of their search, and the agents know the job of nearly all bytes.
set -u
. "$SOURCE/tests/vm/guest-functions.sh"

load veth sch_htb
modprobe sch_ingress cls_bpf 2>/dev/null
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
uname -r
# See guest-switch.sh.
while [ "$(cut -d . -f 1 /proc/uptime)" -lt 12 ]; do
    sleep 0.5
done
cat >/out/actuator.json <<'END'
{"name": "actuator", "hosts": 2, "slots": 4, "rate": "10Mbit",
 "datapath": "kernel", "actuator": "bpf", "policies": ["stage"],
 "timeout_s": 240,
 "searches": [{"search": {"name": "asha", "trials": 2, "seed": 1,
     "space": {"learning_rate": [0.1], "width": [256], "batch": [8]},
     "rungs": [{"iterations": 6, "keep": 1}, {"iterations": 12}],
     "placements": [{"workers": ["h0"], "servers": ["h1"]},
                    {"workers": ["h1"], "servers": ["h0"]}],
     "model": {"inputs": 64, "hidden_layers": 2, "classes": 10},
     "data": {"kind": "generated", "samples": 1000}, "backend": "cpu"}}]}
END
"$BUILD/cli/stagecoach" lab run --name a1 /out/actuator.json \
    --out /out/report >/out/lab.log 2>&1 || { cat /out/lab.log; fail "lab run"; }
python3 - <<'END' || { cat /out/lab.log; fail "the report"; }
import json

stage, = json.load(open("/out/report/report.json"))["policies"]
print({name: stage[name] for name in ("coverage", "coverage_fabric",
                                      "stages", "restarts")})
assert stage["complete"] and stage["stages"] == 2, stage
assert stage["coverage"] >= 0.999 and stage["coverage_fabric"] >= 0.99, stage
assert stage["restarts"] == 0, stage
END
echo PASS
