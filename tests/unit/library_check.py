# SPDX-License-Identifier: Apache-2.0

"""Checks of a library for other programs, as it is installed."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


def run(*words, **options):
    return subprocess.run(words, check=True, text=True, timeout=60,
                          stdout=subprocess.PIPE, **options).stdout


def listed(text, pattern):
    """Returns the names in 'text' that 'pattern' finds outside of comments."""
    return sorted(re.findall(pattern, re.sub(r"/\*.*?\*/", "", text,
                                             flags=re.S), re.M))


def check_symbols(library, mapped, header, prefix):
    """The library, its map and its header have the same functions."""
    text = mapped.read_text(encoding="utf-8")
    version = re.search(r"^(\w[\w.]*) \{$", text, re.M)[1]
    wanted = listed(text, r"^ +(\w+);$")
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    exported = sorted(line.split()[-1] for line in lines)
    assert exported == sorted(
        [version] + [f"{name}@@{version}" for name in wanted]), exported
    declared = listed(header.read_text(encoding="utf-8"),
                      rf"^(?:[\w ]+[ *])({prefix}\w+)\(")
    assert declared == wanted, declared


@contextlib.contextmanager
def installed(build, name):
    """Installs stagecoach-NAME and its development files into a folder.
    Yields the folder, the library, and an environment that finds all."""
    with tempfile.TemporaryDirectory() as folder:
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet",
            "--destdir", folder, "--tags", f"{name},devel")
        path = pathlib.Path(folder)
        library, = path.rglob(f"libstagecoach-{name}.so")
        package, = path.rglob(f"stagecoach-{name}.pc")
        module, = path.rglob(f"stagecoach_{name}.py")
        yield path, library, {
            **os.environ, "LD_LIBRARY_PATH": str(library.parent),
            "PKG_CONFIG_PATH": str(package.parent),
            "PKG_CONFIG_SYSROOT_DIR": folder,
            "PYTHONPATH": str(module.parent)}


def compile_programs(folder, environment, name, cc, source, in_cc):
    """Compiles 'source', in C, by pkg-config's flags only, and returns the
    program; compiles and runs 'in_cc', in C++, if there is a compiler."""
    flags = run("pkg-config", "--cflags", "--libs", f"stagecoach-{name}",
                env=environment).split()
    run(*cc, "-std=c11", *STRICT, source, "-o", folder / "program", *flags)
    if shutil.which("g++"):
        path = folder / "program.cc"
        path.write_text(in_cc)
        run("g++", *STRICT, path, "-o", folder / "program-cc", *flags)
        run(folder / "program-cc", env=environment)
    return folder / "program"
