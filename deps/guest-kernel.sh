#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# guest-kernel.sh FOLDER: downloads Debian's kernel and a static busybox for
# the guests of the suite vm (70 MB) and unpacks them to FOLDER (400 MB), which
# nothing else of this machine sees: installed, the kernel would be one that it
# could boot.  Does nothing if FOLDER is complete.
set -eu
folder=$1
[ ! -e "$folder/complete" ] || exit 0

download() {
    rm -rf "$folder"
    mkdir -p "$folder"
    image=$(apt-cache depends linux-image-amd64 |
            awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
    [ -n "$image" ] || { echo "no package linux-image-amd64"; return 1; }
    (cd "$folder" && apt-get download "$image" busybox-static)
}
download || { apt-get update && download; }
for package in "$folder"/*.deb; do
    dpkg-deb -x "$package" "$folder"
done
rm "$folder"/*.deb
depmod -b "$folder" "${image#linux-image-}"
touch "$folder/complete"
