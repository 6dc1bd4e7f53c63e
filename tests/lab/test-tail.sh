#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Checks that no tenant's log can hurt the agent or get more than the tenant's
# rights: hostile expressions, a file system that does not answer, programs
# with raised rights, tails that are stopped and killed, private mounts.

set -u
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need ovs-appctl python3 setpriv unshare
need_cgroups

begin tail
logs="agent.log run.log"
stagecoach=$BUILD/cli/stagecoach
name=sct-tail-$$
dead=
export STAGECOACH_CGROUP=$name STAGECOACH_RUNDIR="$dir"

clean_up() {
    [ -z "$dead" ] || kill "$dead" 2>/dev/null
    umount -l "$dir/dead" 2>/dev/null
    remove_cgroup "$name"
}
show() {
    ask agent/readers
    ask agent/jobs
}
ask() { ovs-appctl -T 10 -t "$dir/agent.ctl" "$@"; }
says() { ask "$1" 2>/dev/null | grep -q -- "$2"; }

# reader JOB: prints the object of the reader.
reader() { ask agent/readers | grep -o "{[^{}]*\"job\":\"$1\"[^{}]*}"; }
reader_says() { reader "$1" | grep -q -- "$2"; }
tail_of() { reader "$1" | grep -o '"pid":[0-9]*' | cut -d: -f2; }
iteration_is() { says agent/jobs "\"iteration\":$2,\"job\":\"$1\""; }

# run_job JOB USER LOG [COMMAND...]: a job of USER, by default "sleep 300".
run_job() {
    job=$1 user=$2 log=$3
    shift 3
    [ $# -gt 0 ] || set -- sleep 300
    "$stagecoach" run --cojob "${job%/*}" --job "${job#*/}" --log "$log" -- \
        setpriv --reuid="$user" --regid="$user" --clear-groups "$@" \
        2>>"$dir/run.log" &
    pids="$pids $!"
}

chmod 755 "$dir"
: >"$dir/agent.log"

# A run directory of another user: links there would make root create files, and
# change the modes of its own.
mkdir "$dir/planted"
echo secret >"$dir/victim"
chmod 600 "$dir/victim"
for file in progress.sock agent.ctl shim.sock; do
    ln -s "$dir/victim" "$dir/planted/$file"
done
ln -s "$dir/created" "$dir/planted/.agent.~lock~"
chown -h 65534 "$dir/planted" "$dir/planted/"* "$dir/planted/.agent.~lock~"
refuses() {
    timeout 20 "$@" >"$dir/planted.log" 2>&1
    status=$?
    case $status in
    0 | 124) fail "$1 used the directory of another user" ;;
    esac
    grep -q "/planted: belongs to user 65534; expected a directory of root" \
        "$dir/planted.log" || fail "$1: $(cat "$dir/planted.log")"
}
refuses "$BUILD/agent/stagecoach-agent" --host=h0 --rundir="$dir/planted" \
    -vsyslog:off
if [ -x "$BUILD/shim/stagecoach-shim" ]; then
    refuses "$BUILD/shim/stagecoach-shim" --name h0 --host-port af_packet:lo \
        --uplink af_packet:none --rate 1Gbit --control "$dir/planted/shim.sock"
fi
[ "$(stat -c %a:%s "$dir/victim")" = 600:7 ] || fail "root's file has changed"
[ ! -e "$dir/created" ] || fail "root has created a file"
chmod 777 "$dir/planted"
chown 0 "$dir/planted"
if timeout 20 "$BUILD/agent/stagecoach-agent" --host=h0 -vsyslog:off \
    --rundir="$dir/planted" >"$dir/planted.log" 2>&1 ||
    ! grep -q "/planted: mode 0777; expected a directory that only" "$dir/planted.log"
then
    fail "the agent used a directory that all users can write"
fi
echo "ok: agent and shim refuse the directory of another user"

start_agent() {
    "$BUILD/agent/stagecoach-agent" --host=h0 --rate=50Mbit \
        -vconsole:info -vsyslog:off 2>>"$dir/agent.log" &
    agent=$!
    pids="$pids $agent"
    wait_for 5 "the agent answers" says agent/status '"host":"h0"'
}
start_agent
[ "$(stat -c %a "$dir/progress.sock")" = 666 ] || fail "progress.sock's mode"

# measure SECONDS: times the agent's replies, ten a second, and its use of CPU
# and memory; sets $slowest_ms, $cpu_percent and $rss_mib.
measure() {
    python3 - "$dir/agent.ctl" "$agent" "$1" >"$dir/measured" <<'END'
import json, os, socket, sys, time

path, pid, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
ticks = os.sysconf("SC_CLK_TCK")

def cpu():
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / ticks

def ask():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(path)
    s.sendall(json.dumps({"id": 0, "method": "agent/status", "params": []})
              .encode())
    s.recv(65536)
    s.close()

began, used, slowest = time.monotonic(), cpu(), 0
while time.monotonic() < began + seconds:
    t = time.monotonic()
    ask()
    slowest = max(slowest, time.monotonic() - t)
    time.sleep(0.1)
share = (cpu() - used) / (time.monotonic() - began)
rss = [int(l.split()[1]) for l in open(f"/proc/{pid}/status")
       if l.startswith("VmHWM")][0]
print(int(slowest * 1000), int(share * 100), rss // 1024)
END
    read -r slowest_ms cpu_percent rss_mib <"$dir/measured" ||
        fail "the agent did not answer"
    echo "$2: slowest reply $slowest_ms ms, $cpu_percent % of a core," \
        "$rss_mib MiB"
    [ "$slowest_ms" -le 200 ] || fail "$2: a reply took $slowest_ms ms"
    [ "$cpu_percent" -le 10 ] || fail "$2: the agent used $cpu_percent %"
    [ "$rss_mib" -le 64 ] || fail "$2: the agent has $rss_mib MiB"
}

# A tenant's job is read with the tenant's rights, and with no others.
touch "$dir/plain.log"
run_job good/t0 65534 "regex:$dir/plain.log,iteration=step ([0-9]+)"
echo "step 3" >>"$dir/plain.log"
wait_for 5 "a log is read" iteration_is good/t0 3
tail=$(tail_of good/t0)
status_is() {
    grep -q "^$1:[[:space:]]*$2\$" "/proc/$tail/status" ||
        fail "$1 of the tail: $(grep "^$1:" "/proc/$tail/status")"
}
status_is Uid '65534.65534.65534.65534'
status_is Gid '65534.65534.65534.65534'
status_is Groups ' *'
for set in CapInh CapPrm CapEff CapAmb; do
    status_is $set 0000000000000000
done
status_is NoNewPrivs 1
[ "$(stat -c %u "/proc/$tail/fd")" = 0 ] || fail "the tenant can trace it"
limit_is() {
    grep -q "^$1  *$2 " "/proc/$tail/limits" || fail "limit: $1"
}
limit_is "Max cpu time" 60
limit_is "Max core file size" 0
limit_is "Max file size" 0
limit_is "Max processes" 0
limit_is "Max address space" 67108864
for fd in "/proc/$tail/fd/"*; do
    target=$(readlink "$fd")
    case $target in
    /dev/null | socket:* | "$dir/plain.log") ;;
    *) fail "the tail has $target" ;;
    esac
done
echo "ok: the tail has the rights of the job only"

# It is killed: the next one continues.  It is stopped: it is late.
kill -9 "$tail"
other_tail() { now=$(tail_of "$1") && [ -n "$now" ] && [ "$now" != "$2" ]; }
wait_for 5 "a killed tail is replaced" other_tail good/t0 "$tail"
echo "step 4" >>"$dir/plain.log"
wait_for 5 "the log is read again" iteration_is good/t0 4
tail=$(tail_of good/t0)
kill -STOP "$tail"
wait_for 20 "a stopped tail is replaced" other_tail good/t0 "$tail"
grep -q "good/t0: log: the reader was killed, no report for 10 s" \
    "$dir/agent.log" || fail "the log does not say so"
echo "step 5" >>"$dir/plain.log"
wait_for 5 "the log is read after that" iteration_is good/t0 5

# Only the tail of a job may report for it.
python3 - "$dir/progress.sock" <<'END' &
import os, socket, sys, time
os.setresgid(65533, 65533, 65533)
os.setresuid(65533, 65533, 65533)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b'{"cojob": "good", "job": "t0", "iteration": 99}', sys.argv[1])
time.sleep(60)
END
pids="$pids $!"
wait_for 5 "progress of another user is refused" says agent/status '"refused":1'
iteration_is good/t0 5 || fail "another user's progress was taken"

# Hostile expressions: 210 bytes for which the C library needs more memory and
# time than there is, and others for which every match is costly.
nested=$(python3 -c "print('(' * 68 + '[a-z0-9]' + '+)' * 67 + ')b')")
[ ${#nested} -ge 210 ] || fail "${#nested} bytes"
python3 -c "print(*(c * 4000 for c in '1ax'), sep='\n')" >"$dir/three.log"
cp "$dir/three.log" "$dir/growing.log"
run_job bad/nested 65534 "regex:$dir/three.log,iteration=$nested"
run_job bad/steps 65534 "regex:$dir/three.log,iteration=(.|a)*([0-9])"
run_job bad/twice 65534 "regex:$dir/growing.log,iteration=(x+x+)+[b-d]"
i=0
while [ $i -lt 4 ]; do
    run_job bad/slow$i 65534 \
        "regex:$dir/growing.log,iteration=(a|1|[a-z])*([0-9])b"
    i=$((i + 1))
done
(
    while :; do
        cat "$dir/three.log" >>"$dir/growing.log"
        sleep 0.2
    done
) &
pids="$pids $!"
measure 10 "hostile expressions"
ended() {
    reader_says "$1" '"reason":"reading has ended: an expression took more steps or memory' &&
        reader_says "$1" '"state":"refused"'
}
wait_for 10 "an exhausted expression ends its reader" ended bad/steps
[ "$(grep -c "bad/steps: log: .* an expression took more" "$dir/agent.log")" = 1 ] ||
    fail "the log does not say so once"
echo "step 6" >>"$dir/plain.log"
wait_for 5 "other logs are read" iteration_is good/t0 6

# An expression that is not valid.
"$stagecoach" run --cojob bad --job syntax -- env \
    STAGECOACH_LOG="regex:/x,iteration=(a){2}" \
    setpriv --reuid=65534 --clear-groups sleep 300 2>>"$dir/run.log" &
pids="$pids $!"
wait_for 5 "a refused expression ends its reader" reader_says bad/syntax \
    '"reason":"reading has ended: specification: iteration: intervals and'

# A process with raised rights does not lend them.
echo "step 55" >"$dir/secret.log"
chmod 600 "$dir/secret.log"
cp "$(command -v sleep)" "$dir/raised"
chmod 4755 "$dir/raised"
run_job raised/t0 65534 "regex:$dir/secret.log,iteration=step ([0-9]+)" \
    "$dir/raised" 300
run_job reads/t0 65534 "regex:$dir/secret.log,iteration=step ([0-9]+)"
wait_for 5 "the kernel decides what a job may read" reader_says reads/t0 \
    '"refused":1'
sleep 1
reader_says raised/t0 '"pid"' && fail "a program with raised rights was used"
says agent/jobs '"iteration":55' && fail "root's file was read"
echo "ok: a program with raised rights is not used"

# A job of root is read without root's capabilities.
echo "step 7" >"$dir/root.log"
chmod 600 "$dir/root.log"
run_job root/t0 0 "regex:$dir/root.log,iteration=step ([0-9]+)"
wait_for 10 "a log of root's job is read" iteration_is root/t0 7
tail=$(tail_of root/t0)
status_is CapEff 0000000000000000

# The files of a job with private mounts, in the place of an empty folder.
mkdir "$dir/private"
run_job private/t0 0 "regex:$dir/private/log,iteration=step ([0-9]+)" \
    unshare --mount sh -c "mount -t tmpfs tmpfs '$dir/private'
        echo step 8 >'$dir/private/log'
        exec setpriv --reuid=65534 --clear-groups sleep 300"
wait_for 8 "a log in private mounts is read" iteration_is private/t0 8
[ ! -e "$dir/private/log" ] || fail "the mounts are not private"

# A file system that does not answer.
mkdir -m 777 "$dir/dead"
"$BUILD/tests/lab/dead-fs" "$dir/dead" >"$dir/dead.out" 2>&1 &
dead=$!
is_mounted() { grep -q mounted "$dir/dead.out"; }
if [ -c /dev/fuse ]; then
    wait_for 5 "the file system is mounted" is_mounted
    run_job dead/t0 65534 "regex:$dir/dead/log,iteration=step ([0-9]+)"
    run_job dead/t1 65534 "regex:$dir/dead/*.log,iteration=step ([0-9]+)"
    measure 10 "a file system that does not answer"
    late() {
        reader_says "$1" '"reason":"the reader \(was killed\|is late\)'
    }
    wait_for 10 "its reader is killed" late dead/t0
    wait_for 10 "the other one, too" late dead/t1
    echo "step 9" >>"$dir/plain.log"
    wait_for 5 "other logs are read meanwhile" iteration_is good/t0 9
    kill "$dead"
    wait "$dead" 2>/dev/null
    dead=
    umount -l "$dir/dead"
    echo "step 10" >"$dir/dead/log"
    chmod 644 "$dir/dead/log"
    wait_for 30 "its log is read once there is one" iteration_is dead/t0 10
else
    echo "no /dev/fuse: the stopped tail stands for a dead file system"
fi

# No tail outlives the agent.
tail=$(tail_of good/t0)
kill -9 "$agent"
is_gone() { ! kill -0 "$tail" 2>/dev/null; }
wait_for 3 "tails end with the agent" is_gone
start_agent
wait_for 10 "a new agent reads the same log" iteration_is good/t0 9
kill "$agent"
wait "$agent" || fail "the agent's end"
echo PASS
