#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# kept-runs.sh BENCH [FILE]...: makes the folder where BENCH keeps the results
# of its runs in the lab, and prints its name: $OUT, or one in the build whose
# name depends on the programs and the FILEs.
set -eu
bench=$1
shift
sum=$(cat build/cli/stagecoach build/controller/stagecoach-controller \
    build/agent/stagecoach-agent build/shim/stagecoach-shim \
    build/trainer/stagecoach-trainer "$@" | sha256sum | cut -c1-12)
dir=${OUT:-build/bench/$bench-$sum}
mkdir -p "$dir"
echo "$dir"
