#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How soon batch sizes are balanced, and what managing them costs.  One JSON
# object on standard output; see batch-sizes.c.
set -eu
cd "$(dirname "$0")/../.."
exec build/tests/bench/batch-sizes
