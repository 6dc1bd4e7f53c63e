#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the kernel queues of an interface, managed by the agent: all jobs
# share one level without an order; with an order the first level gets the
# link, and the other levels get the rest, or the whole link when the first
# level is idle.  The agent repairs queues that another program changes, keeps
# existing queues and counters after a crash, also with another rate, leaves
# queues of other programs alone, and removes its queues when it ends.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need ip tc nsenter ovsdb-tool ovsdb-server ovsdb-client ovs-appctl ethtool

begin tc
name=sct-tc-$$
far=$name-far
tests=$BUILD/tests/lab
# "ip netns exec" would hide the cgroup file system.
netns="nsenter --net=/run/netns/$name"
export STAGECOACH_CGROUP=$name STAGECOACH_RUNDIR=$dir

clean_up() {
    ip netns del "$name" 2>/dev/null
    ip netns del "$far" 2>/dev/null
}
show() {
    tc -n "$name" class show dev eth0
    ovs-appctl -t "$dir/agent.ctl" agent/status
}

kernel() { tc -n "$name" "$1" show dev eth0; }
n_lines() { kernel "$1" | grep -c -- "$2" || :; }
has() { [ "$(n_lines "$1" "$2")" = "$3" ]; }
# Filters of levels: "IP-or-IPv6 match -> class".
n_filters() { tc -n "$name" filter show dev eth0 parent 5363: | grep -c match || :; }
has_filters() { [ "$(n_filters)" = "$1" ]; }
says() { ovs-appctl -t "$dir/agent.ctl" agent/status | grep -q -- "$1"; }
# start_agent RATE
start_agent() {
    $netns "$BUILD/agent/stagecoach-agent" --host=h0 --tc="eth0:$1" \
        -vconsole:info -vsyslog:off 2>>"$dir/agent.log" &
    agent=$!
    pids="$pids $agent"
}
# order OPERATION: changes the controller's order in the database.
order() {
    ovsdb-client -t 5 transact "unix:$dir/hosts.sock" \
        "[\"Stagecoach_Hosts\", $1]" >"$dir/transact.log" 2>&1 &&
        ! grep -q error "$dir/transact.log" ||
        fail "transact: $(cat "$dir/transact.log")"
}

# Mbit/s of each port from FROM to TO, ms after the sink began.
rates() {
    awk -v from="$1" -v to="$2" '
        NR == 1 { t0 = $1 }
        $1 - t0 >= from && $1 - t0 < to { n[$2] += $3 }
        END { printf "%.1f %.1f\n", n[5001] * 8e-3 / (to - from),
                                    n[5007] * 8e-3 / (to - from) }' "$dir/sink"
}
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

ip netns add "$name"
ip netns add "$far"
ip -n "$name" link add eth0 type veth peer name eth0 netns "$far"
for ns in 1:$name 2:$far; do
    ip -n "${ns#*:}" link set lo up
    ip -n "${ns#*:}" addr add "10.98.0.${ns%%:*}/24" dev eth0
    ip -n "${ns#*:}" link set eth0 up
    ip netns exec "${ns#*:}" ethtool -K eth0 tx off tso off gso off \
        >/dev/null 2>&1
done
ovsdb-tool create-cluster "$dir/hosts.db" \
    "$SOURCE/wire/hosts.ovsschema" "unix:$dir/hosts.raft"
ovsdb-server --remote="punix:$dir/hosts.sock" --unixctl="$dir/ovsdb.ctl" \
    -vconsole:off -vsyslog:off "$dir/hosts.db" &
pids="$pids $!"
"$tests/fake-controller" "punix:$dir/telemetry.sock" "$dir/lease" \
    >/dev/null 2>&1 &
pids="$pids $!"
await "the database is there" test -S "$dir/hosts.sock"

start_agent 50Mbit
await "there are classes" has class 'htb 5363:1[0-7] parent 5363:1' 8
await "the kernel has all queues" says '"state":"in sync"'
has_filters 0 || fail "filters without an order: $(n_filters)"
echo "ok: without an order all are equal"

echo '{"generation": 1, "version": 1, "lease_ms": 60000, "report_ms": 200}' >"$dir/lease"
order '{"op": "insert", "table": "Host_Wanted", "row": {
    "host": "h0", "version": 1, "generation": 1, "lease_ms": 60000,
    "level_dscp": ["map", [[0, 39], [1, 35], [2, 23], [3, 7], [7, 0]]]}}'
await "an order makes filters" has_filters 11

# Port 5007 has the lowest level and starts first; 5001 has a high level and
# sends for some seconds.
ip netns exec "$far" "$tests/traffic" sink 12000 5001 5007 >"$dir/sink" &
sink=$!
sleep 0.3
ip netns exec "$name" "$tests/traffic" source 10.98.0.2 5007 0 0 0 10000 \
    >/dev/null &
low=$!
ip netns exec "$name" "$tests/traffic" source 10.98.0.2 5001 0 140 3000 4000 \
    >/dev/null &
high=$!
wait $low $high $sink || fail "traffic"
alone=$(rates 1000 2900)
both=$(rates 3800 6800)
after=$(rates 8000 9800)
echo "high and low level, Mbit/s: alone $alone, both $both, after $after"
at_least "${both% *}" 45 || fail "the first level has ${both% *} of 50 Mbit/s"
at_least "${alone#* }" 45 || fail "the last level alone has ${alone#* }"
at_least "${after#* }" 45 || fail "the last level has ${after#* } after that"
[ "$(n_lines qdisc 'htb 5363: root')" = 1 ] || fail "another root"

# Changed queues are repaired.
tc -n "$name" class change dev eth0 parent 5363:1 classid 5363:12 htb \
    rate 5mbit ceil 6mbit prio 3
tc -n "$name" filter del dev eth0 parent 5363: prio 3
await "a changed class is repaired" has class '5363:12.*ceil 50Mbit' 1
await "a removed filter is repaired" has_filters 11
tc -n "$name" qdisc del dev eth0 root
await "a removed root qdisc is repaired" has class 'htb 5363:1[0-7] parent' 8
await "its filters are repaired" has_filters 11

# An agent that restarts after a crash keeps the queues: counters continue.
sent() { tc -n "$name" -s qdisc show dev eth0 root | awk '/Sent/ { print $2 }'; }
ip netns exec "$name" "$tests/traffic" flood 10.98.0.2 7 10 1000
before=$(sent)
[ "$before" -ge 1000 ] || fail "only $before bytes were counted"
kill -9 $agent
wait $agent 2>/dev/null || :
has_filters 11 || fail "filters have gone with the agent"
lines=$(wc -l <"$dir/agent.log")
start_agent 50Mbit
await "the next agent follows the order" says '"state":"ordered"'
await "the next agent has the queues" says '"state":"in sync"'
sleep 1.5
tail -n "+$((lines + 1))" "$dir/agent.log" | grep -q 'ing queues' &&
    fail "it created the queues again"
[ "$(sent)" -ge "$before" ] || fail "counters began again"
echo "ok: the queues were kept"

# The lease ends, and then the agent.
echo '{"generation": 1, "version": 1, "lease_ms": 300, "report_ms": 200}' >"$dir/lease"
await "the lease is short" says '"lease_left_ms":[0-9]\{1,3\},'
rm -f "$dir/lease"
await "when the lease ends all are equal again" has_filters 0
kill $agent
wait $agent || fail "the agent ended with $?"
[ "$(n_lines qdisc 5363:)" = 0 ] || fail "queues are left: $(kernel qdisc)"
echo "ok: an agent that ends gives the interface back"

# A rate that does not fit in HTB's own 32 bits.
start_agent 100Gbit
await "a fast link has its rate" has class '5363:1 root rate 100Gbit' 1
kill -9 $agent
wait $agent 2>/dev/null || :
start_agent 200Gbit
await "the next agent sets its rate" has class '5363:1 root rate 200Gbit' 1

# Without a next one, "--unload" removes what a killed agent has left.
kill -9 $agent
wait $agent 2>/dev/null || :
$netns "$BUILD/agent/stagecoach-agent" --unload \
    --tc eth0:200Gbit --pins "$dir/none" || fail "--unload"
[ "$(n_lines qdisc 5363:)" = 0 ] || fail "it left queues: $(kernel qdisc)"

# Queues of another program are not touched.
tc -n "$name" qdisc add dev eth0 root handle 1: htb default 1
start_agent 50Mbit
await "another program's queues are reported" \
    says "another program has configured its queues"
[ "$(n_lines qdisc 'htb 1: root')" = 1 ] || fail "they are gone"
kill $agent
wait $agent || fail "the agent ended with $?"
[ "$(n_lines qdisc 'htb 1: root')" = 1 ] || fail "they went with the agent"
echo PASS
