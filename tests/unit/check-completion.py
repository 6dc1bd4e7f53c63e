#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-completion.py FILE...: the completion that is installed for bash offers
commands, options, values and files where each may stand; that for zsh is valid
where there is a zsh.  The files are of all programs and both shells.
"""

import shutil
import subprocess
import sys

FILES = {path.rpartition("/")[2]: path for path in sys.argv[1:]}

COMPLETE = r"""
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"_${1//-/_}"
printf '%s\n' "${COMPREPLY[@]}"
"""


def complete(*words):
    done = subprocess.run(
        ["bash", "-euc", COMPLETE, "bash",
         FILES[words[0]], *words],
        capture_output=True, text=True, timeout=20, check=True)
    assert not done.stderr, done.stderr
    return done.stdout.split()


def expect(words, *offered):
    found = complete(*words)
    missing = set(offered) - set(found)
    assert not missing, f"{words}: {sorted(missing)} not in {found}"
    assert all(f.startswith(words[-1]) or words[-1] == "=" for f in found), \
        f"{words}: {found}"


def expect_only(words, *offered):
    found = complete(*words)
    assert sorted(found) == sorted(offered), f"{words}: {found}"


def check_bash():
    expect(["stagecoach", ""], "policy", "run", "sim", "--help")
    expect_only(["stagecoach", "pol"], "policy")
    expect(["stagecoach", "policy", ""], "check", "whatif")
    expect(["stagecoach", "policy", "whatif", "--"], "--trace", "--policy")
    expect_only(["stagecoach", "policy", "whatif", "--format", "j"], "json")
    expect_only(["stagecoach", "sim", "--format", ""], "table", "json")
    expect_only(["stagecoach", "sim", "--format", "="], "table", "json")
    expect_only(["stagecoach", "sim", "--format", "=", "j"], "json")
    # Files, which the shell adds: arguments and values without a list.
    expect_only(["stagecoach", "policy", "check", ""])
    expect_only(["stagecoach", "sim", "--html", ""])
    # The value of an option is not a command.
    expect_only(["stagecoach", "run", "--cojob", "policy", "--jo"], "--job")
    if "stagecoach-controller" in FILES:
        expect_only(["stagecoach", "lab", "ru"], "run")
        expect(["stagecoach", "lab", "run", "--"], "--placements")
        expect(["stagecoach", "status", "--"], "--format")
        expect(["stagecoach", "stage", "begin", "--"], "--cojob", "--jobs")
        expect_only(["stagecoach-agent", "--db", ""])
        expect(["stagecoach-controller", "--re"], "--rest", "--rest-users")
    if "stagecoach-trainer" in FILES:
        expect(["stagecoach-trainer", ""], "server", "worker", "compare")
        expect(["stagecoach-trainer", "server", "--"], "--sync", "--workers")
    if "stagecoach-shim" in FILES:
        expect(["stagecoach-shim", "--up"], "--uplink")


def check_zsh():
    for name, path in FILES.items():
        if name.startswith("_"):
            with open(path, encoding="utf-8") as f:
                assert f.readline() == f"#compdef {name[1:]}\n", path
            subprocess.run(["zsh", "-n", path], check=True, timeout=20)


check_bash()
if shutil.which("zsh"):
    check_zsh()
