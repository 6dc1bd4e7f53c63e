#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Time of all commands of docs/install.md, from three machines without anything
# to a search that is ordered and back, without the downloads and the time in
# which an operator reads.  Builds the packages, or takes what ./package has left
# in $DIST.  Prints one JSON object.
set -eu
cd "$(dirname "$0")/../.."
SOURCE=$PWD BUILD=$PWD/build
export SOURCE BUILD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sh tests/packages/test-install.sh >"$dir/out" || {
    cat "$dir/out" >&2
    exit 1
}
awk '$1 == "install_s" {
    printf "{\"bench\": \"install\", \"figures\": {\"install_s\": %.1f}}\n", $2
}' "$dir/out"
