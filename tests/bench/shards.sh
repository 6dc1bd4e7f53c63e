#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compares the losses of the schemes without a server after the same number of
# iterations, with samples that are divided at random and by label.  Prints one
# JSON object on standard output, progress on standard error.
set -eu
cd "$(dirname "$0")/../.."
exec timeout 500 python3 tests/bench/shards.py build/trainer/stagecoach-trainer
