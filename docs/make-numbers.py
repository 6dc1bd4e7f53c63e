#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/numbers.md of tests/bench/bars.json and results/.

   make-numbers.py [ROOT]

Prints the page: a row for each figure of bars.json, in the order of that file,
except those with "page": false.
The unit test check-numbers compares it with the page in the tree."""

import json
import os
import sys

HEAD = """# Numbers

Each row is a figure of a benchmark: `./test --bench BENCH` measures it again, compares it with its bar, and exits with 1 if a bar is missed. `./test --bench BENCH --record` also writes `results/BENCH.json`, and `docs/make-numbers.py` makes
this page of these files and of `tests/bench/bars.json`, which has the reason of each bar. Causes, and what was tried, are in [findings.md](findings.md).

`load` is the number of processors that were busy during the bench, its own work included, and in brackets the load of the minute before. SCT is the stage completion time. Ranges are the least and greatest of `n` runs; the bar is compared with the median.
"""


def number(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def bar_text(bar):
    if "at_most" in bar:
        return f"<= {number(bar['at_most'])}"
    if "at_least" in bar:
        return f">= {number(bar['at_least'])}"
    return ""


def met(bar, value):
    if "at_most" in bar:
        return "met" if value <= bar["at_most"] else "**not met**"
    if "at_least" in bar:
        return "met" if value >= bar["at_least"] else "**not met**"
    return ""


def rows(name, bench, result):
    for key, bar in bench["figures"].items():
        if not bar.get("page", True):
            continue
        figure = result["figures"].get(key) if result else None
        if figure:
            low, middle, high = figure
            value = number(middle)
            if low != high:
                value += f" [{number(low)} to {number(high)}]"
            cells = [value, str(result["runs"]), bar_text(bar),
                     met(bar, middle)]
        else:
            cells = ["not recorded", "", bar_text(bar), ""]
        yield f"| {key} | {bar['what']} | " + " | ".join(cells) + " |"


def page(root):
    with open(os.path.join(root, "tests/bench/bars.json"),
              encoding="utf-8") as f:
        bars = json.load(f)
    lines = [HEAD]
    for name, bench in bars.items():
        if not any(bar.get("page", True) for bar in bench["figures"].values()):
            continue
        path = os.path.join(root, "results", name + ".json")
        result = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                result = json.load(f)
        lines.append(f"| **{name}** | {where(result)} | | n | bar | |")
        if len(lines) == 2:
            lines.append("|---|---|---|---|---|---|")
        lines += rows(name, bench, result)
    return "\n".join(lines) + "\n"


def where(result):
    if not result:
        return ""
    load = result["load"]
    load = (f"load {load['during']} ({load['before']})"
            if load["during"] is not None else "load not known")
    return (f"{result['date']}, commit {result['commit']}, "
            f"{result['machine']}, {load}")


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1] if len(sys.argv) > 1 else
                          os.path.join(os.path.dirname(__file__), "..")))
