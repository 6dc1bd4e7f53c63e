#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks a job that runs an arbitrary command and logs its progress: its stages
# end by the log, and a stalled network is detected but a slow one is not.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab d

# Rank 1 receives what rank 0 sends.  With "stalls" it leaves the data in the
# sockets for longer than the stall limit; with "thinks" it waits while nothing
# is sent.  The log of a job of root is read after 4 s, which counts as progress.
cat >"$dir/job.py" <<'PYTHON'
import os, socket, sys, time

STEP, PAUSE = 100000, 12
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
how, log = sys.argv[1:]
if os.environ["RANK"] == "0":
    with socket.create_server(address) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 60000)
        peer, _ = server.accept()
    with open(log, "w", buffering=1) as rows:
        print("step", file=rows)
        for step in range(1, 21):
            if how == "thinks" and step == 11:
                time.sleep(PAUSE)
            peer.sendall(bytes(STEP))
            print(step, file=rows)
            time.sleep(0.05)
else:
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 60000)
        while peer.connect_ex(address):
            time.sleep(0.05)
        got = 0
        while data := peer.recv(30000):
            got += len(data)
            if how == "stalls" and got - len(data) < 10 * STEP <= got:
                time.sleep(PAUSE)
PYTHON

run_that() {
    cat >"$dir/$1.json" <<EOF_JSON
{"name": "commands", "hosts": 2, "rate": "50Mbit", "policies": ["stage"],
 "timeout_s": 60,
 "cojobs": [{"name": "own", "stages": [{"iterations": 5}, {"iterations": 20}],
             "jobs": [{"name": "t0", "hosts": ["h1", "h0"],
                       "command": ["python3", "%scenario/job.py", "$1",
                                   "%log/rows-%rank.csv"],
                       "log": "csv:%log/rows-%rank.csv,iteration=step"}]}]}
EOF_JSON
    lab run "$dir/$1.json" --out "$dir/$1" >"$dir/out" 2>&1 ||
        fail "the run"
    python3 - "$dir/$1/report.json" "$2" <<'PYTHON' || fail "the run"
import json, sys

report = json.load(open(sys.argv[1]))
policy, = report["policies"]
cojob, = report["cojobs"]
first, last = report["stages"]
assert cojob["iterations"] == {"t0": 20}, cojob
# The pause is in the last stage.
assert last["end"] - last["start"] > first["end"] - first["start"] + 5, \
    report["stages"]
assert policy["stalls"] == int(sys.argv[2]), policy
PYTHON
}

run_that stalls 1
grep -q 'own/t0 stalled at iteration 1' "$dir/out" ||
    fail "the run"
grep -q '^  h[01]: ' "$dir/out" || fail "no sockets"
run_that thinks 0
grep -q ' stalled at ' "$dir/out" && fail "the run"
assert_clean "jobs of commands"
echo PASS
