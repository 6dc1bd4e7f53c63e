#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the heartbeats of the trainer's last job in the controller's order,
# on four hosts with shims and agents: two servers on h0, workers on h1 and h2,
# and a heartbeat timeout of 1 s, so that each worker sends eight a second.
#
#    idle     no job sends anything else
#    alone    the job trains, without other jobs
#    stage    two more jobs, before it in the order, train on the same hosts
#    incast   the job trains, and jobs before it send to its servers' host from
#             three hosts at full speed, and from there
#
# The processes of the last job have the highest CPU priority, so that round
# trips measure the network and the shims: the hosts share this machine's
# processors.  p99_ms is of round trips, and the higher one of the two workers, from the
# event "heartbeats".  lost: heartbeats whose connection ended before the answer;
# false_deaths: processes of the job that did not end regularly.  $BIN has
# programs to use instead of the built ones, $SECONDS_EACH the duration.
# Prints one JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
SOURCE=$PWD BUILD=${BUILD:-$PWD/build}
export SOURCE BUILD
. "$SOURCE/tests/lab/lab-functions.sh"
seconds=${SECONDS_EACH:-40}
lab_name=h$(($$ % 1000000))
stagecoach=${BIN:-$BUILD/cli}/stagecoach
trainer=${BIN:-$BUILD/trainer}/stagecoach-trainer
traffic=$BUILD/tests/lab/traffic
STAGECOACH_RUNDIR=/run/stagecoach/lab-$lab_name
export STAGECOACH_RUNDIR

need_root
begin heartbeats
on() {
    host=$1
    shift
    "$stagecoach" lab exec --name "$lab_name" "$host" -- "$@"
}
clean_up() { "$stagecoach" lab down --name "$lab_name" >/dev/null 2>&1; }

# input SECONDS: the standard input of a process that is to end then.
input() {
    sleep "$1"
    echo stop
    sleep 3
}

# job COJOB CASE PORT [OPTION...]: trains for $seconds: servers on h0, workers
# on h1 and h2.  Output in $dir/COJOB.CASE.*.
job() {
    cojob=$1 out=$dir/$1.$2 port=$3 servers= first=
    shift 3
    [ "$cojob" != last ] || first="chrt -f 1"
    for at in "$port" $((port + 10)); do
        servers="$servers --server 10.77.0.1:$at"
        # shellcheck disable=SC2086
        (input $((seconds + 4)) | on h0 "$stagecoach" run --cojob "$cojob" \
            --job j -- $first "$trainer" server --address 10.77.0.1 --port "$at" \
            --workers 2 --heartbeat-timeout 1 >"$out.server.$at" \
            2>>"$out.errors" || echo server >>"$out.died") &
        waits="$waits $!"
        wait_for 5 "$cojob listens" grep -q listening "$out.server.$at" >&2
    done
    for rank in 0 1; do
        # shellcheck disable=SC2086
        (input "$seconds" | on "h$((rank + 1))" "$stagecoach" run \
            --cojob "$cojob" --job j -- $first "$trainer" worker $servers \
            --workers 2 --rank "$rank" --heartbeat-timeout 1 --backend cpu \
            "$@" >"$out.$rank" 2>>"$out.errors" ||
            echo "worker $rank" >>"$out.died") &
        waits="$waits $!"
    done
}

# bulk COJOB FROM TO PORT: sends at full speed.
bulk() {
    address=10.77.0.$((${3#h} + 1))
    on "$3" timeout $((seconds + 5)) "$traffic" sink \
        $(((seconds + 2) * 1000)) "$4" >/dev/null &
    waits="$waits $!"
    wait_for 5 "a sink" on "$3" sh -c "ss -Hltn sport = :$4 | grep -q ." >&2
    on "$2" "$stagecoach" run --cojob "$1" --job j -- "$traffic" source \
        "$address" "$4" "$4" 0 0 $((seconds * 1000)) >/dev/null &
    waits="$waits $!"
}

end_case() {
    for pid in $waits; do
        wait "$pid" || true
    done
    [ ! -s "$dir/last.$1.errors" ] || cat "$dir/last.$1.errors" >&2
    grep -h '"heartbeats"' "$dir/last.$1".[0-9] >&2 || true
    waits=
}

train="--iterations 1000000 --eval-every 1000 --shape 64,256,256,10"
large="--iterations 1000000 --eval-every 1000 --shape 64,384,384,10"

cat >"$dir/scenario.json" <<'JSON'
{"name": "heartbeats", "hosts": 4, "slots": 8, "rate": "100Mbit",
 "mtu": 1500, "fabric": "ovs", "policies": ["stage"], "timeout_s": 60,
 "searches": [{"search": {"name": "unused", "trials": 1,
   "space": {"learning_rate": {"min": 0.1, "max": 0.1, "scale": "linear"},
             "width": [16], "batch": [16]},
   "rungs": [{"iterations": 1, "keep": 1}],
   "placements": [{"workers": ["h1"], "servers": ["h0"]}],
   "model": {"inputs": 8, "hidden_layers": 1, "classes": 2},
   "data": {"kind": "generated", "samples": 100}, "backend": "cpu"}}]}
JSON
"$stagecoach" lab up "$dir/scenario.json" --policy stage --name "$lab_name" \
    ${BIN:+--bin "$BIN"} >&2
"$stagecoach" stage begin --cojob last --rung 0 --iterations 900000 --jobs j
for cojob in first second; do
    "$stagecoach" stage begin --cojob $cojob --rung 0 --iterations 60 --jobs j
done
waits=

echo idle >&2
job last idle 7000 --iterations 0
end_case idle

echo alone >&2
# shellcheck disable=SC2086
job last alone 7000 $train
end_case alone

echo stage >&2
# shellcheck disable=SC2086
job first stage 7001 $large
# shellcheck disable=SC2086
job second stage 7002 $large
# shellcheck disable=SC2086
job last stage 7000 $train
sleep $((seconds / 2))
"$stagecoach" order >&2
end_case stage

echo incast >&2
bulk first h1 h0 6001
bulk first h2 h0 6002
bulk second h3 h0 6003
bulk second h0 h3 6004
# shellcheck disable=SC2086
job last incast 7000 $train
end_case incast

python3 - "$dir" <<'EOF_PYTHON'
import json
import os
import sys

folder = sys.argv[1]


def case(name):
    reports, done = [], 0
    for rank in range(2):
        with open(f'{folder}/last.{name}.{rank}') as file:
            events = [json.loads(line) for line in file]
        reports += [e for e in events if e['event'] == 'heartbeats']
        done += sum(e['event'] == 'done' for e in events)
    died = 0
    if os.path.exists(f'{folder}/last.{name}.died'):
        with open(f'{folder}/last.{name}.died') as file:
            died = len(file.readlines())
    return {
        'answered': sum(r['answered'] for r in reports),
        'lost': sum(r['lost'] for r in reports) if len(reports) == 2 else None,
        'false_deaths': max(died, 2 - done),
        'p50_ms': round(max(r['p50_s'] or 0 for r in reports) * 1e3, 3),
        'p99_ms': round(max(r['p99_s'] or 0 for r in reports) * 1e3, 3),
        'max_ms': round(max(r['max_s'] or 0 for r in reports) * 1e3, 3),
    }


cases = {name: case(name) for name in ('idle', 'alone', 'stage', 'incast')}


def ratio(name):
    return round(cases[name]['p99_ms'] / cases['idle']['p99_ms'], 3)


print(json.dumps({
    'bench': 'heartbeats',
    'figures': {
        'idle_p99_ms': cases['idle']['p99_ms'],
        'alone_p99_ms': cases['alone']['p99_ms'],
        'stage_p99_ms': cases['stage']['p99_ms'],
        'incast_p99_ms': cases['incast']['p99_ms'],
        'stage_vs_idle': ratio('stage'),
        'incast_vs_idle': ratio('incast'),
        'lost': sum(c['lost'] for c in cases.values()),
        'false_deaths': sum(c['false_deaths'] for c in cases.values()),
        'answered': min(c['answered'] for c in cases.values()),
        **cases,
    },
    'baseline': {},
}))
EOF_PYTHON
