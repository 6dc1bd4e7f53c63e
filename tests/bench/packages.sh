#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sizes of the Debian packages in KiB, to download and on the disk, without
# their dependencies.  Builds the packages, or takes what
# ./package has left in $DIST.  Prints one JSON object.
set -eu
cd "$(dirname "$0")/../.."
dist=${DIST:-}
if [ -z "$dist" ]; then
    dist=$(mktemp -d)
    trap 'rm -rf "$dist"' EXIT
    ./package --out "$dist" >&2
fi
for package in "$dist"/*.deb; do
    case $package in *-dbgsym_*) continue ;; esac
    dpkg-deb --show --showformat '${Package} ${Installed-Size}' "$package"
    stat -c ' %s' "$package"
done | python3 -c '
import json
import sys

figures = {}
for line in sys.stdin:
    name, installed, size = line.split()
    figures[name] = {"deb_kib": round(int(size) / 1024, 1),
                     "installed_kib": int(installed)}
for machine, names in (("host", ("agent", "cli", "common", "shim")),
                       ("controller", ("cli", "common", "controller"))):
    figures[machine] = {
        key: round(sum(figures[f"stagecoach-{name}"][key] for name in names), 1)
        for key in ("deb_kib", "installed_kib")}
print(json.dumps({"bench": "packages", "figures": figures}))'
