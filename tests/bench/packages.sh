#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sizes of the Debian packages in KiB, to download and on the disk, without
# their dependencies, and of the images of containers, with all that they need.
# Builds packages and images, or takes what ./package has left in $DIST, and
# images from there.  Prints one JSON object.
set -eu
cd "$(dirname "$0")/../.."
dist=${DIST:-}
if [ -z "$dist" ]; then
    dist=$(mktemp -d)
    trap 'rm -rf "$dist"' EXIT
    ./package --out "$dist" >&2
fi
[ -d "$dist/images" ] || packaging/container/build.py --dist "$dist" >&2
{
    for package in "$dist"/*.deb; do
        case $package in *-dbgsym_*) continue ;; esac
        dpkg-deb --show --showformat '${Package} ${Installed-Size}' "$package"
        stat -c ' %s' "$package"
    done
    for image in "$dist"/images/*.tar; do
        stat -c "image.%n %s" "$image" | sed "s,$dist/images/stagecoach-,,
            s,\.tar,,"
    done
} | python3 -c '
import json
import sys

figures = {}
for line in sys.stdin:
    name, *sizes = line.split()
    if name.startswith("image."):
        figures[name] = {"archive_kib": round(int(sizes[0]) / 1024)}
        continue
    installed, size = sizes
    figures[name] = {"deb_kib": round(int(size) / 1024, 1),
                     "installed_kib": int(installed)}
for machine, names in (("host", ("agent", "cli", "common", "shim")),
                       ("controller", ("cli", "common", "controller"))):
    figures[machine] = {
        key: round(sum(figures[f"stagecoach-{name}"][key] for name in names), 1)
        for key in ("deb_kib", "installed_kib")}
print(json.dumps({"bench": "packages", "figures": figures}))'
