#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks, for each scheme, that a training survives when its server is killed
# and restarted: the workers go back to its last checkpoint, also while they
# help each other, and train to the end.
set -eu
. "$SOURCE/tests/lab/trainer-functions.sh"

# Starts a server at $port, which is 0 the first time.
start_server() {
    : >"$dir/server.out"
    "$trainer" server --workers 3 --sync "$sync" --port "$port" \
        --checkpoint "$dir/kept" --checkpoint-every 10 \
        </dev/null >"$dir/server.out" 2>>"$dir/server.err" &
    server=$!
    pids="$pids $server"
    wait_until grep -q '"port"' "$dir/server.out"
    port=$(sed -n 's/.*"port": \([0-9]*\).*/\1/p' "$dir/server.out")
}

for sync in static,ratios=1:2:1 lbbsp-cpu lbbsp-gpu flexrr,pieces=6 backup \
    groups,groups=2 ssp essp asp; do
    rm -rf "${dir:?}"/*
    mkdir "$dir/kept"
    port=0
    start_server
    workers=
    for rank in 0 1 2; do
        timeout 60 "$trainer" worker --server "127.0.0.1:$port" \
            --workers 3 --rank $rank --backend cpu --shape 16,32,10 \
            --batch 48 --sample-cost-us $((300 + 100 * rank)) --iterations 80 \
            --eval-every 10 --reconnect-timeout 20 \
            </dev/null >"$dir/worker$rank.out" 2>"$dir/worker$rank.err" &
        workers="$workers $!"
    done
    pids="$pids $workers"
    wait_until test -e "$dir/kept/shard-0-of-1.20"
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    start_server
    for pid in $workers $server; do
        wait "$pid" || fail "$sync: status $?: $(cat "$dir"/*.err)"
    done
    grep -q '"resumed".*"iteration": [1-9]' "$dir/server.out" ||
        fail "$sync: it did not go on from a checkpoint"
    grep -q '"done".*"iteration": 80,' "$dir"/worker?.out ||
        fail "$sync: no worker got to the end"
done
