#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures how long a host loses its network when its shim is killed and when
# another shim takes over: the longest time between two replies to datagrams
# that are sent every millisecond, beside four TCP connections that fill the
# link.  Reports the worst of $RUNS runs (default 3).  Prints one JSON object
# on standard output, progress on standard error.
set -u
cd "$(dirname "$0")/../.." || exit 1
SOURCE=$PWD BUILD=$PWD/build
MTU=1500 RATE=100Mbit
. tests/lab/shim-net.sh
[ -x "$BUILD/agent/stagecoach-agent" ] || { echo "built without OVS"; exit 77; }
trap 'cleanup; rm -rf "/sys/fs/bpf/$PREFIX"' EXIT
exec 3>&1 >&2

agent_says() {
    ovs-appctl -T 2 -t "$TMP/agent.ctl" agent/status 2>/dev/null |
        grep -q -- "$1"
}

# beat FILE: for three seconds.
beat_begin() {
    in_a "$traffic" beat 10.99.0.2 7000 3000 1000 >"$TMP/$1" &
    beat=$!
    sleep 1
}

shim_start
STAGECOACH_CGROUP=$PREFIX nsenter --net="/run/netns/$A" \
    "$BUILD/agent/stagecoach-agent" --host=h0 --rundir="$TMP" \
    --actuator=shim --uplink=eth0 --pins="/sys/fs/bpf/$PREFIX" \
    -vconsole:info -vsyslog:off 2>"$TMP/agent.log" & PIDS="$PIDS $!"
in_b "$traffic" echo 200000 7000 & PIDS="$PIDS $!"
in_b "$traffic" sink 200000 5001 5002 5003 5004 >"$TMP/sink" & PIDS="$PIDS $!"
wait_until b_listens u 7000
wait_until b_listens t 5004
wait_until agent_says '"shim":"connected"'

runs=${RUNS:-3} lost=0 run=0
duration=$((runs * 13 + 5))
for i in 1 2 3 4; do
    in_a "$traffic" source 10.99.0.2 500$i 600$i 0 0 ${duration}000 \
        >"$TMP/source$i" &
    eval "source$i=$!"
done
sleep 1
beat_begin quiet
wait $beat

while [ $run -lt "$runs" ]; do
    run=$((run + 1))
    echo "run $run: killed"
    beat_begin killed$run
    kill -9 "$SHIM_PID"
    wait $beat
    wait_until agent_says '"bypass":true'
    echo "run $run: back"
    beat_begin back$run
    shim_start
    wait $beat
    wait_until agent_says '"bypass":false'
    echo "run $run: taken over"
    beat_begin takeover$run
    ip netns exec "$N" "$BUILD/shim/stagecoach-shim" --name "$PREFIX" \
        --host-port af_packet:hostside --uplink af_packet:uplink \
        --rate "$RATE" --mtu "$MTU" --control "$SOCK" --take-over --cc off &
    SHIM_PID=$!
    wait $beat
    wait_until agent_says '"shim":"connected"'
done

# A connection counts as lost if it failed, or carried nothing in its last
# second.
for i in 1 2 3 4; do
    eval "pid=\$source$i"
    # shellcheck disable=SC2154
    wait "$pid"
    end=$(awk '$1 == "end" { print $2 }' "$TMP/source$i")
    bytes=$(awk -v port=500$i -v end="${end:-0}" \
        '$2 == port && $1 > end - 1000 { sum += $3 }
            END { printf "%.0f\n", sum }' \
        "$TMP/sink")
    [ -n "$end" ] && [ "$bytes" -gt 0 ] || lost=$((lost + 1))
done

python3 - "$TMP" "$runs" "$lost" >&3 <<'EOF_PYTHON'
import json
import sys

tmp, runs, lost = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def beat(name):
    return {key: int(value) for key, value in
            (line.split() for line in open("%s/%s" % (tmp, name)))}


def beats(name):
    return [beat("%s%d" % (name, i + 1)) for i in range(runs)]


def worst(name):
    return max(b["gap_us"] for b in beats(name)) / 1000


def unanswered(name):
    return max(b["sent"] - b["received"] for b in beats(name))


print(json.dumps({
    "bench": "shim-bypass",
    "figures": {
        "outage_ms": worst("killed"),
        "takeover_ms": worst("takeover"),
        "connections_lost": lost,
        "return_ms": worst("back"),
        "outage_unanswered": unanswered("killed"),
        "takeover_unanswered": unanswered("takeover"),
        "duplicates": sum(b["duplicates"] for name in
                          ("killed", "back", "takeover")
                          for b in beats(name)),
    },
    "baseline": {
        "gap_ms": beat("quiet")["gap_us"] / 1000,
        "unanswered": beat("quiet")["sent"] - beat("quiet")["received"],
    },
}))
EOF_PYTHON
