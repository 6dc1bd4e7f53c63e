#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Checks the agent with a job, a database, a controller and a shim: the
# messages that each receives, and the state that remains when one of them
# dies.

set -u
. "$SOURCE/tests/lab/lab-functions.sh"

need_root
need ip nsenter ovsdb-tool ovsdb-server ovsdb-client ovs-appctl python3
need_cgroups
grep -qw bpf /proc/filesystems || { echo "skip: no BPF"; exit 77; }

begin agent
name=sct-agent-$$
tests=$BUILD/tests/lab
address=10.98.0.2
export STAGECOACH_CGROUP=$name STAGECOACH_RUNDIR=$dir

clean_up() {
    exec 3>&-
    remove_cgroup "$name"
    remove_uplink
}

shim_says() {
    tail -n "+$((mark + 1))" "$dir/shim.log" | grep -q -- "$1"
}

new_mark() {
    mark=$(wc -l < "$dir/shim.log")
}

telemetry_says() {
    tail -n 1 "$dir/telemetry.log" | grep -q -- "$1"
}

agent_says() {
    ovs-appctl -T 10 -t "$dir/agent.ctl" "$1" 2>/dev/null | grep -q -- "$2"
}

transact() {
    ovsdb-client -t 5 transact "unix:$dir/hosts.sock" \
        "[\"Stagecoach_Hosts\", $1]" > "$dir/transact.log" 2>&1 \
        && ! grep -q error "$dir/transact.log" \
        || fail "transact: $(cat "$dir/transact.log")"
}

reported() {
    ovsdb-client -t 5 --format=csv dump "unix:$dir/hosts.sock" Host_Reported \
        applied health host ports state 2>/dev/null | grep -q -- "$1"
}

start_agent() {
    # shellcheck disable=SC2086
    $netns "$BUILD/agent/stagecoach-agent" --host=h0 $uplink \
        -vconsole:info -vsyslog:off "$@" 2>> "$dir/agent.log" &
    agent=$!
    pids="$pids $agent"
}

start_shim() {
    rm -f "$dir/commands"
    mkfifo "$dir/commands"
    "$tests/fake-shim" "$dir/shim.sock" < "$dir/commands" >> "$dir/shim.log" &
    shim=$!
    pids="$pids $shim"
    exec 3> "$dir/commands"
}

# connect JOB [VARIABLE=VALUE]: a process of JOB opens a connection; sets $port.
connect() {
    $netns env "${2:-NO_PORT=}" "$BUILD/cli/stagecoach" run --cojob asha --job "$1" -- \
        "$tests/fake-job" connect $address 5000 > "$dir/port" 2>> "$dir/run.log" &
    job=$!
    pids="$pids $job"
    wait_for 2 "$1 is connected" test -s "$dir/port"
    port=$(cat "$dir/port")
    rm "$dir/port"
}

# The emulated database, controller and shim.
: > "$dir/shim.log"; : > "$dir/telemetry.log"; : > "$dir/agent.log"
: > "$dir/run.log"
mark=0
make_uplink
ovsdb-tool create-cluster "$dir/hosts.db" "$SOURCE/wire/hosts.ovsschema" \
    "unix:$dir/raft.sock" || fail "create the database"
ovsdb-server --remote="punix:$dir/hosts.sock" --unixctl="$dir/ovsdb.ctl" \
    -vconsole:off -vsyslog:off "$dir/hosts.db" &
database=$!
pids="$pids $database"
wait_for 5 "the database is there" ovsdb-client -t 5 list-dbs "unix:$dir/hosts.sock"
transact '{"op":"insert","table":"Host_Reported","row":{"host":"h0","state":"fair"}}'
"$tests/fake-controller" "punix:$dir/telemetry.sock" "$dir/lease" \
    > "$dir/telemetry.log" 2>> "$dir/agent.log" &
pids="$pids $!"
start_shim

start_agent
wait_for 3 "the agent meets the shim" agent_says agent/status '"shim":"connected"'
wait_for 3 "the host is in the database" reported '^0,.*shim=connected.*,h0,{uplink=50000000},fair'
wait_for 3 "the database has the shim's facts" reported 'shim_cc=on, shim_host_tags=yes, shim_version=.*1\.2\.3'

# Jobs and their packets.
$away "$tests/fake-job" listen $address 5000 > "$dir/listening" &
pids="$pids $!"
wait_for 2 "a server listens" test -s "$dir/listening"
$netns "$BUILD/cli/stagecoach" run --cojob asha --job t0 -- \
    "$tests/fake-job" listen 10.98.0.1 5000 > /dev/null 2>> "$dir/run.log" &
pids="$pids $!"
wait_for 2 "the job is registered" agent_says agent/jobs asha/t0
connect t1
wait_for 1 "it has a slot at the default level" \
    shim_says "^slot [0-9]* 7 0 [0-9]* asha/t1"
[ -s "$dir/run.log" ] && fail "warnings of stagecoach run: $(cat "$dir/run.log")"
slot=$(sed -n 's/^slot \([0-9]*\) .* asha\/t1$/\1/p' "$dir/shim.log" | tail -n 1)
wait_for 1 "its packets have its slot" has_tag "$port" "$slot"
first_job=$job

# Packets of a registered port are control, of the job that registered it.
is_control() { grep -q "^$port $slot $1\$" "$dir/tags"; }
is_control 0 || fail "control without a registered port"
"$tests/fake-job" progress "$dir/progress.sock" \
    '{"cojob": "asha", "job": "t1", "control_port": 5000}'
wait_for 1 "a registered port is control" is_control 1
"$tests/fake-job" progress "$dir/progress.sock" \
    '{"cojob": "asha", "job": "t1", "control_port": 65536}'
wait_for 1 "a wrong port is refused" \
    agent_says agent/status '"malformed":1'

# So are those of the port at which a job's processes find each other.
first_port=$port first_slot=$slot
connect t2 MASTER_PORT=5000
slot=$(sed -n 's/^slot \([0-9]*\) .* asha\/t2$/\1/p' "$dir/shim.log" | tail -n 1)
wait_for 5 "the port of a rendezvous is control" is_control 1
kill "$job"
job=$first_job port=$first_port slot=$first_slot

# A socket without a job gets no slot, nor does it cost the agent anything.
$netns "$tests/fake-job" connect $address 5000 > "$dir/port" &
pids="$pids $!"
wait_for 2 "a stranger is connected" test -s "$dir/port"
wait_for 1 "its packets have no slot" has_tag "$(cat "$dir/port")" 0
rm "$dir/port"

# The controller's order.
new_mark
echo '{"generation": 3, "version": 5, "lease_ms": 1500, "report_ms": 200}' > "$dir/lease"
transact '{"op": "insert", "table": "Host_Wanted", "row": {
    "host": "h0", "version": 5, "generation": 3, "lease_ms": 1500,
    "level_dscp": ["map", [[0, 50], [1, 48], [2, 40], [3, 32], [7, 4]]],
    "min_share": 0.05,
    "congestion": ["map", [["gamma", 0.9], ["beta", 0.25]]],
    "level": ["map", [["asha/t0", 0], ["asha/t1", 2], ["asha/far", 1]]],
    "rank": ["map", [["asha/t0", 0], ["asha/t1", 1]]],
    "weight": ["map", [["asha/t0", 2.5]]]}}'
wait_for 1 "the order reaches the shim" shim_says '^slot [0-9]* 1 48 0 asha/t0'
wait_for 1 "all rows reach the shim" shim_says "^slot $slot 3 32 1 asha/t1"
wait_for 1 "the shim has a lease" shim_says '^lease [1-9][0-9]* 4'
wait_for 1 "the shim has a guard" shim_says '^guard 50000$'
wait_for 1 "the shim has the control DSCP" shim_says '^control-dscp 50$'
wait_for 1 "the shim has the congestion law" \
    shim_says '^congestion 900000 250000 4294967295$'
wait_for 3 "the database reports the order" reported '^5,.*ordered'
wait_for 1 "telemetry reports it" \
    telemetry_says '"applied":5.*"state":"ordered"'
wait_for 1 "telemetry reports the port's capacity" \
    telemetry_says '"capacity_bps":50000000'

# Counters and progress.
echo "bytes $slot 1000 70" >&3
wait_for 1 "bytes are counted by job" \
    telemetry_says '"job":"asha/t1","registered":true,"rx_bytes":70,"tx_bytes":1000'
"$tests/fake-job" progress "$dir/progress.sock" '{"cojob": 7}'
"$tests/fake-job" progress "$dir/progress.sock" 'not json'
"$tests/fake-job" progress "$dir/progress.sock" \
    '{"cojob": "asha", "job": "t1", "sent": 5000, "counted": 6}'
wait_for 1 "collectives count, packets once" telemetry_says \
    '"iteration":6,"job":"asha/t1","registered":true,"rx_bytes":70,"tx_bytes":1000'
if [ -n "${ISOLATED:-}" ]; then
    mkdir -p "$dir/class/infiniband/mlx5_0" # A card, for this test only.
    mount --bind "$dir/class" /sys/class || fail "a card for RDMA"
    "$tests/fake-job" progress "$dir/progress.sock" \
        '{"cojob": "asha", "job": "t1", "sent": 3000, "received": 80}'
    wait_for 1 "bytes of RDMA count" telemetry_says \
        '"job":"asha/t1","registered":true,"rx_bytes":80,"tx_bytes":3000'
    umount /sys/class
fi
[ "$(od -An -tu8 -N8 "$dir/holds/asha/t1" | tr -d ' ')" = 0 ] || fail "its page"
"$tests/fake-job" progress "$dir/progress.sock" \
    '{"cojob": "asha", "job": "t1", "iteration": 7, "stage": 1, "value": 0.5}'
"$tests/fake-job" progress "$dir/progress.sock" \
    '{"cojob": "asha", "job": "t1", "sent": 0, "counted": 8}'
wait_for 1 "progress passes through" telemetry_says '"iteration":7'
agent_says agent/status '"malformed":3,"received":[78],"refused":0,"unknown":0' \
    || fail "progress counters"

# A controller that takes changes gets what is new, and the rest once a second.
lease='"generation": 3, "version": 5, "lease_ms": 1500, "report_ms": 200'
echo "{$lease, \"counters_ms\": 1000}" > "$dir/lease"
n_messages() { wc -l < "$dir/telemetry.log"; }
is_quiet() { n=$(n_messages); sleep 2; [ $(($(n_messages) - n)) -le 6 ]; }
wait_for 8 "what is not new is told once a second" is_quiet
iteration=7
is_told_alone() {
    iteration=$((iteration + 1))
    "$tests/fake-job" progress "$dir/progress.sock" \
        '{"cojob": "asha", "job": "t1", "iteration": '$iteration'}'
    sleep 0.3
    telemetry_says '"iteration":'$iteration'.*"jobs_refused":0,"state"'
}
wait_for 5 "an iteration is told at once, without counters" is_told_alone
echo "{$lease}" > "$dir/lease"

# The agent is killed and restarts; meanwhile a process ends, and another one
# begins, which the kernel knows.
kill -9 $agent
wait $agent 2>/dev/null
kill -9 $first_job
connect t1
wait_for 1 "its packets have the slot without an agent" has_tag "$port" "$slot"
new_mark
start_agent
wait_for 2 "the new agent has the lease" shim_says '^lease [1-9]'
shim_says '^slot' && fail "rows were written again"
shim_says '^lease 0' && fail "the order was interrupted"
has_tag "$port" "$slot" || fail "another slot"
wait_for 2 "the order is still applied" agent_says agent/status '"applied":5'

# The shim is killed and restarts.
new_mark
exec 3>&-
kill -9 $shim
wait $shim 2>/dev/null
start_shim
wait_for 1 "the new shim gets the rows" shim_says "^slot $slot 3 32 1 asha/t1"
wait_for 1 "the new shim gets the lease" shim_says '^lease [1-9]'
wait_for 1 "the new shim gets the guard" shim_says '^guard 50000$'
echo "bytes $slot 500 0" >&3
wait_for 1 "counters go on" telemetry_says '"job":"asha/t1","registered":true,"rx_bytes":0,"tx_bytes":500'

# push VERSION RANK [MESSAGE]: pushes an order to t1.
push() {
    cat >"$dir/pushed" <<END
{"version": ${3:-1}, "row": {"host": "h0", "version": $1, "generation": 3,
 "lease_ms": 1500, "policy": "p", "trust": "registered", "min_share": 0.05,
 "owner_uid": ["map", []], "congestion": ["map", []],
 "level_dscp": ["map", [[0, 50], [1, 48], [2, 40], [3, 32], [7, 4]]],
 "level": ["map", [["asha/t0", 0], ["asha/t1", 2]]],
 "rank": ["map", [["asha/t0", 0], ["asha/t1", $2]]], "weight": ["map", []]}}
END
    mv "$dir/pushed" "$dir/lease.order"
}
# ignores WHAT: no slot has changed since new_mark, one second later.
ignores() {
    sleep 1
    shim_says '^slot' && fail "$1"
    echo "ok: not taken: $1"
}
new_mark
push 7 4
wait_for 1 "a pushed order reaches the shim" shim_says "^slot $slot 3 32 4 asha/t1"
wait_for 1 "telemetry reports its version" \
    telemetry_says '"applied":7,"applied_generation":3'
new_mark
transact '{"op": "update", "table": "Host_Wanted", "where": [], "row": {"version": 6}}'
ignores "an older row"
push 6 6
ignores "an older push"
push 9 6 2
wait_for 1 "another protocol is a clear line" grep -q \
    'ignoring order: version 2 of the message; expected 1; ' "$dir/agent.log"
ignores "another protocol"

# The database hangs; the agent is killed between a push and the row.
kill -STOP $database
push 8 5
wait_for 1 "a push needs no database" shim_says "^slot $slot 3 32 5 asha/t1"
kill -9 $agent
wait $agent 2>/dev/null
new_mark
start_agent
wait_for 5 "the new agent has the pushed order" agent_says agent/status '"applied":8'
shim_says '^lease 0' && fail "the order was interrupted"
new_mark
kill -CONT $database
transact '{"op": "update", "table": "Host_Wanted", "where": [], "row": {"version": 8}}'
ignores "the row of a pushed order"
rm "$dir/lease.order"

# An order of an older controller is ignored; the lease ends.
new_mark
transact '{"op": "update", "table": "Host_Wanted", "where": [],
           "row": {"version": 9, "generation": 2}}'
rm "$dir/lease"
wait_for 3 "the lease ends" shim_says '^lease 0 4'
wait_for 1 "telemetry reports fair sharing" \
    telemetry_says '"applied":8.*"state":"fair"'
wait_for 3 "the database reports fair sharing" reported '^8,.*fair'
shim_says '^slot' && fail "the order of an older generation was applied"

# The last process of a job ends.
kill -9 $job
wait_for 8 "the job's slot is cleared" shim_says "^clear $slot"
[ ! -d "$mount/$name/asha/t1" ] || fail "its cgroup stays"
[ -d "$mount/$name/asha/t0" ] || fail "another job's cgroup went"
wait_for 1 "telemetry forgets it" telemetry_says '"jobs":\[{"job":"asha/t0"[^]}]*}\]'

# The agent ends on request.
kill $agent
wait $agent
status=$?
[ $status -eq 0 ] || fail "the agent's exit status is $status"
[ ! -e "$dir/progress.sock" ] && [ ! -e "$dir/agent.ctl" ] \
    && [ ! -e "$dir/holds" ] || fail "sockets were left behind"
echo "ok: the agent ends cleanly"

# Without the programs of the kernel the agent says so and goes on.
lines=$(wc -l < "$dir/agent.log")
start_agent --pins="$dir/pins"
wait_for 3 "an agent without the programs goes on" \
    agent_says agent/status '"identity":"none"'
new_log() { tail -n "+$((lines + 1))" "$dir/agent.log"; }
[ "$(new_log | grep -c 'no packet is known')" = 1 ] ||
    fail "its log: $(new_log)"
wait_for 1 "it knows the jobs" agent_says agent/jobs asha/t0
kill $agent
wait $agent || fail "its exit status is $?"
