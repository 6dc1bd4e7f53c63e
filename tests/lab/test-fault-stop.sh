#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Stops each process of a cluster for six seconds, from a random moment on,
# while two searches train.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"
. "$SOURCE/tests/lab/fault-functions.sh"

begin_faults fs

stop_one "$(pid_of "stagecoach-controller .*$rundir/")" stop-controller \
    --alarm controller
stop_one "$(pid_of "ovsdb-server .*$rundir/intent.sock")" stop-intent \
    --alarm "the intent database is unreachable"
stop_one "$(pid_of "ovsdb-server .*$rundir/hosts.sock")" stop-hosts \
    --alarm "the hosts database is unreachable"
stop_one "$(pid_of "stagecoach-agent .*$rundir/hosts/h0")" stop-agent \
    --alarm "agent disconnected on h0"
stop_one "$(pid_of "stagecoach-shim .*$rundir/hosts/h1")" stop-shim \
    --alarm "shim down on h1"
stop_one "$(pid_of "search run $dir/run-asha.json")" stop-search
stop_one "$(pid_of_job h0 bravo/t0)" stop-server
stop_one "$(pid_of_job h1 bravo/t0)" stop-worker
end_faults
