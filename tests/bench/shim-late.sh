#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the effect and the cost of stagecoach-shim --late: one TCP flow
# through two shims that pace it to the link's rate,
#
#    host a -- shim -- link -- shim -- host b
#
# with each of $LATES (microseconds, default "0 100 500 2000"), at 100 Mbit/s
# and MTU 1500 and at 1 Gbit/s and MTU 9000, $ROUNDS times (default 3, of 2 s
# each).  Reports, as medians, the part of the link rate that arrives as
# payload, and the queue that a switch port of the same rate would have; see
# shim-late.py.  Prints one JSON object on standard output.
set -eu
cd "$(dirname "$0")/../.."
shim=$PWD/build/shim/stagecoach-shim traffic=$PWD/build/tests/lab/traffic
late_py=$PWD/tests/bench/shim-late.py
skip() {
    echo "{\"bench\": \"shim-late\", \"skipped\": \"$*\"}"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "needs root"
[ -x "$shim" ] || skip "built without DPDK"

prefix=sclate-$$
dir=$(mktemp -d "/tmp/$prefix.XXXXXX")
pids=
cleanup() {
    trap - EXIT INT TERM HUP
    for pid in $pids; do
        kill -9 "$pid" 2>/dev/null || true
    done
    for ns in a na nb b; do
        # What runs there was started here.
        for pid in $(ip netns pids "$prefix-$ns" 2>/dev/null); do
            kill -9 "$pid" 2>/dev/null || true
        done
        ip netns del "$prefix-$ns" 2>/dev/null || true
    done
    rm -rf "$dir" /run/dpdk/"$prefix"-*
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

wait_until() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "timeout: $*" >&2; exit 1; }
        sleep 0.05
    done
}

link() {    # NS1 IF1 NS2 IF2 MTU
    ip link add "$2" mtu "$5" netns "$prefix-$1" \
        type veth peer name "$4" mtu "$5" netns "$prefix-$3"
    ip -n "$prefix-$1" link set "$2" up
    ip -n "$prefix-$3" link set "$4" up
}

make() {    # MTU
    for ns in a na nb b; do
        ip netns add "$prefix-$ns"
        ip netns exec "$prefix-$ns" sysctl -qw \
            net.ipv6.conf.all.disable_ipv6=1 \
            net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || true
    done
    link a eth0 na host "$1"
    link na uplink nb uplink "$1"
    link nb host b eth0 "$1"
    ip -n "$prefix-a" addr add 10.99.0.1/24 dev eth0
    ip -n "$prefix-b" addr add 10.99.0.2/24 dev eth0
    for ns in a b; do
        ip netns exec "$prefix-$ns" ethtool -K eth0 tx off >/dev/null
    done
}

unmake() {
    for ns in a na nb b; do
        ip netns del "$prefix-$ns"
    done
}

listens() {
    [ -n "$(ip netns exec "$prefix-b" ss -Hltn "sport = :$1")" ]
}

# one_run MBPS MTU LATE: appends "SHARE MEDIAN P99 MAX" to its file.
one_run() {
    run_pids=
    for ns in na nb; do
        ip netns exec "$prefix-$ns" "$shim" --name "$prefix-$ns" \
            --host-port af_packet:host --uplink af_packet:uplink \
            --rate "$1Mbit" --mtu "$2" --late "$3" \
            --control "$dir/$ns.sock" --cc off 2>>"$dir/log" &
        run_pids="$run_pids $!"
    done
    pids="$pids $run_pids"
    for ns in na nb; do
        wait_until "$shim" --show "$dir/$ns.sock"
    done
    ip netns exec "$prefix-b" "$traffic" sink 3200 7001 >"$dir/sink" &
    sink=$!
    wait_until listens 7001
    ip netns exec "$prefix-nb" python3 "$late_py" uplink 2.2 "${1}e6" \
        >"$dir/queue" &
    queue=$!
    ip netns exec "$prefix-a" "$traffic" bulk 10.99.0.2 7001 2000 >/dev/null
    wait $queue
    wait $sink
    # Of the time from half a second after the first line on.
    share=$(awk -v mbps="$1" '!first { first = $1 }
        $1 > first + 500 && $1 <= first + 1900 { n += $3 }
        END { printf "%.3f", n * 8 / 1400 / 1000 / mbps }' "$dir/sink")
    echo "$share $(cat "$dir/queue")" >>"$dir/$1-$3"
    echo "$1 Mbit/s, late $3: $share $(cat "$dir/queue")" >&2
    for pid in $run_pids; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

# column FILE N: the median.
column() {
    awk -v n="$2" '{ print $n }' "$1" | sort -n |
        awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

round=0
while [ $round -lt "${ROUNDS:-3}" ]; do
    for rate in 100 1000; do
        [ $rate = 100 ] && mtu=1500 || mtu=9000
        make "$mtu"
        for late in ${LATES:-0 100 500 2000}; do
            one_run $rate "$mtu" "$late"
        done
        unmake
    done
    round=$((round + 1))
done

figures='' sep=''
for rate in 100 1000; do
    for late in ${LATES:-0 100 500 2000}; do
        file=$dir/$rate-$late
        figures="$figures$sep\"share_${rate}_$late\": $(column "$file" 1),
             \"queue_p99_${rate}_$late\": $(column "$file" 3),
             \"queue_max_${rate}_$late\": $(column "$file" 4)"
        sep=",
             "
    done
done
cat <<EOD
{"bench": "shim-late",
 "figures": {$figures},
 "baseline": {}}
EOD
