#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-man.py PAGE PROGRAM: the long options that PROGRAM's --help prints
and those that its man page has are the same, and so are the commands.
"""

import re
import subprocess
import sys

OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")
EVERYWHERE = {"help", "version"}
errors = []


def get_help(argv):
    """Returns what 'argv' --help prints, None if it knows no such option."""
    done = subprocess.run(argv + ["--help"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=20)
    return done.stdout if done.returncode == 0 else None


def read_program(argv, commands):
    """Returns the options of 'argv' and all of its commands, whose names it
    adds to 'commands'."""
    text = get_help(argv)
    if text is None:
        return set()
    options = set(OPTION.findall(text))
    if re.match(r"usage: .* COMMAND \[ARG\.\.\.\]", text):
        for name in re.findall(r"^  ([a-z][a-z-]*)", text, re.M):
            commands.add(name)
            options |= read_program(argv + [name], commands)
    return options


def read_page(page):
    """Returns the options that the page documents, those of its examples, and
    its command words."""
    options, examples, words = set(), set(), set()
    with open(page, encoding="utf-8") as lines:
        for line in lines:
            macros = line.split()
            if not line.startswith(".") or macros[0] == ".Dl":
                examples |= set(OPTION.findall(line))
                continue
            if "Fl" in macros or macros[0] == ".Fl":
                options |= set(re.findall(r"\s-([a-z][a-z0-9-]*)", line))
            if "Cm" in macros or macros[0] == ".Cm":
                words |= set(macros)
    return options, examples, words


def complain(what, names):
    for name in sorted(names):
        errors.append(f"{page}: {name}: {what}")


page, program = sys.argv[1:]
commands = set()
printed = read_program([program], commands) - EVERYWHERE
options, examples, words = read_page(page)
if not printed or not options:
    sys.exit(f"{page}: no options found, in the page or in --help")
complain("in --help but not in the page", printed - options)
complain("in the page but not in --help", options - EVERYWHERE - printed)
complain("in an example but not in --help", examples - EVERYWHERE - printed)
complain("a command that the page does not have", commands - words)
print("\n".join(errors))
sys.exit(bool(errors))
