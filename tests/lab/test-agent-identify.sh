#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Checks how the agent finds the jobs of packets outside of job cgroups, on hosts
# with many short-lived processes and cgroups too.

set -u
. "$SOURCE/tests/lab/lab-functions.sh"

need_root
need ip nsenter ovs-appctl python3
need_cgroups
grep -qw bpf /proc/filesystems || { echo "skip: no BPF"; exit 77; }

begin ident
name=sct-ident-$$
tests=$BUILD/tests/lab
address=10.98.0.2
export STAGECOACH_CGROUP=$name STAGECOACH_RUNDIR=$dir

clean_up() {
    exec 3>&- 4>&- 5>&-
    remove_cgroup "$name"
    remove_cgroup "$name-far"
    remove_uplink
}
show() {
    ask agent/status
    ask agent/jobs
    tail -n 20 "$dir/tags"
}

ask() {
    ovs-appctl -T 10 -t "$dir/agent.ctl" "$@" 2>"$dir/answer"
}

# flow_of PORT JOB: checks that packets from PORT have the slot of JOB.
flow_of() {
    slot=$(slot_of "$2")
    [ -n "$slot" ] && has_tag "$1" "$slot"
}
slot_of() {
    sed -n "s,^slot \([0-9]*\) .* $1\$,\1,p" "$dir/shim.log" | tail -n 1
}

has_job() {
    ask agent/jobs | grep -q "\"job\":\"$1\""
}

# Fails if the agent does not answer.
has_no_job() {
    ask agent/jobs >"$dir/jobs" && ! grep -q "\"job\":\"$1" "$dir/jobs"
}

# connect ENVIRONMENT...: a process with this environment opens a connection;
# sets $port and $job.
connect() {
    : > "$dir/port"
    $netns env "$@" "$tests/fake-job" connect $address 5000 > "$dir/port" &
    job=$!
    pids="$pids $job"
    deadline=$(($(date +%s) + 20))
    until [ -s "$dir/port" ]; do
        [ "$(date +%s)" -lt $deadline ] || fail "no connection"
        sleep 0.01
    done
    port=$(cat "$dir/port")
}

start_agent() {
    # shellcheck disable=SC2086
    $netns "$BUILD/agent/stagecoach-agent" --host=h0 $uplink \
        -vconsole:info -vsyslog:off 2>> "$dir/agent.log" &
    agent=$!
    pids="$pids $agent"
}

: > "$dir/shim.log"; : > "$dir/agent.log"
make_uplink
mkfifo "$dir/commands"
"$tests/fake-shim" "$dir/shim.sock" < "$dir/commands" >> "$dir/shim.log" &
pids="$pids $!"
exec 3> "$dir/commands"
$away "$tests/fake-job" listen $address 5000 > "$dir/listening" &
pids="$pids $!"
wait_for 2 "a server listens" test -s "$dir/listening"

# A job that is older than the agent.
connect MASTER_ADDR=10.9.9.9 MASTER_PORT=29500
early=$port
connect STAGECOACH_X=1
stranger=$port
start_agent
wait_for 3 "a job that is older than the agent is found" \
    flow_of "$early" torch-u0/10.9.9.9-29500
wait_for 1 "a stranger has no slot" has_tag "$stranger" 0

# The agent keeps only the capabilities that it needs.
caps=$(awk '$1 == "CapPrm:" { print $2 }' "/proc/$agent/status")
bounding=$(awk '$1 == "CapBnd:" { print $2 }' "/proc/$agent/status")
[ "$caps" = "00000080002c10e2" ] || fail "capabilities $caps"
[ "$bounding" = "$caps" ] || fail "bounding set $bounding"
grep -q '^NoNewPrivs:	1' "/proc/$agent/status" || fail "new privileges"
echo "ok: nine capabilities are kept"

# A second agent.
timeout 20 $netns "$BUILD/agent/stagecoach-agent" --host=h0 -vconsole:off \
    -vsyslog:off 2> "$dir/second"
[ $? -eq 1 ] || fail "a second agent was started"
[ "$(wc -l < "$dir/second")" -eq 1 ] && grep -q 'expected only one' "$dir/second" ||
    fail "its message: $(cat "$dir/second")"
ask agent/status > /dev/null || fail "the first agent lost its socket"
echo "ok: a second agent exits with one line"

# Environment: new sockets; processes with the same job id share one job.
connect SLURM_JOB_ID=4711 SLURM_PROCID=1
wait_for 1 "a new process is known by its environment" \
    flow_of "$port" slurm-u0/4711
slurm=$job slurm_port=$port
connect SLURM_JOB_ID=4711 SLURM_PROCID=2
wait_for 1 "another process of the job is known" flow_of "$port" slurm-u0/4711

# Jobs of two users are two jobs if a framework names them, and nobody joins
# another user's job by its name.
if command -v setpriv >/dev/null; then
    # as USER VARIABLE...: a process of USER with this environment connects.
    as() {
        user=$1
        shift
        : > "$dir/port"
        env "$@" $netns setpriv --reuid "$user" --clear-groups \
            "$tests/fake-job" connect $address 5000 > "$dir/port" &
        pids="$pids $!"
        wait_for 2 "user $user is connected" test -s "$dir/port"
    }
    as 65534 SLURM_JOB_ID=4712
    wait_for 1 "another user has a job" \
        flow_of "$(cat "$dir/port")" slurm-u65534/4712
    as 65533 SLURM_JOB_ID=4712
    wait_for 1 "a third user has another job" \
        flow_of "$(cat "$dir/port")" slurm-u65533/4712
    as 65534 STAGECOACH_COJOB=theirs STAGECOACH_JOB=t0
    wait_for 1 "a user names a job" flow_of "$(cat "$dir/port")" theirs/t0
    as 65533 STAGECOACH_COJOB=theirs STAGECOACH_JOB=t0
    wait_for 1 "its claim of another user's job is rejected" \
        grep -q 'theirs/t0: process .* of another user' "$dir/agent.log"
    sleep 0.1
    flow_of "$(cat "$dir/port")" theirs/t0 && fail "a third user joined"
fi

# A launcher's claim of a process and its children overrides the environment.
mkfifo "$dir/start"
SLURM_JOB_ID=9 $netns "$tests/fake-job" fork $address 5000 < "$dir/start" \
    > "$dir/port" &
parent=$!
pids="$pids $parent"
exec 4> "$dir/start"
ask agent/claim launcher asha t7 pid $parent rung=2 > /dev/null ||
    fail "claim: $(cat "$dir/answer")"
echo >&4
wait_for 2 "a child of a claimed process is connected" test -s "$dir/port"
port=$(cat "$dir/port")
wait_for 1 "it belongs to the job of its parent" flow_of "$port" asha/t7
ask agent/jobs | grep -q '"job":"asha/t7","queue":7,"registered":true,"rung":2' ||
    fail "rung: $(ask agent/jobs)"
ask agent/claim launcher asha t7 pid 1 > /dev/null &&
    fail "a claim of init is accepted"
ask agent/claim nobody asha t7 pid $parent > /dev/null &&
    fail "an unknown claimant is accepted"
kill -9 $parent
wait_for 8 "a job goes with its claims" has_no_job asha/t7

# A claimed cgroup outside of the job cgroups.
mkdir -p "$mount/$name-far/pod/container"
ask agent/claim launcher asha pod cgroup "/$name-far/pod" > /dev/null ||
    fail "claim: $(cat "$dir/answer")"
: > "$dir/port"
sh -c "echo \$\$ > '$mount/$name-far/pod/container/cgroup.procs' &&
       exec $netns '$tests/fake-job' connect $address 5000" > "$dir/port" &
far=$!
pids="$pids $far"
wait_for 2 "a process of a claimed cgroup is connected" test -s "$dir/port"
port=$(cat "$dir/port")
wait_for 1 "a socket below a claimed cgroup is found" flow_of "$port" asha/pod
kill -9 $far
wait $far 2>/dev/null
rmdir "$mount/$name-far/pod/container" "$mount/$name-far/pod" \
    "$mount/$name-far"
wait_for 4 "the job goes with the cgroup" has_no_job asha/pod

# A claimed network namespace, which is deleted later.
make_pod
pod="nsenter --net=/run/netns/$name-pod"
ask agent/claim launcher asha ns netns /run/netns/$name-pod > /dev/null ||
    fail "claim: $(cat "$dir/answer")"
: > "$dir/port"
$pod "$tests/fake-job" connect $address 5000 > "$dir/port" &
pods=$!
pids="$pids $pods"
wait_for 2 "a process in the namespace is connected" test -s "$dir/port"
port=$(cat "$dir/port")
wait_for 1 "a socket in a claimed namespace is found" flow_of "$port" asha/ns
ip netns delete $name-pod
kill -9 $pods
wait $pods 2>/dev/null
wait_for 4 "the job goes with the namespace" has_no_job asha/ns

# A thousand workers at once.
mkfifo "$dir/workers"
$netns env TORCHELASTIC_RUN_ID=many "$tests/fake-job" fork $address 5000 1000 \
    < "$dir/workers" > "$dir/ports" &
pids="$pids $!"
exec 5> "$dir/workers"
echo >&5
all_connected() {
    [ "$(wc -l < "$dir/ports")" -eq 1000 ]
}
wait_for 60 "a thousand workers are connected" all_connected
all_known() {
    slot=$(slot_of torch-u0/many)
    [ -n "$slot" ] && [ "$(awk -v slot="$slot" '
        NR == FNR { is_theirs[$1] = 1 }
        NR > FNR && is_theirs[$1] { slots[$1] = $2 }
        END { for (port in slots) n += slots[port] == slot; print n + 0 }
        ' "$dir/ports" "$dir/tags")" -ge 1000 ]
}
wait_for 60 "all of them are known" all_known
exec 5>&-

# Short-lived cgroups.
i=0
while [ $((i += 1)) -le 200 ]; do
    mkdir -p "$mount/$name/quick/j$i"
    [ $((i % 20)) -ne 0 ] || ask agent/register quick "j$i" > /dev/null
    rmdir "$mount/$name/quick/j$i"
done
wait_for 4 "cgroups that come and go leave nothing" has_no_job quick/

# The agent restarts on this busy host.
kill -9 $agent
wait $agent 2>/dev/null
start_agent
wait_for 3 "a new agent finds the jobs again" has_job slurm-u0/4711
wait_for 3 "and their packets" flow_of "$slurm_port" slurm-u0/4711
kill -0 $slurm || fail "a job was harmed"
kill $agent
wait $agent || fail "the agent's exit status is $?"
echo "ok: the agent ends cleanly"
