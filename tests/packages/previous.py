#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""previous.py DIST OUT VERSION: makes packages of an earlier version, without
building.

Repacks each package of DIST as VERSION.  What an upgrade converts differs: the
schemas of the databases are a minor version older.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

dist, out, version = sys.argv[1:]


def set_version(control):
    with open(control, encoding="utf-8") as f:
        text = f.read()
    current = re.search(r"^Version: (.*)$", text, re.M)[1]
    # Relations to other packages of the same source.
    text = re.sub(rf"\((>?=) {re.escape(current)}\)", rf"(\1 {version})", text)
    text = re.sub(r"^Version: .*$", f"Version: {version}", text, flags=re.M)
    with open(control, "w", encoding="utf-8") as f:
        f.write(text)


def age_schema(path):
    with open(path, encoding="utf-8") as f:
        schema = json.load(f)
    major, minor, _ = schema["version"].split(".")
    schema["version"] = f"{major}.{int(minor) - 1}.0"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(schema, f)


os.makedirs(out, exist_ok=True)
for package in glob.glob(f"{dist}/*.deb"):
    if "-dbgsym_" in package:
        continue
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "-R", package, folder], check=True)
        set_version(f"{folder}/DEBIAN/control")
        for schema in glob.glob(f"{folder}/usr/share/stagecoach/*.ovsschema"):
            age_schema(schema)
        subprocess.run(
            "find . -path ./DEBIAN -prune -o -type f -printf '%P\\0' |"
            " xargs -0 md5sum >DEBIAN/md5sums", shell=True, cwd=folder,
            check=True)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1",
                        "-b", folder, out], check=True,
                       stdout=subprocess.DEVNULL)
