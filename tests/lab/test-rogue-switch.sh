#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a controller with twenty-nine switches; most of them attack it, each in
# another way: it rejects or disconnects them, keeps answering, and its memory
# is bounded.  Refusals and reasons are alarms, and it dumps a switch only for a
# cause.  Needs neither root nor namespaces.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
need ovsdb-server ovs-appctl python3

begin rogue
export STAGECOACH_RUNDIR="$dir/run"

clean_up() { stop_databases run; }

start_databases run

timeout 60 python3 "$SOURCE/tests/lab/fake-switch.py" "$dir" \
    "$dir/run/rogue.ctl" >"$dir/out" &
fakes=$!
pids="$pids $fakes"
await "there are switches" grep -q '^ready' "$dir/out"

set --
for socket in "$dir"/*.mgmt; do
    [ "$socket" = "$dir/Honest.mgmt" ] || set -- "$@" "--switch=unix:$socket"
done
"$BUILD/controller/stagecoach-controller" --policy="$SOURCE/policies/stage.json" \
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
