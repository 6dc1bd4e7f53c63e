# SPDX-License-Identifier: Apache-2.0
"""check-count.py: count.py runs tests with real time again, and no others, and
counts as flaky what passes then."""

import json
import pathlib
import subprocess
import sys
import tempfile

COUNT = pathlib.Path(__file__).resolve().parents[1] / "count.py"


def count(*args):
    run = subprocess.run([sys.executable, COUNT, *args], text=True,
                         stdout=subprocess.PIPE, check=False)
    return run.returncode, run.stdout.splitlines()


def write(path, results):
    path.write_text("".join(json.dumps({"name": f"stagecoach:{name}",
                                        "result": result}) + "\n"
                            for name, result in results.items()))


def expect(got, wanted):
    if got != wanted:
        sys.exit(f"{got} is not {wanted}")


with tempfile.TemporaryDirectory() as folder:
    first, again = (pathlib.Path(folder) / name for name in ("1", "2"))
    write(first, {"lab / a": "FAIL", "unit+threads / b": "FAIL",
                  "unit / c": "OK", "lab / d": "SKIP"})
    write(again, {"lab / a": "OK"})
    expect(count("--again", first), (0, ["a"]))
    expect(count(first, again),
           (1, ["failed: stagecoach:unit+threads / b",
                "1 flaky, failed and then passed: stagecoach:lab / a",
                "2 passed, 1 failed, 1 skipped"]))
    write(first, {"lab / a": "TIMEOUT", "unit / c": "OK"})
    expect(count(first, again),
           (0, ["1 flaky, failed and then passed: stagecoach:lab / a",
                "2 passed, 0 failed, 0 skipped"]))
    write(first, {f"lab / {i}": "FAIL" for i in range(4)})
    expect(count("--again", first), (0, []))
    write(first, {})
    expect(count(first), (1, ["0 passed, 0 failed, 0 skipped"]))
