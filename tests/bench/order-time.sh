#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures the time to compute an order.  Prints one JSON object on standard
# output; see order-time.c.
set -eu
cd "$(dirname "$0")/../.."
exec build/tests/bench/order-time
