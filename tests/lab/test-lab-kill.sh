#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a run in which controller, agent and shim are killed: training goes
# on, the order returns when they restart, and a shim has its tables within 2
# s.  A shim that hangs does not stop training: the kernel forwards in its
# place.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab k
rundir=/run/stagecoach/lab-$name

# Several times as long as all kills take on a fast machine.
sed -e 's/"iterations": 8,/"iterations": 80,/' \
    -e 's/"iterations": 16,/"iterations": 90,/' \
    -e 's/"iterations": 12,/"iterations": 120,/' \
    "$SOURCE/lab/scenarios/smoke.json" >"$dir/long.json"

# Prints member $2 of the status of agent or controller $1.
ask() {
    ovs-appctl -t "$rundir/$1" "$2" |
        python3 -c "import json, sys; print(json.load(sys.stdin)['$3'])"
}

is() {
    [ "$(ask "$1" "$2" "$3")" = "$4" ]
}

differs() {
    value=$(ask "$1" "$2" "$3") && [ "$value" != "$4" ]
}

# Prints the process id of process $1 of the lab, found by a word of its
# command line.
pid_of() {
    for dir_ in /proc/[0-9]*; do
        if tr '\0' ' ' 2>/dev/null <"$dir_/cmdline" | grep -q "$1"; then
            echo "${dir_#/proc/}"
            return
        fi
    done 2>/dev/null
}

iteration() {
    tail -n 1 "$dir/out"
}

slots_of_shim() {
    "$BUILD/shim/stagecoach-shim" --show "$rundir/hosts/$1/shim.sock" |
        awk '$1 == "slot"' | wc -l
}

has_slots() {
    [ "$(slots_of_shim "$1")" -ge "$2" ]
}

# Prints the bytes that the node of host $1 has sent to the network.
bytes_of_uplink() {
    ip -n "scl-$name-n${1#h}" -s -j link show uplink |
        python3 -c "import json, sys
print(json.load(sys.stdin)[0]['stats64']['tx']['bytes'])"
}

start_run "$dir/long.json" --policy stage
wait_in_run 20 is controller.ctl controller/status stages 2
wait_in_run 5 has_slots h0 2

generation=$(ask controller.ctl controller/status generation)
kill -9 "$(pid_of "stagecoach-controller.*$rundir/")"
newer() { [ "$(ask "$1" "$2" generation)" -gt "$generation" ]; }
wait_in_run 10 newer controller.ctl controller/status
wait_in_run 10 newer hosts/h0/agent.ctl agent/status
wait_in_run 10 is hosts/h0/agent.ctl agent/status state ordered
echo "controller: the order is back, with a newer generation"

slots=$(slots_of_shim h0)
kill -9 "$(pid_of "stagecoach-agent.*$rundir/hosts/h0")"
wait_in_run 10 is hosts/h0/agent.ctl agent/status state ordered
wait_in_run 10 is hosts/h0/agent.ctl agent/status shim connected
[ "$(slots_of_shim h0)" -ge "$slots" ] || fail "slots were lost with the agent"
echo "agent: the order is back"

slots=$(slots_of_shim h1)
jobs=$(ask hosts/h1/agent.ctl agent/status jobs)
shim=$(pid_of "stagecoach-shim.*$rundir/hosts/h1")
killed=$(date +%s%3N)
kill -9 "$shim"
wait_in_run 5 has_slots h1 "$slots"
took=$(($(date +%s%3N) - killed))
[ "$took" -le 2000 ] || fail "the shim's tables took $took ms, at most 2000"
[ "$jobs" = "$(ask hosts/h1/agent.ctl agent/status jobs)" ] ||
    fail "jobs were lost with the shim"
echo "shim: tables are back after $took ms"

# The shim of the host with the servers hangs for three seconds: neither its
# agent nor the training waits for it.
hung=$(pid_of "stagecoach-shim.*$rundir/hosts/h0/")
kill -STOP "$hung"
wait_in_run 3 is hosts/h0/agent.ctl agent/status bypass True
before=$(bytes_of_uplink h0)
sleep 1
after=$(bytes_of_uplink h0)
kill -CONT "$hung"
[ "$after" -gt $((before + 100000)) ] ||
    fail "$((after - before)) bytes in a second beside a shim that hangs"
wait_in_run 3 is hosts/h0/agent.ctl agent/status bypass False
wait_in_run 5 is hosts/h0/agent.ctl agent/status shim connected
echo "bypass: $((after - before)) bytes in a second"

end_run
python3 - "$dir/report/report.json" <<'PYTHON' || fail "the run"
import json, sys

report = json.load(open(sys.argv[1]))
policy = report["policies"][0]
assert policy["restarts"] == 3, "%(restarts)s restarts, 3 are right" % policy
assert len(report["stages"]) == 3, report["stages"]
PYTHON
assert_clean "the run"
echo PASS
