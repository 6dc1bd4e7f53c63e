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

import pathlib
import sys

from library_check import check_symbols, compile_programs, installed, run

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
CC = sys.argv[3:]
ROOM = ROOT / "trainer/balance"
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


def main():
    with installed(BUILD, "balance") as (folder, library, environment):
        check_symbols(library, ROOM / "stagecoach-balance.map",
                      ROOM / "batch-size-manager.h", "batch_size_")
        program = compile_programs(
            folder, environment, "balance", CC, PROGRAM,
            "#include <batch-size-manager.h>\n"
            "int main() { batch_size_manager_destroy(0); }\n")
        run(program, env=environment)
        run(sys.executable, "-B", "-c", PYTHON, env=environment)


if __name__ == "__main__":
    main()
