#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that a host whose kernel tells a shim the jobs of packets keeps its
# network when the shim dies or hangs.
HOST_TAGS=yes
. "$SOURCE/tests/lab/test-shim-bypass.sh"
