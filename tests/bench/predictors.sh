#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How well the predictors foresee the speeds of workers, and what that is worth
# in the time of an iteration.  One JSON object on standard output; see
# predictors.c.
set -eu
cd "$(dirname "$0")/../.."
exec build/tests/bench/predictors tests/data/recorded-speed.txt
