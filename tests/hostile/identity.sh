#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# One user, pod or host against another: who is who.  Ann's search "victim" and
# the search "asha" of the namespace "ml" run on the host n1, which has a real
# agent that tells a shim whose packets are whose; the controller is real, too.
# Bob and another namespace try to be taken for them; the host h9 reports what
# is not there.
#
# Prints a JSON object for each attack on standard output: "stolen" is the
# number of his ports with the slot of a job that the order serves first, or of
# stages, places, or searches that were not his.  Fails if an attack succeeds.
set -u
. "$SOURCE/tests/lab/lab-functions.sh"

need_root
need ip nsenter ovs-appctl python3 setpriv unshare
for program in launch/stagecoach-pods stagecoach-agent; do
    [ -x "$BUILD/agent/$program" ] ||
        { echo "needs $program, which is not built"; exit 77; }
done
need_cgroups
grep -qw bpf /proc/filesystems || { echo "skip: no BPF"; exit 77; }

exec 4>&1 >&2
begin hostile
name=sct-hid-$$
ann=12001 bob=12002
stagecoach=$BUILD/cli/stagecoach
fake_job=$dir/fake-job program=$dir/identity.py
run=$dir/run
PATH=$PATH:/usr/sbin:/sbin

clean_up() {
    exec 3>&-
    STAGECOACH_RUNDIR="$run" "$stagecoach" controller stop >/dev/null 2>&1
    remove_cgroup "$name"
    remove_uplink
}
show() {
    ask agent/status
    ask agent/claims
    STAGECOACH_RUNDIR="$run" "$stagecoach" status
    tail -n 20 "$dir/tags"
    cat "$dir/doctor"
}

ask() { ovs-appctl -T 10 -t "$dir/agent.ctl" "$@" 2>/dev/null; }
# cli ARG...: the command line, for the controller.
cli() { env STAGECOACH_RUNDIR="$run" "$stagecoach" "$@"; }
n_refused() { ask agent/status | sed 's/.*"jobs_refused":\([0-9]*\).*/\1/'; }
agent_says() { ask "$1" | grep -q -- "$2"; }

# slot_of JOB, level_of JOB: the slot, and its level; 7 is that of no job.
slot_of() { awk -v job="$1" '$1 == "slot" && $6 == job { s = $2 }
    $1 == "clear" && $2 == s { s = "" } END { print s }' "$dir/shim.log"; }
level_of() { awk -v job="$1" '$1 == "slot" && $6 == job { l = $3 }
    END { print l == "" ? 7 : l }' "$dir/shim.log"; }
is_ordered() { [ "$(level_of "$1")" -lt 7 ]; }
is_of() { slot=$(slot_of "$2"); [ -n "$slot" ] && has_tag "$1" "$slot"; }
# Prints 1 if the last packet from PORT had the slot of a job that is served
# first, else 0.
steals() {
    slot=$(awk -v port="$1" '$1 == port { s = $2 } END { print s + 0 }' \
        "$dir/tags")
    job=$(awk -v s="$slot" '$1 == "slot" && $2 == s { j = $6 } END { print j }' \
        "$dir/shim.log")
    [ "$slot" != 0 ] && is_ordered "$job" && echo 1 || echo 0
}

# talk COMMAND...: fake-job, started by the command in the host's network,
# connects to the server; sets $port and $client.
talk() {
    : >"$dir/port"
    "$@" "$fake_job" connect 10.98.0.2 5000 >"$dir/port" 2>>"$dir/job.log" &
    client=$!
    pids="$pids $client"
    wait_for 3 "$* has a connection" test -s "$dir/port"
    port=$(cat "$dir/port")
}
in_cgroup() {
    # shellcheck disable=SC2016 # Variables of the inner shell.
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - "$@"
}

now() { date +%s%3N; }
# alarm_after WORDS: waits for an alarm of the controller with these words;
# sets $alarm to the seconds since $began.
says() {
    [ "$1" != "$refusal" ] || [ "$(n_refused)" -gt "$refused" ] &&
        cli status --format json | grep -q -- "$1"
}
refusal='jobs were refused on n1'
act() { began=$(now) refused=$(n_refused); }
alarm_after() {
    until says "$1" || [ $(($(now) - began)) -gt 10000 ]; do
        sleep 0.1
    done
    alarm=$(awk -v ms="$(($(now) - began))" 'BEGIN { printf "%.2f", ms / 1000 }')
}

# result ATTACK STOLEN REFUSED_HONEST [ALARM_S]
failures="" worked=""
result() {
    echo "{\"attack\": \"$1\", ${worked:+\"worked_at\": \"$worked\", }\"stolen\": $2," \
        "\"refused_honest\": $3${4:+, \"alarm_s\": $4}}" >&4
    [ "$2$3" = 00 ] && awk -v s="${4:-0}" 'BEGIN { exit !(s <= 5) }' ||
        failures="$failures $1"
}
# What is Ann's and of "ml" has its slot: 0, else 1.
honest() {
    is_of "$ann_port" victim/t0 && is_ordered victim/t0 || { echo 1; return; }
    is_of "$ml_port" asha/bert && is_ordered asha/bert && echo 0 || echo 1
}

# The programs.
cp "$BUILD/tests/lab/fake-job" "$fake_job"
cp "$SOURCE/tests/hostile/identity.py" "$program"
chmod 755 "$dir"
mkdir -p "$mount/$name/jobs" || exit 77
: >"$dir/agent.log"
make_uplink
make_pod
sed 's/"order":/"trust": "environment", "order":/' \
    "$SOURCE/policies/stage.json" >"$dir/policy.json"
timeout 60 env STAGECOACH_RUNDIR="$run" "$stagecoach" controller start \
    --dbdir "$dir/db" --policy "$dir/policy.json" || fail "the controller"
mkfifo "$dir/commands"
"$BUILD/tests/lab/fake-shim" "$dir/shim.sock" <"$dir/commands" \
    >"$dir/shim.log" 2>&1 &
pids="$pids $!"
exec 3>"$dir/commands"
export STAGECOACH_CGROUP="$name/jobs" STAGECOACH_RUNDIR="$dir"
# shellcheck disable=SC2086
$netns "$BUILD/agent/stagecoach-agent" --host=n1 --rate=1Gbit $uplink \
    --db="unix:$run/hosts.sock" --controller="unix:$run/telemetry.sock" \
    -vconsole:info -vsyslog:off 2>>"$dir/agent.log" &
agent=$!
pids="$pids $agent"
$away "$fake_job" listen 10.98.0.2 5000 >"$dir/listening" 2>>"$dir/job.log" &
pids="$pids $!"
wait_for 5 "the agent is ready" agent_says agent/status '"shim":"connected"'

# The victims.
space=
cli stage begin --help | grep -q -- --namespace && space="--namespace ml"
export SUDO_USER=ann SUDO_UID=$ann
cli stage begin --cojob victim --rung 0 --iterations 1000 --jobs t0,t1 ||
    fail "Ann's search"
unset SUDO_USER SUDO_UID
# shellcheck disable=SC2086
cli stage begin --cojob asha --rung 0 --iterations 1000 --jobs bert $space \
    || fail "the search of ml"
timeout 20 python3 "$SOURCE/tests/lab/rest-client.py" "$run/rest.sock" put \
    /v1/cojobs/victim/jobs/t0 '{"workers": [{"host": "n1", "role": "worker"}]}' \
    || fail "where t0 is"
talk env STAGECOACH_COJOB=victim STAGECOACH_JOB=t0 $netns setpriv \
    --reuid $ann --regid $ann --clear-groups
ann_port=$port
await "Ann's job is served first" is_ordered victim/t0
await "and its packets are known" is_of "$ann_port" victim/t0

uid() { echo "${1}3a1f0d2-0f1e-4b7c-9d58-1234567890ab"; }
pods=$mount/$name/kubepods/burstable
mkdir -p "$pods/pod$(uid 1)/c" "$pods/pod$(uid 2)/c" "$pods/pod$(uid 3)/c"
# list POD...: "UID NAMESPACE STAGE JOB" each.
list() {
    for pod; do
        # shellcheck disable=SC2086
        set -- $pod
        echo "{\"metadata\": {\"name\": \"p$1\", \"namespace\": \"$2\"," \
            "\"uid\": \"$(uid "$1")\", \"annotations\": {" \
            "\"stagecoach.dev/stage\": \"$3\", \"stagecoach.dev/job\": \"$4\"}}}"
    done | paste -sd, | sed 's/.*/{"items": [&]}/' >"$dir/pods.json"
    "$BUILD/agent/launch/stagecoach-pods" --once --pods "file://$dir/pods.json" \
        --cgroup-mount "$mount/$name" 2>>"$dir/pods.log"
}
list "1 ml asha/0 bert"
talk in_cgroup "$pods/pod$(uid 1)/c" $netns
ml_port=$port
await "the job of ml is served first" is_ordered asha/bert
await "and its packets are known" is_of "$ml_port" asha/bert

# Another namespace with the addresses of Ann's connection.
for how in netns-hijack netns-hijack-env; do
    : >"$dir/hijack"
    act
    job=${how#netns-hijack}
    # shellcheck disable=SC2086
    env ${job:+STAGECOACH_COJOB=victim STAGECOACH_JOB=t0} setpriv --reuid $bob \
        --regid $bob --clear-groups unshare -Urn python3 "$program" hijack \
        10.98.0.1 "$ann_port" 10.98.0.2 5000 >"$dir/hijack" 2>>"$dir/job.log" &
    hijacker=$!
    pids="$pids $hijacker"
    wait_for 3 "$how: the copy of the connection is there" \
        test -s "$dir/hijack"
    alarm_after "$refusal"
    wait $hijacker
    result $how 0 "$(honest)" "$alarm"
done

worked=0fff693d

# 150 processes of three subordinate users, with a job each.
n_jobs() { ask agent/jobs | grep -o '"job":"slurm-' | wc -l; }
has_jobs() { [ "$(n_jobs)" -ge "$1" ]; }
act
mkdir "$mount/$name/crowd"
in_cgroup "$mount/$name/crowd" $netns python3 "$program" subordinates $bob \
    "$fake_job" 10.98.0.2 5000 >/dev/null 2>>"$dir/job.log" &
wait_for 20 "subordinate users have jobs" has_jobs 128
sleep 1                         # The others have had their turn.
alarm_after "$refusal"
n=$(n_jobs)
result subordinate-users $((n > 128 ? n - 128 : 0)) "$(honest)" "$alarm"
echo 1 >"$mount/$name/crowd/cgroup.kill"

# A cgroup of Bob's own with the name of a pod of "ml".
his=$mount/$name/user.slice/kubepods/burstable/pod$(uid 1)/c
mkdir -p "$his"
chown -R $bob "$mount/$name/user.slice"
talk in_cgroup "$his" $netns setpriv --reuid $bob --regid $bob --clear-groups
list "1 ml asha/0 bert"
sleep 1
result kubepods-cgroup "$(steals "$port")" "$(honest)"

# A pod of another namespace that names the job of "ml", and one that names a
# job of Ann's.
act
list "2 evil asha/0 bert" "1 ml asha/0 bert"
talk in_cgroup "$pods/pod$(uid 2)/c" $netns
sleep 1
alarm_after "$refusal"
result pod-annotation "$(steals "$port")" "$(honest)" "$alarm"
act
list "3 evil victim/0 t1"
talk in_cgroup "$pods/pod$(uid 3)/c" $netns
sleep 1
alarm_after 'victim/t1 on n1 (of another'
result claim-without-owner "$(steals "$port")" "$(honest)" "$alarm"

# A host that speaks for Ann's job.
act
python3 "$program" rogue "$run/telemetry.sock" $ann victim/t0 \
    2>>"$dir/job.log" &
rogue=$!
alarm_after 'victim/t0 on h9 '
wait $rogue || fail "h9 is not connected"
ovs-appctl -T 10 -t "$run/controller.ctl" controller/jobs >"$dir/jobs"
done=$(python3 -c "
import json, sys
job, = (j for j in json.load(sys.stdin)['jobs'] if j['job'] == 'victim/t0')
print(int((job.get('iteration') or 0) > 0))" <"$dir/jobs") || cat "$dir/jobs"
result rogue-host "$done" "$(honest)" "$alarm"

# Bob's process with the id of one of Ann's that has just ended.
if [ -w /proc/sys/kernel/ns_last_pid ]; then
    $netns python3 "$program" reuse $ann $bob "$fake_job" 10.98.0.2 5000 \
        >"$dir/reused" 2>>"$dir/job.log" || fail "no process had the id of another"
    port=$(tail -n 1 "$dir/reused")
    slots=$(awk -v port="$port" '$1 == port && $2 > 0' "$dir/tags" | wc -l)
    result pid-reuse "$slots" "$(honest)"
fi

# A pod that sends with the address of another: it has no slot of others, and
# the doctor says that the host lets it.
nsenter --net="/run/netns/$name-pod" python3 "$program" spoof 5555 \
    10.98.0.1 10.98.0.2 2>>"$dir/job.log"
sleep 0.5
$netns "$stagecoach" agent doctor --db none --controller none --shim none \
    >"$dir/doctor"
grep -q rp_filter "$dir/doctor"
unsaid=$?
result spoofed-source $(($(steals 5555) + unsaid)) "$(honest)"

[ -z "$failures" ] || fail "these attacks succeed:$failures"
echo PASS
