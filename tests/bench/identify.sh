#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures what the jobs of packets cost an agent, and how long a job remains
# unknown, on a host with $SOCKETS sockets (default 100000) that belong to no
# job.  Each second a process without a job sends from $STRANGERS new sockets
# (default 1000), and a job in a cgroup opens a connection each 20 ms, $PROBES in
# all (default 400):
#
#    new_socket_ms_p50, _p99    from before connect() until a packet with the
#                               slot of the job has arrived, milliseconds; a look
#                               each 0.5 ms included
#    env_ms_p99                 the same for the first connection of a new job
#                               that is known by its environment only
#    cpu_100k, cpu_idle_100k    share of a core that the agent takes meanwhile,
#                               and before, with nothing but the sockets there
#    cpu_0                      the same as cpu_idle_100k without the sockets
#    rss_mib_100k               its memory at most, MiB
#    calls_per_flow             system calls of the agent for a flow of a job or
#                               of none, beyond those of the same time without
#    calls_per_job              system calls from a question of the kernel about
#                               the process of a new job, until it has the claim
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
command -v strace >/dev/null || skip "needs strace"
[ -x "$build/agent/stagecoach-agent" ] || skip "built without Open vSwitch"
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$mount" ] || skip "needs cgroup v2"

name=scident-$$
dir=$(mktemp -d "/tmp/$name.XXXXXX")
near=10.99.0.1 far=10.99.0.2
# "ip netns exec" would hide the cgroup file system.
netns="nsenter --net=/run/netns/$name"
away="nsenter --net=/run/netns/$name-far"
pids=
export STAGECOACH_CGROUP="$name" STAGECOACH_RUNDIR="$dir"
cleanup() {
    trap - EXIT INT TERM HUP
    for pid in $pids; do
        kill -9 "$pid" 2>/dev/null || true
    done
    for group in "$mount/$name" "$mount/$name-load"; do
        [ ! -e "$group/cgroup.kill" ] || echo 1 >"$group/cgroup.kill"
    done
    wait 2>/dev/null || true
    "$build/agent/stagecoach-agent" --unload --pins "/sys/fs/bpf/$name" || true
    ip netns delete $name 2>/dev/null || true
    ip netns delete $name-far 2>/dev/null || true
    # The last processes take a moment to end.
    for _ in $(seq 50); do
        [ -d "$mount/$name" ] || [ -d "$mount/$name-load" ] || break
        find "$mount/$name" "$mount/$name-load" -depth -type d \
            -exec rmdir {} + 2>/dev/null || sleep 0.2
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

# calls SECONDS COMMAND...: prints the system calls of the agent during SECONDS,
# in which it runs COMMAND.
calls() {
    strace -f -qq -o "$dir/calls" -p "$agent" 2>>"$dir/log" &
    tracer=$!
    wait_until 10 grep -q '^TracerPid:.[1-9]' "/proc/$agent/status"
    until_ms=$(($(date +%s%3N) + $1 * 1000))
    shift
    "$@" >>"$dir/log" 2>&1
    sleep "$(awk -v ms=$((until_ms - $(date +%s%3N))) \
        'BEGIN { print (ms > 0 ? ms / 1000 : 0) }')"
    kill $tracer
    wait $tracer || true
    wc -l <"$dir/calls"
}

ip netns add $name || skip "cannot make a network namespace"
ip netns add $name-far
ip -n $name link add eth0 type veth peer name eth0 netns $name-far
for ns in 1:$name 2:$name-far; do
    ip -n "${ns#*:}" link set lo up
    ip -n "${ns#*:}" address add 10.99.0."${ns%%:*}"/24 dev eth0
    ip -n "${ns#*:}" link set eth0 up
done
mkfifo "$dir/commands"
"$build/tests/lab/fake-shim" "$dir/shim.sock" <"$dir/commands" \
    >/dev/null 2>>"$dir/log" &
pids="$pids $!"
exec 3>"$dir/commands"
$away python3 tests/lab/take-tags.py eth0 >"$dir/tags" 2>>"$dir/log" &
taker=$!
pids="$pids $taker"
until grep -q ready "$dir/tags"; do
    kill -0 $taker 2>/dev/null || skip "the kernel has no TCX"
    sleep 0.1
done
$netns "$build/agent/stagecoach-agent" --host=h0 -vconsole:warn -vsyslog:off \
    --actuator=shim --uplink=eth0 --pins="/sys/fs/bpf/$name" 2>>"$dir/log" &
agent=$!
pids="$pids $agent"
wait_until 5 ovs-appctl -t "$dir/agent.ctl" agent/status
$away "$build/tests/lab/fake-job" listen $far 4000 >"$dir/listening" \
    2>>"$dir/log" &
pids="$pids $!"
wait_until 5 test -s "$dir/listening"
sleep 2
cpu_0=$(share 4)

# The sockets without a job are in a cgroup of their own, like those of other
# services.
mkdir -p "$mount/$name-load"
cat >"$dir/in" <<EOD
echo \$\$ >"$mount/\$1/cgroup.procs"
shift
exec $netns "\$@"
EOD
sh "$dir/in" $name-load "$load" hold $near 5000 "$sockets" >"$dir/ready" 2>>"$dir/log" &
holder=$!
pids="$pids $holder"
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

sh "$dir/in" $name-load "$load" flows $far 9 100000000 "$strangers" 2>>"$dir/log" &
flows=$!
pids="$pids $flows"
sleep 1
before=$(used)
began=$(date +%s%3N)
$netns "$build/cli/stagecoach" run --cojob asha --job t0 -- \
    "$load" probe $far 4000 "$dir/tags" "$probes" 20 >"$dir/times" \
    2>>"$dir/log"
cpu=$(awk -v a="$before" -v b="$(used)" -v ms=$(($(date +%s%3N) - began)) \
    'BEGIN { printf "%.4f", (b - a) / 1e6 / ms }')
for i in $(seq $((probes / 4))); do
    SLURM_JOB_ID=$i $netns "$load" probe $far 4000 "$dir/tags" 1 20
done >"$dir/times-env" 2>>"$dir/log"
kill $flows

# What the agent does without flows does not count.
some_flows() {
    sh "$dir/in" $name-load "$load" flows $far 9 5000 1250 &
    stranger=$!
    sh "$dir/in" $name/asha/t0 "$load" flows $far 9 5000 1250
    wait $stranger
}
some_jobs() {
    for i in $(seq 20); do
        SLURM_JOB_ID=1000$i sh "$dir/in" $name-load "$build/tests/lab/fake-job" \
            connect $far 4000 &
        sleep 0.1
    done
}
$netns "$build/cli/stagecoach" run --cojob asha --job t0 -- sleep 60 &
sleep 6
idle=$(calls 6 true)
with_flows=$(calls 6 some_flows)
calls_per_flow=$(awk -v a="$with_flows" -v b="$idle" \
    'BEGIN { printf "%.4f", (a > b ? a - b : 0) / 10000 }')
calls 6 some_jobs >/dev/null
# A round of the agent begins with the poll() that may wait.
awk '/ poll\(.*, [0-9]+, [^0][0-9]*\)/ { n = 0 }
    { n++ }
    / bpf\(BPF_MAP_UPDATE_/ { print n; n = 0 }' "$dir/calls" \
    >"$dir/calls-job"
calls_per_job=$(percentile "$dir/calls-job" 0.5)
rss=$(awk '$1 == "VmHWM:" { printf "%.1f", $2 / 1024 }' "/proc/$agent/status")
grep -v "INFO" "$dir/log" >&2 || true
cat <<EOD
{"bench": "identify",
 "figures": {"sockets": $made, "probes": $(wc -l <"$dir/times"),
             "new_socket_ms_p50": $(percentile "$dir/times" 0.5),
             "new_socket_ms_p99": $(percentile "$dir/times" 0.99),
             "env_ms_p99": $(percentile "$dir/times-env" 0.99),
             "cpu_100k": $cpu, "cpu_idle_100k": $cpu_idle, "cpu_0": $cpu_0,
             "rss_mib_100k": $rss,
             "calls_per_flow": $calls_per_flow,
             "calls_per_job": $calls_per_job},
 "baseline": {"new_socket_ms_p99": 50, "cpu_100k": 0.05, "rss_mib_100k": 64}}
EOD
