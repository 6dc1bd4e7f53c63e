#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-hardening.py BUILD fortified|plain CC...: each program and plug-in of
the install list is hardened as meson.build wants it.

Reads them with readelf.  The compiler's flags are those that it recorded in the
debugging information of every object, libopenvswitch's too; without such
information a symbol of the stack protector must do.  Then builds a program that
lacks one property after the other, and expects to be shown it.  "plain": a build
for fuzzing or without optimisation, which has no _FORTIFY_SOURCE."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

# Flag -> what it is about.
FLAGS = {
    "-fstack-protector-strong": "stack-protector",
    "-fstack-clash-protection": "stack-clash-protection",
}
SAMPLE = """
#include <stdio.h>
#include <string.h>
int main(int argc, char *argv[])
{
    char text[16];
    memcpy(text, argv[0], argc);
    return puts(text);
}
"""
GOOD = ["-g", "-O2", "-fPIE", "-pie", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", *FLAGS,
        "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]
# Property -> what takes it away.
BAD = {
    "PIE": ["-no-pie"],
    "RELRO": ["-Wl,-z,norelro"],
    "BIND_NOW": ["-Wl,-z,lazy"],
    "stack that is not executable": ["-Wl,-z,execstack"],
    "_FORTIFY_SOURCE": ["-U_FORTIFY_SOURCE"],
    "-fstack-protector-strong": ["-fno-stack-protector"],
    "-fstack-clash-protection": ["-fno-stack-clash-protection"],
}


def readelf(path, *args):
    return subprocess.run(["readelf", "-W", *args, path], capture_output=True,
                          text=True, errors="replace", timeout=60, check=True).stdout


def without_flags(path, symbols):
    """Returns the flags of FLAGS that an object of the program lacks."""
    producers = re.findall(r"GNU C(?:\+\+)?\d+ .*", readelf(path, "-p", ".debug_str"))
    if producers:
        # The last option about the same thing is in force.
        return [flag for flag, about in FLAGS.items() if any(
            re.findall(rf"-f(?:no-)?{about}\S*", p)[-1:] != [flag] for p in producers)]
    return [] if "__stack_chk_fail" in symbols else ["-fstack-protector-strong"]


def missing(path, fortified):
    """Returns the properties that the program at 'path' lacks."""
    headers = readelf(path, "-h", "-l", "-d")
    # "...  UND __memcpy_chk@GLIBC_2.3.4 (3)"
    symbols = set(re.findall(r" ([\w.$]+)(?:@\S+)?(?: \(\d+\))?$", readelf(path, "-s"), re.M))
    stack = re.search(r"GNU_STACK.* (RWE|RW) ", headers)
    absent = {
        "PIE": "Type:                              DYN" not in headers,
        "RELRO": "GNU_RELRO" not in headers,
        "BIND_NOW": "BIND_NOW" not in headers,
        "stack that is not executable": not stack or stack[1] != "RW",
        "_FORTIFY_SOURCE": fortified and not any(
            re.fullmatch(r"__\w+_chk", s) for s in symbols),
    }
    return [name for name, lacks in absent.items() if lacks] + without_flags(path, symbols)


def check_the_check(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "sample.c")
        source.write_text(SAMPLE)
        program = source.with_suffix("")

        def lacks(*flags):
            subprocess.run([*compiler, *GOOD, *flags, source, "-o", program],
                           check=True, timeout=60, stderr=subprocess.DEVNULL)
            return missing(program, True)

        assert lacks() == [], lacks()
        for name, flags in BAD.items():
            # clang records no flags: it shows a protector by its symbol only.
            if name == "-fstack-clash-protection" and not re.search(
                    "GNU C", readelf(program, "-p", ".debug_str")):
                continue
            assert lacks(*flags) == [name], (name, lacks(*flags))


def main():
    build, fortified, *compiler = sys.argv[1:]
    targets = json.loads(pathlib.Path(build, "meson-info", "intro-targets.json").read_text())
    programs = [pathlib.Path(name) for t in targets if t["installed"]
                and t["type"] in ("executable", "shared module", "shared library")
                for name in t["filename"]]
    assert programs, "nothing is installed"
    check_the_check(compiler)
    bad = 0
    for program in programs:
        for name in missing(program, fortified == "fortified"):
            print(f"{program.name}: no {name}, all of meson.build's hardening is wanted")
            bad += 1
    print(f"{len(programs)} programs read")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
