#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Trains an MLP of 2^28 parameters, 1 GiB of weights, with two servers and two
# workers on this machine: the seconds until all have the first weights, the
# memory of the processes, and the seconds of an iteration.  Needs 7 GiB of
# memory.  Prints one JSON object on standard output.
set -eu
cd "$(dirname "$0")/../.."
exec timeout 240 python3 tests/bench/ps-1gb.py build/trainer/stagecoach-trainer
