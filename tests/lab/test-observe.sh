#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks hosts whose agents only count: two searches train on shared links, and
# a process belongs to a job that nobody has announced.  All packets arrive with
# the DSCP that their sender gave them, and the queues of the hosts are those
# of the lab.  Then "stagecoach report" has the jobs, what they share, how long
# they waited, how much of each card it saw, and what an order would have saved.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab ob
show() { cat "$dir"/*.out "$dir/page"; }
need python3 tc nsenter ovs-appctl
grep -qw bpf /proc/filesystems || { echo "skip: no BPF"; exit 77; }
rundir=/run/stagecoach/lab-$name
history=$rundir/log/controller.db

python3 - "$SOURCE/lab/scenarios/smoke.json" "$dir" "$rundir" "$name" <<'PYTHON'
import json, sys

smoke, folder, rundir, name = sys.argv[1:]
scenario = json.load(open(smoke))
scenario["actuator"] = "observe"
hosts = [{"name": f"h{i}", "address": f"10.77.0.{i + 1}", "launch": "netns",
          "netns": f"scl-{name}-h{i}", "rundir": f"{rundir}/hosts/h{i}",
          "cgroup": f"stagecoach/lab-{name}/hosts/h{i}", "slots": 8}
         for i in range(3)]


def write(file, what):
    with open(f"{folder}/{file}", "w") as f:
        json.dump(what, f)


write("observe.json", scenario)
write("cluster.json", {"hosts": hosts})
for n, search in enumerate(scenario["searches"]):
    write(f"search{n}.json", search["search"])
PYTHON

lab up "$dir/observe.json" --policy stage >"$dir/up.out" 2>&1 || fail "lab up"
queues() {
    for host in 0 1 2; do
        nsenter --net="/run/netns/scl-$name-h$host" tc qdisc show dev eth0
    done
}
queues >"$dir/queues"
[ "$(grep -c htb "$dir/queues")" = 3 ] || fail "not the lab's queues"

# A job that no search announces sends for 2 s, with a DSCP of its own.
nsenter --net="/run/netns/scl-$name-h1" \
    "$BUILD/tests/lab/traffic" sink 30000 4500 >"$dir/sink.out" &
pids="$pids $!"
STAGECOACH_RUNDIR=$rundir/hosts/h0 \
    STAGECOACH_CGROUP=stagecoach/lab-$name/hosts/h0 \
    nsenter --net="/run/netns/scl-$name-h0" \
    "$BUILD/cli/stagecoach" run --cojob team --job j7 -- \
    "$BUILD/tests/lab/traffic" source 10.77.0.2 4500 0 184 1000 2000 \
    >"$dir/source.out" &
source=$!
pids="$pids $source"
nsenter --net="/run/netns/scl-$name-fab" \
    "$BUILD/tests/lab/traffic" dscp 600000 p0 >"$dir/dscp" &
dscp=$!
pids="$pids $dscp"
for n in 0 1; do
    timeout 90 "$BUILD/cli/stagecoach" search run "$dir/search$n.json" \
        --cluster "$dir/cluster.json" --intent "unix:$rundir/intent.sock" \
        >"$dir/search$n.out" 2>&1 &
    eval "search$n=\$!"
done
# shellcheck disable=SC2154 # By eval.
wait "$search0" && wait "$search1" || fail "the searches"
wait "$source" || fail "the process of team/j7"
kill "$dscp"
wait "$dscp" || fail "a checksum is wrong"
queues | diff "$dir/queues" - >&2 || fail "the queues have changed"
# Trainers give their heartbeats the DSCP 39.
awk '{ n += $3; if ($2 == 46) own += $3; else if ($2 && $2 != 39) other += $3 }
    END { print n + 0, "packets,", own + 0, "of EF,", other + 0, "of others"
          exit !(n > 1000 && own > 100 && !other) }' "$dir/dscp" ||
    fail "packets have changed"

# Hosts report what their links carried each second.  The controller writes
# what has not been written yet, and the lab starts another one.
sleep 2
ovs-appctl -T 10 -t "$rundir/controller.ctl" exit >"$dir/exit.out" 2>&1 ||
    fail "the controller does not exit"
report() { "$BUILD/cli/stagecoach" report --history "$history" "$@"; }
has_all() {
    report --format json >"$dir/page" && python3 - "$dir/page" <<'PYTHON'
import json, sys

page = json.load(open(sys.argv[1]))
jobs = {job["job"]: job for job in page["jobs"]}
sys.exit(not {"asha/t0", "asha/t1", "bravo/t0", "team/j7"} <= set(jobs))
PYTHON
}
await "all jobs are recorded" has_all
python3 - "$dir/page" <<'PYTHON' || fail "the page"
import json, sys

page = json.load(open(sys.argv[1]))
jobs = {job["job"]: job for job in page["jobs"]}
for name, hosts in ("asha/t0", 3), ("bravo/t0", 3), ("team/j7", 1):
    assert jobs[name]["hosts"] == hosts, jobs[name]
    assert jobs[name]["tx_bytes"] > 3e5, jobs[name]
assert jobs["asha/t0"]["gpus"] == 2, jobs
assert jobs["asha/t0"]["gpus_by"] == "processes", jobs
assert jobs["team/j7"]["gpus_by"] == "hosts", jobs
waited = sum(job.get("waited_hours", 0) for job in page["jobs"]) * 3600
hours = sum(jobs[name]["hours"] for name in jobs) * 3600
print(f"waited {waited:.1f} of {hours:.1f} s, ratio {page['ratio']:.3f}")
assert 0.5 < waited < hours, page
assert page["waited_gpu_hours"] > 0, page
shared = {link["port"]: link["jobs"] for link in page["links"]}
assert {"asha/t0", "bravo/t0"} <= set(shared["h2:tx"]), shared
assert 0.3 < page["ratio"] <= 1.02, page
cards = {card["port"]: card for card in page["cards"]}
for host in "h0", "h1", "h2":
    card = cards[host + ":tx"]
    assert card["all_bytes"] > 1e6, card
    assert 0.95 < card["bytes"] / card["all_bytes"] < 1.05, card
assert page["cut"] == 0, page
PYTHON
report >"$dir/page" || fail "no page"
[ "$(wc -l <"$dir/page")" -le 60 ] || fail "more than one page"
for line in "RDMA passes" "^asha/t0 " "^h0:tx " "^shared link" "^waiting took"
do
    grep -q "$line" "$dir/page" || fail "no \"$line\" on the page"
done
lab down
assert_clean "lab up"
echo PASS
