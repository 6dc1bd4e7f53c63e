#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the runner of benchmarks, and the page that is made of its results.

   check-bars.py SOURCE"""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.abspath(sys.argv[1])


def make_tree(folder, figures, bars):
    """Makes a repository with one bench, which prints 'figures'."""
    bench = os.path.join(folder, "tests", "bench")
    os.makedirs(bench)
    shutil.copy(os.path.join(SOURCE, "tests/bench/bench.py"), bench)
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


def check_bars():
    with open(os.path.join(SOURCE, "tests/bench/bars.json"),
              encoding="utf-8") as f:
        bars = json.load(f)
    scripts = {name[:-3] for name in os.listdir(
        os.path.join(SOURCE, "tests/bench")) if name.endswith(".sh")}
    assert set(bars) == scripts, set(bars) ^ scripts
    for name, entry in bars.items():
        assert set(entry) - {"few"} == {"seconds", "figures"}, name
        for key, bar in entry["figures"].items():
            barred = "at_most" in bar or "at_least" in bar
            assert set(bar) <= {"what", "at_most", "at_least", "why", "page"}, key
            assert "what" in bar and barred == ("why" in bar), (name, key)


def check_page():
    made = subprocess.run(
        [sys.executable, os.path.join(SOURCE, "docs/make-numbers.py"),
         SOURCE], capture_output=True, text=True, check=True).stdout
    with open(os.path.join(SOURCE, "docs/numbers.md"), encoding="utf-8") as f:
        page = f.read()
    assert page == made, "docs/numbers.md is stale: docs/make-numbers.py"
    assert page.count("\n") <= 200, page.count("\n")


def check_readme():
    """The figures of the README are those that were recorded last."""
    figures, fair = {}, {}
    for name in ("quickstart", "presence"):
        with open(os.path.join(SOURCE, "results", name + ".json"),
                  encoding="utf-8") as f:
            result = json.load(f)
        figures[name] = {key: v[1] for key, v in result["figures"].items()}
        fair[name] = result["baseline"]
    presence = figures["presence"]
    figures, fair = figures["quickstart"], fair["quickstart"]
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    for line in (
            "| fair | %.1f s | %.1f s | %.1f s |" % tuple(
                fair[k] for k in ("mean_sct_s", "p95_sct_s", "makespan_s")),
            "| stage | %.1f s | %.1f s | %.1f s |" % tuple(
                figures[k] for k in ("mean_sct_s", "p95_sct_s", "makespan_s")),
            "| **%.3f** [%.3f, %.3f] | %.3f | %.3f |" % tuple(
                figures[k] for k in ("vs_fair_mean", "ci95.0", "ci95.1",
                                     "p95_vs_fair", "makespan_vs_fair")),
            "%.2f [%.2f, %.2f] times" % (presence["plain_vs_fair"],
                                         presence["ci95.0"],
                                         presence["ci95.1"])):
        assert line in readme, "README.md, not as recorded: " + line


def check_claims():
    """Each figure, bench and test that docs/claims.md names exists."""
    with open(os.path.join(SOURCE, "tests/bench/bars.json"),
              encoding="utf-8") as f:
        bars = json.load(f)
    tests = set()
    for _, _, files in os.walk(os.path.join(SOURCE, "tests")):
        tests |= {os.path.splitext(name)[0].replace("test-", "", 1)
                  for name in files}
    with open(os.path.join(SOURCE, "docs/claims.md"), encoding="utf-8") as f:
        rows = [line for line in f if line.startswith("| ")][1:]
    for row in rows:
        for name, figures in re.findall(r"`([\w-]+)`: ((?:`[^`]+`(?:, )?)+)",
                                        row):
            for figure in re.findall("`([^`]+)`", figures):
                assert fnmatch.filter(bars[name]["figures"], figure), row
        for name in re.findall(r"\btests? (?:-C build |`)([a-z-]+)", row):
            assert name in tests, (name, row)
        for name in re.findall("--bench ([a-z0-9-]+)", row):
            assert name in bars, row


check_bars()
check_claims()
check_page()
check_readme()
if not shutil.which("git"):
    print("the runner is not checked: no git")
    sys.exit(77)
for check in (check_runner, check_misses, check_few):
    with tempfile.TemporaryDirectory() as root:
        check(root)
