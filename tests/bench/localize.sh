#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compares stores for tasks with keyed parameters, on nodes in namespaces with
# links of 1 Gbit/s: keys that move between nodes, keys that stay, replicas of
# bounded staleness, and blocks sent by explicit code.  Prints one JSON object
# on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
. tests/lab/lab-functions.sh

need_root
begin localize
prefix=k$(($$ % 100000))-
net=tests/lab/localize-net.sh

clean_up() { sh "$net" down "$prefix" 8; }

sh "$net" up "$prefix" 8 1gbit
timeout 1400 python3 tests/bench/localize.py build/trainer/stagecoach-trainer \
    "$prefix"
