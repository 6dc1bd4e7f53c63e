#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the commands of operators: pin, pause, exclude, undo, observe, explain
# and history, with databases, the controller, the command line and emulated
# agents.  Needs neither root nor namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
agent=$BUILD/tests/lab/fake-agent
need ovsdb-server ovsdb-client ovs-appctl

begin operator
export STAGECOACH_RUNDIR="$dir/run"

clean_up() {
    "$stagecoach" controller stop
}
show() {
    "$stagecoach" order
    "$stagecoach" overrides
    wanted
}

sc() { timeout 60 "$stagecoach" "$@"; }
ask() { ovs-appctl -T 10 -t "$dir/run/controller.ctl" "$@"; }
asks() { ask "$1" | grep -q -- "$2"; }
wanted() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/hosts.sock" \
        Stagecoach_Hosts Host_Wanted host level | tr -d '"'
}
wants() { wanted | grep -qxF -- "$1"; }
events() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/intent.sock" \
        Stagecoach_Intent Event actor what why
}
has_event() { events | grep -q -- "$1"; }
start() {
    sc controller start --dbdir "$dir/db" --policy "$dir/policy.json" ||
        fail "controller start"
}

cp "$SOURCE/policies/stage.json" "$dir/policy.json"
start
for host in h0 h1; do
    "$agent" "unix:$dir/run/telemetry.sock" $host 1000000000 \
        large/t0:2000000:20 small/t0:100000:20 >"$dir/$host.out" &
    pids="$pids $!"
done
sc stage begin --cojob large --rung 0 --iterations 100000 --jobs t0
sc stage begin --cojob small --rung 0 --iterations 100000 --jobs t0
natural='h0,{large/t0=1, small/t0=0}'
await "the order follows measured demand" wants "$natural"

# A pinned stage goes first, whatever its demand.
sc pin large/0 --for 1h --reason 'a demo' >"$dir/out" || fail "pin"
grep -q '^1: pin large/0 from now on; "stagecoach undo 1"' "$dir/out" ||
    fail "output of pin: $(cat "$dir/out")"
await "a pinned stage goes first" wants 'h0,{large/t0=0, small/t0=1}'
await "the order's reason is the operator" asks controller/decisions \
    'rank 0 of 2, now before small/0: override (pin)","subject":"large/0"'
me=$(sc overrides --format json | grep -o '"actor":"[^"]*"')
await "the audit has the user and the reason" \
    has_event ',pin,.*large/0: 1, for 3600 s: a demo'
asks controller/decisions '"kind":"operator","reason":"pin: 1, for 3600 s: a demo","subject":"large/0"' ||
    fail "no decision of the pin"
asks controller/decisions "${me#\"actor\":}" || fail "no name in the decisions"
sc overrides | grep -q '^ *1  *pin  *large/0 .* in force  *a demo' ||
    fail "overrides: $(sc overrides)"
sc explain large/t0 >"$dir/out"
grep -q 'it is pinned by .*: a demo' "$dir/out" ||
    fail "explain does not report the pin: $(cat "$dir/out")"

# The pin survives the controller.
gone() { ! kill -0 "$1" 2>/dev/null; }
pid=$(cat "$dir/run/controller.pid")
kill -9 "$pid"
await "the controller is dead" gone "$pid"
start
await "another controller has the pin" asks controller/overrides \
    '"ended":0,"id":1,"kind":"pin"'
await "agents come back" asks controller/status '"agents":2'
await "the pin is in force" wants 'h0,{large/t0=0, small/t0=1}'
sc undo >"$dir/out" || fail "undo"
grep -q '^1: pin large/0 has ended' "$dir/out" || fail "$(cat "$dir/out")"
await "undo restores the order" wants "$natural"
await "the audit has the undo" has_event ',undo,.*large/0: pin 1 by '
if sc undo 1 2>"$dir/out"; then
    fail "undone twice"
fi
grep -q 'undo: 1: is not in force any more' "$dir/out" || fail "$(cat "$dir/out")"

# A paused job has the last level, an excluded one none, until the override
# expires.
sc pause small/t0 >/dev/null || fail "pause"
await "a paused job has the last level" wants 'h0,{large/t0=0, small/t0=5}'
sc exclude small/t0 --for 3s >/dev/null || fail "exclude"
await "hosts do not get an excluded job" wants 'h0,{large/t0=0}'
sc overrides | grep -q '^ *2  *pause  *small/t0 .* in force' &&
    fail "two overrides for one job"
await "time ends an override" wants "$natural"
await "the audit has the expiry" \
    has_event '^controller,exclude,.*3 has run out'

# Invalid requests are rejected with a message.
for arguments in 'pin nobody' 'pause large/9' 'pin large/0 --for soon' \
    'pin large/0 --for 400d' 'undo 77' 'undo x' 'observe now'; do
    # The arguments are words.
    # shellcheck disable=SC2086
    if sc $arguments 2>"$dir/out"; then
        fail "$arguments is taken"
    fi
    [ -s "$dir/out" ] || fail "$arguments is refused without a word"
done
if sc pin large/0 --reason "$(printf '%0300d' 7)" 2>"$dir/out"; then
    fail "a long reason is taken"
fi
echo "ok: invalid requests are rejected"

# A host that has left the cluster is removed, and registers again.
lists() { sc hosts | grep -q "^$1 .* *$2"; }
"$agent" "unix:$dir/run/telemetry.sock" h2 1000000000 >"$dir/h2.out" &
h2=$!
pids="$pids $h2"
await "a third host connects" lists h2 connected
has_row() { wanted | grep -q '^h2,'; }
await "it has a row" has_row
sc host remove h2 2>"$dir/out" && fail "a connected host is removed"
grep -q 'h2: its agent is connected; ' "$dir/out" || fail "$(cat "$dir/out")"
kill "$h2"
await "its agent has gone" lists h2 disconnected
sc host remove h2 --reason 'sold' >"$dir/out" || fail "host remove"
lists h2 && fail "a removed host is listed: $(sc hosts)"
await "the audit has the removal" has_event ',remove,.*h2: rows deleted: sold'
no_row() { ! wanted | grep -q '^h2,'; }
await "its row is deleted" no_row
sc host remove h2 2>"$dir/out" && fail "removed twice"
grep -q 'h2: no such host' "$dir/out" || fail "$(cat "$dir/out")"
"$agent" "unix:$dir/run/telemetry.sock" h2 1000000000 >"$dir/h2.out" &
h2=$!
pids="$pids $h2"
await "it registers again" lists h2 connected
await "it has a row again" has_row
kill "$h2"
await "its agent has gone again" lists h2 disconnected
sc host remove h2 >/dev/null || fail "host remove again"
wants "$natural" || fail "the other hosts: $(wanted)"

# In observe mode hosts get no job; the order is still computed and reported.
sc observe --reason 'first week' >/dev/null || fail "observe"
await "hosts get no job" wants 'h0,{}'
asks controller/order '"cojob":"small"' || fail "there is no order"
sc status | grep -q '^observing  *since .*first week' ||
    fail "status does not report observing: $(sc status)"
sc undo >/dev/null || fail "undo observe"
await "hosts get all jobs again" wants "$natural"

# whatif: the history is simulated under other policies.
sc stage end --cojob large --rung 0
sc stage end --cojob small --rung 0
has_plain_times() {
    [ "$(ask controller/stages | grep -o '"plain_s":' | wc -l)" -ge 2 ]
}
for rung in 1 2 3; do
    for cojob in large small; do
        sc stage begin --cojob $cojob --rung $rung --iterations 200000 \
            --jobs t0
    done
    [ $rung != 3 ] || await "the plain network has the last stages" \
        has_plain_times
    for cojob in large small; do
        await "$cojob/$rung is measured" asks controller/stages \
            '"cojob":"'$cojob'","demand":{[^}]*"h[01]:tx":[0-9.]*[1-9][^}]*},"ended":0,"jobs":[^]]*],.*"rung":'$rung
        sc stage end --cojob $cojob --rung $rung
    done
done
has_stages() { [ "$(sc stages --since 1h | grep -c '^[ls][a-z]*  *[0123] ')" = 8 ]; }
await "the history has the stages" has_stages
sc policy whatif --history 1h --policy fair --policy stage >"$dir/out" ||
    fail "whatif --history 1h: $(cat "$dir/out")"
grep -q '^1h: 8 stages on ' "$dir/out" || fail "whatif: $(cat "$dir/out")"
grep -q '^B stage ' "$dir/out" || fail "whatif: $(cat "$dir/out")"
tells_the_same() {
    sc policy whatif --history "$dir/db/history.db" --since 1h --policy fair \
        --policy stage | sed 1d >"$dir/file"
    sed 1d "$dir/out" | cmp - "$dir/file"
}
await "the history file has the same results" tells_the_same
for arguments in '--history 1h --trace x' '--since 1h' \
    '--history /nonexistent' "--history $dir/policy.json" \
    "--history $dir/db/history.db --since never"; do
    # The arguments are words.
    # shellcheck disable=SC2086
    if sc policy whatif $arguments --policy fair --policy stage 2>"$dir/out"
    then
        fail "whatif $arguments"
    fi
    [ -s "$dir/out" ] || fail "whatif $arguments is refused without a word"
done
has_gain() { sc status | grep -q '^gain  *mean of the last [1-8] stages .* s, without Stagecoach .* by simulation: '; }
await "status compares with the network without Stagecoach" has_gain
sc stages --since x 2>"$dir/out" && fail "stages --since x"
sc pause small/t0 >"$dir/out" || fail "pause again"
sc decisions >"$dir/out"
grep -q ' operator small/t0: pause: [0-9]*, until undone (' "$dir/out" ||
    fail "decisions: $(cat "$dir/out")"
timeout 3 "$stagecoach" decisions --follow --format json >"$dir/out" || :
grep -q '"kind":"operator"' "$dir/out" || fail "decisions --follow"
echo "ok: all"
