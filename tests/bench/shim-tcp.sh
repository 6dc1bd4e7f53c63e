#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures TCP through shims, between network namespaces:
#
#    host a -- shim -- link -- shim -- host b
#
# Measures one flow, at MTU 1500 and 9000, $ROUNDS times (default 5, of 2 s
# each) through two shims, which disable offloads of the kernel, and on a link
# between the hosts that keeps all offloads: its rate, and the processor time of
# sender, receiver and shims; the round trip on both, and the processor time of
# idle shims; and eight shims at the same time, around one kernel bridge, with
# each host sending to the next one, $RUNS times (default 5, of 5 s). $PARTS
# selects some of "pair idle eight" (default all).  Prints one JSON object on
# standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
shim=$PWD/build/shim/stagecoach-shim traffic=$PWD/build/tests/lab/traffic
bench_name=shim-tcp
skip() {
    echo "{\"bench\": \"$bench_name\", \"skipped\": \"$*\"}"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "needs root"
[ -x "$shim" ] || skip "built without DPDK"

prefix=sctcp-$$
dir=$(mktemp -d "/tmp/$prefix.XXXXXX")
pids=
cleanup() {
    trap - EXIT INT TERM HUP
    for pid in $pids; do
        kill -9 "$pid" 2>/dev/null || true
    done
    for ns in $(ip netns list | awk -v p="$prefix-" 'index($1, p) == 1 {
            print $1 }'); do
        # What runs there was started here.
        for pid in $(ip netns pids "$ns"); do
            kill -9 "$pid" 2>/dev/null || true
        done
        ip netns del "$ns"
    done
    rm -rf "$dir" /run/dpdk/"$prefix"-*
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# in_ns NS COMMAND...: not in the background, $! would be another shell's.
in_ns() {
    ns=$prefix-$1
    shift
    ip netns exec "$ns" "$@"
}

wait_until() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "timeout: $*" >&2; exit 1; }
        sleep 0.05
    done
}

make_ns() {
    ip netns add "$prefix-$1"
    in_ns "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
        net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || true
    ip -n "$prefix-$1" link set lo up
}

link() {    # NS1 IF1 NS2 IF2 MTU
    ip link add "$2" mtu "$5" numtxqueues 1 numrxqueues 1 \
        netns "$prefix-$1" type veth peer name "$4" mtu "$5" \
        numtxqueues 1 numrxqueues 1 netns "$prefix-$3"
    ip -n "$prefix-$1" link set "$2" up
    ip -n "$prefix-$3" link set "$4" up
}

# address NS ADDRESS IF
address() { ip -n "$prefix-$1" addr add "$2/24" dev "$3"; }

listens() { [ -n "$(in_ns "$1" ss "-Hl${2}n" "sport = :$3")" ]; }

# start_shim NS RATE MTU: sets $last_pid.
start_shim() {
    ip netns exec "$prefix-$1" "$shim" --name "$prefix-$1" \
        --host-port af_packet:host --uplink af_packet:uplink \
        --rate "$2" --mtu "$3" --control "$dir/$1.sock" --cc off \
        2>>"$dir/log" &
    last_pid=$!
    pids="$pids $last_pid"
}

shims_answer() {
    for s; do
        "$shim" --show "$dir/$s.sock" || return 1
    done
}

stop() {
    for pid; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

# mbps SINK-FILE MS: payload, from the lines of a sink.
mbps() {
    awk -v ms="$2" '{ n += $3 } END { print n * 8 / ms / 1000 }' "$1"
}

# --- Two shims, and a direct link.
pair_make() {    # MTU
    for ns in a na nb b; do
        make_ns $ns
    done
    link a eth0 na host "$1"
    link na uplink nb uplink "$1"
    link nb host b eth0 "$1"
    link a eth1 b eth1 "$1"
    address a 10.99.0.1 eth0
    address b 10.99.0.2 eth0
    address a 10.98.0.1 eth1
    address b 10.98.0.2 eth1
    ip netns exec "$prefix-b" "$traffic" echo 600000 7000 &
    pids="$pids $!"
    wait_until listens b u 7000
}

pair_unmake() {
    for ns in a na nb b; do
        ip netns del "$prefix-$ns"
    done
}

# cpu_ns PID...: processor time of all their threads.
cpu_ns() {
    for pid; do
        cat "/proc/$pid/task/"*/schedstat
    done | awk '{ n += $1 } END { printf "%.0f\n", n }'
}

# shims_start MTU: sets $shim_pids.
shims_start() {
    shim_pids=
    for ns in na nb; do
        start_shim $ns 40Gbit "$1"
        shim_pids="$shim_pids $last_pid"
    done
    wait_until shims_answer na nb
    wait_until in_ns a "$traffic" ping 10.99.0.2 7000 1 100
}

# one_flow KIND ADDRESS MTU: adds "MBPS CPU_SECONDS_PER_GBIT" to pair-KIND-MTU.
one_flow() {
    ip netns exec "$prefix-b" "$traffic" sink 2300 7001 >"$dir/sink" &
    sink=$!
    wait_until listens b t 7001
    # shellcheck disable=SC2086
    before=$(cpu_ns $shim_pids)
    times >"$dir/times"
    in_ns a "$traffic" bulk "$2" 7001 2000 >/dev/null
    wait $sink
    times >>"$dir/times"
    # shellcheck disable=SC2086
    after=$(cpu_ns $shim_pids)
    # Lines 2 and 4 of the times are those of children that have ended.
    tr 'ms' '  ' <"$dir/times" | awk -v shims=$((after - before)) \
        -v mbps="$(mbps "$dir/sink" 2000)" '
        NR == 2 { before = ($1 + $3) * 60 + $2 + $4 }
        NR == 4 { cpu = ($1 + $3) * 60 + $2 + $4 - before + shims / 1e9
                  print mbps, cpu / (mbps * 2 / 1000) }' \
        >>"$dir/pair-$1-$3"
    echo "$1 $3: $(tail -n 1 "$dir/pair-$1-$3")" >&2
}

pair() {
    for mtu in 1500 9000; do
        pair_make $mtu
        round=0
        while [ $round -lt "${ROUNDS:-5}" ]; do
            round=$((round + 1))
            shim_pids=
            one_flow host 10.98.0.2 $mtu
            shims_start $mtu
            one_flow shim 10.99.0.2 $mtu
            # shellcheck disable=SC2086
            stop $shim_pids
        done
        pair_unmake
    done
}

# round_trips ADDRESS
round_trips() { in_ns a "$traffic" ping "$1" 7000 100 100 | awk '{ print $2 }'; }

idle() {
    pair_make 1500
    shims_start 1500
    round_trips 10.98.0.2 >"$dir/idle-host"
    round_trips 10.99.0.2 >"$dir/idle-shim"
    # shellcheck disable=SC2086
    before=$(cpu_ns $shim_pids)
    sleep 4
    # shellcheck disable=SC2086
    echo $((($(cpu_ns $shim_pids) - before) / 2)) >"$dir/idle-cpu"
    # shellcheck disable=SC2086
    stop $shim_pids
    pair_unmake
}

# --- Eight shims: host i sends to host i + 1.
eight_run() {    # MTU RATE
    make_ns f
    ip -n "$prefix-f" link add bridge0 mtu "$1" type bridge
    ip -n "$prefix-f" link set bridge0 up
    names= eight_pids= sinks=
    for i in 0 1 2 3 4 5 6 7; do
        make_ns h$i
        make_ns n$i
        link h$i eth0 n$i host "$1"
        link n$i uplink f p$i "$1"
        ip -n "$prefix-f" link set p$i master bridge0
        address h$i 10.99.0.1$i eth0
        start_shim n$i "$2" "$1"
        eight_pids="$eight_pids $last_pid"
        names="$names n$i"
    done
    # shellcheck disable=SC2086
    wait_until shims_answer $names
    run=0
    while [ $run -lt "${RUNS:-5}" ]; do
        run=$((run + 1)) sinks= sources=
        for i in 0 1 2 3 4 5 6 7; do
            ip netns exec "$prefix-h$i" "$traffic" sink 9000 7001 \
                >"$dir/eight-$1-$run-$i" &
            sinks="$sinks $!"
            wait_until listens h$i t 7001
        done
        for i in 0 1 2 3 4 5 6 7; do
            next=$(((i + 1) % 8))
            ip netns exec "$prefix-h$i" "$traffic" bulk 10.99.0.1$next 7001 \
                5000 >"$dir/begin-$1-$run-$next" 2>&1 &
            sources="$sources $!"
        done
        # shellcheck disable=SC2086
        wait $sources || true
        # What is still in the queues is not counted; this ends the sinks.
        for i in 0 1 2 3 4 5 6 7; do
            for pid in $(ip netns pids "$prefix-h$i"); do
                kill "$pid" 2>/dev/null || true
            done
        done
        # shellcheck disable=SC2086
        wait $sinks || true
        echo "eight $1: run $run" >&2
    done
    # shellcheck disable=SC2086
    stop $eight_pids
    for i in 0 1 2 3 4 5 6 7; do
        ip netns del "$prefix-h$i"
        ip netns del "$prefix-n$i"
    done
    ip netns del "$prefix-f"
}

eight() {
    eight_run 1500 120Mbit
    eight_run 9000 220Mbit
}

for part in ${PARTS:-pair idle eight}; do
    $part
done
python3 - "$dir" <<'EOF_PYTHON'
import glob
import json
import os
import re
import statistics
import sys

STALL_MS = 1000
figures, baseline = {}, {}


def medians(name):
    """Returns the median of each column."""
    try:
        with open(os.path.join(sys.argv[1], name), encoding="utf-8") as f:
            rows = [[float(x) for x in line.split()] for line in f]
    except FileNotFoundError:
        return None
    return [statistics.median(column) for column in zip(*rows)]


for mtu in ("1500", "9000"):
    shim = medians("pair-shim-" + mtu)
    host = medians("pair-host-" + mtu)
    if shim:
        figures["vs_host_" + mtu] = round(shim[0] / host[0], 4)
        figures["cpu_per_gbit_" + mtu] = round(shim[1], 3)
        baseline["shim_gbps_" + mtu] = round(shim[0] / 1000, 2)
        baseline["host_gbps_" + mtu] = round(host[0] / 1000, 2)
        baseline["host_cpu_per_gbit_" + mtu] = round(host[1], 4)

if medians("idle-shim"):
    [shim], [host] = medians("idle-shim"), medians("idle-host")
    figures["added_rtt_us"] = round(shim - host)
    figures["idle_cpu"] = round(medians("idle-cpu")[0] / 4e9, 4)
    baseline["shim_rtt_us"] = round(shim)
    baseline["host_rtt_us"] = round(host)

stalls, runs = 0, 0
for mtu in ("1500", "9000"):
    rates, slowest = [], {}
    for name in glob.glob(os.path.join(sys.argv[1], "eight-%s-*" % mtu)):
        begin = re.findall(r"begin (\d+)\nend (\d+)", open(
            name.replace("eight-", "begin-")).read())
        run = name.split("-")[-2]
        lines = [line.split() for line in open(name)]
        runs += 1
        if not begin or not lines:
            stalls += 1
            rates.append(0.0)
            slowest[run] = 0.0
            continue
        end = int(begin[0][1])
        lines = [line for line in lines if int(line[0]) <= end]
        times = [int(begin[0][0])] + [int(x[0]) for x in lines]
        longest = max(b - a for a, b in zip(times, times[1:] + [end]))
        stalls += longest > STALL_MS
        rates.append(sum(int(x[2]) for x in lines) * 8 / 1000
                     / (end - int(begin[0][0])))
        slowest[run] = min(slowest.get(run, rates[-1]), rates[-1])
    if rates:
        figures["eight_min_mbps_" + mtu] = round(
            statistics.median(slowest.values()), 1)
        figures["eight_worst_mbps_" + mtu] = round(min(rates), 1)
        baseline["eight_median_mbps_" + mtu] = round(
            statistics.median(rates), 1)
if runs:
    figures["stalls"] = stalls
    baseline["flows"] = runs
print(json.dumps({"bench": "shim-tcp", "figures": figures,
                  "baseline": baseline}))
EOF_PYTHON
