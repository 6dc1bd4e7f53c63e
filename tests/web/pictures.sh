#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# pictures.sh [SCENARIO.json]: makes docs/pictures/dashboard*.png of a lab, by
# default of the quickstart's searches under stage order.  Needs root, a build
# with the shim, what tests/web/test-dashboard.sh needs, and pngquant.
set -eu
cd "$(dirname "$0")/../.."

SOURCE=$PWD
BUILD=${BUILD:-$PWD/build}
export SOURCE BUILD
scenario=${1:-$SOURCE/lab/scenarios/quickstart.json}
name=web
dir=$(mktemp -d)
runner=
. "$SOURCE/tests/lab/lab-functions.sh"
need_root_and_programs

clean() {
    status=$?
    trap - EXIT INT TERM
    [ -z "$runner" ] || kill "$runner" 2>/dev/null || :
    [ -z "$runner" ] || wait "$runner" || :
    lab down 2>/dev/null || :
    rm -rf "$dir"
    exit $status
}
trap clean EXIT
trap 'exit 1' INT TERM

lab run "$scenario" --policy stage --out "$dir/report" >"$dir/out" 2>&1 &
runner=$!
socket=/run/stagecoach/lab-$name/rest.sock
i=0
until [ -S "$socket" ]; do
    i=$((i + 1))
    [ $i -lt 60 ] || fail "no controller: $(cat "$dir/out")"
    sleep 0.5
done

mkdir -p docs/pictures
REST_SOCKET=$socket timeout 150 node tests/web/pictures.js "$dir"
for picture in "$dir"/*.png; do
    pngquant --quality 60-90 --strip --force \
        --output "docs/pictures/${picture##*/}" "$picture"
done
ls -l docs/pictures
