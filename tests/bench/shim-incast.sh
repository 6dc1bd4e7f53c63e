#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures incast: eight hosts send to one host at full speed, and each also
# sends it 45 requests per second as heartbeats.  The hosts have kernel bridges
# (only the heartbeats, without load), or shims whose congestion control is
# off, at the receiver only, or everywhere.  In the case "first", everywhere,
# the programs that send and answer heartbeats have the highest CPU priority, so
# that round trips measure the network and the shims: nine hosts share this
# machine's processors, and scheduling delay of the answering program can be
# most of the 99th percentile. $RATE is the downlink rate of the receiver
# (default 200mbit), $SECONDS_LOADED the duration.  Prints one JSON object on
# standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-$PWD/build}
HOSTS=8 RATE=${RATE:-200mbit} MTU=${MTU:-1500} QUEUE=${QUEUE:-1000000}
SECONDS_LOADED=${SECONDS_LOADED:-10}
. "$PWD/tests/lab/incast-net.sh"

PING_PORT=7000          # Of the heartbeats.
first=                  # Command before the heartbeat programs.
senders() { seq 1 "$HOSTS"; }

# heartbeats NAME N: N from each host.  Returns when they are done.
heartbeats() {
    waits=
    for i in $(senders); do
        # shellcheck disable=SC2086
        in_host "$i" $first "$traffic" ping 10.99.0.1 $PING_PORT "$2" 200 \
            >"$TMP/$1.ping.$i" & waits="$waits $!"
    done
    for pid in $waits; do
        wait "$pid" || true
    done
}

# loaded NAME: runs bulk flows and heartbeats, and records the results.
loaded() {
    ms=$((SECONDS_LOADED * 1000))
    ports=$(for i in $(senders); do echo $((6000 + i)); done)
    # shellcheck disable=SC2086
    in_host 0 "$traffic" sink $((ms + 1500)) $ports >"$TMP/$1.sink" &
    sink=$!
    wait_until host_listens 0 t $((6000 + HOSTS))
    sources=
    for i in $(senders); do
        in_host "$i" "$traffic" source 10.99.0.1 $((6000 + i)) 5000 0 0 "$ms" \
            >"$TMP/$1.source.$i" & sources="$sources $!"
    done
    sleep 2
    in_fabric "$BUILD/tests/lab/queue-sample" port0 2 $((ms - 3000)) 500 \
        >"$TMP/$1.queue" & sampler=$!
    heartbeats "$1" $(((SECONDS_LOADED - 3) * 1000 / 22))
    wait $sampler
    for pid in $sources; do
        wait "$pid" || fail "a source"
    done
    wait $sink
}

echo_start() {
    # shellcheck disable=SC2086
    in_host 0 $first "$traffic" echo 60000 $PING_PORT & echo_pid=$!
    PIDS="$PIDS $echo_pid"
    wait_until host_listens 0 u $PING_PORT
}

echo_stop() {
    kill $echo_pid
    wait $echo_pid 2>/dev/null || true
}

# idle_bridges NAME: heartbeats without load, through a kernel bridge in place
# of each shim.
idle_bridges() {
    for i in $(hosts); do
        ip -n "$PREFIX-n$i" link add bridge0 mtu "$MTU" type bridge
        ip -n "$PREFIX-n$i" link set hostside master bridge0
        ip -n "$PREFIX-n$i" link set uplink master bridge0
        ip -n "$PREFIX-n$i" link set bridge0 up
    done
    echo_start
    heartbeats "$1" 150
    echo_stop
    for i in $(hosts); do
        ip -n "$PREFIX-n$i" link del bridge0
    done
}

# run NAME RECEIVER SENDERS: with congestion control on or off at either end.
run() {
    echo "$1" >&2
    shim_start 0 --cc "$2" --control-port $PING_PORT
    for i in $(senders); do
        shim_start "$i" --cc "$3" --control-port $PING_PORT
    done
    shims_wait
    echo_start
    heartbeats "$1.idle" 150
    loaded "$1"
    for i in 0 1; do
        "$BUILD/shim/stagecoach-shim" --show "$TMP/$i.sock" |
            grep -E '^(cc_|queue_|port_)' | xargs echo "shim $i:" >&2
    done
    echo_stop
    shims_stop
}

idle_bridges bridge
run plain off off
run windows on off
run cc on on
first="chrt -f 1"
run first on on
python3 - "$TMP" "$HOSTS" "$RATE" <<'EOF_PYTHON'
import json
import sys

folder, hosts, rate = sys.argv[1], int(sys.argv[2]), sys.argv[3]
RATE = float(rate.removesuffix('mbit')) * 1e6
SKIP, SPAN = 2000, 5000     # Milliseconds of a load that count.


def rtts(name):
    """Round trips of heartbeats, in microseconds; and how many were lost."""
    values, asked = [], 0
    for i in range(1, hosts + 1):
        with open(f'{folder}/{name}.ping.{i}') as file:
            rows = [line.split() for line in file]
        values += [int(v) for what, v in rows if what == 'rtt']
        asked += sum(int(v) for what, v in rows if what == 'lost')
    return sorted(values), asked


def p99(values):
    return values[len(values) * 99 // 100]


def flows(name):
    """Bytes of each bulk flow while all were there."""
    with open(f'{folder}/{name}.sink') as file:
        rows = [[int(x) for x in line.split()] for line in file]
    begin = min(r[0] for r in rows) + SKIP
    sums = {}
    for time, port, size in rows:
        if begin < time <= begin + SPAN:
            sums[port] = sums.get(port, 0) + size
    return list(sums.values()) + [0] * (hosts - len(sums))


def queue(name):
    with open(f'{folder}/{name}.queue') as file:
        words = file.read().split()
    return {k: int(v) for k, v in zip(words[::2], words[1::2])}


def case(name):
    idle, idle_lost = rtts(name + '.idle')
    busy, lost = rtts(name)
    x = flows(name)
    q = queue(name)
    return {
        'idle_p50_us': idle[len(idle) // 2], 'idle_p99_us': p99(idle),
        'p50_us': busy[len(busy) // 2], 'p99_us': p99(busy),
        'p99_vs_idle': round(p99(busy) / p99(idle), 3),
        'lost': lost + idle_lost,
        'queue_p50_bytes': q['p50'], 'queue_p99_bytes': q['p99'],
        'queue_max_bytes': q['max'],
        'link_use': round(q['sent'] * 8e6 / q['us'] / RATE, 4),
        'jain': round(sum(x) ** 2 / (hosts * sum(v * v for v in x)), 4),
        'goodput_mbps': round(sum(x) * 8 / SPAN / 1e3, 2),
    }


plain, windows, cc = case('plain'), case('windows'), case('cc')
first = case('first')
bridge_p99 = p99(rtts('bridge')[0])
print(json.dumps({
    'bench': 'shim-incast',
    'figures': {
        'heartbeat_p99_ms': cc['p99_us'] / 1e3,
        'plain_p99_ms': plain['p99_us'] / 1e3,
        'bridge_idle_p99_ms': bridge_p99 / 1e3,
        'heartbeat_p99_vs_bridge_idle': round(cc['p99_us'] / bridge_p99, 3),
        'heartbeat_p99_vs_idle': first['p99_vs_idle'],
        'heartbeat_lost': cc['lost'],
        'queue_p99_bytes': cc['queue_p99_bytes'],
        'link_use': cc['link_use'],
        'jain': cc['jain'],
        'cc': cc,
        'first': first,
        'receiver_only': windows,
    },
    'baseline': plain,
}))
EOF_PYTHON
