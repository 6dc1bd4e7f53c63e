#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Checks the path from a job's log to its rank in the order, with databases, a
# controller with the policy "early", an agent, and jobs of two users.

set -u
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need_root
need ovsdb-server ovs-appctl python3 setpriv
need_cgroups

begin prog
stagecoach=$BUILD/cli/stagecoach
name=sct-prog-$$
export STAGECOACH_CGROUP=$name STAGECOACH_RUNDIR="$dir"

clean_up() {
    remove_cgroup "$name"
    "$stagecoach" controller stop >/dev/null 2>&1
}
show() {
    ask agent agent/readers
    ask agent agent/jobs
    ask controller controller/order
}

ask() {
    ovs-appctl -T 10 -t "$dir/$1.ctl" "$2"
}

says() {
    ask "$1" "$2" 2>/dev/null | grep -q -- "$3"
}

# number SOCKET COMMAND NAME: prints the first number with that name.
number() {
    ask "$1" "$2" | grep -o "\"$3\":[0-9]*" | head -n 1 | cut -d: -f2
}

# Waits until the logged line is sent: a second line before that would replace
# its value.
log_line() {
    echo "$2" >> "$1"
    sent=$(number agent agent/status sent)
    await "$(basename "$1"): $2" more_sent $((sent + 2))
}
more_sent() {
    [ "$(number agent agent/status sent)" -ge "$1" ]
}

first_is() {
    says controller controller/order "\"cojob\":\"$1\".*\"rank\":0"
}

chmod 755 "$dir"
cat > "$dir/readers.json" <<EOF2
{"readers": [{"match": {"cojob": "one"}, "format": "csv",
              "path": "$dir/%c-%j.csv", "iteration": "step",
              "metric": "accuracy"}]}
EOF2
: > "$dir/agent.log"
timeout 60 "$stagecoach" controller start --dbdir "$dir/db" \
    --policy "$SOURCE/policies/early.json" > "$dir/start.log" 2>&1 \
    || fail "controller start: $(cat "$dir/start.log")"
"$BUILD/agent/stagecoach-agent" --host=h0 --rate=50Mbit \
    --readers="$dir/readers.json" -vconsole:info -vsyslog:off \
    2>> "$dir/agent.log" &
agent=$!
pids="$pids $agent"
await "the agent is connected to the controller" says agent agent/status \
    '"telemetry":{"connected":true'

# Two jobs: a rule names the log of the first, the environment that of the
# second.
touch "$dir/two.log"
chown 65534 "$dir/two.log"
"$stagecoach" run --cojob one --job t0 -- sleep 300 2>> "$dir/agent.log" &
pids="$pids $!"
"$stagecoach" run --cojob two --job t0 \
    --log "regex:$dir/two.log,iteration=step ([0-9]+),metric=accuracy ([0-9.]+)" -- \
    setpriv --reuid=65534 --clear-groups sleep 300 2>> "$dir/agent.log" &
pids="$pids $!"
for cojob in one two; do
    timeout 40 "$stagecoach" stage begin --cojob $cojob --rung 0 \
        --iterations 1000 --jobs t0 || fail "stage begin"
done
await "the rule has a reader" says agent agent/readers '"job":"one/t0"'
await "the environment's log has a reader" says agent agent/readers \
    '"from":"environment","job":"two/t0"'
await "both are in the order" says controller controller/order '"two"'
# The first job is root's, whose log is read from its fifth second on.
reads() { says agent agent/readers "\"job\":\"$1\"[^}]*\"state\":\"reading\""; }
wait_for 8 "the log of the first is read" reads one/t0
await "the log of the second is read" reads two/t0

# The first job is nearer to the end of its early stage, until its metric stops
# improving.
log_line "$dir/one-t0.csv" "step,accuracy"
log_line "$dir/one-t0.csv" "2,0.5"
log_line "$dir/two.log" "step 2 accuracy 0.10"
log_line "$dir/one-t0.csv" "4,0.9"
log_line "$dir/one-t0.csv" "6,0.9001"
await "the job nearer to its end goes first" first_is one
echo "8,0.90011" >> "$dir/one-t0.csv"
wait_for 3 "a line changes the order" first_is two
[ $took -le 1000 ] || fail "it took $took ms"
echo "metric to order: $took ms"

# Permissions: a process of the second job reports progress of the first job,
# which is refused, and of its own.
cat > "$dir/sender.py" <<EOF2
import os, socket, time
os.setresuid(65534, 65534, 65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for cojob, iteration in (("one", 999), ("two", 77)):
    s.sendto(b'{"cojob": "%s", "job": "t0", "iteration": %d, "time": 5}'
             % (cojob.encode(), iteration), "$dir/progress.sock")
time.sleep(60)
EOF2
"$stagecoach" run --cojob two --job t0 -- python3 "$dir/sender.py" \
    2>> "$dir/agent.log" &
pids="$pids $!"
await "a job reports its own progress" \
    says agent agent/jobs '"iteration":77'
says agent agent/status '"refused":1' || fail "another's progress was taken"
says agent agent/jobs '"iteration":999' && fail "another's progress counts"
[ "$(grep -c "one/t0: progress refused" "$dir/agent.log")" -eq 1 ] \
    || fail "the refusal is not in the log"

# The driver of the same search may report progress of its trials.
sed 's/("one", 999), ("two", 77)/("two", 88),/' "$dir/sender.py" >"$dir/driver.py"
"$stagecoach" run --cojob two --job study -- python3 "$dir/driver.py" \
    2>> "$dir/agent.log" &
pids="$pids $!"
await "a driver reports a trial's progress" \
    says agent agent/jobs '"iteration":88'
says agent agent/status '"refused":1' || fail "the driver was refused"

# Another user may report only the progress of jobs that it runs, from a
# process of a job or not.
sed 's/65534/65533/g; s/("one", 999), ("two", 77)/("two", 990), ("three", 33)/' \
    "$dir/sender.py" >"$dir/stranger.py"
"$stagecoach" run --cojob three --job t0 -- python3 "$dir/stranger.py" \
    2>> "$dir/agent.log" &
pids="$pids $!"
await "a second user's job reports its own progress" \
    says agent agent/jobs '"iteration":33'
says agent agent/status '"refused":2' || fail "another user's progress was taken"
sed -i 's/("three", 33)/("three", 991)/' "$dir/stranger.py"
python3 "$dir/stranger.py" &
pids="$pids $!"
await "progress from a user without a job is refused" \
    says agent agent/status '"refused":4'
says agent agent/jobs '"iteration":99' &&
    fail "progress without a job was taken"

# A job's log is read with the rights of the job.
echo "step 55" > "$dir/spy-root.log"
echo "step 5" > "$dir/spy-own.log"
chmod 600 "$dir/spy-root.log"
chown 65534 "$dir/spy-own.log"
echo "step 56" > "$dir/spy-other.log"
chmod 600 "$dir/spy-other.log"
chown 65533 "$dir/spy-other.log"
"$stagecoach" run --cojob spy --job t0 \
    --log "regex:$dir/spy-*.log,iteration=step ([0-9]+)" -- \
    setpriv --reuid=65534 --clear-groups sleep 300 2>> "$dir/agent.log" &
pids="$pids $!"
await "other users' files are refused" says agent agent/readers \
    '"job":"spy/t0",[^}]*"refused":2'
says agent agent/readers '"files":1,[^}]*"job":"spy/t0"' \
    || fail "its own file is not read"
says agent agent/jobs '"iteration":55' && fail "root's file was read"
says agent agent/jobs '"iteration":56' && fail "another user's file was read"

# Reported progress overrides logged progress; rules can be removed.
log_line "$dir/two.log" "step 78"
says agent agent/jobs '"iteration":78' && fail "the log was believed"
echo '{"readers": [{}]}' > "$dir/readers.json"
kill -HUP $agent
await "bad rules are reported" grep -q "readers.json: /readers/0" \
    "$dir/agent.log"
says agent agent/readers '"job":"one/t0"' || fail "bad rules were taken"
echo '{"readers": []}' > "$dir/readers.json"
ovs-appctl -T 10 -t "$dir/agent.ctl" agent/reload-readers \
    | grep -q '"job":"one/t0"' && fail "the rule is still in force"
says agent agent/readers '"job":"two/t0"' || fail "the environment's is gone"

# An agent that starts late reads the same logs.
kill -9 $agent
wait $agent 2>/dev/null
"$BUILD/agent/stagecoach-agent" --host=h0 --rate=50Mbit -vconsole:info \
    -vsyslog:off 2>> "$dir/agent.log" &
agent=$!
pids="$pids $agent"
await "a new agent reads the same log" says agent agent/jobs \
    '"iteration":78'
