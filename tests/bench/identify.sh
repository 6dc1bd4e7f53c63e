#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures how long the agent needs to find the job of a new socket, and the
# cost, on a host with $SOCKETS sockets (default 100000) that belong to no job.
# Each second $STRANGERS of them (default 1000) are reported as unknown flows,
# and a job in a cgroup opens a connection each 20 ms, $PROBES in all (default
# 400):
#
#    new_socket_ms_p50, _p99    from before connect() until the shim has the
#                               flow, milliseconds; a look at the shim's log
#                               each 0.2 ms included
#    cpu_100k, cpu_idle_100k    share of a core that the agent takes meanwhile,
#                               and before, with nothing but the sockets there
#    cpu_0                      the same as cpu_idle_100k without the sockets
#    rss_mib_100k               its memory at most, MiB
#    env_ms_p99                 as new_socket_ms_p99 for a job that is known by
#                               its environment only
#
# Prints one JSON object on standard output.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath "${BUILD:-build}")
load=$build/tests/bench/identify-load
sockets=${SOCKETS:-100000} strangers=${STRANGERS:-1000} probes=${PROBES:-400}
skip() {
    echo "{\"bench\": \"identify\", \"skipped\": \"$*\"}"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "needs root"
[ -x "$build/agent/stagecoach-agent" ] || skip "built without Open vSwitch"
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$mount" ] || skip "needs cgroup v2"

name=scident-$$
dir=$(mktemp -d "/tmp/$name.XXXXXX")
address=10.99.0.1
# "ip netns exec" would hide the cgroup file system.
netns="nsenter --net=/run/netns/$name"
pids=
export STAGECOACH_CGROUP=$name STAGECOACH_RUNDIR=$dir
cleanup() {
    trap - EXIT INT TERM HUP
    for pid in $pids; do
        kill -9 "$pid" 2>/dev/null || true
    done
    [ ! -e "$mount/$name/cgroup.kill" ] || echo 1 >"$mount/$name/cgroup.kill"
    wait 2>/dev/null || true
    ip netns delete $name 2>/dev/null || true
    # The last processes take a moment to end.
    for _ in 1 2 3 4 5; do
        find "$mount/$name" "$mount/$name-load" -depth -type d \
            -exec rmdir {} + 2>/dev/null && break
        sleep 0.2
    done
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

wait_until() {  # SECONDS COMMAND...
    until_ms=$(($(date +%s%3N) + $1 * 1000))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s%3N)" -lt $until_ms ] ||
            { echo "timeout: $*" >&2; cat "$dir/log" >&2; exit 1; }
        sleep 0.05
    done
}

# Prints the nanoseconds of CPU time of the agent's threads.
used() {
    cat "/proc/$agent/task/"*/schedstat |
        awk '{ n += $1 } END { printf "%.0f\n", n }'
}

# share SECONDS: prints the agent's share of a core during SECONDS.
share() {
    before=$(used)
    sleep "$1"
    awk -v a="$before" -v b="$(used)" -v s="$1" \
        'BEGIN { printf "%.4f", (b - a) / 1e9 / s }'
}

ip netns add $name || skip "cannot make a network namespace"
$netns ip link set lo up
$netns ip address add $address/32 dev lo
mkfifo "$dir/commands" "$dir/start"
: >"$dir/shim"
"$build/tests/lab/fake-shim" "$dir/shim.sock" <"$dir/commands" \
    >>"$dir/shim" 2>>"$dir/log" &
pids="$pids $!"
exec 3>"$dir/commands"
$netns "$build/agent/stagecoach-agent" --host=h0 -vconsole:warn -vsyslog:off \
    2>>"$dir/log" &
agent=$!
pids="$pids $agent"
wait_until 5 ovs-appctl -t "$dir/agent.ctl" agent/status
$netns "$build/cli/stagecoach" run --cojob asha --job server -- \
    "$build/tests/lab/fake-job" listen $address 4000 >"$dir/listening" \
    2>>"$dir/log" &
wait_until 5 test -s "$dir/listening"
sleep 2
cpu_0=$(share 4)

# The sockets without a job are in a cgroup of their own, like those of other
# services.
mkdir -p "$mount/$name-load"
sh -c "echo \$\$ >'$mount/$name-load/cgroup.procs'
       exec $netns '$load' hold $address 5000 $sockets '$dir/commands' \
           $strangers" <"$dir/start" >"$dir/ready" 2>>"$dir/log" &
holder=$!
pids="$pids $holder"
exec 4>"$dir/start"
i=0
until [ -s "$dir/ready" ]; do
    i=$((i + 1))
    kill -0 $holder 2>/dev/null && [ $i -lt 600 ] ||
        skip "the kernel refuses so many sockets: $(tail -n 1 "$dir/log")"
    sleep 0.1
done
made=$($netns cat /proc/net/sockstat | awk '$1 == "TCP:" { print $3 }')
sleep 3
cpu_idle=$(share 5)

# percentile FILE P: prints a percentile of the lines; -1 counts as the worst.
percentile() {
    awk '{ print $1 < 0 ? 1000 : $1 }' "$1" | sort -n |
        awk -v p="$2" '{ v[NR] = $1 }
             END { i = int(NR * p + 0.999999); print v[i < 1 ? 1 : i] }'
}

echo >&4
sleep 1
before=$(used)
began=$(date +%s%3N)
$netns "$build/cli/stagecoach" run --cojob asha --job t0 -- \
    "$load" probe $address 4000 "$dir/commands" "$dir/shim" "$probes" 20 \
    >"$dir/times" 2>>"$dir/log"
cpu=$(awk -v a="$before" -v b="$(used)" -v ms=$(($(date +%s%3N) - began)) \
    'BEGIN { printf "%.4f", (b - a) / 1e6 / ms }')
SLURM_JOB_ID=7 $netns \
    "$load" probe $address 4000 "$dir/commands" "$dir/shim" \
    $((probes / 4)) 20 >"$dir/times-env" 2>>"$dir/log"
rss=$(awk '$1 == "VmHWM:" { printf "%.1f", $2 / 1024 }' "/proc/$agent/status")
grep -v "INFO" "$dir/log" >&2 || true
cat <<EOD
{"bench": "identify",
 "figures": {"sockets": $made, "probes": $(wc -l <"$dir/times"),
             "new_socket_ms_p50": $(percentile "$dir/times" 0.5),
             "new_socket_ms_p99": $(percentile "$dir/times" 0.99),
             "env_ms_p99": $(percentile "$dir/times-env" 0.99),
             "cpu_100k": $cpu, "cpu_idle_100k": $cpu_idle, "cpu_0": $cpu_0,
             "rss_mib_100k": $rss},
 "baseline": {"new_socket_ms_p99": 50, "cpu_100k": 0.05, "rss_mib_100k": 64}}
EOD
