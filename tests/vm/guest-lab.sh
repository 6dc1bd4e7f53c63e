#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the result of a lab depends on the controller's flows where the
# switches have the kernel's datapath.  Two searches share no host, only the
# link between two racks, so that no shim can order them.  With the
# controller's flows the search at the front gets the link; when these flows
# are deleted, it shares the link with the other one.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need ovs-vswitchd ovs-vsctl ovsdb-server ovs-appctl ovs-ofctl tc
begin_lab g
. "$SOURCE/tests/lab/switch-functions.sh"
rundir=/run/stagecoach/lab-$name
bridges="leaf0 leaf1 spine0"

mount -t cgroup2 cgroup /sys/fs/cgroup
for module in sch_htb veth; do
    modprobe $module
done
# See guest-switch.sh.
while [ "$(cut -d . -f 1 /proc/uptime)" -lt 12 ]; do
    sleep 0.5
done

# search NAME WEIGHT SECOND ITERATIONS WORKER SERVER: two jobs, each of which
# uses the link about half of the time in each direction.
search() {
    cat <<END
{"start_s": $3, "search": {"name": "$1", "weight": $2, "trials": 2, "seed": 1,
 "space": {"learning_rate": [0.1], "width": [256], "batch": [8]},
 "rungs": [{"iterations": $4}],
 "placements": [{"workers": ["$5"], "servers": ["$6"]}],
 "model": {"inputs": 64, "hidden_layers": 2, "classes": 10},
 "data": {"kind": "generated", "samples": 1000}, "backend": "cpu"}}
END
}
cat >"$dir/racks.json" <<END
{"name": "racks", "hosts": 4, "slots": 8, "rate": "10Mbit",
 "fabric": {"leaf_spine": {"leaves": 2, "spines": 1, "over": 6}},
 "datapath": "kernel", "policies": ["stage"], "timeout_s": 120,
 "searches": [$(search back 1 0 16 h1 h3), $(search front 100 10 10 h0 h2)]}
END

# Prints the share of search "front" in all iterations between the first one of
# the last job and the end of the first search, these iterations and their
# seconds, and what chose the queues.  All jobs have models of the same size.
result() {
    python3 - "$dir/report/report.json" <<'PYTHON'
import json, sys

report = json.load(open(sys.argv[1]))
policy, = report["policies"]
assert policy["complete"] and policy["restarts"] == 0, policy
jobs = [(job["cojob"], [point[0] for point in job["points"]])
        for job in report["jobs"]]
assert len(jobs) == 4, jobs
begin = max(min(times) for _, times in jobs)
end = min(stage["end"] for stage in report["stages"])
n = {"front": 0, "back": 0}
for cojob, times in jobs:
    n[cojob] += sum(begin < t <= end for t in times)
assert sum(n.values()) >= 10, jobs
print(f"{n['front'] / sum(n.values()):.2f}", n["front"], "of", sum(n.values()),
      f"in {end - begin:.1f} s,", policy["queues"])
PYTHON
}
# check CONDITION: checks an awk CONDITION on the share $1 and the line.
check() {
    end_run
    grep "lab: stage" "$dir/out"
    got=$(result)
    echo "share of the search at the front: $got"
    echo "$got" | awk '{ exit !('"$1"') }' || fail "$got"
}

start_run "$dir/racks.json"
check '$1 > 0.65 && /by the controller.s flows/'

start_run "$dir/racks.json"
wait_in_run 60 test -e "$rundir/cluster.json"     # The cluster is ready.
# shellcheck disable=SC2086
forget_queues "$rundir/ovs" $bridges
check '$1 < 0.61 && /unknown/'
echo PASS
