#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that a lab leaves no namespace, process, cgroup or file behind, at any
# time of interruption; that the next lab removes the remains of a killed one;
# and that an invalid scenario is rejected before anything starts.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab c
scenario=$SOURCE/lab/scenarios/smoke.json

# Finds the program of the shell "lab" in the background; sets 'child'.  It
# must have blocked SIGHUP, SIGINT and SIGTERM to read them: a shell has its
# background processes ignore SIGINT, so one that comes earlier is lost.
reads_signals() {
    read -r child _ <"/proc/$pid/task/$pid/children" || [ -n "$child" ]
    # The last 16 bits: all 64, as while a program starts, are no number of sh.
    blocked=$(sed -n 's/^SigBlk:.*\(....\)$/0x\1/p' "/proc/$child/status")
    [ $((blocked & 0x4003)) = $((0x4003)) ]
}

# Starts a run and sends it signal $1 $2 seconds after it can read signals;
# sets 'status'.
interrupt_run() {
    lab run "$scenario" --out "$dir/report" >"$dir/out" 2>&1 &
    pid=$! child=
    await "lab run reads signals" reads_signals
    sleep "$2"
    kill -"$1" "$child" || fail "lab run ended by itself"
    status=0
    wait $pid || status=$?
}

refuses_what_cannot_run() {
    for file in "$SOURCE"/lab/scenarios/bad/*.json; do
        want=$(cat "${file%.json}.err")
        status=0
        got=$(lab run "$file" --out "$dir/report" 2>&1) || status=$?
        [ $status = 1 ] || fail "$file: exit status $status, 1 is right"
        [ "$got" = "${file#"$SOURCE/"}: $want" ] || [ "$got" = "$file: $want" ] ||
            fail "$file: \"$got\", \"$file: $want\" is right"
        assert_clean "$file"
    done
}

cleans_up_when_interrupted() {
    for delay in 0.05 0.3 0.6 0.9 1.3 2.5; do
        interrupt_run INT $delay
        [ $status = 130 ] ||
            fail "SIGINT after $delay s: exit status $status"
        assert_clean "SIGINT after $delay s"
    done
    interrupt_run TERM 1.5
    [ $status = 143 ] || fail "SIGTERM: exit status $status"
    assert_clean "SIGTERM"
}

# The first policy's run is in the report, whatever interrupts the second one.
keeps_the_runs_that_have_ended() {
    rm -rf "$dir/report"
    lab run "$scenario" --out "$dir/report" --keep >"$dir/out" 2>"$dir/errors" &
    pid=$! child=
    await "lab run reads signals" reads_signals
    wait_for 60 "the second run begins" test -d "$dir/report/logs/fair"
    kill -INT "$child"
    status=0
    wait $pid || status=$?
    [ $status = 130 ] || fail "SIGINT in the second run: exit status $status"
    assert_clean "SIGINT in the second run"
    [ "$(tail -n 1 "$dir/errors")" = "interrupted after 1 of 2 runs" ] ||
        fail "it said $(cat "$dir/errors")"
    python3 - "$dir/report/report.json" <<'END' || fail "report.json"
import json, sys
first, *others = json.load(open(sys.argv[1]))["policies"]
assert first["name"] == "fair" and first["complete"], first
assert not any(policy["complete"] for policy in others), others
END
    grep -q '^fair  *[0-9]' "$dir/out" || fail "no table: $(cat "$dir/out")"
}

goes_down_when_up_is_interrupted() {
    "$BUILD/cli/stagecoach" lab up --name "$name" \
        ${LAB_BIN:+--bin "$LAB_BIN"} "$scenario" &
    up=$!
    await "the lab starts" has_leftovers
    kill -TERM $up
    wait $up && fail "lab up ended by itself"
    await "the lab whose starter has gone is removed" is_clean
}
has_leftovers() { [ -n "$(leftovers)" ]; }
is_clean() { ! has_leftovers; }

next_start_removes_what_a_killed_one_left() {
    interrupt_run KILL 2
    [ -n "$(leftovers)" ] || fail "a killed lab left nothing to clean up?"
    lab up "$scenario"
    lab down
    assert_clean "the lab after a killed one"
}

one_lab_of_a_name() {
    lab up "$scenario"
    status=0
    got=$(lab up "$scenario" 2>&1) || status=$?
    [ $status = 1 ] || fail "a second lab up: exit status $status: $got"
    [ "$(echo "$got" | wc -l)" = 1 ] || fail "more than a line: $got"
    got=$(lab exec h1 -- ip -4 -o addr show dev eth0)
    case $got in
    *10.77.0.2/24*) ;;
    *) fail "lab exec h1: $got" ;;
    esac
    status=0
    lab exec h0 -- sh -c 'exit 42' || status=$?
    [ $status = 42 ] || fail "lab exec: exit status $status"
    # Commands on a host find the lab's sockets.
    got=$(lab exec h1 -- "$BUILD/cli/stagecoach" status 2>&1) ||
        fail "status on a host: $got"
    got=$(lab exec h1 -- "$BUILD/cli/stagecoach" stage begin --cojob mine \
          --rung 0 --iterations 10 --jobs t0 2>&1) || fail "stage: $got"
    lab down
    assert_clean "lab down"
}

refuses_what_cannot_run
cleans_up_when_interrupted
keeps_the_runs_that_have_ended
goes_down_when_up_is_interrupted
next_start_removes_what_a_killed_one_left
one_lab_of_a_name
