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

build=$(realpath "${BUILD:-build}")
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

# await COMMAND...: waits for at most 20 s.
await() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "control-fanout: never: $*" >&2; exit 1; }
        sleep 0.1
    done
}

# on HOST COMMAND...: runs COMMAND in the background, for at most 100 s.
on() {
    host=$1
    shift
    lab exec "$host" -- timeout 100 "$@" >/dev/null &
    pids="$pids $!"
}

# retag HOSTS ROUNDS: writes "retag".  Each host sends a packet of cojob "a"
# every 4 ms.  The cojob in the scenario file sends no traffic.
retag() {
    cat >"$dir/lab.json" <<END
{"name": "retag", "hosts": $1, "rate": "100Mbit", "policies": ["stage"],
 "cojobs": [{"name": "none", "stages": [{"iterations": 1}],
             "jobs": [{"name": "j", "hosts": ["h0"], "command": ["true"],
                       "log": "csv:/none,iteration=step"}]}]}
END
    lab up "$dir/lab.json" >&2
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
        python3 tests/bench/retag.py \
        "/run/stagecoach/lab-$lab/rest.sock" "$2" "$1" $ifaces >"$dir/retag"
    stop
    lab down
}

retag 10 "${ROUNDS:-60}"
python3 tests/bench/control.py fanout "$dir/retag"
