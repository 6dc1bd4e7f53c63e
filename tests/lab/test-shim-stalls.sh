#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks, fifty times with eight shims, that no flow stalls for a second.
set -eu
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
[ -x "$BUILD/shim/stagecoach-shim" ] || { echo "built without DPDK"; exit 77; }
result=$(PARTS=eight RUNS=25 sh "$SOURCE/tests/bench/shim-tcp.sh")
echo "$result"
case $result in
*'"stalls": 0'[,}]*) echo PASS ;;
*) echo "FAIL: flows stood still"; exit 1 ;;
esac
