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
fake_job=$dir/fake-job
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
cat >"$dir/hijack.py" <<'PYTHON'
import socket, subprocess, sys, time

near, far, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
subprocess.run(f"ip link set lo up; ip addr add {near}/32 dev lo;"
               f"ip addr add {far}/32 dev lo", shell=True, check=True)
server = socket.create_server((far, 5000))
client = socket.create_connection((far, 5000), source_address=(near, port))
print("ready", flush=True)
for _ in range(20):
    client.send(b"x")
    time.sleep(0.1)
PYTHON
for how in netns-hijack netns-hijack-env; do
    : >"$dir/hijack"
    act
    job=${how#netns-hijack}
    # shellcheck disable=SC2086
    env ${job:+STAGECOACH_COJOB=victim STAGECOACH_JOB=t0} setpriv --reuid $bob \
        --regid $bob --clear-groups unshare -Urn python3 "$dir/hijack.py" \
        10.98.0.1 10.98.0.2 "$ann_port" >"$dir/hijack" 2>>"$dir/job.log" &
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
cat >"$dir/crowd.py" <<'PYTHON'
import ctypes, os, sys

NEWUSER, user = 0x10000000, int(sys.argv[1])
made, mapped = os.pipe(), os.pipe()
child = os.fork()
if not child:
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    assert not ctypes.CDLL(None).unshare(NEWUSER)
    os.write(made[1], b"x")
    os.read(mapped[0], 1)
    for i in range(150):
        if not os.fork():
            os.setuid(1 + i % 3)
            os.environ["SLURM_JOB_ID"] = str(100000 + i)
            os.execv(sys.argv[2], [sys.argv[2], "stay", "10.98.0.2", "5000"])
    os.wait()
os.read(made[0], 1)
with open(f"/proc/{child}/uid_map", "w", encoding="ascii") as stream:
    stream.write("1 200001 1000\n")
os.write(mapped[1], b"x")
os.wait()
PYTHON
n_jobs() { ask agent/jobs | grep -o '"job":"slurm-' | wc -l; }
has_jobs() { [ "$(n_jobs)" -ge "$1" ]; }
act
mkdir "$mount/$name/crowd"
in_cgroup "$mount/$name/crowd" $netns python3 "$dir/crowd.py" $bob "$fake_job" \
    >/dev/null 2>>"$dir/job.log" &
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
cat >"$dir/rogue.py" <<'PYTHON'
import json, socket, sys, time

sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
for i in range(40):
    job = {"job": "victim/t0", "registered": True, "uid": int(sys.argv[2]),
           "tx_bytes": i * 10 ** 9, "rx_bytes": i * 10 ** 9}
    if i:
        job["iteration"] = min(25 * i, 1000)
    sock.send(json.dumps({"id": None, "method": "telemetry", "params": [{
        "version": 1, "host": "h9", "state": "fair", "applied": 0, "ip_bytes": 0,
        "default_bytes": 0, "jobs": [job],
        "ports": {"uplink": {"capacity_bps": 10 ** 9}}}]}).encode())
    time.sleep(0.1)
PYTHON
act
python3 "$dir/rogue.py" "$run/telemetry.sock" $ann 2>>"$dir/job.log" &
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
cat >"$dir/reuse.py" <<'PYTHON'
import os, socket, sys, time

ann, bob = int(sys.argv[1]), int(sys.argv[2])

def begin(user, connect):
    def run():
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        connect()
    pid = os.fork()
    if not pid:
        run()
        os._exit(0)
    return pid

def stay():
    os.environ.update(STAGECOACH_COJOB="victim", STAGECOACH_JOB="t0")
    os.dup2(2, 1)
    os.execve(sys.argv[3], [sys.argv[3], "connect", "10.98.0.2", "5000"],
              os.environ)

def send():
    sock = socket.create_connection(("10.98.0.2", 5000))
    print(sock.getsockname()[1], flush=True)
    for _ in range(30):
        sock.send(b"x")
        time.sleep(0.1)

"".encode("idna")               # Bob may not be able to load it.
for _ in range(20):
    old = begin(ann, stay)
    time.sleep(1.5)
    os.kill(old, 9)
    os.waitpid(old, 0)
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as stream:
        stream.write(str(old - 1))
    new = begin(bob, send)
    os.waitpid(new, 0)
    if new == old:
        sys.exit(0)
sys.exit(1)
PYTHON
if [ -w /proc/sys/kernel/ns_last_pid ]; then
    $netns python3 "$dir/reuse.py" $ann $bob "$fake_job" >"$dir/reused" \
        2>>"$dir/job.log" || fail "no process had the id of another"
    port=$(tail -n 1 "$dir/reused")
    slots=$(awk -v port="$port" '$1 == port && $2 > 0' "$dir/tags" | wc -l)
    result pid-reuse "$slots" "$(honest)"
fi

# A pod that sends with the address of another: it has no slot of others, and
# the doctor says that the host lets it.
cat >"$dir/spoof.py" <<'PYTHON'
import socket, struct, sys

raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
udp = struct.pack("!HHHH", int(sys.argv[1]), 5000, 8, 0)
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0,
                 socket.inet_aton("10.98.0.1"), socket.inet_aton("10.98.0.2"))
raw.sendto(ip + udp, ("10.98.0.2", 0))
PYTHON
nsenter --net="/run/netns/$name-pod" python3 "$dir/spoof.py" 5555 \
    2>>"$dir/job.log"
sleep 0.5
$netns "$stagecoach" agent doctor --db none --controller none --shim none \
    >"$dir/doctor"
grep -q rp_filter "$dir/doctor"
unsaid=$?
result spoofed-source $(($(steals 5555) + unsaid)) "$(honest)"

[ -z "$failures" ] || fail "these attacks succeed:$failures"
echo PASS
