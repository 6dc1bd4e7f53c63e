#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The page of a report in a headless browser.  Needs node, Chromium and
# playwright-core, which deps/setup.sh installs if $BUILD_WEB is true.
set -eu

CHROMIUM=$(command -v "${CHROMIUM:=chromium}") || {
    echo "skip: no Chromium"
    exit 77
}
if ! command -v node >/dev/null ||
    [ ! -d "$SOURCE/tests/web/node_modules/playwright-core" ]; then
    echo "skip: no playwright-core, BUILD_WEB=true deps/setup.sh installs it"
    exit 77
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
EXAMPLE=$dir/example.html
SIMULATION=$dir/simulation.html
"$BUILD/tests/unit/test-report" "$EXAMPLE"
"$BUILD/cli/stagecoach" sim generate:3,hosts=8,cojobs=6 --policy fair \
    --policy stage --html "$SIMULATION" >/dev/null

export CHROMIUM EXAMPLE SIMULATION
cd "$SOURCE/tests/web"
timeout 100 node --test test-report.js
