#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Injects faults into clusters in which searches train (tests fault-*), and
# measures an agent beside hostile tenants (test tail).
set -eu
cd "$(dirname "$0")/../.."
export BUILD="$PWD/build" SOURCE="$PWD"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

failed=0
for name in fault-kill fault-stop fault-network fault-partition tail; do
    status=0
    timeout 300 sh tests/lab/isolated.sh "tests/lab/test-$name.sh" \
        >"$dir/$name" 2>"$dir/errors" || status=$?
    [ $status != 77 ] || { cat "$dir/$name"; exit 77; }
    [ $status = 0 ] || {
        failed=$((failed + 1))
        tail -n 20 "$dir/errors" >&2
    }
done
python3 - "$dir" $failed <<'END'
import glob
import json
import re
import sys

faults, agents = [], []
for path in glob.glob(sys.argv[1] + "/*"):
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith('{"fault"'):
                faults.append(json.loads(line))
            elif found := re.search(r"slowest reply (\d+) ms, (\d+) % of a "
                                    r"core, (\d+) MiB", line):
                agents.append([int(text) for text in found.groups()])
back = {fault["fault"]: fault["order_back_s"] for fault in faults}
alarms = {fault["fault"]: fault["alarm_s"] for fault in faults
          if fault["alarm_s"] is not None}
print(json.dumps({
    "bench": "faults",
    "figures": {
        "faults": len(faults),
        "failed": int(sys.argv[2]),
        "order_back_s": max(back.values()),
        "alarm_s": max(alarms.values()),
        **{key: sum(fault[key] for fault in faults)
           for key in ("lost_rows", "false_ends", "stolen_priority")},
        "agent_stall_ms": max(agent[0] for agent in agents),
        "agent_core_share": max(agent[1] for agent in agents) / 100,
        "agent_mib": max(agent[2] for agent in agents),
        "order_back_by_fault": back,
        "alarm_by_fault": alarms,
    },
}))
END
