#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the quick suites $ALONE times (default 1), and $BUSY times (default 1)
# beside a busy loop on each processor: ten and more minutes for each run.  Adds
# each run with the names of the tests that failed to results/suite-runs.json.
# Prints one JSON object of all runs in that file, progress on standard error.
#
# $LOAD is the shell command of a busy loop (default: an endless loop of the
# shell).  It is killed when the run has ended, so it must not leave processes.
set -eu
cd "$(dirname "$0")/../.."
exec python3 tests/bench/suite.py "${BUILD:-build}" "${ALONE:-1}" "${BUSY:-1}"
