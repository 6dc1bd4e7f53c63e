#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-compare.py TRAINER: "stagecoach-trainer compare" names what is wrong
in a specification, and trains under the schemes of a right one.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

TRAINER = os.path.abspath(sys.argv[1])
ARGUMENTS = ["--shape", "16,16,4", "--eval-every", "60", "--batch", "24",
             "--backend", "cpu"]


def compare(folder, spec, *options, status=0):
    """Returns what it prints, or its last line on standard error."""
    path = pathlib.Path(folder, "c.json")
    path.write_text(json.dumps(spec))
    done = subprocess.run([TRAINER, "compare", path, *options],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == status, (spec, done)
    return done.stderr.splitlines()[-1] if status else done.stdout


def names_the_member_at_fault(folder):
    for spec, error in (
            ({}, "/schemes: required member is missing"),
            ({"schemes": ["psb"]}, "/schemes: \"psb\" is not a scheme"),
            ({"schemes": ["static,ratios=1:2"]},
             "/schemes: ratios: 2 for 8 workers"),
            ({"schemes": ["bsp"], "worker": 3},
             "/worker: unknown member, did you mean \"workers\""),
            ({"schemes": ["bsp"], "workers": 0},
             "/workers: 0 is not an integer from 1 to 64")):
        assert compare(folder, spec, status=1) == (
            f"stagecoach-trainer compare: {folder}/c.json: {error}"), spec


def finds_profiles_beside_the_specification(folder):
    spec = {"schemes": ["bsp"], "workers": 1, "profile": "p"}
    assert f"{folder}/p: No such file" in compare(folder, spec, status=1)


def check_curves(folder, n_alike, **spec):
    """Each scheme learns; the first ones have one curve, but for rounding."""
    out = json.loads(compare(folder, {"iterations": 60, **spec}, "--format",
                             "json", "--html", f"{folder}/page.html"))
    ends = [scheme["loss"] for scheme in out["schemes"]]
    assert [s["scheme"] for s in out["schemes"]] == spec["schemes"]
    for scheme in out["schemes"]:
        assert scheme["iterations"] == 60 and scheme["seconds"] > 0, scheme
    assert all(loss < 0.95 * math.log(4) for loss in ends), ends
    assert all(abs(loss - ends[0]) < 1e-4 for loss in ends[:n_alike]), ends
    assert spec["schemes"][1] in pathlib.Path(folder, "page.html").read_text()


def schemes_that_wait_for_all_have_one_curve(folder):
    check_curves(folder, 5, workers=3, servers=2, schemes=[
        "bsp", "static,ratios=1:2:3", "lbbsp-cpu", "lbbsp-gpu", "flexrr"],
        arguments=[*ARGUMENTS, "--sample-cost-us", "100"])


def peers_are_compared_with_workers(folder):
    check_curves(folder, 2, workers=2, schemes=[
        "bsp", "allreduce", "prague,group=2"],
        arguments=[*ARGUMENTS, "--schedule", "cosine", "--schedule-period",
                   "70", "--warm-up", "5"])


def says_which_scheme_failed(folder):
    for scheme, role in ("asp", "worker"), ("adpsgd", "peer"):
        assert compare(folder, {"schemes": [scheme], "workers": 1,
                                "arguments": ["--shape", "0"]}, status=1) == (
            f"stagecoach-trainer compare: {scheme}: {role} 0 failed: --shape: "
            "\"0\" is not 2 to 18 widths of 1 to 65536 with commas between "
            "them"), scheme


for test in (names_the_member_at_fault,
             finds_profiles_beside_the_specification,
             schemes_that_wait_for_all_have_one_curve,
             peers_are_compared_with_workers, says_which_scheme_failed):
    with tempfile.TemporaryDirectory() as name:
        test(name)
    print(test.__name__, flush=True)
