#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# guest-kernel.sh FOLDER [6.12|backports]: downloads Debian's kernel, the later
# one that it has, or the newest one of the next Debian's backports, and a static
# busybox for the guests of the suite vm (70 to 130 MB) and unpacks them to
# FOLDER (400 to 700 MB), which nothing else of this machine sees: installed,
# the kernel would be one that it could boot.  Does nothing if FOLDER is
# complete.
set -eu
folder=$1 kind=${2:-}
[ ! -e "$folder/complete" ] || exit 0
mkdir -p "$folder"
folder=$(realpath "$folder")
options=
case $kind in
"") name=linux-image-amd64 ;;
6.12) name=linux-image-6.12-amd64 ;;
backports)
    # Lists of packages of its own, so that this machine installs none of them.
    name=linux-image-amd64 apt=$folder/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    # From where this machine has its packages.
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' |
        awk '$1 == "Debian" { print $2; exit }')
    for suite in trixie trixie-backports; do
        echo "deb ${mirror:?no archive of Debian in the sources of apt} $suite main"
    done >"$apt/sources"
    options="-o Dir::Etc::SourceList=$apt/sources -o Dir::Etc::SourceParts=-
             -o Dir::State::Lists=$apt/lists -o Dir::Cache=$apt/cache
             -o APT::Default-Release=n=trixie-backports"
    ;;
esac

# "$options" is split into words on purpose.
# shellcheck disable=SC2086
depends() {
    apt-cache $options depends "$1" |
        awk '$1 == "Depends:" && $2 ~ /^linux-(image|binary|modules)-[0-9]/ {
            print $2
        }'
}

# Later kernels are three packages.
# shellcheck disable=SC2086
download() {
    rm -f "$folder"/*.deb
    image=$(depends "$name" | head -n 1)
    [ -n "$image" ] || { echo "no package $name"; return 1; }
    parts=$(depends "$image")
    (cd "$folder" && apt-get $options download "$image" $parts busybox-static)
}
# shellcheck disable=SC2086
download || { apt-get $options update && download; }
for package in "$folder"/*.deb; do
    dpkg-deb -x "$package" "$folder"
done
rm -rf "$folder"/*.deb "$folder/apt"
version=${image#linux-image-}
if [ ! -d "$folder/bin" ]; then         # As Debian 13 has it.
    mkdir "$folder/boot" "$folder/lib"
    mv "$folder/usr/bin" "$folder/bin"
    mv "$folder/usr/lib/modules" "$folder/lib/"
    mv "$folder/lib/modules/$version/vmlinuz" "$folder/boot/vmlinuz-$version"
fi
find "$folder/lib/modules" -name '*.ko.xz' -exec unxz {} +
depmod -b "$folder" "$version"
touch "$folder/complete"
