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
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab w
socket=/run/stagecoach/lab-$name/rest.sock
start_run "$scenario" --policy stage
wait_in_run 30 test -S "$socket"

mkdir -p docs/pictures
REST_SOCKET=$socket timeout 150 node tests/web/pictures.js "$dir"
for picture in "$dir"/*.png; do
    pngquant --quality 60-90 --strip --force \
        --output "docs/pictures/${picture##*/}" "$picture"
done
ls -l docs/pictures
