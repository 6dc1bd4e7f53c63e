#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Feeds the built programs inputs of the kinds that public bug reports describe,
# written by hand and by seeds, and counts those that are not taken as they
# should be.  Most are parts of tests; $SCENES names those to run, by default
# all.  Prints one JSON object, and on standard error each input that failed.
#
# cases.sh live: the inputs of cases_live.py, one line for each.
set -eu
cd "$(dirname "$0")/../.."
[ $# = 0 ] || exec python3 tests/bench/cases_live.py
exec python3 tests/bench/cases.py
