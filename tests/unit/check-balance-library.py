#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-balance-library.py ROOT BUILD CC...: other trainers can use
libstagecoach-balance as it is installed.

Installs it into a folder of its own.  The library exports the functions of its
public header, with a version, and nothing else.  A program in C that includes
that header only is compiled by the flags of pkg-config, and runs; so does one
in C++ if there is a compiler.  The module for Python is installed, loads the
library, and divides batches as the program does.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
CC = sys.argv[3:]
MAP = ROOT / "trainer/balance/stagecoach-balance.map"
PROGRAM = ROOT / "tests/unit/trainer/balance/balance-library.c"
PYTHON = """
import stagecoach_balance

manager = stagecoach_balance.BatchSizes(2, 300, limits=[0, 280])
assert manager.next() == [150, 150], manager.next()
for i in range(60):
    sizes = manager.next()
    assert sum(sizes) == 300, sizes
    for worker, n in enumerate(sizes):
        manager.report(worker, n, n * (worker + 1) * 1e-3)
assert abs(sizes[0] - 200) <= 4, sizes
for wrong, expected in (
        (dict(n_workers=3, batch=2), "expected at least one for each"),
        (dict(n_workers=2, batch=-1), "expected 1 to 4294967295"),
        (dict(n_workers=2, batch=8, mode="tpu"), "allowed: cpu, gpu"),
        (dict(n_workers=2, batch=8, limits=[1]), "one for each of the 2"),
        (dict(n_workers=2, batch=8, predictor="oracle"), 'no "oracle"')):
    try:
        stagecoach_balance.BatchSizes(**wrong)
    except ValueError as error:
        assert expected in str(error), error
    else:
        raise AssertionError(wrong)
try:
    manager.report(2, 1, 1)
except ValueError as error:
    assert str(error) == "worker: 2; expected 0 to 1", error
else:
    raise AssertionError("a worker that does not exist")
loads = stagecoach_balance.Meter(2).read()
assert all(0 <= load <= 1 for load in loads) and 0 < loads[1], loads
"""


def run(*words, **options):
    return subprocess.run(words, check=True, text=True, timeout=60,
                          stdout=subprocess.PIPE, **options).stdout


def listed(text, pattern):
    """Returns the names in 'text' that 'pattern' finds outside of comments."""
    return sorted(re.findall(pattern, re.sub(r"/\*.*?\*/", "", text,
                                             flags=re.S), re.M))


def check_symbols(library):
    """The library, its map and its header have the same functions."""
    text = MAP.read_text(encoding="utf-8")
    version = re.search(r"^(\w[\w.]*) \{$", text, re.M)[1]
    wanted = listed(text, r"^ +(\w+);$")
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    exported = sorted(line.split()[-1] for line in lines)
    assert exported == sorted(
        [version] + [f"{name}@@{version}" for name in wanted]), exported
    header = (ROOT / "trainer/balance/batch-size-manager.h").read_text(
        encoding="utf-8")
    declared = listed(header, r"^(?:[\w ]+[ *])(batch_size_\w+)\(")
    assert declared == wanted, declared


def check_programs(folder, environment):
    """Programs need the public header, pkg-config's flags and no more."""
    flags = run("pkg-config", "--cflags", "--libs", "stagecoach-balance",
                env=environment).split()
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    run(*CC, "-std=c11", *strict, PROGRAM, "-o", folder / "program", *flags)
    run(folder / "program", env=environment)
    if shutil.which("g++"):
        source = folder / "program.cc"
        source.write_text("#include <batch-size-manager.h>\n"
                          "int main() { batch_size_manager_destroy(0); }\n")
        run("g++", *strict, source, "-o", folder / "program-cc", *flags)
        run(folder / "program-cc", env=environment)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet",
            "--destdir", folder, "--tags", "balance,devel")
        library, = folder.rglob("libstagecoach-balance.so")
        package, = folder.rglob("stagecoach-balance.pc")
        module, = folder.rglob("stagecoach_balance.py")
        environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent),
                       "PKG_CONFIG_PATH": str(package.parent),
                       "PKG_CONFIG_SYSROOT_DIR": name,
                       "PYTHONPATH": str(module.parent)}
        check_symbols(library)
        check_programs(folder, environment)
        run(sys.executable, "-B", "-c", PYTHON, env=environment)


if __name__ == "__main__":
    main()
