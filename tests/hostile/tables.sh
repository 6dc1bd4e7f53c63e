#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Attacks on the tables of a host that its users share: Bob fills each, from
# the same host as Ann's job.  Each attack is by a Bob of another uid, so that
# the alarm that names him is of this attack.  Prints a JSON line for each:
# refused_honest is the number of Ann's jobs, flows or processes that lost their
# place.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab tt
show() { "$stagecoach" status; agent h0 agent/status; }
need setpriv python3
STAGECOACH_RUNDIR=/run/stagecoach/lab-$name
export STAGECOACH_RUNDIR
stagecoach=$BUILD/cli/stagecoach
ann=12001 bob=12100 failed='' BASE=0fff693d CC_BASE=8ab2e6d8
chmod 755 "$dir"
cp "$BUILD/tests/lab/traffic" "$BUILD/tests/hostile/crowd" "$dir/"

on() {
    host=$1
    shift
    lab exec "$host" -- "$@"
}
# as UID COMMAND...: on h0, as a user without any right.
as() {
    user=$1
    shift
    on h0 setpriv --reuid "$user" --regid "$user" --clear-groups \
        --no-new-privs "$@"
}
agent() {
    # shellcheck disable=SC2016 # The host's own variable.
    on "$1" sh -c 'ovs-appctl -T 5 -t "$STAGECOACH_RUNDIR/agent.ctl" "$1"' \
        sh "$2"
}
now() { date +%s%3N; }

# ann JOB COMMAND...: starts a process of Ann's job.
ann() {
    job=$1
    shift
    STAGECOACH_COJOB=victim STAGECOACH_JOB=$job as $ann "$@" &
    pids="$pids $!"
}
# Begins an attack by the next Bob.
act() {
    bob=$((bob + 1))
    began=$(now)
}
crowd() {
    STAGECOACH_COJOB=bob$bob STAGECOACH_JOB=b0 as $bob "$dir/crowd" "$@"
}
has_alarm() { "$stagecoach" status --format json | grep -q "$1"; }
# await_alarm ATTACK [TEXT]: sets $alarm to the time in ms until an alarm has
# TEXT, or names Bob.
await_alarm() {
    wanted=${2:-user $bob on h0} alarm=99999
    while [ $(($(now) - began)) -le 10000 ]; do
        if has_alarm "$wanted"; then
            alarm=$(($(now) - began))
            return
        fi
        sleep 0.1
    done
}
# Sets $busy to the percentage of a processor that the agent of h0 takes for the
# next $1 seconds.
ticks() { awk '{ print $14 + $15 }' "/proc/$agent/stat"; }
measure() {
    since=$(ticks)
    sleep "$1"
    busy=$((($(ticks) - since) / $1))
}
# has_level JOB: the agent gives it a level.
has_level() {
    agent h0 agent/jobs | python3 -c "
import json, sys
assert any(j['job'] == '$1' and j['dscp'] > 0
           for j in json.load(sys.stdin)['jobs'])"
}
# result ATTACK WORKED_AT REFUSED ALARM: prints the line; - is left out.
result() {
    python3 - "$@" <<'PYTHON' || failed="$failed $1"
import json, sys
attack, worked_at, refused, alarm = sys.argv[1:]
line = {"attack": attack, "worked_at": worked_at,
        "refused_honest": int(refused),
        "alarm_s": alarm if alarm == "-" else int(alarm) / 1000}
print(json.dumps({k: v for k, v in line.items() if v != "-"}))
sys.exit(line["refused_honest"] > 0 or alarm != "-" and int(alarm) > 5000)
PYTHON
}
# Sets $n to the number of packets to port $1 that arrive with a level's DSCP in
# two seconds.
count_packets() {
    on h2 "$dir/traffic" dscp 2000 eth0 >"$dir/dscp"
    n=$(awk -v port="$1" '$1 == port && $2 > 0 { n += $3 }
        END { print n + 0 }' "$dir/dscp")
}

sed 's/"order":/"trust": "environment", "order":/' \
    "$SOURCE/policies/stage.json" >"$dir/policy.json"
lab up "$SOURCE/lab/scenarios/smoke.json" --policy "$dir/policy.json"
on h2 timeout 200 "$dir/traffic" sink 200000 6001 >/dev/null &
pids="$pids $!"
SUDO_USER=ann SUDO_UID=$ann "$stagecoach" stage begin --cojob victim --rung 0 \
    --iterations 1000 --jobs t0,t1,t2
for dir_of in /proc/[0-9]*; do
    if tr '\0' ' ' 2>/dev/null <"$dir_of/cmdline" |
        grep -q "stagecoach-agent .*lab-$name/h0"; then
        agent=${dir_of#/proc/}
    fi
done 2>/dev/null
sleep 1
ann t0 "$dir/traffic" source 10.77.0.3 6001 6001 0 0 200000 >/dev/null 2>&1
ann_source=$!
await "Ann's job has its level" has_level victim/t0

# Bob forks all the time; a process of Ann's begins.
act
crowd storm 5000 10.77.0.3 6100 >"$dir/storm" &
storm=$!
sleep 1
measure 2
began=$(now)
ann t1 "$dir/traffic" drip 10.77.0.3 6001 100000 100000 >/dev/null 2>&1
await "fork-storm: a process of Ann's is answered" has_level victim/t1
late=$(($(now) - began))
wait $storm || true
echo "fork-storm: $(cat "$dir/storm") processes, the agent takes $busy % of a" \
    "processor, Ann's waited $late ms"
result fork-storm - $((busy > 60 || late > 5000)) -

# More processes of Bob's than claims.
act
crowd stay 1 10.77.0.3 6102 >/dev/null &
pids="$pids $!"
crowd stay 4600 10.77.0.3 6102 >"$dir/ready" &
crowd=$!
await "claims: Bob's processes are there" grep -q ready "$dir/ready"
await_alarm claims
ann t2 "$dir/traffic" drip 10.77.0.3 6001 100000 100000 >/dev/null 2>&1
await "claims: a process of Ann's is claimed" has_level victim/t2
result claims - 0 $alarm

# They have ended; a socket of Ann's outlives its process too.
kill "$(sed 's/ready //' "$dir/ready")"
wait $crowd || true
sleep 2
ann t2 "$dir/crowd" heir 10.77.0.3 6103
sleep 4
count_packets 6103
echo "ended-claims: $n packets of Ann's socket have her level"
result ended-claims - $((n == 0)) -

# Many network namespaces, each with a socket and a name.
act
# shellcheck disable=SC2016 # Variables of the inner shell.
STAGECOACH_COJOB=bob$bob as $bob sh -c 'for i in $(seq 300); do
    STAGECOACH_JOB=b$i unshare -Urn "$1/crowd" stay 0 127.0.0.1 1 &
done; wait' sh "$dir" >/dev/null 2>&1 &
pids="$pids $!"
sleep 3
measure 2
has_level victim/t0 || fail "namespaces: Ann's job has lost its level"
echo "namespaces: the agent takes $busy % of a processor"
result namespaces - $((busy > 30)) -

# Flows of Bob's job through the shim, to its own host and to another.  Ann has
# asked for data on 20 sockets, and only receives.
cat >"$dir/streams.py" <<'PYTHON'
import select, socket, sys, time

def udp():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

def send(s, to):
    while True:
        while select.select([s], [], [], 0)[0]:
            to.add(s.recvfrom(9)[1])
        for address in to:
            s.sendto(b"x" * 500, address)
        time.sleep(0.05)

# Keeps the bytes of the frames in a file.
def receive(sockets, n):
    for s in sockets:
        s.sendto(b"x", ("10.77.0.3", 6104))
    with open(sys.argv[2], "w") as file:
        while True:
            for s in select.select(sockets, [], [])[0]:
                n += len(s.recv(600)) + 42
            file.seek(0)
            print(n, file=file, flush=True)

if sys.argv[1] == "send":
    sender = udp()
    sender.bind(("", 6104))
    send(sender, set())
receive([udp() for _ in range(20)], 0)
PYTHON
# Prints the bytes that Ann's job has received, by the agent's count.
counted() {
    agent h0 agent/jobs | python3 -c "
import json, sys
print(sum(j['rx_bytes'] for j in json.load(sys.stdin)['jobs']
          if j['job'] == 'streams/s0'))"
}
# Sets $share to the percentage of what arrives in three seconds that is counted
# as the job's.
count_received() {
    counted=$(counted) arrived=$(cat "$dir/arrived")
    sleep 3
    share=$((($(counted) - counted) * 100 / ($(cat "$dir/arrived") - arrived)))
}
is_counted() { [ "$(counted)" -gt 50000 ]; }
on h2 timeout 200 python3 "$dir/streams.py" send &
pids="$pids $!"
await "flows: somebody sends what Ann asks for" \
    on h2 grep -qi ":$(printf %04X 6104) " /proc/net/udp
on h0 timeout 200 "$stagecoach" run --cojob streams --job s0 -- \
    python3 "$dir/streams.py" receive "$dir/arrived" &
pids="$pids $!"
await "flows: Ann's job receives" is_counted
crowd flows 17400 10.77.0.1 20000
count_received
echo "flows: $share % of what Ann receives is counted"
result flows-to-itself - $((share < 75)) -
act
crowd flows 400000 10.77.0.3 20000 &
flows=$!
pids="$pids $flows"
await_alarm flows
wait $flows || true
count_received
echo "flows: $share % of what Ann receives is counted"
result flows $BASE $((share < 75)) $alarm

# Connections of Bob's, to 1,000 addresses of one host, or idle ones to one; then
# a connection of Ann's to another host begins, which is to get grants.
# shellcheck disable=SC2046 # One or more.
kill $(ps -o pid= --ppid "$ann_source")
on h1 timeout 200 "$dir/traffic" sink 200000 6001 >/dev/null &
pids="$pids $!"
on h2 ip route add local 10.99.0.0/16 dev lo
on h0 ip route add 10.99.0.0/16 via 10.77.0.3
on h2 timeout 200 python3 - <<'PYTHON' &
import socket, time
servers = [socket.create_server(("", p), backlog=4096) for p in (6106, 6107)]
time.sleep(200)
PYTHON
pids="$pids $!"
await "somebody listens" on h2 grep -qi ":$(printf %04X 6107) " /proc/net/tcp
taken() {
    "$BUILD/shim/stagecoach-shim" --show \
        "$STAGECOACH_RUNDIR/hosts/h0/shim.sock" |
        awk '$1 == "cc_grants_taken" { print $2 }'
}
# connect ATTACK N ADDRESS PORT [stranger]: by a Bob with or without a job.
stranger() { as $bob "$dir/crowd" "$@"; }
connect() {
    attack=$1
    act
    "${5:-crowd}" connect "$2" "$3" "$4" >"$dir/ready" &
    crowd=$!
    await_alarm "$attack"
    await "$attack: Bob's connections are there" grep -q ready "$dir/ready"
    before=$(taken)
    for try in 1 2 3; do        # The first may end before its keys come.
        ann t0 "$dir/traffic" bulk 10.77.0.2 6001 2000
        wait $! || true
        n=$(($(taken) - before))
        [ $n = 0 ] || break
        echo "$attack: no grants yet at try $try"
    done
    echo "$attack: Ann's connection gets $n grants"
    result "$attack" $CC_BASE $((n == 0)) "$alarm"
    kill "$(sed 's/ready //' "$dir/ready")"
    wait $crowd || true
}
connect cc-remotes 1000 10.99.0.1 6107
connect cc-table 4200 10.77.0.3 6106
connect cc-table-without-job 4200 10.77.0.3 6106 stranger

# Many cgroups in a folder that is Bob's.
act
# shellcheck disable=SC2016 # The host's own variable.
tree=$(cgroup_mount)/$(on h0 sh -c 'echo "$STAGECOACH_CGROUP"')
chmod a+x "$(cgroup_mount)"
mkdir -p "$tree/bob"
chown $bob "$tree/bob"
setpriv --reuid $bob --clear-groups sh -c "cd '$tree/bob' &&
    seq 9000 | xargs mkdir"
for job in r0 r1 r2 r3 r4 r5 r6 r7; do
    on h0 "$stagecoach" run --cojob "$job" --job t0 -- sleep 100 &
    pids="$pids $!"
done
await_alarm cgroups 'jobs were refused on h0'
sleep 2
n=$(agent h0 agent/jobs | grep -o '"job":"r[0-7]/t0"' | wc -l)
measure 2
echo "cgroups: $n of 8 jobs are known, the agent takes $busy % of a processor"
result cgroups $BASE $((8 - n)) $alarm

lab down
assert_clean "the lab"

# More strangers than places of a trainer's server, all silent.
trainer=$BUILD/trainer/stagecoach-trainer
"$trainer" server --workers 1 </dev/null >"$dir/server.out" \
    2>"$dir/server.err" &
pids="$pids $!"
await "the server listens" grep -q '"port"' "$dir/server.out"
port=$(sed -n 's/.*"port": \([0-9]*\).*/\1/p' "$dir/server.out")
python3 - "$port" <<'PYTHON' &
import socket, sys, time
all = [socket.create_connection(("127.0.0.1", int(sys.argv[1])))
       for _ in range(250)]
time.sleep(30)
PYTHON
pids="$pids $!"
sleep 0.5
began=$(now)
status=0
timeout 8 "$trainer" worker --server "127.0.0.1:$port" --workers 1 --rank 0 \
    --backend cpu --shape 16,32,10 --batch 48 --iterations 5 </dev/null \
    >"$dir/worker.out" 2>&1 || status=$?
echo "server-places: a worker ends with $status after $(($(now) - began)) ms"
result server-places $BASE $((status != 0)) -
[ -z "$failed" ] || fail "attacks that work:$failed"
echo PASS
