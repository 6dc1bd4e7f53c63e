#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures TCP through shims, between network namespaces:
#
#    host a -- shim -- link -- shim -- host b
#
# Measures one flow, at MTU 1500 and 9000, $ROUNDS times (default 5, of 2 s
# each) with shims and with kernel bridges, and, with six CPUs or more, so that
# it has some of its own, with dpdk-testpmd (which only copies frames from port
# to port) on the same kind of ports; the round trip and
# the processor time of idle shims; and eight shims at the same time, around
# one kernel bridge, with each host sending to the next one, $RUNS times
# (default 5, of 5 s). $PARTS selects some of "pair idle eight" (default all).
# Prints one JSON object on standard output, progress on standard error.
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

# host NS ADDRESS: gives eth0 there an address, and no offloads, so that all
# get the same frames.
host() {
    ip -n "$prefix-$1" addr add "$2/24" dev eth0
    in_ns "$1" ethtool -K eth0 tx off >/dev/null
}

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

# --- Two shims.
pair_make() {    # MTU
    for ns in a na nb b; do
        make_ns $ns
    done
    link a eth0 na host "$1"
    link na uplink nb uplink "$1"
    link nb host b eth0 "$1"
    host a 10.99.0.1
    host b 10.99.0.2
}

pair_unmake() {
    for ns in a na nb b; do
        ip netns del "$prefix-$ns"
    done
}

testpmd() {    # NS MTU
    [ "$1" = na ] && cpus=2-3 || cpus=4-5
    [ "$2" = 1500 ] && ring=framesz=2048,blocksz=65536,framecnt=512 ||
        ring=framesz=9216,blocksz=36864,framecnt=256
    mkfifo "$dir/$1.in"
    # It ends with its standard input.
    sleep 1000 >"$dir/$1.in" &
    pair_pids="$pair_pids $!"
    pids="$pids $!"
    ip netns exec "$prefix-$1" dpdk-testpmd \
        --lcores "0@($cpus),1@($cpus)" --no-pci --no-telemetry \
        --file-prefix "$prefix-$1" $huge \
        "--vdev=net_af_packet0,iface=host,$ring,qdisc_bypass=1" \
        "--vdev=net_af_packet1,iface=uplink,$ring,qdisc_bypass=1" -- \
        --forward-mode=io --nb-cores=1 --total-num-mbufs=4096 \
        --mbuf-size=9472 --no-mlockall <"$dir/$1.in" >>"$dir/testpmd" 2>&1 &
    pids="$pids $!"
    pair_pids="$pair_pids $!"
}

pair_start() {    # WHAT MTU
    pair_pids=
    case $1 in
    shim)
        for ns in na nb; do
            start_shim $ns 40Gbit "$2"
            pair_pids="$pair_pids $last_pid"
        done
        wait_until shims_answer na nb ;;
    testpmd)
        for ns in na nb; do
            testpmd $ns "$2"
        done ;;
    bridge)
        for ns in na nb; do
            ip -n "$prefix-$ns" link add bridge0 mtu "$2" type bridge
            ip -n "$prefix-$ns" link set host master bridge0
            ip -n "$prefix-$ns" link set uplink master bridge0
            ip -n "$prefix-$ns" link set bridge0 up
        done ;;
    esac
    wait_until in_ns a "$traffic" ping 10.99.0.2 7000 1 100
}

pair_stop() {    # WHAT
    # shellcheck disable=SC2086
    stop $pair_pids
    rm -f "$dir/na.in" "$dir/nb.in"
    if [ "$1" = bridge ]; then
        for ns in na nb; do
            ip -n "$prefix-$ns" link del bridge0
        done
    fi
}

# one_flow MS: prints Mbit/s.
one_flow() {
    ip netns exec "$prefix-b" "$traffic" sink $(($1 + 300)) 7001 >"$dir/sink" &
    sink=$!
    wait_until listens b t 7001
    in_ns a "$traffic" bulk 10.99.0.2 7001 "$1" >/dev/null
    wait $sink
    mbps "$dir/sink" "$1"
}

echo_start() {
    ip netns exec "$prefix-b" "$traffic" echo 600000 7000 &
    pids="$pids $!"
    wait_until listens b u 7000
}

huge=--in-memory
[ "$(awk '$1 == "HugePages_Free:" { print $2 }' /proc/meminfo)" -ge 120 ] ||
    huge="--no-huge -m 128"

pair() {
    kinds="shim bridge"
    if [ "$(nproc)" -lt 6 ]; then
        echo "dpdk-testpmd is left out: it needs 6 CPUs, there are $(nproc)" \
            >&2
    elif command -v dpdk-testpmd >/dev/null; then
        kinds="shim testpmd bridge"
    else
        echo "dpdk-testpmd is left out: it is not installed" >&2
    fi
    for mtu in 1500 9000; do
        pair_make $mtu
        echo_start
        round=0
        while [ $round -lt "${ROUNDS:-5}" ]; do
            round=$((round + 1))
            for kind in $kinds; do
                pair_start $kind $mtu
                one_flow 2000 >>"$dir/pair-$kind-$mtu"
                echo "$kind $mtu: $(tail -n 1 "$dir/pair-$kind-$mtu")" >&2
                pair_stop $kind
            done
        done
        pair_unmake
    done
}

# cpu_ns PID...: processor time of all their threads.
cpu_ns() {
    for pid; do
        cat "/proc/$pid/task/"*/schedstat
    done | awk '{ n += $1 } END { printf "%.0f\n", n }'
}

idle() {
    pair_make 1500
    echo_start
    for kind in bridge shim; do
        pair_start $kind 1500
        in_ns a "$traffic" ping 10.99.0.2 7000 100 100 |
            awk '{ print $2 }' >"$dir/idle-$kind"
        if [ $kind = shim ]; then
            # shellcheck disable=SC2086
            set -- $pair_pids
            before=$(cpu_ns "$@")
            sleep 4
            echo $((($(cpu_ns "$@") - before) / 2)) >"$dir/idle-cpu"
        fi
        pair_stop $kind
    done
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
        host h$i 10.99.0.1$i
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


def numbers(name):
    try:
        return [float(x) for x in open(os.path.join(sys.argv[1], name))]
    except FileNotFoundError:
        return []


def median(name):
    values = numbers(name)
    return statistics.median(values) if values else None


def ratio(a, b):
    return round(a / b, 3) if a and b else None


for mtu in ("1500", "9000"):
    rates = {kind: median("pair-%s-%s" % (kind, mtu))
             for kind in ("shim", "testpmd", "bridge")}
    if not rates["shim"]:
        continue
    for kind, rate in rates.items():
        baseline["%s_mbps_%s" % (kind, mtu)] = rate and round(rate)
    if rates["testpmd"]:
        figures["vs_testpmd_" + mtu] = ratio(rates["shim"],
                                             rates["testpmd"])
    else:
        baseline["testpmd"] = "skipped: fewer than 6 CPUs, or not installed"
    figures["vs_bridge_" + mtu] = ratio(rates["shim"], rates["bridge"])

if numbers("idle-shim"):
    # A round trip passes two shims, each twice.
    shim = statistics.mean(numbers("idle-shim"))
    bridge = statistics.mean(numbers("idle-bridge"))
    figures["idle_pass_us"] = round((shim - bridge) / 4, 1)
    figures["idle_cpu"] = round(median("idle-cpu") / 4e9, 4)
    baseline["idle_rtt_us"] = round(shim)
    baseline["bridge_rtt_us"] = round(bridge)

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
