#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a lab whose hosts order in the kernel, without shims: real jobs train
# to the end of their search, their packets have the DSCPs of their levels in
# the uplinks' queues and in the switch, and each agent knows the job of nearly
# all bytes.  "lab down" leaves nothing, also of a lab that was killed.  Then
# compares such hosts with hosts of the same lab without agents ("plain").
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab ka
show() { tail -n 5 "$dir"/*.out "$dir"/search.log; }
need python3 tc nsenter ovs-appctl
grep -qw bpf /proc/filesystems || { echo "skip: no BPF"; exit 77; }
rundir=/run/stagecoach/lab-$name
pins=/sys/fs/bpf/stagecoach-lab-$name
smoke=$SOURCE/lab/scenarios/smoke.json

python3 - "$smoke" "$dir" "$rundir" "$name" <<'PYTHON'
import json, sys

smoke, folder, rundir, name = sys.argv[1:]
hosts = [{"name": f"h{i}", "address": f"10.77.0.{i + 1}", "launch": "netns",
          "netns": f"scl-{name}-h{i}", "rundir": f"{rundir}/hosts/h{i}",
          "cgroup": f"stagecoach/lab-{name}/hosts/h{i}", "slots": 8}
         for i in range(3)]
scenario = json.load(open(smoke))
with open(f"{folder}/cluster.json", "w") as f:
    json.dump({"hosts": hosts}, f)
with open(f"{folder}/search.json", "w") as f:
    json.dump(scenario["searches"][0]["search"], f)
scenario.update(rate="25Mbit", cc=True)
with open(f"{folder}/cc.json", "w") as f:
    json.dump(scenario, f)
scenario.update(cc=False, actuator="bpf")
with open(f"{folder}/half.json", "w") as f:
    json.dump(scenario, f)
PYTHON

up() {
    lab up "$smoke" --actuator bpf --policy stage >"$dir/up.out" 2>&1 ||
        fail "lab up"
}

# Fails unless nearly all of at least 1 MB that interface $2 in namespace $1
# sent was in the classes of the levels of jobs.
assert_levels() {
    nsenter --net="/run/netns/scl-$name-$1" tc -s class show dev "$2" |
        awk -v where="$1 $2" '
            $1 == "class" { id = $3 }
            $1 == "Sent" && id ~ /:1[0-7]$/ { all += $2 }
            $1 == "Sent" && id ~ /:1[1-6]$/ { jobs += $2 }
            END { print where ": " jobs + 0 " of " all + 0 " bytes of jobs"
                  exit !(all > 1e6 && jobs >= 0.99 * all) }' ||
        fail "$1: packets have no levels"
}

# The last order is so old that the controller does not delay the next one.
can_order() {
    ovs-appctl -T 10 -t "$rundir/controller.ctl" controller/status |
        python3 -c '
import json, sys
sys.exit(not json.load(sys.stdin).get("order_age_s", 0) > 0.2)'
}

# Each agent knows the jobs of nearly all bytes that its host sent.
are_known() {
    for host in 0 1 2; do
        ovs-appctl -T 10 -t "$rundir/hosts/h$host/agent.ctl" agent/status |
            python3 -c '
import json, sys
status = json.load(sys.stdin)
sent, unknown = status["ip_bytes"], status["default_bytes"]
print("h%s: %d of %d bytes unknown" % (sys.argv[1], unknown, sent),
      file=sys.stderr)
sys.exit(not (sent > 1e6 and unknown <= 0.001 * sent))' $host || return 1
    done
}

for round in first second; do
    up
    [ -n "$(ls "$pins/h2")" ] || fail "the agent of h2 has pinned nothing"
    await "an order comes at once" can_order
    timeout 60 "$BUILD/cli/stagecoach" search run "$dir/search.json" \
        --cluster "$dir/cluster.json" --intent "unix:$rundir/intent.sock" \
        --format json >"$dir/search.out" 2>"$dir/search.log" ||
        fail "the $round search"
    grep -q '"search-end"' "$dir/search.out" || fail "the search has no end"
    await "the agents know the jobs of the $round search's bytes" are_known
    for host in 0 1 2; do
        assert_levels "h$host" eth0
        assert_levels fab "p$host"
    done
    lab down
    assert_clean "the $round lab"
done

up
read -r holder _ <"/run/stagecoach/lab-$name.lock"
kill -9 "$holder"
await "the lab is dead" test ! -e "/proc/$holder"
[ -d "$pins" ] || fail "a killed lab left no pins to remove"
lab down
assert_clean "the killed lab"

lab run "$dir/half.json" --policy plain --policy stage --out "$dir/report" \
    >"$dir/run.out" 2>&1 || fail "lab run"
python3 - "$dir/report/report.json" <<'PYTHON' || fail "the report"
import json, sys

report = json.load(open(sys.argv[1]))
plain, stage = report["policies"]
assert "BPF in place of shims" in report["setting"], report["setting"]
assert plain["coverage"] is None, plain
assert stage["coverage"] >= 0.999, stage
assert stage["coverage_fabric"] >= 0.99, stage
for policy in plain, stage:
    assert policy["congestion_control"] == "tcp", policy
    assert policy["stalls"] == 0 and policy["restarts"] == 0, policy
    assert policy["stages"] == 3, policy
PYTHON
assert_clean "lab run"

status=0
got=$(lab run "$dir/cc.json" --actuator bpf 2>&1) || status=$?
[ $status = 1 ] || fail "shims' congestion control without shims: $status"
[ "$got" = "--actuator: bpf has no shims, which \"cc\": true of $dir/cc.json needs; expected shim" ] ||
    fail "shims' congestion control without shims: $got"
echo PASS
