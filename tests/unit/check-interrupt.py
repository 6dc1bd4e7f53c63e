#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-interrupt.py STAGECOACH: commands of long work that are interrupted
print and write what they have finished, say in one line how much that is, end
with 128 + the signal, and leave neither a process nor another file.
"""

import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

STAGECOACH = os.path.abspath(sys.argv[1])
LIMIT_S = 120                           # For a hang only.
BIG = "generate:1,hosts=32,cojobs=60,jobs=9"
SMALL = "generate:1,hosts=4,cojobs=3,jobs=2"
BOTH = ["--policy", "plain", "--policy", "stage"]
SECOND = r"stage\.\.\."                 # The second simulation has begun.

# The command; what standard error shows when the signal comes, None for when
# it is caught; the last line there; patterns of standard output, none if it is
# empty; files that are written, with the number of their lines for each N, the
# number of the last line.
ROWS = [
    (["sim", BIG, *BOTH, "--format", "json", "--html", "page.html"], SECOND,
     "interrupted after 1 of 2 simulations",
     [r'"policies":\s\[{\s*"name":\s"plain",[^]]*\}\]'], {"page.html": 0}),
    (["sim", BIG, "--policy", "stage", "--html", "page.html"], SECOND,
     "interrupted after 0 of 1 simulation", [], {}),
    (["sim", SMALL, "--policy", "stage", "--seeds", "1-10000", "--csv",
      "stages.csv"], r"\] [1-9]\d* of", r"interrupted after (\d+) of 10000 seeds",
     [r"^stage +N "], {"stages.csv": 9}),
    (["policy", "whatif", "--trace", BIG, *BOTH], SECOND,
     "interrupted after 1 of 2 simulations", [], {}),
    (["report", "--history", "history.db"], None,
     "interrupted after [01] of 2 simulations",
     ["^observed from", "^waiting took"], {"history.db": 0}),
    (["search", "run", "search.json", "--cluster", "hosts.json", "--bare"],
     "stage 0 took", "interrupted after 1 of 2 stages",
     [r"^t0 +stopped ", r"^best: t\d, after"],
     {"search.json": 0, "hosts.json": 0}),
    (["compare", "compare.json", "--html", "page.html"], "asp",
     "interrupted after 1 of 2 schemes", [r"\nbsp  .*\n$"],
     {"compare.json": 0, "page.html": 0}),
]
TRAINER = os.path.join(os.path.dirname(STAGECOACH),
                       "../trainer/stagecoach-trainer")


def make_history(path):
    """The history of a controller with 400 stages at once."""
    now = int(time.time() * 1000) - 100000
    with sqlite3.connect(path) as db:
        db.executescript(
            "CREATE TABLE stage (at, record); CREATE TABLE other (at, record);"
            "CREATE TABLE port (at, port, bytes, all_bytes);"
            "CREATE TABLE cut (at)")
        for i in range(400):
            ports = {f"h{i % 30}:tx": 50, f"h{(i + 1) % 30}:rx": 50}
            db.execute("INSERT INTO stage VALUES (?, ?)", (now + 60000, json.dumps({
                "cojob": f"s{i}", "rung": 0, "began": now + i, "iterations": 100,
                "ended": now + 60000, "demand": ports, "jobs": [
                    {"job": "t", "bytes": {port: 5e9 for port in ports}}]})))


INPUTS = {
    "hosts.json": {"hosts": [{"name": "h0", "address": "127.0.0.1",
                              "launch": "local", "slots": 9}]},
    "search.json": {
        "name": "a", "trials": 2, "rungs": [
            {"iterations": 10, "keep": 1}, {"iterations": 1000000}],
        "space": {"learning_rate": [0.05, 0.01], "width": [16], "batch": [16]},
        "placements": [{"workers": ["h0"], "servers": ["h0"]}],
        "model": {"inputs": 16, "hidden_layers": 1, "classes": 4},
        "data": {"kind": "generated", "samples": 256}},
    "compare.json": {
        "schemes": ["bsp", "asp"], "workers": 2, "iterations": 200,
        "arguments": ["--shape", "16,16,4", "--eval-every", "20", "--backend",
                      "cpu", "--sample-cost-us", "100"]},
}


def catches(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        caught = re.search(r"^SigCgt:\s*(\w+)", status.read(), re.M)[1]
    return int(caught, 16) & 1 << signal.SIGINT - 1


def read_until(terminal, is_enough):
    """Returns what the terminal shows until then, or until its end."""
    end, text = time.monotonic() + LIMIT_S, ""
    while not is_enough(text):
        assert time.monotonic() < end, f"it hangs: {text}"
        if select.select([terminal], [], [], 0.01)[0]:
            try:
                text += os.read(terminal, 65536).decode()
            except OSError:             # Nothing has it open any more.
                break
    return text


def run(words, moment, number, folder, output):
    """Returns the exit status and the last line of standard error."""
    terminal, stderr = pty.openpty()
    with subprocess.Popen(
            [TRAINER if words[0] == "compare" else STAGECOACH, *words],
            cwd=folder, stdin=subprocess.DEVNULL,
            stdout=output, stderr=stderr, start_new_session=True,
            env={**os.environ, "TMPDIR": folder}) as process:
        os.close(stderr)
        try:
            read_until(terminal, lambda text: re.search(moment, text)
                       if moment else catches(process.pid))
            process.send_signal(number)
            text = read_until(terminal, lambda text: False)
            status = process.wait(LIMIT_S)
            left = subprocess.run(["ps", "-o", "args=", "-s", str(process.pid)],
                                  capture_output=True, check=False).stdout
            assert not left, left
        finally:
            process.kill()
            os.close(terminal)
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    return status, re.sub(r"^.*\r|\x1b\[K", "", lines[-1])


def check(row, number):
    words, moment, pattern, patterns, files = row
    with tempfile.TemporaryDirectory() as folder, \
            tempfile.TemporaryFile("w+") as output:
        if "history.db" in files:
            make_history(f"{folder}/history.db")
        for name in files.keys() & INPUTS.keys():
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                json.dump(INPUTS[name], file)
        status, line = run(words, moment, number, folder, output)
        found = re.fullmatch(pattern, line)
        assert found and status == 128 + number, (status, line)
        n = found[1] if found.groups() else "0"
        output.seek(0)
        out = output.read()
        assert patterns or not out, out
        for each in patterns:
            assert re.search(each.replace("N", n), out, re.M), (each, out)
        assert set(os.listdir(folder)) == set(files), os.listdir(folder)
        for name, n_lines in files.items():
            with open(f"{folder}/{name}", "rb") as file:
                assert not n_lines or len(list(file)) == n_lines * int(n) + 1


def main():
    failed = False
    left_out = set()
    if b" report " not in subprocess.run([STAGECOACH, "--help"], check=True,
                                         capture_output=True).stdout:
        left_out.add("report")
    if not os.path.exists(TRAINER):
        left_out |= {"search", "compare"}
    for i, row in enumerate(ROWS):
        if row[0][0] not in left_out:
            try:
                check(row, (signal.SIGINT, signal.SIGTERM)[i % 2])
                print("ok", *row[0])
            except AssertionError as error:
                print("not ok", *row[0], f": {error!r}")
                failed = True
    return failed


sys.exit(main())
