#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the order of jobs that iterate on the first 12 seeds of three
# families, in a few seconds: CI runs it, so that no change makes the order
# worse unnoticed.  See order-iterating.c.
set -eu
cd "$(dirname "$0")/../.."
exec "${BUILD:-build}/tests/bench/order-iterating" 12 spread one equal
