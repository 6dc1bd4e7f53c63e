#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs benchmarks, and compares their figures with the bars.

   bench.py [--record] [--runs N] NAME...
   bench.py --few [NAME...]

NAME is that of a script in tests/bench; "all-short" are all benches that take
less than two minutes by bars.json.  Prints the JSON object of each run, and on
standard error each figure that misses its bar.  Exits with 1 if a figure
missed its bar or is missing, with 77 if every bench was skipped.

--runs repeats each bench; the median of a figure is compared with its bar.
--record writes results/NAME.json: the least, median and greatest value of each
figure, and when, where and beside which load they were measured; "earlier" are
the ends of the last records before it, as many as make five with this one.
Only the figures of a checkout without changes are those of a commit, so
--record refuses others.
--few runs benches in seconds, with the small sizes that bars.json has for them
("few", variables of the environment), by default all that have some.  Their
figures must be there, but are not compared with bars.  CI does this, so that
no change breaks a bench that CI does not run whole.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import bars as bench_bars

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BENCHES = os.path.join(ROOT, "tests", "bench")
RESULTS = os.path.join(ROOT, "results")
SHORT_S = 120
SKIPPED = 77
MAX_EARLIER = 4
UNTRACKED = ("results/",)       # May differ from the commit.


def scripts():
    return sorted(name[:-3] for name in os.listdir(BENCHES)
                  if name.endswith(".sh"))


def flatten(value, name=""):
    """Yields the name and value of each number; members of an object have
    the names OBJECT.MEMBER, those of a list LIST.0, LIST.1, ..."""
    if isinstance(value, (dict, list)):
        for key, member in (value.items() if isinstance(value, dict)
                            else enumerate(value)):
            yield from flatten(member, f"{name}.{key}" if name else key)
    elif isinstance(value, (bool, int, float)):
        yield name, value


def busy_seconds():
    """Returns the processor time of the whole machine since its start."""
    with open("/proc/stat", encoding="ascii") as f:
        ticks = [int(n) for n in f.readline().split()[1:]]
    return (sum(ticks[:3]) + sum(ticks[5:8])) / os.sysconf("SC_CLK_TCK")


def processor():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True,
                          capture_output=True, text=True).stdout.rstrip()


def changes():
    """Returns the files that differ from the commit, except results."""
    return [line[3:] for line in git("status", "--porcelain").splitlines()
            if not line[3:].startswith(UNTRACKED)]


def run(name, sizes):
    """Runs a bench.  Returns its JSON object, or None if it was skipped."""
    done = subprocess.run(["sh", os.path.join(BENCHES, name + ".sh")],
                          cwd=ROOT, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **sizes}, check=False)
    begin = done.stdout.find('{"bench"')
    if done.returncode == SKIPPED:
        print(done.stdout.strip())
        return None
    if done.returncode or begin < 0:
        sys.exit(f"bench: {name}: exit status {done.returncode}, "
                 "no figures")
    result = json.loads(done.stdout[begin:])
    print(json.dumps(result), flush=True)
    return None if "skipped" in result else result


def earlier(name, bars):
    """Returns the values of the figures with a bar in the record until now
    and in those before it, the newest first."""
    last = bench_bars.read_record(ROOT, name) or {"figures": {}}
    values = {key: [*dict.fromkeys((value[0], value[2])),
                    *last.get("earlier", {}).get(key, [])]
              for key, value in last["figures"].items()
              if bench_bars.kind_of(bars.get(key, {}))}
    return {key: value[:MAX_EARLIER] for key, value in values.items()}


def record(name, runs, figures, load, bars):
    before = earlier(name, bars)
    os.makedirs(RESULTS, exist_ok=True)
    with open(os.path.join(RESULTS, name + ".json"), "w",
              encoding="utf-8") as f:
        json.dump({
            "bench": name,
            "commit": git("rev-parse", "--short=8", "HEAD"),
            "date": datetime.date.today().isoformat(),
            "machine": f"{os.cpu_count()} x {processor()}",
            "kernel": platform.release(),
            "load": load,
            "runs": len(runs),
            "figures": {key: [min(values), statistics.median(values),
                              max(values)]
                        for key, values in figures.items()},
            "earlier": before,
            "baseline": runs[-1].get("baseline", {}),
        }, f, indent=1)
        f.write("\n")


def bench(name, options, bars):
    """Returns whether all bars were met, None for a skipped bench."""
    before = os.getloadavg()[0]
    begin, busy = time.monotonic(), busy_seconds()
    entry = bars.get(name, {})
    sizes = entry["few"] if options.few else {}
    runs = [result for result in (run(name, sizes)
                                  for _ in range(options.runs)) if result]
    if not runs:
        return None
    seconds = time.monotonic() - begin
    load = {"before": round(before, 2),
            "during": round((busy_seconds() - busy) / seconds, 2),
            "seconds": round(seconds)}
    figures = {}
    for result in runs:
        for key, value in flatten(result["figures"]):
            figures.setdefault(key, []).append(value)
    met = True
    for key, bar in entry.get("figures", {}).items():
        if key not in figures:
            print(f"bench: {name}: it has no figure \"{key}\"",
                  file=sys.stderr)
            met = False
            continue
        value = statistics.median(figures[key])
        wanted = bench_bars.misses(bar, value)
        if wanted and not options.few:
            print(f"bench: {name}: {key} is {value:g}, {wanted} wanted",
                  file=sys.stderr)
            met = False
    if options.record:
        record(name, runs, figures, load, entry.get("figures", {}))
    return met


def main():
    bars = bench_bars.read_bars(ROOT)
    parser = argparse.ArgumentParser(prog="bench.py")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--record", action="store_true")
    kind.add_argument("--few", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    few = [name for name in scripts() if "few" in bars.get(name, {})]
    if not options.names and not options.few:
        parser.error("no NAME")
    names = []
    for name in options.names or few:
        if name == "all-short":
            names += [n for n in scripts()
                      if bars.get(n, {}).get("seconds", SHORT_S) < SHORT_S]
        elif name in scripts():
            names.append(name)
        else:
            print(f"bench: no bench \"{name}\"; there are: "
                  f"{' '.join(scripts())} all-short", file=sys.stderr)
            return 2
    if options.few and not set(names) <= set(few):
        print(f"bench: --few: only {' '.join(few)} have small sizes",
              file=sys.stderr)
        return 2
    if options.runs < 1:
        print(f"bench: --runs {options.runs}: at least 1", file=sys.stderr)
        return 2
    if options.record and changes():
        print("bench: --record: commit first, these files have changes: "
              f"{' '.join(changes())}", file=sys.stderr)
        return 2
    outcomes = [bench(name, options, bars) for name in names]
    if all(met is None for met in outcomes):
        return SKIPPED
    return 1 if False in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
