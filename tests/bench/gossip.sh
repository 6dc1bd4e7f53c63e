#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures eight peers that train without a server, in namespaces with a link
# of 20 Mbit/s between any two: the time to a fixed loss under netmax and the
# other gossip schemes, with one slow link that moves, and with equal links.
# Prints one JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
. tests/lab/lab-functions.sh

need_root
begin gossip
prefix=g$(($$ % 100000))-
net=tests/lab/gossip-net.sh

clean_up() { sh "$net" down "$prefix" 8; }

sh "$net" up "$prefix" 8 20mbit
timeout 800 python3 tests/bench/gossip.py build/trainer/stagecoach-trainer \
    "$net" "$prefix"
