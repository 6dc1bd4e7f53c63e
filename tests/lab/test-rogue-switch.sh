#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sixteen switches, fifteen of which attack the controller in a way of their
# own: it refuses or leaves them, goes on answering, and keeps its memory.
# Needs neither root nor namespaces.
set -eu

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
for program in ovsdb-server ovs-appctl python3; do
    command -v $program >/dev/null || { echo "skip: no $program"; exit 77; }
done

dir=$(mktemp -d "${TMPDIR:-/tmp}/sct-rogue-$$-XXXXXX")
export STAGECOACH_RUNDIR="$dir/run"
pids=

clean() {
    status=$?
    trap - EXIT INT TERM
    for pid in $pids; do
        kill "$pid" 2>/dev/null || :
    done
    "$stagecoach" controller stop >/dev/null 2>&1 || :
    wait
    if [ $status != 0 ] && [ -f "$dir/controller.log" ]; then
        tail -n 40 "$dir/controller.log" >&2
    fi
    rm -rf "$dir"
    exit $status
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

cp "$SOURCE/policies/stage.json" "$dir/policy.json"
"$stagecoach" controller init --dbdir "$dir/db"
timeout 20 "$stagecoach" controller start --dbdir "$dir/db" \
    --policy "$dir/policy.json"
kill "$(cat "$dir/run/controller.pid")"

timeout 60 python3 "$SOURCE/tests/lab/fake-switch.py" "$dir" \
    "$dir/run/rogue.ctl" >"$dir/out" &
fakes=$!
pids="$pids $fakes"
tries=100
until grep -q '^ready' "$dir/out"; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || fail "no switches"
    sleep 0.1
done

set --
for socket in "$dir"/*.mgmt; do
    [ "$socket" = "$dir/Honest.mgmt" ] || set -- "$@" "--switch=unix:$socket"
done
"$BUILD/controller/stagecoach-controller" --policy="$dir/policy.json" \
    --unixctl="$dir/run/rogue.ctl" --rest=none -vconsole:off -vsyslog:off \
    --log-file="$dir/controller.log" "--switch=unix:$dir/Honest.mgmt" "$@" &
controller=$!
pids="$pids $controller"

status=0
wait $fakes || status=$?
cat "$dir/out"
[ $status = 0 ] || fail "not all is as expected"
kill -0 $controller || fail "the controller is gone"
rss=$(awk '/^VmHWM:/ { print int($2 / 1024) }' "/proc/$controller/status")
echo "the controller needed $rss MiB at most"
# Sanitizers need several times as much.
[ "$rss" -le 512 ] || grep -q __asan_init "$BUILD/controller/stagecoach-controller" ||
    fail "more than 512 MiB"
echo PASS
