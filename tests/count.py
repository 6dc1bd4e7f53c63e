# SPDX-License-Identifier: Apache-2.0
"""count.py TESTLOG.JSON: sums up what meson test wrote.

The last line is "N passed, N failed, N skipped"; exits 1 if any failed or if
nothing ran."""

import json
import sys

count = {"passed": 0, "failed": 0, "skipped": 0}
for line in open(sys.argv[1]):
    test = json.loads(line)
    kind = {"OK": "passed", "SKIP": "skipped"}.get(test["result"], "failed")
    if kind == "failed":
        print("failed: %s (%s)" % (test["name"], test["result"]))
    count[kind] += 1
print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count)
sys.exit(count["failed"] > 0 or not any(count.values()))
