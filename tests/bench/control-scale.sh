#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures how the costs of a controller grow with its hosts; see control.py
# and control-scale.c.  Prints one JSON object on standard output, progress on
# standard error.  A small form within two minutes:
#
#    SIZES="100 300 900" PARTS="100 300 order" EVENTS=40 IDLE=10 \
#        tests/bench/control-scale.sh
set -eu
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -H -n)"
exec python3 tests/bench/control.py scale
