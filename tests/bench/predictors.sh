#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the errors of the predictors of worker speeds; schemes-cpu has their
# effect on the time of an iteration.  Prints one JSON object on standard output;
# see predictors.c.
set -eu
cd "$(dirname "$0")/../.."
exec build/tests/bench/predictors tests/data/recorded-speed.txt
