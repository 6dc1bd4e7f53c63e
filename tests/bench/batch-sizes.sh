#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the number of iterations until batch sizes are balanced, and the
# cost of the batch-size manager.  Prints one JSON object on standard output;
# see batch-sizes.c.
set -eu
cd "$(dirname "$0")/../.."
exec build/tests/bench/batch-sizes
