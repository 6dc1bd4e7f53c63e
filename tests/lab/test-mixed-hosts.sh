#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a cluster in which one host has a shim, one orders in its kernel, and
# two have neither an agent nor anything in front of their uplinks: "lab up"
# waits for two agents, a search with workers and servers on all hosts trains to
# its end, the agents know the jobs of nearly all bytes of their hosts, and the
# others send without levels.  "lab down" leaves nothing.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab mx
need python3 tc nsenter ovs-appctl
grep -qw bpf /proc/filesystems || { echo "skip: no BPF"; exit 77; }
rundir=/run/stagecoach/lab-$name
scenario=$SOURCE/tests/lab/mixed-hosts.json

lab up "$scenario" --policy stage >"$dir/out" 2>&1 || fail "lab up"
for host in 0 1 2 3; do
    agent=no
    ! ovs-appctl -T 10 -t "$rundir/hosts/h$host/agent.ctl" agent/status \
        >"$dir/status" 2>&1 || agent=yes
    node=no
    [ ! -e "/run/netns/scl-$name-n$host" ] || node=yes
    echo "h$host: agent $agent, node $node, queues" "$(
        nsenter --net="/run/netns/scl-$name-h$host" tc class show dev eth0 |
            grep -c '^class htb')"
done >"$dir/hosts"
# The kernel orders by a class of the rate and one for each of eight levels;
# the lab limits a host without an agent by one.
cat >"$dir/expected" <<'EOF_HOSTS'
h0: agent yes, node yes, queues 0
h1: agent yes, node no, queues 9
h2: agent no, node no, queues 1
h3: agent no, node no, queues 1
EOF_HOSTS
diff "$dir/expected" "$dir/hosts" >&2 || fail "the hosts"
[ -S "$rundir/hosts/h0/shim.sock" ] || fail "h0 has no shim"
lab down
assert_clean "lab up"

lab run "$scenario" --out "$dir/report" >"$dir/out" 2>&1 ||
    fail "lab run"
python3 - "$dir/report/report.json" <<'PYTHON' || fail "the report"
import json, sys

report = json.load(open(sys.argv[1]))
plain, stage = report["policies"]
assert "1 with shims, 1 with BPF, 2 with neither" in report["setting"], report
for policy in plain, stage:
    assert policy["complete"] and policy["stages"] == 2, policy
    assert policy["stalls"] == 0 and policy["restarts"] == 0, policy
assert plain["coverage"] is None and plain["coverage_fabric"] == 0, plain
assert stage["coverage"] >= 0.999, stage
# In each iteration of both jobs, three workers and a server send alike; half
# of the senders have an agent.
assert 0.2 < stage["coverage_fabric"] < 0.8, stage
PYTHON
assert_clean "lab run"
echo PASS
