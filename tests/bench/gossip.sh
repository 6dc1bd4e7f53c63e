#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures eight peers that train without a server, in namespaces with a link
# between any two: the time to a fixed loss under netmax and others, with one
# slow link that moves, and on three hosts with slow links between them.  Prints
# one JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
. tests/lab/lab-functions.sh

need_root
begin gossip
prefix=g$(($$ % 100000))-
net=tests/lab/gossip-net.sh

clean_up() { sh "$net" down "$prefix" 8; }

sh "$net" up "$prefix" 8 20mbit
timeout 3000 python3 tests/bench/gossip.py build/trainer/stagecoach-trainer \
    "$net" "$prefix"
