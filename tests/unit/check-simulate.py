#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-simulate.py STAGECOACH TUTORIAL: every command in a console block of
the tutorial works, and prints what it is shown to print but for numbers: those
change when an order does, the tables' headings must not.

A JSON block is a file with its name.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^( *)```(console|json)\n(.*?)^\1```$", re.M | re.S)
DECIMAL = re.compile(r"\d\.\d")


def check(stagecoach, command, shown, folder):
    argv = shlex.split(command)
    if argv[0] != "stagecoach":
        sys.exit(f"{command}: not a stagecoach command")
    done = subprocess.run([stagecoach, *argv[1:]], cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=100)
    if done.returncode:
        sys.exit(f"{command}: {done.stdout}")
    printed = done.stdout.splitlines()
    for line in shown:
        if not DECIMAL.search(line) and line not in printed:
            sys.exit(f"{command}: does not print {line!r}")
    if len(shown) > len(printed):
        sys.exit(f"{command}: prints {len(printed)} lines, not {len(shown)}")


stagecoach, tutorial = map(os.path.abspath, sys.argv[1:])
root = pathlib.Path(__file__).resolve().parents[2]
text = pathlib.Path(tutorial).read_text(encoding="utf-8")
n_commands = 0
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "sim").symlink_to(root / "sim")
    for indent, kind, block in BLOCK.findall(text):
        if kind == "json":
            name = json.loads(block)["name"]
            pathlib.Path(folder, f"{name}.json").write_text(block, "utf-8")
            continue
        lines = [line.removeprefix(indent) for line in block.splitlines()]
        starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, starts[1:] + [len(lines)]):
            check(stagecoach, lines[start][2:], lines[start + 1:end], folder)
            n_commands += 1
if not n_commands:
    sys.exit(f"{tutorial}: no commands")
