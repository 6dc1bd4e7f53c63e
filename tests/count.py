# SPDX-License-Identifier: Apache-2.0
"""count.py TESTLOG.JSON [AGAIN.JSON]: sums up what meson test wrote.

With AGAIN.JSON, the log of a second run of tests that failed, a test that
passed there counts as passed, and is named and counted as flaky.  The last line
is "N passed, N failed, N skipped", the line before it the number of flaky
tests if there are any; exits 1 if any failed or if nothing ran.

   count.py --again TESTLOG.JSON

Prints the names of the failed tests to be run a second time: those of suites
that depend on real time, on a machine that may be shared, if at most three
tests failed, since more have a common cause.  A unit test never is."""

import json
import sys

MOST_AGAIN = 3
REAL_TIME = {"lab", "process", "slow", "faults", "vm"}


def read_log(name):
    """Returns the results of tests by name, in the order of the log."""
    with open(name, encoding="utf-8") as f:
        return {test["name"]: test["result"] for test in map(json.loads, f)}


def failed(log):
    return [name for name, result in log.items()
            if result not in ("OK", "SKIP")]


def is_real_time(name):
    """Returns true if a suite of "PROJECT:SUITE+SUITE / TEST" depends on real
    time."""
    suites = name.split(" / ")[0].split(":")[-1]
    return not REAL_TIME.isdisjoint(suites.split("+"))


def print_again(log):
    names = failed(log)
    if len(names) <= MOST_AGAIN:
        print(*(name.split(" / ")[1] for name in names
                if is_real_time(name)))


def main():
    if sys.argv[1] == "--again":
        print_again(read_log(sys.argv[2]))
        return 0
    log = read_log(sys.argv[1])
    first = failed(log)
    if len(sys.argv) > 2:
        log.update(read_log(sys.argv[2]))
    last = failed(log)
    flaky = [name for name in first if name not in last]
    for name in last:
        print(f"failed: {name}")
    skipped = list(log.values()).count("SKIP")
    if flaky:
        print(f"{len(flaky)} flaky, failed and then passed: "
              + ", ".join(flaky))
    print(f"{len(log) - len(last) - skipped} passed, {len(last)} failed, "
          f"{skipped} skipped")
    return int(bool(last) or not log)


sys.exit(main())
