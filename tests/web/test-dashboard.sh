#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The dashboard in a headless browser, in front of a controller with made-up
# agents.  Needs neither root nor namespaces, but node, Chromium and
# playwright-core, which deps/setup.sh installs if $BUILD_WEB is true.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

PATH=$PATH:/usr/sbin:/sbin
stagecoach=$BUILD/cli/stagecoach
agent=$BUILD/tests/lab/fake-agent
need ovsdb-server node "${CHROMIUM:=chromium}"
CHROMIUM=$(command -v "$CHROMIUM")
if [ ! -d "$SOURCE/tests/web/node_modules/playwright-core" ]; then
    echo "skip: no playwright-core, BUILD_WEB=true deps/setup.sh installs it"
    exit 77
fi

begin web
export STAGECOACH_RUNDIR="$dir/run"

clean_up() { "$stagecoach" controller stop; }

begin_stage() {
    "$stagecoach" stage begin --cojob "$1" --rung "$2" --iterations 100000 \
        --jobs t0
}
stages() { "$stagecoach" stages --format json; }
moved() {
    stages | grep -q "\"cojob\":\"$1\",\"demand\":{[^}]*:tx\":[0-9.]*[1-9]"
}

"$stagecoach" controller init --dbdir "$dir/db"
timeout 20 "$stagecoach" controller start --dbdir "$dir/db" \
    --policy "$SOURCE/policies/stage.json"
for host in h0 h1; do
    "$agent" "unix:$dir/run/telemetry.sock" $host 1000000000 \
        large/t0:2000000:20 small/t0:100000:20 late/t0:200000:20 \
        >"$dir/$host.out" &
    pids="$pids $!"
done
begin_stage large 0
begin_stage small 0
await "small has moved bytes" moved small
simulated() { [ "$(stages | grep -o plain_s | wc -l)" = 2 ]; }
await "both stages are simulated without an order" simulated
"$stagecoach" stage end --cojob small --rung 0
begin_stage small 1
ordered() { "$stagecoach" order | grep -q '^ *0 .* small .* h[01]:'; }
await "small is measured again" ordered

export CHROMIUM SOURCE
cd "$SOURCE/tests/web"
STAGECOACH=$stagecoach REST_SOCKET=$dir/run/rest.sock \
    timeout 200 node --test test-dashboard.js
