#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the databases, the controller and the command line, with emulated
# agents: an order by measured demand, the rows of Host_Wanted, policy changes,
# and a controller that is killed.  Needs neither root nor namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
agent=$BUILD/tests/lab/fake-agent
need ovsdb-server ovsdb-client ovs-appctl python3

begin controller
export STAGECOACH_RUNDIR="$dir/run"

clean_up() {
    "$stagecoach" controller stop
}
show() {
    "$stagecoach" order
    wanted
}

# rest [--at SOCKET] COMMAND...: runs rest-client.py.
rest() {
    at=$dir/run/rest.sock
    if [ "$1" = --at ]; then
        at=$2
        shift 2
    fi
    timeout 60 python3 "$SOURCE/tests/lab/rest-client.py" "$at" "$@"
}
answers() { rest get "$1" | grep -q -- "$2"; }
ask() { ovs-appctl -t "$dir/run/controller.ctl" "$@"; }
asks() { ask "$1" | grep -q -- "$2"; }
wanted() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/hosts.sock" \
        Stagecoach_Hosts Host_Wanted host level level_dscp policy | tr -d '"'
}
wants() { wanted | grep -qF -- "$1"; }
# number NAME: prints a number of controller/status.
number() {
    ask controller/status | sed "s/.*\"$1\":\([0-9.]*\).*/\1/"
}
order() {
    ask controller/order | grep -o '"cojob":"[a-z]*"\|"level":[0-9]' |
        tr '\n' ' '
}
order_is() { [ "$(order)" = "$1" ]; }
start() {
    timeout 60 "$stagecoach" controller start --dbdir "$dir/db" \
        --policy "$dir/policy.json" || fail "controller start"
}

cp "$SOURCE/policies/stage.json" "$dir/policy.json"

# A controller that has never reached its databases waits for them.
STAGECOACH_RUNDIR=$dir "$BUILD/controller/stagecoach-controller" --intent="unix:$dir/none" \
    --hosts="unix:$dir/none" --policy="$dir/policy.json" --rest=none \
    --unixctl="$dir/lonely.ctl" -vconsole:off -vsyslog:off & lonely=$!
pids="$pids $lonely"
sleep 3
ticks=$(awk '{ print $14 + $15 }' "/proc/$lonely/stat")
kill "$lonely"
[ "$ticks" -le 60 ] || fail "it has taken $ticks ticks of 300"
echo "ok: without databases, $ticks ticks of 300"

"$stagecoach" controller init --dbdir "$dir/db" || fail "controller init"
"$stagecoach" controller init --dbdir "$dir/db" || fail "init again"
start
# A generation is at least the milliseconds since 1970.
first=$(number generation)
[ "$first" -gt 1700000000000 ] || fail "the first generation is $first"

# The large stage begins first; only measured demand can rank it second.
for host in h0 h1; do
    "$agent" "unix:$dir/run/telemetry.sock" $host 1000000000 \
        large/t0:2000000:20 small/t0:100000:20 >"$dir/$host.out" &
    pids="$pids $!"
done
"$stagecoach" stage begin --cojob large --rung 0 --iterations 100000 --jobs t0
"$stagecoach" stage begin --cojob small --rung 0 --iterations 100000 --jobs t0

in_order='"cojob":"small" "level":0 "cojob":"large" "level":1 '
await "the order follows measured demand" order_is "$in_order"
has_guard() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/hosts.sock" \
        Stagecoach_Hosts Host_Wanted min_share host | grep -qx "$1"
}
await "h0 gets the guard" has_guard 'h0,0.02'
has_law() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/hosts.sock" \
        Stagecoach_Hosts Host_Wanted congestion host | grep -qF "$1"
}
await "h0 gets the law" has_law '{beta=0.3, floor=0.02, gamma=0.97}'
await "h0 gets levels" wants 'h0,{large/t0=1, small/t0=0}'
await "h1 gets DSCPs" wants 'h1,{large/t0=1, small/t0=0},{0=39, 1=35, 2=23, '
await "both agents are connected" asks controller/status '"agents":2'
await "agents get leases" grep -q "\"generation\":$first.*\"lease_ms\":10000" \
    "$dir/h0.out"
"$stagecoach" hosts | grep -q '^h1  *connected  *ordered .* 75.0%' ||
    fail "stagecoach hosts"
"$stagecoach" order | grep -q '^ *0  *0  *35  *small .* h[01]:tx' ||
    fail "stagecoach order"
"$stagecoach" explain large/t0 >"$dir/explain"
grep -q '^large/t0 is job 1 of order .* its level is 1 (DSCP 23)' \
    "$dir/explain" || fail "stagecoach explain: $(cat "$dir/explain")"
grep -q '^ *0  *0  *small/t0  *[0-9.]* s' "$dir/explain" ||
    fail "stagecoach explain: preceding jobs: $(cat "$dir/explain")"
status=0
"$stagecoach" explain large/t9 2>"$dir/explain" || status=$?
[ $status = 1 ] && grep -q 'explain: large/t9: no such job; ' "$dir/explain" ||
    fail "stagecoach explain of nothing: $status, $(cat "$dir/explain")"
[ "$(wc -l <"$dir/explain")" = 1 ] || fail "more than a line: $(cat "$dir/explain")"
status=0
"$stagecoach" explain 2>/dev/null || status=$?
[ $status = 2 ] || fail "stagecoach explain without a job: $status"
echo "ok: places are explained"

# A bad message ends the sender's connection and no other.
for text in '{}' '[]' '{"version":2}' \
    '{"version":1,"host":"../x","state":"fair","applied":0,"ports":{},
      "ip_bytes":0,"default_bytes":0,"jobs":[]}' \
    '{"version":1,"host":"h9","state":"fair","applied":0,"ports":{},
      "ip_bytes":-1,"default_bytes":0,"jobs":[]}'; do
    "$agent" "unix:$dir/run/telemetry.sock" --raw "$text" ||
        fail "the connection survives $text"
done
asks controller/status '"agents":2' || fail "bad messages cost an agent"
echo "ok: bad messages end their connection"

# A bad policy is reported and the old one stays in force; a good policy is
# applied.
pid=$(cat "$dir/run/controller.pid")
sed 's/"stage",/"stge",/' "$SOURCE/policies/stage.json" >"$dir/policy.json"
kill -HUP "$pid"
await "a bad policy is reported" asks policy/show 'policy.json: /order: '
asks controller/status '"policy":"stage"' || fail "the old policy is gone"
if ask policy/reload >/dev/null 2>&1; then
    fail "policy/reload takes a bad policy"
fi
cp "$SOURCE/policies/fair.json" "$dir/policy.json"
await "another policy comes into force" asks controller/status \
    '"policy":"fair"'
await "fair means one level" \
    wants 'h1,{large/t0=0, small/t0=0},{0=39, 1=35, 2=23, 3=19, 4=15, 5=11, 6=7, 7=0},fair'

# Weights of users apply to the cojobs that they began.
ovsdb-client transact "unix:$dir/run/intent.sock" '["Stagecoach_Intent",
    {"op": "update", "table": "Cojob", "where": [["name", "==", "large"]],
     "row": {"owner": "ann"}}]' >/dev/null || fail "large has no other owner"
cat >"$dir/policy.json" <<EOF
{"name": "ann-first", "order": "stage", "weights": {"users": {"ann": 1000}}}
EOF
kill -HUP "$pid"
await "the factor of a user changes the order" \
    wants 'h0,{large/t0=0, small/t0=1}'
cp "$SOURCE/policies/stage.json" "$dir/policy.json"
kill -HUP "$pid"
await "the order is back" wants 'h0,{large/t0=1, small/t0=0}'

# A controller that is killed is replaced: the same order, with higher
# versions.
version=$(number version)
kill -9 "$pid"
gone() { ! kill -0 "$1" 2>/dev/null; }
await "a controller that is killed ends" gone "$pid"
start
next=$(number generation)
[ "$next" -gt "$first" ] || fail "the generation has not grown"
await "agents come back" asks controller/status '"agents":2'
await "the order is the same" order_is "$in_order"
await "agents get the new lease" grep -q "\"generation\":$next" "$dir/h0.out"
later() { [ "$(number version)" -gt "$version" ]; }
await "the version has grown" later
wants 'h0,{large/t0=1, small/t0=0}' || fail "another order after restart"

# HTTP returns the same as the control socket, once all is measured again: one of
# the two is asked after the other.
[ "$(stat -c %a "$dir/run/rest.sock")" = 600 ] || fail "rest.sock is open"
await "HTTP and the control socket agree" rest views "$dir/run/controller.ctl"
rest pages || fail "rest pages"
rest errors || fail "rest errors"
rest hostile || fail "rest hostile"
answers /healthz '^200 ok$' || fail "healthz"
answers /v1/explain/small/t0 '^200 .*"job":"small/t0"' || fail "/v1/explain"
answers /readyz '^200 {"ready":true}$' || fail "readyz"
answers /v1/status "\"generation\":$next" || fail "another controller answers"
echo "ok: HTTP is answered"

# Orders need no hosts database; its rows follow.
hosts_db=$(cat "$dir/run/hosts-db.pid")
use() {
    cp "$SOURCE/policies/$1.json" "$dir/policy.json"
    kill -HUP "$2"
}
kill -STOP "$hosts_db"
use fair "$(cat "$dir/run/controller.pid")"
# pushed N LEVEL: the last order of agent N has large/t0 at LEVEL.
pushed() {
    grep '^order ' "$dir/$1.out" | tail -n 1 |
        grep -q "\"level\":\[\"map\",\[\[\"large/t0\",$2\]"
}
await "an order is pushed without its database" pushed h0 0
kill -CONT "$hosts_db"
await "the row follows" wants 'h0,{large/t0=0'
use stage "$(cat "$dir/run/controller.pid")"
await "the order is back" pushed h0 1

# A second controller stands by until the first one is gone.  It reaches the
# intent database through a program.
cat >"$dir/pass.py" <<'PYTHON'
import select, socket, sys

def connect(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return sock

server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
ends = {}
while True:
    for sock in select.select([server, *ends], [], [])[0]:
        if sock is server:
            one, other = server.accept()[0], connect(sys.argv[2])
            ends |= {one: other, other: one}
        elif sock in ends:
            data = sock.recv(65536)
            ends[sock].sendall(data) if data else None
            for end in [] if data else [ends.pop(sock), sock]:
                ends.pop(end, None)
                end.close()
PYTHON
python3 "$dir/pass.py" "$dir/run/pass.sock" "$dir/run/intent.sock" &
pass=$!
pids="$pids $pass"
await "the program listens" test -S "$dir/run/pass.sock"
"$BUILD/controller/stagecoach-controller" --policy="$dir/policy.json" \
    --intent="unix:$dir/run/pass.sock" \
    --telemetry="unix:$dir/run/second.sock" --unixctl="$dir/run/second.ctl" \
    --rest="unix:$dir/run/second-rest.sock" \
    -vconsole:off -vsyslog:off &
second=$!
pids="$pids $second"
second_is() {
    ovs-appctl -t "$dir/run/second.ctl" controller/status |
        grep -q "\"generation\":$2,.*\"state\":\"$1\""
}
await "a second controller stands by" second_is standby 0
rest --at "$dir/run/second-rest.sock" get /readyz |
    grep -qF '503 {"error":"/readyz: the controller is \"standby\", ' ||
    fail "a controller that stands by is ready"
kill -9 "$(cat "$dir/run/controller.pid")"
await "the second controller takes over" second_is active '[1-9][0-9]*'

# It is cut off from the intent database and not from an agent: it pushes no
# order after 3 s, and the next leader's holds.
"$agent" "unix:$dir/run/second.sock" h2 1000000000 >"$dir/h2.out" &
pids="$pids $!"
n_orders() { grep -c "^order .*\"policy\":\"$1\"" "$dir/h2.out"; }
some_orders() { [ "$(n_orders stage)" != 0 ]; }
await "its agent gets an order" some_orders
start
asks controller/status '"state":"standby"' || fail "there are two leaders"
kill -STOP $pass
sleep 3
use fair $second
wants_fair() { wanted | grep -q '^h2,.*,fair$'; }
await "orders go to the hosts database only" wants_fair
[ "$(n_orders fair)" = 0 ] || fail "a leader pushes that is cut off"
use stage $second
kill -9 $pass
await "the first controller takes over" asks controller/status '"state":"active"'
next=$(number generation)
rows_are_next() {
    [ "$(ovsdb-client -f csv --no-headings dump "unix:$dir/run/hosts.sock" \
        Stagecoach_Hosts Host_Wanted generation | grep -x '[0-9]*' |
        sort -u)" = "$next" ]
}
await "the next leader's orders hold" rows_are_next
kill "$second"
await "the first controller leads again" asks controller/status '"state":"active"'
next=$(number generation)
await "its agents are connected" asks controller/status '"agents":2'
rest slow 15 &
slow=$!
pids="$pids $slow"

# The results of a stage are known when it ends.
"$stagecoach" stage end --cojob small --rung 0
await "the remaining stage moves up" order_is '"cojob":"large" "level":0 '
await "stages are measured" asks controller/stages \
    '"cojob":"small",[^{]*"demand":{[^}]*"h0:tx":[0-9.]*[1-9]'
"$stagecoach" stages | grep -q '^small  *0  *[0-9.]*  *h[01]:tx ' ||
    fail "stagecoach stages: $("$stagecoach" stages)"
"$stagecoach" stages --format json >"$dir/recording.json"
"$stagecoach" sim "$dir/recording.json" --policy stage --format json |
    grep -q '"measured":[[:space:]]*"stage"' || fail "sim does not replay the stages"
echo "ok: what was recorded is replayed"
has_event() {
    ovsdb-client dump "unix:$dir/run/intent.sock" Stagecoach_Intent Event \
        what why | grep -q "^$1 .*$2"
}
await "there is an event of each kind" has_event stage-end small/0
has_event leader "generation $next" || fail "no event of a leader"
has_event policy fair || fail "no event of a policy"
has_event stage-begin 'large/0: 1 jobs' || fail "no event of a stage"
"$stagecoach" stage begin --cojob small --rung 1 --iterations 100000 --jobs t0
await "a new stage is a decision of the order" asks controller/decisions \
    '"kind":"order","reason":"rank [01] of 2, new: '
asks controller/decisions '"kind":"stage","reason":"stage-end: ' ||
    fail "no decision of a stage"

# The history has the stage some seconds after its end, and can be replayed.
history() {
    ovs-appctl -t "$dir/run/controller.ctl" controller/history "$@"
}
has_history() { history "$1" 0 | grep -q "$2"; }
await "there is a history of stages" has_history stages '"cojob":"small".*"policy":"'
history stages 0 >"$dir/history.json"
"$stagecoach" sim "$dir/history.json" --policy stage --format json |
    grep -q '"measured":[[:space:]]*"stage"' || fail "sim does not replay the history"
if history stages soon >"$dir/bad" 2>&1; then
    fail "history since soon"
fi
grep -q 'not a number; expected epoch ms' "$dir/bad" || fail "$(cat "$dir/bad")"

# Rows of old cojobs are deleted, also the oldest of very many; running cojobs
# are kept.
now=$(date +%s)000
{
    echo '["Stagecoach_Intent"'
    i=0
    while [ $((i += 1)) -le 1003 ]; do
        echo ', {"op": "insert", "table": "Cojob", "row": {"name": "e'$i'",
            "weight": 1, "state": "done", "began": '$((now - 1004 + i))'}}'
    done
    echo ', {"op": "insert", "table": "Cojob", "row": {"name": "old",
        "weight": 1, "state": "done", "began": '$((now - 700000))'}}'
    echo ', {"op": "insert", "table": "Cojob", "row": {"name": "older",
        "weight": 1, "state": "running", "began": '$((now - 700000))'}}]'
} >"$dir/many"
ovsdb-client transact "unix:$dir/run/intent.sock" "$(tr -d '\n' <"$dir/many")" \
    >/dev/null || fail "cojobs cannot be inserted"
cojobs() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/intent.sock" \
        Stagecoach_Intent Cojob name state | grep , | sort
}
cojobs_are() {
    [ "$(cojobs | grep -c 'e[0-9]*,done')" = 1000 ] &&
        [ "$(cojobs | grep -v 'e[0-9]*,done' | tr '\n' ' ')" = "$1" ]
}
await "ended cojobs go" cojobs_are \
    'large,running older,running small,running '
cojobs | grep -q '^e3,' && fail "the oldest stay"

# A slow request is disconnected; a database that is down is reported.
wait $slow || fail "rest slow"
echo "ok: slow requests end"
kill "$(cat "$dir/run/hosts-db.pid")"
await "no database, not ready" answers /readyz \
    '^503 {"error":"/readyz: the hosts database is disconnected, '
answers /healthz '^200 ok$' || fail "healthz without a database"
start
await "ready again" answers /readyz '^200 '

"$stagecoach" controller stop || fail "controller stop"
[ ! -e "$dir/run/rest.sock" ] || fail "rest.sock is left"
for place in tcp:80 unix: /x; do
    if "$BUILD/controller/stagecoach-controller" --rest=$place \
        --policy="$dir/policy.json" --unixctl="$dir/run/bad.ctl" \
        2>"$dir/bad"; then
        fail "--rest=$place is taken"
    fi
    grep -q -- '--rest: ".*" is no address to listen on; expected unix:PATH, pssl:' \
        "$dir/bad" || fail "--rest=$place: $(cat "$dir/bad")"
done
status=0
"$stagecoach" status 2>/dev/null || status=$?
[ $status = 3 ] || fail "status without a controller exits with $status"
echo "ok: all"
