#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-keys-library.py ROOT BUILD CC...: other trainers can use
libstagecoach-keys as it is installed.

The library exports the functions of its public header, with a version, and
nothing else.  The example of docs/training.md is compiled by the flags of
pkg-config, and two nodes of it see each other's keys.  The module for Python, if there is NumPy,
pushes, pulls and localizes keys on one node and on two, refuses what is wrong,
and names a node that has died.
"""

import pathlib
import re
import socket
import subprocess
import sys

from library_check import check_symbols, compile_programs, installed, run

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
CC = sys.argv[3:]
ROOM = ROOT / "trainer/keys"
ALONE = """
import numpy
from stagecoach_keys import KeyStoreError, Store, library

def refused(kind, expected, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        assert expected in str(error), error
    else:
        raise AssertionError(expected)

store = Store([(10, 2), (5, 3)])
worker, = store.workers
assert worker.push([3, 1], [[1, 2], [3, 4]]).wait() is None
worker.push([12], [1, 2, 3])
assert (worker.pull([1, 3, 0]).wait() == [[3, 4], [1, 2], [0, 0]]).all()
assert (worker.pull([12, 3]).wait() == [1, 2, 3, 1, 2]).all()
assert worker.pull([]).wait().size == 0 and worker.is_here(3)
refused(ValueError, "key: 15; expected at most 14", worker.pull, [15])
refused(ValueError, "values: 3; expected 2", worker.push, [1], [1, 2, 3])
refused(ValueError, "rank: 2; expected 0 to 0", Store, [(1, 1)], rank=2)
refused(ValueError, "expected one of classic,", Store, [(1, 1)], variant="lazy")
refused(KeyStoreError, "expected 1 to 4096", Store, [(1, 0)])
assert not worker.is_here(99)
worker.finish()
store.close()
refused(KeyStoreError, "closed", worker.pull, [1])
worker, = Store([(10, 2)]).workers
library().key_localize(worker.worker, numpy.array([10]).ctypes.data, 1)
refused(KeyStoreError, "key: 10; expected at most 9", worker.wait_all)
"""
NODE = """
import os, sys
import numpy
from stagecoach_keys import KeyStoreError, Store

rank, nodes = int(sys.argv[1]), sys.argv[2:]
store = Store([(1000, 4)], nodes, rank=rank, workers=1)
worker, = store.workers
mine = numpy.arange(rank * 500, rank * 500 + 500)
worker.localize(mine).wait()
worker.barrier()
assert all(map(worker.is_here, mine))
worker.push(mine, numpy.ones((500, 4)))
pushed = worker.push((mine + 500) % 1000, numpy.full((500, 4), 2))
pushed.wait()
assert pushed.done()
worker.barrier()
assert (worker.pull(numpy.arange(1000)).wait() == 3).all()
assert store.stats()["moved"] > 100 and store.stats()["remote"] >= 1000
try:
    worker.barrier()
    if rank:
        os.abort()
    while True:
        worker.pull((mine + 500) % 1000).wait()
except KeyStoreError as error:
    assert str(error) == f"node 1 ({nodes[1]}) died", error
"""


def with_numpy():
    """Returns an interpreter that has NumPy, or None."""
    return next((python for python in (sys.executable, "/usr/bin/python3")
                 if not subprocess.run([python, "-c", "import numpy"],
                                       stderr=subprocess.DEVNULL).returncode),
                None)


def free_names():
    """Returns the addresses of two nodes."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    names = ["127.0.0.1:%d" % one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return names


def run_nodes(*words, env, port=False):
    """Runs two nodes, with their ports if 'port'.  Returns their exit statuses
    and what they print."""
    names = free_names()
    nodes = [subprocess.Popen(
        [*words, str(rank), *[name.split(":")[1]] * port, *names], env=env,
        text=True, stdout=subprocess.PIPE) for rank, name in enumerate(names)]
    output = [node.communicate(timeout=60)[0] for node in nodes]
    return [node.returncode for node in nodes], output


def main():
    with installed(BUILD, "keys") as (folder, library, environment):
        check_symbols(library, ROOM / "stagecoach-keys.map",
                      ROOM / "key-store.h", "key_")
        page = (ROOT / "docs/training.md").read_text(encoding="utf-8")
        example = re.search(r"^#include <key-store.h>.*?(?=^```)", page,
                            re.M | re.S)[0]
        (folder / "node.c").write_text(example)
        program = compile_programs(
            folder, environment, "keys", CC, folder / "node.c",
            "#include <key-store.h>\n"
            "int main() { key_store_destroy(0); }\n")
        ends, output = run_nodes(program, env=environment, port=True)
        assert ends == [0, 0], (ends, output)
        for rank, text in enumerate(output):
            assert re.match(rf"node {rank}: 1, [1-9]\d* keys moved\n", text), text
        python = with_numpy()
        if not python:
            print("no NumPy: the module for Python was not tested")
            return
        run(python, "-B", "-c", ALONE, env=environment)
        ends, output = run_nodes(python, "-B", "-c", NODE, env=environment)
        assert ends[0] == 0 and ends[1] < 0, (ends, output)


if __name__ == "__main__":
    main()
