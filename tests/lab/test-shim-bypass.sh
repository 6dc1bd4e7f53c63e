#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that a host keeps its network when its shim dies or hangs: the agent
# enables a kernel bypass, and a new shim removes it.  Runs without a database
# and a controller.  No slot tag passes the bypass.
set -u
MTU=1500 RATE=100Mbit
. "$SOURCE/tests/lab/shim-net.sh"

# Also prints the agent's log.
fail() {
    tail -n 20 "$TMP/agent.log"
    echo "FAIL: $*"
    exit 1
}
[ -x "$BUILD/agent/stagecoach-agent" ] || { echo "built without OVS"; exit 77; }

result() { awk -v name="$1" '$1 == name { print $2 }' "$TMP/beat"; }

# "ip netns exec" would hide the cgroup file system.
agent_start() {
    STAGECOACH_CGROUP=$PREFIX nsenter --net="/run/netns/$A" \
        "$BUILD/agent/stagecoach-agent" --host=h0 --rundir="$TMP" \
        -vconsole:info -vsyslog:off --actuator=shim --uplink=eth0 \
        --pins="/sys/fs/bpf/$PREFIX" "$@" 2>>"$TMP/agent.log" &
    AGENT_PID=$!
    PIDS="$PIDS $AGENT_PID"
}

agent_says() {
    ovs-appctl -T 10 -t "$TMP/agent.ctl" agent/status 2>/dev/null |
        grep -q -- "$1"
}

path_is() {
    [ "$(ip netns exec "$N" "$BUILD/tests/lab/kernel-path" show hostside \
        uplink)" = "$1" ]
}

ping() { in_a "$traffic" ping 10.99.0.2 7000 "$1" 100 >/dev/null; }

# beat_begin MS, beat_end NAME MAX-GAP-MS: heartbeats every millisecond.
beat_begin() {
    in_a "$traffic" beat 10.99.0.2 7000 "$1" 1000 >"$TMP/beat" &
    beat=$!
    sleep 0.5
}
beat_end() {
    wait $beat || fail "no answers: $1"
    echo "$1: $(tr '\n' ' ' <"$TMP/beat")"
    [ "$(result gap_us)" -le "$2"000 ] ||
        fail "$1: a gap of $(result gap_us) us"
}


shim_start
agent_start
in_b "$traffic" echo 120000 7000 & PIDS="$PIDS $!"
in_b "$traffic" sink 60000 5001 >"$TMP/sink" & PIDS="$PIDS $!"
wait_until b_listens u 7000
wait_until b_listens t 5001
wait_until agent_says '"shim":"connected"'
agent_says '"bypass":false' || fail "a bypass from the start"

# The bytes of a job are in its slot.
job=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
job=$job/$PREFIX/asha/t0
mkdir -p "$job" || fail "no cgroup"
ovs-appctl -T 10 -t "$TMP/agent.ctl" agent/register asha t0 >/dev/null ||
    fail "no job"
in_b "$traffic" sink 20000 5002 >/dev/null & PIDS="$PIDS $!"
wait_until b_listens t 5002
sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$job" ip netns exec \
    "$A" "$traffic" bulk 10.99.0.2 5002 500 || fail "no transfer"
counted() {
    "$BUILD/shim/stagecoach-shim" --show "$SOCK" >"$TMP/show"
    grep -q "^slot .*asha/t0" "$TMP/show" &&
        ovs-appctl -T 10 -t "$TMP/agent.ctl" agent/jobs | python3 -c '
import json, sys
job = json.load(sys.stdin)["jobs"][0]
sys.exit(not (job["tx_bytes"] > 2e6 and job["rx_bytes"] > 1e4))'
}
wait_until counted
rmdir "$job"

# A level's DSCP of a flow without a job never gets past the shim.
in_a "$traffic" source 10.99.0.2 5001 6001 140 0 500 >/dev/null
in_b "$traffic" dscp 1000 eth0 >"$TMP/dscp" & dscp=$!
sleep 0.2
in_a "$traffic" source 10.99.0.2 5001 6002 140 0 300 >/dev/null ||
    fail "no connection"
wait $dscp
[ "$(awk '$1 == 5001 { print $2 }' "$TMP/dscp")" = 0 ] ||
    fail "a level's DSCP passed: $(cat "$TMP/dscp")"

# The shim is killed: the kernel takes over, connections survive.
in_a "$traffic" source 10.99.0.2 5001 6003 140 0 8000 >"$TMP/source" &
source=$!
sleep 0.5
beat_begin 3000
kill -9 "$SHIM_PID"
beat_end "killed" 1000
path_is up || fail "no kernel path"
wait_until agent_says '"bypass":true'
in_b "$traffic" dscp 300 eth0 >"$TMP/dscp"
[ "$(awk '$1 == 5001 { print $2 }' "$TMP/dscp")" = 35 ] ||
    fail "not the host's DSCP: $(cat "$TMP/dscp")"

# A new shim takes over from the kernel.
beat_begin 4000
shim_start
beat_end "back" 300
path_is down || fail "the kernel still forwards"
wait_until agent_says '"bypass":false'
[ "$(result duplicates)" -le 20 ] || fail "many frames went twice"
wait $source || fail "the connection broke"

# The shim hangs.
beat_begin 5000
kill -STOP "$SHIM_PID"
sleep 2
path_is up || fail "no kernel path beside a shim that hangs"
kill -CONT "$SHIM_PID"
beat_end "hangs" 1000
wait_until agent_says '"bypass":false'
path_is down || fail "the kernel forwards beside the shim"
[ "$(result received)" -ge 3500 ] || fail "too many were lost"
[ "$(result duplicates)" -le 20 ] || fail "many frames went twice"

# The agent is killed as well, and restarts.
kill -9 "$SHIM_PID"
wait_until path_is up
kill -9 "$AGENT_PID"
ping 3 || fail "the path went with the agent"
agent_start --bypass="$N:hostside,uplink"
wait_until agent_says '"bypass":true'
ping 3 || fail "the new agent lost the path"
ip -n "$N" link del uplink
uplink_make
wait_until ping 1

# Without an agent, the shim itself removes the bypass.
kill -9 "$AGENT_PID"
shim_start
wait_until path_is down
ping 3 || fail "without an agent"
agent_start
wait_until agent_says '"bypass":false'

# A takeover by another shim does not cause a bypass.
before=$(grep -c "kernel bypass between" "$TMP/agent.log")
beat_begin 3000
old=$SHIM_PID
ip netns exec "$N" "$BUILD/shim/stagecoach-shim" --name "$PREFIX" \
    --host-port af_packet:hostside --uplink af_packet:uplink \
    --rate "$RATE" --mtu "$MTU" --control "$SOCK" --take-over --cc off &
SHIM_PID=$!
beat_end "taken over" 200
kill -0 "$old" 2>/dev/null && fail "the old shim is still there"
wait_until agent_says '"shim":"connected"'
[ "$(grep -c "kernel bypass between" "$TMP/agent.log")" = "$before" ] ||
    fail "the bypass was enabled: $(tail -n 5 "$TMP/agent.log")"
[ "$(result duplicates)" = 0 ] || fail "frames went twice"

# Filters of other programs are kept.
ip netns exec "$N" tc qdisc add dev hostside clsact
ip netns exec "$N" tc filter add dev hostside ingress prio 9 protocol 0x9999 \
    u32 match u32 0 0 action mirred egress redirect dev lo
kill -9 "$SHIM_PID"
wait_until path_is up
ping 3 || fail "beside another filter"
shim_start
wait_until path_is down
ping 3 || fail "after another filter"
ip netns exec "$N" tc filter show dev hostside ingress | grep -q "pref 9" ||
    fail "another program's filter is gone"
echo PASS
