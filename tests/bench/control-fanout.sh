#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the time from the beginning of a stage until the last of 1,000
# agents has its order, with databases of one member and of three members, all
# on this machine; the memory of the controller; and the transactions per
# second of all programs in both databases, from the database logs.  Also
# measures, in a lab of ten hosts, the time from the beginning or end of a
# stage to the first packet with the new DSCP of each host.  The baseline is
# the time of the order with 100 agents.  $AGENTS (default 1,000) and $ROUNDS
# (default 60, of stages) make it smaller.
set -eu
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
ulimit -n 16384 2>/dev/null || ulimit -n "$(ulimit -H -n)"

root=$PWD build=$(realpath "${BUILD:-build}")
agents=${AGENTS:-1000} rounds=${ROUNDS:-60}
dir=$(mktemp -d "${TMPDIR:-/tmp}/sct-fanout-XXXXXX")
lab=fan$(($$ % 10000))
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
lab() {
    command=$1
    shift
    "$build/cli/stagecoach" lab "$command" --name "$lab" "$@"
}
trap 'stop; lab down 2>/dev/null || :; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

schema() {
    [ "$1" = intent ] && echo Stagecoach_Intent || echo Stagecoach_Hosts
}

# await COMMAND...: waits for at most 20 s.
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
            "$root/wire/$1.ovsschema" "unix:$1-$2.raft"
    else
        ovsdb-tool join-cluster "$file" "$(schema "$1")" "unix:$1-$2.raft" \
            "unix:$1-m0.raft"
    fi
    ovsdb-server --remote="punix:$2/$1.sock" --unixctl="$dir/$3/$2/$1.ctl" \
        --no-chdir -vconsole:off -vsyslog:off "$file" &
    pids="$pids $!"
    await ovsdb-client -t 2 list-tables "unix:$2/$1.sock" "$(schema "$1")"
}

# log DB: prints the number of entries ever in its log.
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
    "$build/controller/stagecoach-controller" --intent="${intent#,}" \
        --hosts="${hosts#,}" --telemetry=unix:telemetry.sock \
        --rest=none --unixctl="$dir/$1/controller.ctl" \
        --policy="$root/policies/stage.json" -vconsole:off -vsyslog:off &
    controller=$!
    pids="$pids $controller"
    await sh -c "ovs-appctl -t '$dir/$1/controller.ctl' controller/status |
        grep '\"state\":\"active\"'"
    before=$(($(log intent "$1") + $(log hosts "$1")))
    began=$(date +%s%3N)
    timeout 600 "$build/tests/bench/control-fanout" "${intent#,}" \
        "${hosts#,}" unix:telemetry.sock "$3" "$4" 5 >ms
    ended=$(date +%s%3N)
    after=$(($(log intent "$1") + $(log hosts "$1")))
    awk '$1 == "VmHWM:" { print $2 }' /proc/$controller/status >rss
    echo "$(((after - before) * 1000 / (ended - began)))" >writes
    stop
    cd "$root"
}

# on HOST COMMAND...: runs COMMAND in the background, for at most 100 s.
on() {
    host=$1
    shift
    lab exec "$host" -- timeout 100 "$@" >/dev/null &
    pids="$pids $!"
}

# retag HOSTS ROUNDS: writes "retag/ms".  Each host sends a packet of cojob "a"
# every 4 ms.  The cojob in the scenario file sends no traffic.
retag() {
    mkdir -p "$dir/retag"
    cat >"$dir/retag/lab.json" <<END
{"name": "retag", "hosts": $1, "rate": "100Mbit", "policies": ["stage"],
 "cojobs": [{"name": "none", "stages": [{"iterations": 1}],
             "jobs": [{"name": "j", "hosts": ["h0"], "command": ["true"],
                       "log": "csv:/none,iteration=step"}]}]}
END
    lab up "$dir/retag/lab.json" >&2
    ifaces=
    for i in $(seq 0 $(($1 - 1))); do
        ifaces="$ifaces p$i"
        on "h$i" "$build/tests/lab/traffic" sink 90000 7001 7002
    done
    for i in $(seq 0 $(($1 - 1))); do
        await lab exec "h$i" -- sh -c 'ss -Hltn | grep -q :7002'
    done
    for i in $(seq 0 $(($1 - 1))); do
        to=10.77.0.$(((i + 1) % $1 + 1))
        on "h$i" "$build/cli/stagecoach" run --cojob a --job j -- \
            "$build/tests/lab/traffic" drip "$to" 7001 90000 4000
        on "h$i" "$build/cli/stagecoach" run --cojob b --job j -- \
            "$build/tests/lab/traffic" drip "$to" 7002 90000 20000
    done
    # shellcheck disable=SC2086   # Each interface is an argument.
    timeout 100 nsenter --net="/run/netns/scl-$lab-fab" \
        "$build/tests/bench/fanout-retag" \
        "unix:/run/stagecoach/lab-$lab/intent.sock" "$2" "$1" $ifaces \
        >"$dir/retag/ms"
    stop
    lab down
}

measure hundred 1 $((agents / 10)) "$rounds"
measure standalone 1 "$agents" "$rounds"
measure raft 3 "$agents" "$rounds"
retag 10 "$rounds"
python3 - "$dir" "$agents" <<'END'
import json
import math
import sys


def numbers(name):
    with open(f"{sys.argv[1]}/{name}") as f:
        return [float(line) for line in f]


def milliseconds(name):
    """The first line of the others is how long it took to connect."""
    ms = numbers(f"{name}/ms")
    return sorted(ms if name == "retag" else ms[1:])


def percentile(name, percent):
    """By nearest rank."""
    ms = milliseconds(name)
    return ms[math.ceil(len(ms) * percent / 100) - 1]


print(json.dumps({
    "bench": "control-fanout",
    "figures": {
        "agents": int(sys.argv[2]),
        "connect_s": numbers("standalone/ms")[0] / 1000,
        "standalone_p50_ms": percentile("standalone", 50),
        "standalone_p99_ms": percentile("standalone", 99),
        "raft_p50_ms": percentile("raft", 50),
        "raft_p99_ms": percentile("raft", 99),
        "retag_p50_ms": percentile("retag", 50),
        "retag_p99_ms": percentile("retag", 99),
        "controller_rss_mib": max(numbers("standalone/rss")
                                  + numbers("raft/rss")) / 1024,
        "write_txn_per_s": max(numbers("standalone/writes")
                               + numbers("raft/writes")),
    },
    "baseline": {"agents": int(sys.argv[2]) // 10,
                 "standalone_p99_ms": percentile("hundred", 99)},
}))
END
