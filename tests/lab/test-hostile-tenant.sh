#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that a user cannot take the priority of another user's job, end its
# stage or keep it from a host.  Ann's search "victim" runs on two hosts.  Bob,
# on the same hosts, gives his processes the names of her jobs, invents a job of
# her search and reports 10^9 iterations for hers, takes the name of her next
# job before she starts it, and fills the agent's registry with 1,030 invented
# jobs.  Everything happens under both values of the policy's "trust".
#
# stolen_priority is the number of packets of Bob's that left with the DSCP of a
# level, false_ends the number of Ann's stages that lost iterations.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab ht
show() { "$stagecoach" status; agent h0 agent/jobs; agent h1 agent/jobs; }
need setpriv python3
STAGECOACH_RUNDIR=/run/stagecoach/lab-$name
export STAGECOACH_RUNDIR
stagecoach=$BUILD/cli/stagecoach
ann=12001 bob=12002
chmod 755 "$dir"
cp "$BUILD/tests/lab/traffic" "$dir/"

# as UID COMMAND...: the command as a user without any right.
as() {
    user=$1
    shift
    setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs "$@"
}
on() {
    host=$1
    shift
    lab exec "$host" -- "$@"
}

# send HOST UID JOB PORT [COMMAND...]: sends to h2 as "victim/JOB", started by
# COMMAND; the environment names the job in any case.
send() {
    host=$1 user=$2 job=$3 port=$4
    shift 4
    STAGECOACH_COJOB=victim STAGECOACH_JOB=$job on "$host" "$@" \
        setpriv --reuid "$user" --regid "$user" --clear-groups \
        "$dir/traffic" source 10.77.0.3 "$port" "$port" 0 0 120000 \
        >/dev/null 2>&1 &
    pids="$pids $!"
}

# announce JOBS: Ann announces her stage, or its other jobs.
announce() {
    SUDO_USER=ann SUDO_UID=$ann "$stagecoach" stage begin --cojob victim \
        --rung 0 --iterations 1000 --jobs "$1"
}

# Joins Ann's search by its environment, with a socket so that the agent looks,
# and reports for her job until it has been refused.
cat >"$dir/liar.py" <<'PYTHON'
import json, os, socket, time

tcp = socket.create_connection(("10.77.0.3", 6006))
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for _ in range(40):
    tcp.send(b"x" * 100)
    s.sendto(json.dumps({"cojob": "victim", "job": "t0", "stage": 0,
                         "iteration": 10 ** 9}).encode(),
             os.environ["STAGECOACH_RUNDIR"] + "/progress.sock")
    time.sleep(0.1)
PYTHON

# 1,030 processes with the environment of a Slurm job and a socket each.
cat >"$dir/crowd.py" <<'PYTHON'
import os, sys

for i in range(1030):
    os.environ["SLURM_JOB_ID"] = str(100000 + i)
    os.environ.pop("STAGECOACH_COJOB", None)
    if not os.fork():
        os.execve(sys.argv[1], [sys.argv[1], "stay", "10.77.0.3", "6007"],
                  os.environ)
os.wait()
PYTHON
cp "$BUILD/tests/lab/fake-job" "$dir/"

# agent HOST COMMAND
agent() {
    # shellcheck disable=SC2016 # The host's own variable.
    on "$1" sh -c 'ovs-appctl -T 5 -t "$STAGECOACH_RUNDIR/agent.ctl" "$1"' \
        sh "$2"
}
agent_says() { agent "$1" "$2" | grep -q -- "$3"; }
has_dscp() {    # HOST JOB: the agent gives the job a level.
    agent "$1" agent/jobs | python3 -c "
import json, sys
assert any(j['job'] == '$2' and j['dscp'] > 0
           for j in json.load(sys.stdin)['jobs'])"
}
status_says() { "$stagecoach" status --format json | grep -q "$1"; }
# packets PORTS: prints the packets to these ports that had a level's DSCP.
packets() {
    awk -v ports=" $1 " 'index(ports, " " $1 " ") && $2 > 0 { n += $3 }
        END { print n + 0 }' "$dir/dscp"
}

for trust in environment registered; do
    echo "trust $trust"
    sed "s/\"order\":/\"trust\": \"$trust\", \"order\":/" \
        "$SOURCE/policies/stage.json" >"$dir/$trust.json"
    # Ann's jobs: by their environment, or by a launcher, which is root.
    case $trust in
    environment) run= ;;
    registered) run="$stagecoach run --cojob victim --job" ;;
    esac
    lab up "$SOURCE/lab/scenarios/smoke.json" --policy "$dir/$trust.json"
    on h2 timeout 120 "$dir/traffic" sink 120000 6001 6002 6003 6004 6005 6006 \
        >/dev/null &
    pids="$pids $!"
    on h2 "$dir/fake-job" listen 10.77.0.3 6007 >/dev/null &
    pids="$pids $!"
    sleep 1

    # Bob is first with the name of t2, on h1.
    send h1 $bob t2 6005
    await "$trust: Bob's process has taken a name" \
        agent_says h1 agent/jobs victim/t2
    announce t0,t2
    # shellcheck disable=SC2086
    send h0 $ann t0 6001 ${run:+$run t0 --}
    # shellcheck disable=SC2086
    send h1 $ann t2 6004 ${run:+$run t2 --}
    await "$trust: Ann's job has its level" has_dscp h0 victim/t0
    await "$trust: Ann gets her name back" has_dscp h1 victim/t2

    # From now on every packet counts.
    # shellcheck disable=SC2016 # Variables of the inner shell.
    on h2 sh -c 'echo $$ >"$1/sniffer"; exec "$1/traffic" dscp 120000 eth0' \
        sh "$dir" >"$dir/dscp" &
    sniffer=$!
    send h1 $bob t0 6002
    send h0 $bob t0 6003
    await "$trust: alarms name the hosts where he claims her job" \
        status_says 'jobs were refused on h0, h1'
    STAGECOACH_COJOB=victim STAGECOACH_JOB=t9 on h0 setpriv --reuid $bob \
        --regid $bob --clear-groups /usr/bin/python3 "$dir/liar.py" &
    liar=$!
    await "$trust: his reports are refused" \
        agent_says h0 agent/status '"refused":[1-9]'
    await "$trust: an alarm names refused reports" \
        status_says 'progress reports of victim/t0 were refused'
    "$stagecoach" explain victim/t0 | grep -q 'may not report for it' ||
        fail "$trust: explain does not name the refused reports"
    wait $liar || fail "$trust: the liar"

    on h1 setpriv --reuid $bob --regid $bob --clear-groups \
        /usr/bin/python3 "$dir/crowd.py" "$dir/fake-job" >"$dir/crowd" 2>&1 &
    crowd=$!
    pids="$pids $crowd"
    wait_for 60 "$trust: jobs are refused" \
        agent_says h1 agent/status '"jobs_refused":[1-9][0-9][0-9]'
    await "$trust: an alarm names the host" \
        status_says 'jobs were refused on h.*h1'
    on h1 "$stagecoach" run --cojob real --job r0 -- sleep 60 &
    pids="$pids $!"
    await "$trust: a real job is registered" agent_says h1 agent/jobs real/r0
    agent_says h1 agent/jobs victim/t2 || fail "$trust: Ann's job is gone"

    kill "$(cat "$dir/sniffer")"
    wait $sniffer || fail "$trust: the sniffer"
    stolen=$(packets "6002 6003 6005 6006")
    ends=$("$stagecoach" order --format json | python3 -c "
import json, sys
print(1 - sum(s['cojob'] == 'victim' and {j.split('/')[-1] for j in s['jobs']} == {'t0', 't2'}
              for s in json.load(sys.stdin)['order']))")
    echo "$trust: stolen_priority $stolen, false_ends $ends," \
        "$(packets 6001) and $(packets 6004) packets of Ann's had a level"
    [ "$stolen" = 0 ] || fail "$trust: $stolen packets of Bob's had a level"
    [ "$ends" = 0 ] || fail "$trust: Ann's stage lost a job"
    [ "$(packets 6001)" -gt 0 ] && [ "$(packets 6004)" -gt 0 ] ||
        fail "$trust: Ann's packets have no level"
    lab down
    assert_clean "the lab"
done
echo PASS
