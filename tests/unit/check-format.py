#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-format.py ROOT: C that changed since the last formatting pass has the
format of .clang-format.

The last pass is the last line of .git-blame-ignore-revs.  Prints the
difference, which "git clang-format COMMIT" applies.  Skips (77) without
clang-format, or where the commit is not in the checkout.
"""

import pathlib
import shutil
import subprocess
import sys


def main():
    root = pathlib.Path(sys.argv[1])
    git = ["git", "-C", str(root)]
    if not shutil.which("git-clang-format"):
        print("skip: no git-clang-format (Debian's package clang-format)")
        return 77
    if subprocess.run([*git, "rev-parse"], capture_output=True).returncode:
        print("skip: not a git checkout")
        return 77
    revisions = [line.split()[0] for line in
                 (root / ".git-blame-ignore-revs").read_text().splitlines()
                 if line and not line.startswith("#")]
    base = revisions[-1]
    if subprocess.run([*git, "cat-file", "-e", base],
                      capture_output=True).returncode:
        print(f"skip: commit {base} is not in this checkout")
        return 77
    run = subprocess.run([*git, "clang-format", "--diff",
                          "--extensions", "c,h,cu,cuh", base],
                         capture_output=True, text=True)
    if "+++" not in run.stdout:
        return 0
    print(run.stdout + f"FAIL: apply this by \"git clang-format {base}\"")
    return 1


if __name__ == "__main__":
    sys.exit(main())
