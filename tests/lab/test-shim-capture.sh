#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks captures from a live shim: the file has all frames, in both
# directions, with correct times, and only one job's frames if a job is
# selected.
set -u
MTU=1500 RATE=100Mbit
. "$SOURCE/tests/lab/shim-net.sh"
shim_start 2>"$TMP/log"
stagecoach=$BUILD/cli/stagecoach

in_b "$traffic" echo 60000 7000 & PIDS="$PIDS $!"
wait_until b_listens u 7000
ping() { in_a "$traffic" ping 10.99.0.2 7000 "$1" 100 >"$TMP/ping"; }
wait_until ping 1

"$stagecoach" shim stats "$SOCK" | grep -q '^boot_id ' || fail "stats"

"$stagecoach" shim capture --socket "$SOCK" --write "$TMP/all.pcapng" \
    --packets 20 --seconds 20 2>"$TMP/said" & capture=$!
PIDS="$PIDS $capture"
tries=0
while kill -0 $capture 2>/dev/null; do
    ping 5
    tries=$((tries + 1))
    [ $tries -lt 100 ] || fail "the capture does not end"
done
wait $capture || fail "capture: $(cat "$TMP/said")"
[ "$(cat "$TMP/said")" = "20 frames, 0 missed" ] || fail "$(cat "$TMP/said")"
now=$(date +%s)

python3 - "$TMP/all.pcapng" "$now" <<'PY' || fail "frames or times are wrong"
import struct, sys
data, at = open(sys.argv[1], "rb").read(), 0
frames = sent = received = 0
while at < len(data):
    kind, size = struct.unpack_from("<II", data, at)
    if kind == 6:
        high, low = struct.unpack_from("<II", data, at + 12)
        late = int(sys.argv[2]) - ((high << 32) + low) / 1e9
        ports = struct.unpack_from(">HH", data, at + 28 + 14 + 20)
        frames += -1 < late < 30
        sent += ports[1] == 7000
        received += ports[0] == 7000
    at += size
sys.exit(frames != 20 or sent < 5 or received < 5)
PY

"$stagecoach" shim capture --socket "$SOCK" --job a/b --write "$TMP/x" \
    2>"$TMP/said" && fail "captured a job that is not there"
grep -q '^a/b: the shim has no such job' "$TMP/said" || fail "no such job"
[ ! -e "$TMP/x" ] || fail "a file of nothing"

shim_ask slot 3 1 48 a/b
"$stagecoach" shim capture --socket "$SOCK" --job a/b --seconds 1 \
    --write "$TMP/job.pcapng" 2>"$TMP/said" & capture=$!
ping 5
wait $capture || fail "capture of a job: $(cat "$TMP/said")"
grep -q '^0 frames, 0 missed' "$TMP/said" || fail "others' frames too"

"$stagecoach" shim capture --socket "$TMP/none" --write "$TMP/x" \
    2>"$TMP/said"
[ $? = 3 ] || fail "no shim: $(cat "$TMP/said")"
kill -0 "$SHIM_PID" || fail "the shim is gone"
echo "ok"
