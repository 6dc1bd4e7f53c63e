#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-packages.py ROOT VERSION: what the Debian packages repeat agrees.

debian/changelog, NEWS.md and meson.build have the same version.  deps/setup.sh installs what debian/control needs for a
build.  No package is empty.
"""

import pathlib
import re
import sys

ROOT, VERSION = pathlib.Path(sys.argv[1]), sys.argv[2]
errors = []


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def check_version():
    package, version, suite = re.match(
        r"(\S+) \((\S+)\) (\S+);", read("debian/changelog")).groups()
    news, released = re.search(
        r"^## (\S+)( \(not released\))?$", read("NEWS.md"), re.M).groups()
    if (package, version) != ("stagecoach", VERSION):
        errors.append(f"debian/changelog: version {version}; expected only that of "
                      f"meson.build, {VERSION}")
    if news != VERSION:
        errors.append(f"NEWS.md: version {news}; expected only that of meson.build, "
                      f"{VERSION}")
    if (suite == "UNRELEASED") != bool(released):
        errors.append(f"debian/changelog: {suite}, but NEWS.md has "
                      f"\"{released or 'no (not released)'}\"")


def check_build_depends():
    control = read("debian/control")
    needs = re.search(r"^Build-Depends:\n((?: .*\n)+)", control, re.M)[1]
    setup = set(re.findall(r"[a-z0-9][a-z0-9.+-]+", read("deps/setup.sh")))
    for name in re.findall(r"^ ([a-z0-9.+-]+)", needs, re.M):
        if name == "debhelper-compat" or name.startswith("dh-sequence-"):
            continue                # Provided by debhelper and dh-python.
        if name not in setup:
            errors.append(f"debian/control: Build-Depends: {name}: not "
                          "installed by deps/setup.sh")


def check_files():
    """Each package has a list of files.  debhelper checks what is in it."""
    for name in re.findall(r"^Package: (\S+)$", read("debian/control"), re.M):
        if not (ROOT / "debian" / f"{name}.install").exists():
            errors.append(f"debian/{name}.install: missing, the package would "
                          "be empty")


check_version()
check_build_depends()
check_files()
print("\n".join(errors))
sys.exit(bool(errors))
