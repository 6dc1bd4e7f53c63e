# SPDX-License-Identifier: Apache-2.0
"""count.py TESTLOG.JSON [AGAIN.JSON]: sums up what meson test wrote.

With AGAIN.JSON, the log of a second run of tests that failed, a test that
passed there counts as passed, and is named.  The last line is "N passed, N
failed, N skipped"; exits 1 if any failed or if nothing ran.

   count.py --again TESTLOG.JSON

Prints the names of the failed tests to be run a second time: all, because
tests wait for processes and threads on a machine that may be shared, if at most
three failed: more have a common cause."""

import json
import sys

MOST_AGAIN = 3


def results(name):
    """Returns the results of tests by name, in the order of the log."""
    with open(name, encoding="utf-8") as f:
        return {test["name"]: test["result"] for test in map(json.loads, f)}


def failed(log):
    return [name for name, result in log.items()
            if result not in ("OK", "SKIP")]


def print_again(log):
    names = failed(log)
    if len(names) <= MOST_AGAIN:
        print(*(name.split(" / ")[1] for name in names))


def main():
    if sys.argv[1] == "--again":
        print_again(results(sys.argv[2]))
        return 0
    log = results(sys.argv[1])
    first = failed(log)
    if len(sys.argv) > 2:
        log.update(results(sys.argv[2]))
    for name in first:
        print(f"{'failed' if name in failed(log) else 'failed once'}: {name}")
    skipped = list(log.values()).count("SKIP")
    n_failed = len(failed(log))
    print(f"{len(log) - n_failed - skipped} passed, {n_failed} failed, "
          f"{skipped} skipped")
    return int(n_failed > 0 or not log)


sys.exit(main())
