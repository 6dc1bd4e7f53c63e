#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks what outlives an agent that orders in the kernel.  While the agent is
# killed or ended, and started again, no packet is lost, no packet of the job has
# another DSCP, and the next agent knows the job of the sockets that are there.
# Without a next agent the order ends with the lease, and soon if the agent was
# ended, and the kernel goes on to count.  "--unload" removes everything while
# the job runs.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need ip nsenter ovsdb-tool ovsdb-server ovsdb-client ovs-appctl python3
need_cgroups
grep -qw bpf /proc/filesystems || { echo "skip: no BPF"; exit 77; }

begin lease
name=sct-lease-$$
far=$name-far
tests=$BUILD/tests/lab
pins=/sys/fs/bpf/$name
group=$mount/$name/asha/t0
# "ip netns exec" would hide the cgroup file system.
netns="nsenter --net=/run/netns/$name"
away="nsenter --net=/run/netns/$far"
export STAGECOACH_CGROUP=$name STAGECOACH_RUNDIR=$dir

unload() {
    $netns "$BUILD/agent/stagecoach-agent" --unload --pins "$pins" \
        2>"$dir/unload.log"
}
clean_up() {
    [ ! -e "$pins" ] || unload
    remove_cgroup "$name"
    ip netns del "$name" 2>/dev/null
    ip netns del "$far" 2>/dev/null
}
show() { ask agent/status; ask agent/jobs; cat "$dir/beat"; }
ask() { ovs-appctl -T 10 -t "$dir/agent.ctl" "$@"; }
says() { ask agent/status | grep -q -- "$1"; }

kernel() { python3 "$SOURCE/tests/lab/kernel-state.py" "$@"; }

start_agent() {
    $netns "$BUILD/agent/stagecoach-agent" --host=h0 --actuator=bpf \
        --uplink=eth0 --pins="$pins" --kernel-cgroup="$name" \
        -vconsole:info -vsyslog:off 2>>"$dir/agent.log" &
    agent=$!
    pids="$pids $agent"
}
kill_agent() {
    kill -9 $agent
    wait $agent 2>/dev/null || :
}
restart_agent() {
    kill_agent
    start_agent
}
end_agent() {
    kill $agent
    wait $agent || fail "the agent's exit status is $?"
}
replace_agent() {
    end_agent
    start_agent
}
# lease MS: what the controller sends twice a second.
lease() {
    echo "{\"generation\": 1, \"version\": 1, \"lease_ms\": $1, \"report_ms\": 200}" \
        >"$dir/new-lease"
    mv "$dir/new-lease" "$dir/lease"
}

# The DSCPs of the packets of the job's transfer that arrive in 0.3 s.
dscps() {
    $away "$tests/traffic" dscp 300 eth0 | awk '$1 == 5001 { print $2 }'
}
has_dscps() { [ "$(dscps)" = "$1" ]; }

received() { awk '{ n += $3 } END { print n + 0 }' "$dir/sink"; }
received_more() { [ "$(received)" -gt $(($1 + 50000)) ]; }
goes_on() { await "$1: the transfer goes on" received_more "$(received)"; }

# lossless COMMAND...: runs COMMAND while a process of the job and a server
# exchange datagrams, and fails if one is lost.
lossless() {
    sh -c "echo \$\$ >'$group/cgroup.procs' &&
           exec $netns '$tests/traffic' beat 10.98.0.2 7 600 5000" \
        >"$dir/beat" &
    beat=$!
    pids="$pids $beat"
    sleep 0.3
    "$@"
    goes_on "$*"
    wait $beat || fail "$*: no datagrams"
    grep -qx 'received 600' "$dir/beat" ||
        fail "$*: $(tr '\n' ' ' <"$dir/beat")"
    echo "ok: $*: no packet is lost"
}

# The agent knows the job of the bytes that are sent from now on.
totals() {
    ask agent/status | python3 -c '
import json, sys
status = json.load(sys.stdin)
print(status["ip_bytes"], status["default_bytes"])'
}
assert_coverage() {
    read -r sent unknown <<EOF_TOTALS
$(totals)
EOF_TOTALS
    await "$1: the agent counts" counts_more "$sent"
    totals | {
        read -r later more
        echo "$1: $((more - unknown)) of $((later - sent)) bytes unknown"
        [ $(((more - unknown) * 1000)) -le $((later - sent)) ]
    } || fail "$1: the agent does not know the job"
}
counts_more() { [ "$(totals | cut -d' ' -f1)" -gt $(($1 + 300000)) ]; }

ip netns add "$name"
ip netns add "$far"
ip -n "$name" link add eth0 type veth peer name eth0 netns "$far"
for ns in 1:$name 2:$far; do
    ip netns exec "${ns#*:}" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
    ip -n "${ns#*:}" addr add "10.98.0.${ns%%:*}/24" dev eth0
    ip -n "${ns#*:}" link set eth0 up
done
mkdir -p "$mount/$name"
ovsdb-tool create-cluster "$dir/hosts.db" \
    "$SOURCE/wire/hosts.ovsschema" "unix:$dir/hosts.raft"
ovsdb-server --remote="punix:$dir/hosts.sock" --unixctl="$dir/ovsdb.ctl" \
    -vconsole:off -vsyslog:off "$dir/hosts.db" &
pids="$pids $!"
"$tests/fake-controller" "punix:$dir/telemetry.sock" "$dir/lease" \
    >/dev/null 2>&1 &
pids="$pids $!"
await "the database is there" test -S "$dir/hosts.sock"
ovsdb-client -t 5 transact "unix:$dir/hosts.sock" '["Stagecoach_Hosts",
    {"op": "insert", "table": "Host_Wanted", "row": {
        "host": "h0", "version": 1, "generation": 1, "lease_ms": 600000,
        "level_dscp": ["map", [[0, 39], [1, 35], [2, 23], [7, 0]]],
        "level": ["map", [["asha/t0", 0]]]}}]' >"$dir/transact.log" 2>&1 &&
    ! grep -q error "$dir/transact.log" ||
    fail "transact: $(cat "$dir/transact.log")"
lease 600000

start_agent
await "the agent follows the order" says '"state":"ordered"'
$away "$tests/traffic" sink 200000 5001 >"$dir/sink" &
pids="$pids $!"
$away "$tests/traffic" echo 200000 7 &
pids="$pids $!"
$netns "$BUILD/cli/stagecoach" run --cojob asha --job t0 -- \
    "$tests/traffic" drip 10.98.0.2 5001 200000 200 2>"$dir/run.log" &
pids="$pids $!"
goes_on "an agent"
await "its packets have their DSCP" has_dscps 35
assert_coverage "an agent"

# The lease is valid until the next agent is there.
$away "$tests/traffic" dscp 60000 eth0 >"$dir/watch" &
watch=$!
pids="$pids $watch"
lossless restart_agent
await "the next agent follows the order" says '"state":"ordered"'
assert_coverage "the next agent"
lossless replace_agent
await "another agent follows the order" says '"state":"ordered"'
assert_coverage "another agent"
kill $watch
wait $watch || fail "wrong checksums"
awk '$1 == 5001 || $1 == 7 { print $1, $2 }' "$dir/watch" >"$dir/seen"
[ "$(cat "$dir/seen")" = "7 35
5001 35" ] || fail "port and DSCP of packets: $(tr '\n' ',' <"$dir/seen")"
echo "ok: no packet of the job had another DSCP"

# An agent that was ended, and no next one.
lossless end_agent
wait_for 3 "its order ends" has_dscps 0
lossless start_agent
await "with an agent, packets have their DSCP again" has_dscps 35

# The lease ends before the next agent is there.
lease 1000
await "the lease is short" says '"lease_left_ms":[0-9]\{1,3\},'
lossless kill_agent
await "after the lease, packets have the default DSCP" has_dscps 0
before=$(kernel sent "$pins")
goes_on "after the lease"
after=$(kernel sent "$pins")
echo "bytes, in the default class: $before, then $after"
sent=$((${after% *} - ${before% *}))
[ $sent -ge 50000 ] || fail "the kernel does not count"
[ $(((${after#* } - ${before#* }) * 100)) -ge $((sent * 99)) ] ||
    fail "bytes after the lease are not in the default class"
lease 600000
lossless start_agent
await "with the next agent, packets have their DSCP" has_dscps 35
assert_coverage "an agent after the lease"
again=$(kernel sent "$pins")
[ "${again% *}" -gt "${after% *}" ] || fail "counters begin again"

# The lease is valid, so the programs would give the DSCP.
kill_agent
await "a dead agent's order goes on" has_dscps 35
[ "$(kernel programs "$mount/$name")" -gt 0 ] || fail "no programs"
lossless unload
[ ! -s "$dir/unload.log" ] || fail "--unload: $(cat "$dir/unload.log")"
await "packets have no DSCP" has_dscps 0
[ ! -e "$pins" ] || fail "--unload left $(ls "$pins")"
[ "$(kernel programs "$mount/$name")" = 0 ] || fail "--unload left programs"
echo PASS
