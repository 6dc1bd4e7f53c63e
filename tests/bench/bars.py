# SPDX-License-Identifier: Apache-2.0
"""Bars of the figures of benchmarks, and the records that they follow.

A bar is the recorded value with its scatter: the worst of the record's runs,
of its interval and of the records before it, and 2 % more.  A figure
with "promise" is promised to users: its bar does not follow a record.
"""

import json
import math
import os

KINDS = ("at_most", "at_least")


def read(root, path):
    """Returns a JSON file of the tree, or None if it is not there."""
    path = os.path.join(root, path)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def read_bars(root):
    return read(root, "tests/bench/bars.json")


def read_record(root, name):
    return read(root, f"results/{name}.json")


def kind_of(bar):
    return next((kind for kind in KINDS if kind in bar), None)


def misses(bar, value):
    """Returns what 'value' should be, or None if it is."""
    kind = kind_of(bar)
    if kind == "at_most" and not value <= bar[kind]:
        return f"at most {bar[kind]:g}"
    if kind == "at_least" and not value >= bar[kind]:
        return f"at least {bar[kind]:g}"
    return None


def interval(record, key, bar):
    """Returns the ends of the 95 % interval of a figure, or None."""
    names = bar.get("interval", [key + "_low", key + "_high"])
    ends = [record["figures"].get(name) for name in names]
    return [end[1] for end in ends] if all(ends) else None


def rounded(value, up):
    """Returns 'value' with 1 to 2 % more, or less, in few digits."""
    if not value:
        return 0
    up = up == (value > 0)
    step = 10 ** math.floor(math.log10(abs(value))) / 100
    steps = abs(value) * (1.02 if up else 0.98) / step
    steps = math.floor(steps + 1e-6) if up else math.ceil(steps - 1e-6)
    return math.copysign(float(f"{steps * step:.4g}"), value)


def loosest(record, key, bar):
    """Returns the loosest bar that the record of a figure allows."""
    values = (record["figures"][key] + (interval(record, key, bar) or [])
              + record.get("earlier", {}).get(key, []))
    if kind_of(bar) == "at_most":
        return rounded(max(values), True)
    return rounded(min(values), False)
