#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a training with groups, with real programs: group servers started by
# the central server or separately are killed and the training goes on; when
# the central server dies, all processes end.
set -eu
. "$SOURCE/tests/lab/trainer-functions.sh"

is_gone() {
    ! kill -0 "$1" 2>/dev/null
}

# Starts a central server with the options "$@"; sets $central and $port.
start_central() {
    rm -f "$dir"/*          # Files of the last training.
    timeout 120 "$trainer" server --workers 3 --sync groups,groups=2 "$@" \
        </dev/null >"$dir/server.out" 2>"$dir/server.err" &
    guard=$!
    pids="$pids $guard"
    wait_until grep -q '"port"' "$dir/server.out"
    port=$(sed -n 's/.*"port": \([0-9]*\).*/\1/p' "$dir/server.out")
    central=$(cat "/proc/$guard/task/$guard/children")
    central=${central% }
    pids="$pids $central"
}

# Starts three workers for $1 iterations; sets $workers.
start_workers() {
    workers=
    for rank in 0 1 2; do
        timeout 120 "$trainer" worker --server "127.0.0.1:$port" \
            --workers 3 --rank $rank --backend cpu --shape 16,32,10 \
            --batch 48 --sample-cost-us 400 --iterations "$1" --eval-every 20 \
            </dev/null >"$dir/worker$rank.out" 2>"$dir/worker$rank.err" &
        workers="$workers $!"
    done
    pids="$pids $workers"
}

# Not every iteration is reported.
has_iteration() {
    sed -n 's/.*"progress".*"iteration": \([0-9]*\),.*/\1/p' \
        "$dir/worker0.out" | awk -v n="$1" '$1 >= n { found = 1 }
                                           END { exit !found }'
}

assert_ends() {         # STATUS PID...
    expected=$1
    shift
    for pid in "$@"; do
        status=0
        wait "$pid" || status=$?
        [ $status = "$expected" ] ||
            fail "status $status: $(cat "$dir"/*.err)"
    done
}

children() {
    sed -n 's/.*group server is process //p' "$dir/server.err"
}

n_gone() {
    [ "$(grep -c "lost at iteration" "$dir/server.err")" -ge "$1" ]
}

# Group servers started by the central server are killed.
start_central
start_workers 600
for n in 1 2 3; do
    wait_until has_iteration $((n * 40))
    kill -9 "$(children | sed -n "${n}p")"
    wait_until n_gone $n
done
# shellcheck disable=SC2086
assert_ends 0 $workers "$guard"
for pid in $(children); do
    is_gone "$pid" || fail "group server $pid is still there"
done

# Group servers started separately.
start_central --no-group-servers
start_workers 400
hosts=
for n in 1 2; do
    "$trainer" server --central "127.0.0.1:$port" </dev/null >/dev/null 2>&1 &
    hosts="$hosts $!"
done
pids="$pids $hosts"
wait_until has_iteration 40
kill -9 $!
wait_until n_gone 1
"$trainer" server --central "127.0.0.1:$port" </dev/null >/dev/null 2>&1 &
pids="$pids $!"
# shellcheck disable=SC2086
assert_ends 0 $workers "$guard" ${hosts% *} $!

# Paused workers.  Rank 2 waits for a new target while the others train, then
# all wait, and then rank 2 alone continues.
start_central
workers=
for rank in 0 1 2; do
    mkfifo "$dir/tell$rank"
    timeout 120 "$trainer" worker --server "127.0.0.1:$port" \
        --workers 3 --rank $rank --backend cpu --shape 16,32,10 \
        --batch 48 --sample-cost-us 400 --iterations 10 --eval-every 20 \
        <"$dir/tell$rank" >"$dir/worker$rank.out" \
        2>"$dir/worker$rank.err" &
    workers="$workers $!"
done
pids="$pids $workers"
exec 7>"$dir/tell0" 8>"$dir/tell1" 9>"$dir/tell2"

has_paused() {          # RANK ITERATION
    grep -q "\"paused\".*\"iteration\": $2}" "$dir/worker$1.out"
}

for rank in 0 1 2; do
    wait_until has_paused $rank 10
done
echo until 60 >&7
echo until 60 >&8
wait_until has_paused 0 60
wait_until has_paused 1 60
echo until 90 >&9
wait_until has_paused 2 90
echo stop >&9
# shellcheck disable=SC2086
assert_ends 0 $workers "$guard"
exec 7>&- 8>&- 9>&-

# The central server is killed.
start_central
start_workers 100000
wait_until has_iteration 40
kill -9 "$central"
# shellcheck disable=SC2086
assert_ends 1 $workers
for pid in $(children); do
    wait_until is_gone "$pid"
done
