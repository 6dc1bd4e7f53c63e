# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh disable=SC2034,SC2154
#
# Functions common to the lab tests.  Sourced.

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

need_root() {
    [ "$(id -u)" = 0 ] || { echo "skip: not root"; exit 77; }
}

# need PROGRAM...: skips the test if a program is not in PATH.
need() {
    for program; do
        command -v "$program" >/dev/null ||
            { echo "skip: no $program"; exit 77; }
    done
}

# Sets $mount to the mount point of cgroup v2.
need_cgroups() {
    mount=$(cgroup_mount)
    [ -n "$mount" ] || { echo "skip: no cgroup v2"; exit 77; }
}

# begin NAME: creates the test's own folder, "$dir".  At any exit the processes
# in $pids are killed, the test's clean_up is called, and the contents of $dir
# are removed; after a failure, the test's show is called first, and $logs are
# printed.
clean_up() { :; }
show() { :; }
begin() {
    pids=
    logs="*.log */*.log */*/*.log"
    dir=$(mktemp -d "${TMPDIR:-/tmp}/sct-$1-$$-XXXXXX")
    trap end EXIT
    trap 'exit 1' INT TERM HUP
}

end() {
    status=$?
    trap - EXIT INT TERM HUP
    set +e
    [ $status = 0 ] || OVS_CTL_TIMEOUT=5 show >&2
    for pid in $pids; do
        kill "$pid" 2>/dev/null
    done
    clean_up
    for pid in $pids; do
        end_process "$pid"
    done
    if [ $status != 0 ]; then
        # shellcheck disable=SC2086
        (cd "$dir" && tail -n 15 $logs 2>/dev/null) >&2
    fi
    rm -rf "$dir"
    exit $status
}

# Waits for a process after SIGTERM; kills it after 2 s.
end_process() {
    tries=0
    while kill -0 "$1" 2>/dev/null && [ $((tries += 1)) -le 40 ]; do
        sleep 0.05
    done
    kill -9 "$1" 2>/dev/null
}

# wait_for SECONDS WHAT COMMAND...: waits until COMMAND succeeds and sets
# $took, in ms.  On a machine with free processors that takes less than SECONDS;
# after ten times SECONDS, prints COMMAND's last standard error and fails.  A
# test of a time checks $took.
wait_for() {
    limit=$(($1 * 10000)) what=$2 since=$(date +%s%3N)
    shift 2
    n_waits=0
    until "$@" >/dev/null 2>"$dir/errors"; do
        if [ $(($(date +%s%3N) - since)) -ge "$limit" ]; then
            tail -n 5 "$dir/errors" >&2
            fail "$what"
        fi
        # Waiting must not take the processors from what it waits for.
        if [ $((n_waits += 1)) -le 10 ]; then sleep 0.02; else sleep 0.15; fi
    done
    took=$(($(date +%s%3N) - since))
    echo "ok: $what"
}
await() { wait_for 20 "$@"; }

# remove_cgroup NAME: removes the cgroup with its processes and child cgroups;
# a cgroup can be removed only after its last process is reaped.
remove_cgroup() {
    [ ! -e "$mount/$1/cgroup.kill" ] || echo 1 >"$mount/$1/cgroup.kill"
    tries=0
    while [ -d "$mount/$1" ] && [ $((tries += 1)) -le 100 ]; do
        find "$mount/$1" -depth -type d -exec rmdir {} + 2>/dev/null
        [ ! -d "$mount/$1" ] || sleep 0.02
    done
}

# start_databases RUN: starts databases at "$dir/RUN" for a controller that the
# test starts itself.  One generation has already been used.
start_databases() {
    STAGECOACH_RUNDIR="$dir/$1" timeout 60 "$BUILD/cli/stagecoach" \
        controller start --dbdir "$dir/$1-db" \
        --policy "$SOURCE/policies/stage.json" >/dev/null ||
        fail "the databases of $1"
    kill "$(cat "$dir/$1/controller.pid")"
    await "there are databases" test ! -S "$dir/$1/controller.ctl"
}

# lead_from RUN MS: the next controller of RUN takes a generation as if the
# clock was MS milliseconds further.
lead_from() {
    ovsdb-client transact "unix:$dir/$1/intent.sock" '["Stagecoach_Intent",
        {"op": "update", "table": "Leader", "where": [],
         "row": {"generation": '$(($(date +%s%3N) + $2))'}}]' >/dev/null
}

# stop_databases RUN
stop_databases() {
    STAGECOACH_RUNDIR="$dir/$1" "$BUILD/cli/stagecoach" controller stop \
        >/dev/null 2>&1
}

# For an agent that tells a shim the jobs of packets, by a shim that is not
# there: connects the namespaces $name, with 10.98.0.1, and $name-far, with
# 10.98.0.2, by interfaces called eth0.  The far one takes the tags off, and
# $dir/tags has them, see take-tags.py.  Sets $netns and $away, commands that run
# a command in these, and $uplink, the options of the agent.
make_uplink() {
    # "ip netns exec" would hide the cgroup file system.
    netns="nsenter --net=/run/netns/$name"
    away="nsenter --net=/run/netns/$name-far"
    uplink="--actuator=shim --uplink=eth0 --pins=/sys/fs/bpf/$name"
    ip netns add "$name"
    ip netns add "$name-far"
    ip -n "$name" link add eth0 type veth peer name eth0 netns "$name-far"
    for ns in "1:$name" "2:$name-far"; do
        ip netns exec "${ns#*:}" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
        ip -n "${ns#*:}" link set lo up
        ip -n "${ns#*:}" addr add "10.98.0.${ns%%:*}/24" dev eth0
        ip -n "${ns#*:}" link set eth0 up
    done
    $away python3 "$SOURCE/tests/lab/take-tags.py" eth0 >"$dir/tags" \
        2>"$dir/tags.log" &
    pids="$pids $!"
    wait_for 5 "tags are taken" grep -q ready "$dir/tags"
}

# Adds the namespace $name-pod, with 10.97.0.2, behind $name.
make_pod() {
    ip netns add "$name-pod"
    ip -n "$name" link add pod0 type veth peer name eth0 netns "$name-pod"
    ip -n "$name" addr add 10.97.0.1/24 dev pod0
    ip -n "$name" link set pod0 up
    ip -n "$name-pod" link set lo up
    ip -n "$name-pod" addr add 10.97.0.2/24 dev eth0
    ip -n "$name-pod" link set eth0 up
    ip -n "$name-pod" route add default via 10.97.0.1
    ip -n "$name-far" route replace 10.97.0.0/24 via 10.98.0.1
    $netns sysctl -qw net.ipv4.ip_forward=1
}

remove_uplink() {
    [ ! -e "/sys/fs/bpf/$name" ] || $netns "$BUILD/agent/stagecoach-agent" \
        --unload --pins "/sys/fs/bpf/$name"
    ip netns delete "$name" 2>/dev/null
    ip netns delete "$name-far" 2>/dev/null
    ip netns delete "$name-pod" 2>/dev/null
}

# has_tag PORT SLOT: the last packet from PORT had the tag of SLOT.
has_tag() {
    [ "$(awk -v port="$1" '$1 == port { slot = $2 } END { print slot }' \
        "$dir/tags")" = "$2" ]
}

# Functions for "stagecoach lab".

# LAB_BIN: folder with programs that replace the built ones, for development.
lab() {
    command=$1
    shift
    "$BUILD/cli/stagecoach" lab "$command" --name "$name" \
        ${LAB_BIN:+--bin "$LAB_BIN"} "$@"
}

need_root_and_programs() {
    if [ "$(id -u)" != 0 ]; then
        echo "needs root"
        exit 77
    fi
    [ -n "${LAB_BIN:-}" ] && return
    for program in controller/stagecoach-controller agent/stagecoach-agent \
        shim/stagecoach-shim trainer/stagecoach-trainer; do
        if [ ! -x "$BUILD/$program" ]; then
            echo "needs $program, which is not built"
            exit 77
        fi
    done
}

# begin_lab LETTER: like "begin", for a test with labs of its own, all named
# "$name".
begin_lab() {
    need_root_and_programs
    begin "lab-$1"
    name=$1$(($$ % 1000000))
    clean_up() { lab down >/dev/null 2>&1; }
    show() { cat "$dir/out"; }
}

# start_run SCENARIO [OPTION]...: starts a run in the background, with process
# id $runner.
start_run() {
    timeout 200 "$BUILD/cli/stagecoach" lab run "$@" --name "$name" \
        ${LAB_BIN:+--bin "$LAB_BIN"} --out "$dir/report" >"$dir/out" 2>&1 &
    runner=$!
    pids="$pids $runner"
}

# wait_in_run SECONDS COMMAND...: like wait_for, but fails when the run ends.
wait_in_run() {
    seconds=$1
    shift
    wait_for "$seconds" "$*" succeeds_or_is_over "$@"
    kill -0 "$runner" 2>/dev/null || fail "the run is over too soon"
}
succeeds_or_is_over() { "$@" || ! kill -0 "$runner" 2>/dev/null; }

end_run() {
    wait "$runner" || fail "the run ended with $?"
}

cgroup_mount() {
    awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts
}

# Prints everything that is left of the lab.
leftovers() {
    for path in "/run/netns/scl-$name-"* \
        "$(cgroup_mount)/stagecoach/lab-$name" \
        "/run/stagecoach/lab-$name" "/run/stagecoach/lab-$name.lock" \
        "/run/dpdk/$name-"* "/sys/fs/bpf/stagecoach-lab-$name"; do
        [ ! -e "$path" ] || echo "$path"
    done
    for dir in /proc/[0-9]*; do
        if tr '\0' ' ' 2>/dev/null <"$dir/cmdline" |
            grep -q "/lab-$name/\|scl-$name-"; then
            echo "process ${dir#/proc/}: $(tr '\0' ' ' <"$dir/cmdline")"
        fi
    done 2>/dev/null
    return 0
}

assert_clean() {
    left=$(leftovers)
    [ -z "$left" ] || fail "$1 left behind: $left"
}
