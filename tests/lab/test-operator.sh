#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What an operator does: pins, pauses and excludes, takes it back, only
# observes, asks why, asks what has been.  Databases, the controller and the
# command line, with made-up agents.  Needs neither root nor namespaces.
set -eu

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
agent=$BUILD/tests/lab/fake-agent
for program in ovsdb-server ovsdb-client ovs-appctl; do
    command -v $program >/dev/null || { echo "skip: no $program"; exit 77; }
done

dir=$(mktemp -d "${TMPDIR:-/tmp}/sct-operator-$$-XXXXXX")
export STAGECOACH_RUNDIR="$dir/run"
processes=

clean() {
    status=$?
    trap - EXIT INT TERM
    for pid in $processes; do
        kill "$pid" 2>/dev/null || :
    done
    "$stagecoach" controller stop || :
    if [ $status != 0 ] && [ -f "$dir/run/controller.log" ]; then
        tail -n 40 "$dir/run/controller.log" >&2
    fi
    rm -rf "$dir"
    exit $status
}
trap clean EXIT
trap 'exit 1' INT TERM

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# await WHAT COMMAND...: waits until COMMAND succeeds, for 10 s.
await() {
    what=$1
    shift
    i=0
    until "$@" >/dev/null 2>&1; do
        i=$((i + 1))
        if [ $i -ge 200 ]; then
            "$stagecoach" order >&2 || :
            "$stagecoach" overrides >&2 || :
            wanted >&2 || :
            fail "$what"
        fi
        sleep 0.05
    done
    echo "ok: $what"
}

sc() { timeout 20 "$stagecoach" "$@"; }
ask() { ovs-appctl -T 10 -t "$dir/run/controller.ctl" "$@"; }
asks() { ask "$1" | grep -q -- "$2"; }
wanted() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/hosts.sock" \
        Stagecoach_Hosts Host_Wanted host level | tr -d '"'
}
wants() { wanted | grep -qxF -- "$1"; }
events() {
    ovsdb-client -f csv --no-headings dump "unix:$dir/run/intent.sock" \
        Stagecoach_Intent Event what who why
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
    processes="$processes $!"
done
sc stage begin --cojob large --rung 0 --iterations 100000 --jobs t0
sc stage begin --cojob small --rung 0 --iterations 100000 --jobs t0
natural='h0,{large/t0=1, small/t0=0}'
await "the order goes by measured demand" wants "$natural"

# Pinned, a stage goes first, whatever it needs.
sc pin large/0 --for 1h --reason 'a demo' >"$dir/out" || fail "pin"
grep -q '^1: pin large/0 from now on; "stagecoach undo 1"' "$dir/out" ||
    fail "pin says $(cat "$dir/out")"
await "what is pinned goes first" wants 'h0,{large/t0=0, small/t0=1}'
me=$(sc overrides --format json | grep -o '"who":"[^"]*"')
await "the audit knows who and why" has_event '^pin,.*large/0: 1, for 3600 s: a demo'
asks controller/decisions '"kind":"operator","reason":"pin: 1, for 3600 s: a demo","subject":"large/0"' ||
    fail "no decision of the pin"
asks controller/decisions "${me#\"who\":}" || fail "no name in the decisions"
sc overrides | grep -q '^ *1  *pin  *large/0 .* in force  *a demo' ||
    fail "overrides: $(sc overrides)"
sc explain large/t0 >"$dir/out"
grep -q 'it is pinned by .*: a demo' "$dir/out" ||
    fail "explain does not tell of the pin: $(cat "$dir/out")"

# It outlives the controller.
kill -9 "$(cat "$dir/run/controller.pid")"
start
await "another controller knows of it" asks controller/overrides \
    '"ended":0,"id":1,"kind":"pin"'
await "agents come back" asks controller/status '"agents":2'
await "and keeps to it" wants 'h0,{large/t0=0, small/t0=1}'
sc undo >"$dir/out" || fail "undo"
grep -q '^1: pin large/0 has ended' "$dir/out" || fail "$(cat "$dir/out")"
await "what is undone is as before" wants "$natural"
await "the audit knows that too" has_event '^undo,.*large/0: pin 1 by '
if sc undo 1 2>"$dir/out"; then
    fail "undone twice"
fi
grep -q 'undo: 1: is not in force any more' "$dir/out" || fail "$(cat "$dir/out")"

# Paused, a job has the last level; excluded, none; until its time is over.
sc pause small/t0 >/dev/null || fail "pause"
await "what is paused has the last level" wants 'h0,{large/t0=0, small/t0=5}'
sc exclude small/t0 --for 3s >/dev/null || fail "exclude"
await "hosts know nothing of what is excluded" wants 'h0,{large/t0=0}'
sc overrides | grep -q '^ *2  *pause  *small/t0 .* in force' &&
    fail "two overrides for one job"
await "time ends an override" wants "$natural"
await "and is the reason of an event" has_event '^exclude,controller,.*3 has run out'

# What cannot be is refused, with words.
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
echo "ok: what cannot be is refused"

# Observed, hosts get no job; the order is computed and reported all the same.
sc observe --reason 'first week' >/dev/null || fail "observe"
await "hosts are told of no job" wants 'h0,{}'
asks controller/order '"cojob":"small"' || fail "there is no order"
sc status | grep -q '^observing  *since .*first week' ||
    fail "status does not tell: $(sc status)"
sc undo >/dev/null || fail "undo observe"
await "and of all of them again" wants "$natural"

# What has been is asked what would have been.
for rung in 1 2 3; do
    for cojob in large small; do
        sc stage begin --cojob $cojob --rung $rung --iterations 200000 \
            --jobs t0
    done
    sleep 0.5
    for cojob in large small; do
        sc stage end --cojob $cojob --rung $rung
    done
done
has_stages() { [ "$(sc stages --since 1h | grep -c '^[ls][a-z]*  *[123] ')" = 6 ]; }
await "the history has the stages" has_stages
sc policy whatif --history 1h --policy fair --policy stage >"$dir/out" ||
    fail "whatif --history 1h: $(cat "$dir/out")"
grep -q '^1h: 6 stages on ' "$dir/out" || fail "whatif: $(cat "$dir/out")"
grep -q '^B stage ' "$dir/out" || fail "whatif: $(cat "$dir/out")"
tells_the_same() {
    sc policy whatif --history "$dir/db/history.db" --since 1h --policy fair \
        --policy stage | sed 1d >"$dir/file"
    sed 1d "$dir/out" | cmp - "$dir/file"
}
await "the file tells the same, once it is written" tells_the_same
sc policy tune --history "$dir/db/history.db" --budget 5 >"$dir/out" || [ $? = 1 ]
grep -q 'simulations of the first 4 cojobs, 2 held back' "$dir/out" ||
    fail "tune: $(cat "$dir/out")"
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
sc stages --since x 2>"$dir/out" && fail "stages --since x"
sc decisions >"$dir/out"
grep -q ' operator small/t0: pause: 2, until undone (' "$dir/out" ||
    fail "decisions: $(cat "$dir/out")"
timeout 3 "$stagecoach" decisions --follow --format json >"$dir/out" || :
grep -q '"kind":"operator"' "$dir/out" || fail "decisions --follow"
echo "ok: all"
