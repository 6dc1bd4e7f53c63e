#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# From a stage's beginning to the last of 1,000 agents that has its order, with
# databases of one member and of three, all on this machine; what the
# controller keeps in memory, and how often it writes.  The baseline is the
# same with 100 agents.  Agents report once a second, because one process plays
# them all.
set -eu
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
ulimit -n 16384 2>/dev/null || ulimit -n "$(ulimit -H -n)"

root=$PWD
dir=$(mktemp -d "${TMPDIR:-/tmp}/sct-fanout-XXXXXX")
pids=

stop() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null || :
    done
    for pid in $pids; do
        wait "$pid" 2>/dev/null || :
    done
    pids=
}
trap 'stop; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

schema() {
    [ "$1" = intent ] && echo Stagecoach_Intent || echo Stagecoach_Hosts
}

# await COMMAND...: for 20 s.
await() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "control-fanout: never: $*" >&2; exit 1; }
        sleep 0.1
    done
}

# member DB I: starts member I of DB's cluster.
member() {
    file=$2/$1.db
    mkdir -p "$2"
    if [ "$2" = m0 ]; then
        ovsdb-tool --election-timer=1000 create-cluster "$file" \
            "$root/controller/$1.ovsschema" "unix:$1-$2.raft"
    else
        ovsdb-tool join-cluster "$file" "$(schema "$1")" "unix:$1-$2.raft" \
            "unix:$1-m0.raft"
    fi
    ovsdb-server --remote="punix:$2/$1.sock" --unixctl="$dir/$3/$2/$1.ctl" \
        --no-chdir -vconsole:off -vsyslog:off "$file" &
    pids="$pids $!"
    await ovsdb-client -t 2 list-tables "unix:$2/$1.sock" "$(schema "$1")"
}

# log DB: how many entries its log has had.
log() {
    ovs-appctl -t "$dir/$2/m0/$1.ctl" cluster/status "$(schema "$1")" |
        sed -n 's/^Log: \[[0-9]*, \([0-9]*\)\]/\1/p'
}

# measure NAME MEMBERS AGENTS ROUNDS: writes NAME's results.
measure() {
    mkdir -p "$dir/$1"
    cd "$dir/$1"
    export OVS_RUNDIR="$dir/$1" OVS_DBDIR="$dir/$1"
    intent= hosts=
    for i in $(seq 0 $(($2 - 1))); do
        member intent "m$i" "$1"
        member hosts "m$i" "$1"
        intent=$intent,unix:m$i/intent.sock
        hosts=$hosts,unix:m$i/hosts.sock
    done
    "$root/build/controller/stagecoach-controller" --intent="${intent#,}" \
        --hosts="${hosts#,}" --telemetry=unix:telemetry.sock \
        --rest=none --unixctl="$dir/$1/controller.ctl" \
        --policy="$root/policies/stage.json" -vconsole:off -vsyslog:off &
    controller=$!
    pids="$pids $controller"
    await sh -c "ovs-appctl -t '$dir/$1/controller.ctl' controller/status |
        grep '\"state\":\"active\"'"
    before=$(($(log intent "$1") + $(log hosts "$1")))
    began=$(date +%s%3N)
    timeout 150 "$root/build/tests/bench/control-fanout" "${intent#,}" \
        "${hosts#,}" unix:telemetry.sock "$3" "$4" 1 >ms
    ended=$(date +%s%3N)
    after=$(($(log intent "$1") + $(log hosts "$1")))
    awk '$1 == "VmHWM:" { print $2 }' /proc/$controller/status >rss
    echo "$(((after - before) * 1000 / (ended - began)))" >writes
    stop
    cd "$root"
}

measure hundred 1 100 30
measure standalone 1 1000 30
measure raft 3 1000 30
python3 - "$dir" <<'END'
import json
import sys


def numbers(name):
    with open(f"{sys.argv[1]}/{name}") as f:
        return [float(line) for line in f]


def p99(name):
    ms = sorted(numbers(f"{name}/ms"))
    return ms[min(len(ms) - 1, int(len(ms) * 0.99))]


def median(name):
    ms = sorted(numbers(f"{name}/ms"))
    return ms[len(ms) // 2]


print(json.dumps({
    "bench": "control-fanout",
    "figures": {
        "agents": 1000,
        "standalone_p50_ms": median("standalone"),
        "standalone_p99_ms": p99("standalone"),
        "raft_p50_ms": median("raft"),
        "raft_p99_ms": p99("raft"),
        "controller_rss_mib": max(numbers("standalone/rss")
                                  + numbers("raft/rss")) / 1024,
        "write_txn_per_s": max(numbers("standalone/writes")
                               + numbers("raft/writes")),
    },
    "baseline": {"agents": 100, "standalone_p99_ms": p99("hundred")},
}))
END
