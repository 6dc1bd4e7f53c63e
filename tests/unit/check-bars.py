#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the runner of benchmarks, and the pages that are made of its results.

   check-bars.py SOURCE"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(SOURCE, "tests/bench"))
import bars as bench_bars  # pylint: disable=wrong-import-position


def make_tree(folder, figures, bars):
    """Makes a repository with one bench, which prints 'figures'."""
    bench = os.path.join(folder, "tests", "bench")
    os.makedirs(bench)
    for name in ("bars.py", "bench.py"):
        shutil.copy(os.path.join(SOURCE, "tests/bench", name), bench)
    with open(os.path.join(bench, "bars.json"), "w", encoding="utf-8") as f:
        json.dump({"one": {"seconds": 1, "figures": bars}}, f)
    with open(os.path.join(bench, "one.sh"), "w", encoding="utf-8") as f:
        text = json.dumps({"bench": "one", "figures": figures})
        f.write("echo '" + text.replace(', "figures"', ',\n"figures"')
                + "'\n")
    for command in (["init", "-q"], ["add", "."],
                    ["-c", "user.name=t", "-c", "user.email=t@t", "commit",
                     "-qm", "t"]):
        subprocess.run(["git", "-C", folder, *command], check=True)


def bench(folder, *arguments):
    return subprocess.run(
        [sys.executable, os.path.join(folder, "tests/bench/bench.py"),
         *arguments], capture_output=True, text=True, check=False)


def check_runner(folder):
    make_tree(folder, {"a": 1.5, "b": {"c": 3}, "d": [7]},
              {"a": {"what": "a", "at_most": 2, "why": "a"},
               "b.c": {"what": "c", "at_least": 3, "why": "c"}})
    done = bench(folder, "--record", "--runs", "2", "one")
    assert done.returncode == 0, done
    with open(os.path.join(folder, "results/one.json"),
              encoding="utf-8") as f:
        result = json.load(f)
    assert result["figures"] == {"a": [1.5] * 3, "b.c": [3] * 3,
                                 "d.0": [7] * 3}, result
    assert result["runs"] == 2 and len(result["commit"]) == 8, result
    assert bench(folder, "--record", "one").returncode == 0
    assert bench(folder, "--record", "one").returncode == 0
    assert bench_bars.read_record(folder, "one")["earlier"] == {
        "a": [1.5, 1.5], "b.c": [3, 3]}
    assert bench(folder, "all-short").returncode == 0
    assert bench(folder, "two").returncode == 2


def check_misses(folder):
    make_tree(folder, {"a": 1.5},
              {"a": {"what": "a", "at_most": 1, "why": "a"},
               "b": {"what": "b", "at_least": 1, "why": "b"}})
    done = bench(folder, "one")
    assert done.returncode == 1, done
    assert "one: a is 1.5, at most 1 wanted" in done.stderr, done
    assert 'one: it has no figure "b"' in done.stderr, done
    with open(os.path.join(folder, "new"), "w", encoding="utf-8"):
        pass
    done = bench(folder, "--record", "one")
    assert done.returncode == 2 and "new" in done.stderr, done


def check_few(folder):
    """--few takes sizes from bars.json, and compares no values."""
    make_tree(folder, {"a": 1.5}, {"a": {"what": "a", "at_most": 1,
                                         "why": "a"}})
    assert bench(folder, "--few", "one").returncode == 2
    path = os.path.join(folder, "tests/bench")
    with open(path + "/one.sh", "w", encoding="utf-8") as f:
        f.write("""echo '{"bench": "one", "figures": {'$FIGURE': 5}}'\n""")
    for figure, status in ("a", 0), ("b", 1):
        with open(path + "/bars.json", encoding="utf-8") as f:
            bars = json.load(f)
        bars["one"]["few"] = {"FIGURE": f'"{figure}"'}
        with open(path + "/bars.json", "w", encoding="utf-8") as f:
            json.dump(bars, f)
        done = bench(folder, "--few")
        assert done.returncode == status and ": 5" in done.stdout, done


def check_loosest():
    """A bar has 1 to 2 % more than the worst value of its record, of its
    interval and of the records before it."""
    record = {"figures": {"a": [7.1, 7.3, 7.4], "a_low": [6, 6, 6],
                          "a_high": [8, 8, 8]}, "earlier": {"a": [9.0]}}
    loosest = bench_bars.loosest
    assert loosest(record, "a", {"at_most": 1}) == 9.18
    assert loosest(record, "a", {"at_least": 1}) == 5.88
    del record["earlier"]
    assert loosest(record, "a", {"at_most": 1}) == 8.16
    del record["figures"]["a_low"]
    assert loosest(record, "a", {"at_most": 1}) == 7.54
    for value in (-2.0, 0.011, 0.9999, 1.0, 1286.3):
        for up in (True, False):
            bar = bench_bars.rounded(value, up)
            assert 0.009 < (bar - value) / abs(value) * (
                1 if up else -1) < 0.0201, (value, up, bar)
    assert bench_bars.rounded(0, True) == 0


def check_bars():
    """Bars follow the records, and records do not miss them."""
    bars = bench_bars.read_bars(SOURCE)
    scripts = {name[:-3] for name in os.listdir(
        os.path.join(SOURCE, "tests/bench")) if name.endswith(".sh")}
    assert set(bars) == scripts, set(bars) ^ scripts
    for name, entry in bars.items():
        assert set(entry) - {"few"} == {"seconds", "figures"}, name
        record = bench_bars.read_record(SOURCE, name) or {"figures": {}}
        for key, bar in entry["figures"].items():
            kind = bench_bars.kind_of(bar)
            assert set(bar) <= {"what", kind, "why", "page", "promise",
                                "interval", "least"}, (name, key)
            assert "what" in bar, (name, key)
            assert "why" in bar or not bar.get("promise"), (name, key)
            if not kind or key not in record["figures"]:
                continue
            assert not bench_bars.misses(bar, record["figures"][key][1]), (
                name, key, "the record misses its bar")
            loosest = bench_bars.loosest(record, key, bar)
            assert bar.get("promise") or not bench_bars.misses(
                {kind: loosest}, bar[kind]), (
                    name, key, f"looser than the record allows, {loosest:g}")


def check_pages():
    """results.md and the figures of README.md are those of the records."""
    subprocess.run(
        [sys.executable, os.path.join(SOURCE, "docs/make-results.py"),
         "--check", SOURCE], check=True)


def check_mistakes(folder):
    """What docs/results.json says and is not so is found: an aim that is
    reached, a text whose bound does not hold, and a stale page."""
    for name in ("docs", "results", "tests/bench"):
        shutil.copytree(os.path.join(SOURCE, name),
                        os.path.join(folder, name))
    for name in ("README.md", "NEWS.md"):
        shutil.copy(os.path.join(SOURCE, name), folder)
    texts = bench_bars.read(folder, "docs/results.json")

    def complaints(**changed):
        with open(os.path.join(folder, "docs/results.json"), "w",
                  encoding="utf-8") as f:
            json.dump(texts | changed, f)
        return subprocess.run(
            [sys.executable, os.path.join(folder, "docs/make-results.py"),
             "--check", folder], capture_output=True, text=True,
            check=False).stderr

    quickstart = {"bench": "quickstart", "figure": "vs_fair_mean"}
    assert "is reached" in complaints(
        aims=[quickstart | {"at_most": 2, "cause": "a"}])
    assert "no figure" in complaints(
        aims=[quickstart | {"figure": "b", "at_most": 2, "cause": "a"}])
    assert "README.md is stale" in complaints(pages=texts["pages"] | {
        "README.md": [[{"bench": "quickstart", "text": "{vs_fair_mean}"}]]})
    assert "fits no text" in complaints(pages={"README.md": [[
        {"bench": "quickstart", "text": "{vs_fair_mean}",
         "if": {"figure": "vs_fair_mean", "at_least": 2}}]]})
    assert 'no test "a"' in complaints(shown=[{"what": "b", "tests": ["a"]}])


check_loosest()
check_bars()
check_pages()
if not shutil.which("git"):
    print("the runner is not checked: no git")
    sys.exit(77)
for check in (check_mistakes, check_runner, check_misses, check_few):
    with tempfile.TemporaryDirectory() as root:
        check(root)
