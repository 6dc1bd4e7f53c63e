#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the heartbeats of the trainer's last job in the controller's order,
# on four hosts with shims and agents: two servers on h0, workers on h1 and h2,
# and a heartbeat timeout of 1 s, so that each worker sends eight a second.
#
#    idle     no job sends anything else
#    stage    two more jobs, before it in the order, train on the same hosts
#    incast   the job trains, and jobs before it send to its servers' host from
#             three hosts at full speed, and from there
#
# stage and incast are repeated without congestion control (off_) and without
# shims and agents (plain_), where nothing is before anything else.
#
# The processes of the last job have the highest CPU priority, so that round
# trips measure the network and the shims: the hosts share this machine's
# processors.  p99_ms is of round trips, and the higher one of the two workers, from the
# event "heartbeats".  lost: heartbeats whose connection ended before the answer;
# deaths: processes of the job that did not end regularly.  What was dropped on the
# way: by the shims, of control, of their queues, and by their ports before a class
# is known; and by the kernel's queue of received packets (backlog).  timeouts: of
# TCP, retransmissions and probes after 200 ms, at the job's hosts.  $BIN has
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
shim=${BIN:-$BUILD/shim}/stagecoach-shim
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
# launch COJOB HOST COMMAND...: as a job, if there are agents.
launch() {
    cojob=$1 host=$2
    shift 2
    if [ "$policy" = plain ]; then
        on "$host" "$@"
    else
        on "$host" "$stagecoach" run --cojob "$cojob" --job j -- "$@"
    fi
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
        (input $((seconds + 4)) | launch "$cojob" h0 $first "$trainer" server \
            --address 10.77.0.1 --port "$at" --workers 2 \
            --heartbeat-timeout 1 >"$out.server.$at" \
            2>>"$out.errors" || echo server >>"$out.died") &
        waits="$waits $!"
        wait_for 5 "$cojob listens" grep -q listening "$out.server.$at" >&2
    done
    for rank in 0 1; do
        # shellcheck disable=SC2086
        (input "$seconds" | launch "$cojob" "h$((rank + 1))" $first "$trainer" \
            worker $servers --workers 2 --rank "$rank" \
            --heartbeat-timeout 1 --backend cpu "$@" >"$out.$rank" 2>>"$out.errors" ||
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
    launch "$1" "$2" "$traffic" source "$address" "$4" "$4" 0 0 \
        $((seconds * 1000)) >/dev/null &
    waits="$waits $!"
}

# counts CASE WHEN: keeps what has been dropped so far.
counts() {
    mkdir -p "$dir/$1.$2"
    cp /proc/net/softnet_stat "$dir/$1.$2"
    for host in h0 h1 h2; do
        on $host cat /proc/net/netstat >"$dir/$1.$2/tcp.$host"
    done
    [ "$policy" = plain ] || for host in h0 h1 h2 h3; do
        "$shim" --show "$STAGECOACH_RUNDIR/hosts/$host/shim.sock" \
            >"$dir/$1.$2/shim.$host"
    done
}

begin_case() {
    echo "$1" >&2
    waits=
    counts "$1" before
}

end_case() {
    for pid in $waits; do
        wait "$pid" || true
    done
    counts "$1" after
    [ ! -s "$dir/last.$1.errors" ] || cat "$dir/last.$1.errors" >&2
    grep -h '"heartbeats"' "$dir/last.$1".[0-9] >&2 || true
}

# up POLICY CC: another lab.
up() {
    policy=$1
    clean_up
    sed "s/CC/$2/" "$dir/scenario.in" >"$dir/scenario.json"
    "$stagecoach" lab up "$dir/scenario.json" --policy "$policy" \
        --name "$lab_name" ${BIN:+--bin "$BIN"} >&2
    [ "$policy" != plain ] || return 0
    "$stagecoach" stage begin --cojob last --rung 0 --iterations 900000 --jobs j
    for cojob in first second; do
        "$stagecoach" stage begin --cojob $cojob --rung 0 --iterations 60 \
            --jobs j
    done
}

train="--iterations 1000000 --eval-every 1000 --shape 64,256,256,10"
large="--iterations 1000000 --eval-every 1000 --shape 64,384,384,10"

cat >"$dir/scenario.in" <<'JSON'
{"name": "heartbeats", "hosts": 4, "slots": 8, "rate": "100Mbit",
 "mtu": 1500, "fabric": "ovs", "cc": CC, "policies": ["stage"], "timeout_s": 60,
 "searches": [{"search": {"name": "unused", "trials": 1,
   "space": {"learning_rate": {"min": 0.1, "max": 0.1, "scale": "linear"},
             "width": [16], "batch": [16]},
   "rungs": [{"iterations": 1, "keep": 1}],
   "placements": [{"workers": ["h1"], "servers": ["h0"]}],
   "model": {"inputs": 8, "hidden_layers": 1, "classes": 2},
   "data": {"kind": "generated", "samples": 100}, "backend": "cpu"}}]}
JSON
# What the options are is split into words.
# shellcheck disable=SC2086
stage() {                       # PREFIX
    begin_case "$1stage"
    job first "$1stage" 7001 $large
    job second "$1stage" 7002 $large
    job last "$1stage" 7000 $train
    end_case "$1stage"
}
# shellcheck disable=SC2086
incast() {                      # PREFIX
    begin_case "$1incast"
    bulk first h1 h0 6001
    bulk first h2 h0 6002
    bulk second h3 h0 6003
    bulk second h0 h3 6004
    job last "$1incast" 7000 $train
    end_case "$1incast"
}

up stage true
begin_case idle
job last idle 7000 --iterations 0
end_case idle
stage ""
incast ""
for prefix in off_ plain_; do
    if [ $prefix = off_ ]; then
        up stage false
    else
        up plain false
    fi
    stage $prefix
    incast $prefix
done

python3 - "$dir" <<'EOF_PYTHON'
import json
import os
import sys

folder = sys.argv[1]


COUNTED = {'control_dropped', 'queue_dropped', 'port_dropped', 'policed',
           'TCPTimeouts', 'TCPLossProbes'}


def counted(place):
    """Returns the sums of what is counted in the files of a folder."""
    sums = dict.fromkeys(COUNTED | {'backlog_dropped'}, 0)
    for name in os.listdir(place):
        with open(f'{place}/{name}') as file:
            rows = [line.split() for line in file]
        if name == 'softnet_stat':
            pairs = [('backlog_dropped', int(row[1], 16)) for row in rows]
        elif name.startswith('tcp'):
            pairs = [(n, int(v)) for names, values in zip(rows[::2], rows[1::2])
                     for n, v in zip(names[1:], values[1:])]
        else:
            pairs = [(row[0], int(row[1])) for row in rows if len(row) == 2
                     and row[0] in COUNTED]
        for key, value in pairs:
            if key in sums:
                sums[key] += value
    return sums


def dropped(name):
    before = counted(f'{folder}/{name}.before')
    after = counted(f'{folder}/{name}.after')
    return {key: after[key] - before[key] for key in sorted(after)}


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
        'lost': sum(r['lost'] for r in reports),
        'deaths': max(died, 2 - done),
        **dropped(name),
        'p50_ms': round(max(r['p50_s'] or 0 for r in reports) * 1e3, 3),
        'p99_ms': round(max(r['p99_s'] or 0 for r in reports) * 1e3, 3),
        'max_ms': round(max(r['max_s'] or 0 for r in reports) * 1e3, 3),
    }


CASES = ('idle', 'stage', 'incast')
OTHERS = [f'{kind}_{name}' for kind in ('off', 'plain')
          for name in ('stage', 'incast')]
cases = {name: case(name) for name in (*CASES, *OTHERS)}


def total(member, names):
    return sum(cases[name][member] for name in names)


print(json.dumps({
    'bench': 'heartbeats',
    'figures': {
        **{f'{name}_p99_ms': c['p99_ms'] for name, c in cases.items()},
        'p99_vs_idle': round(max(cases['stage']['p99_ms'],
                                 cases['incast']['p99_ms'])
                             / cases['idle']['p99_ms'], 3),
        'lost': total('lost', CASES),
        'deaths': total('deaths', CASES),
        'off_deaths': total('deaths', OTHERS[:2]),
        'plain_deaths': total('deaths', OTHERS[2:]),
        'control_dropped': total('control_dropped', CASES),
        'answered': min(cases[name]['answered'] for name in CASES),
    },
    'baseline': cases,
}))
EOF_PYTHON
