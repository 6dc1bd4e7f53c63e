#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""trial-curves.py [TRAINER]: prints the rows of sim/workload/trial-curve.c.

Trains the trials of lab/scenarios/main.json (10 classes) and early.json (2) on
one worker each, two minutes in all.  The emulated time of a sample leaves time
to report each iteration."""

import json
import subprocess
import sys
import tempfile

TRAINER = (sys.argv[1] if len(sys.argv) > 1
           else "build/trainer/stagecoach-trainer")
ITERATIONS = [*range(0, 20, 2), *range(20, 171, 10)]
TRIALS = [(2, 320, 128, rate) for rate in (0.02, 0.03, 0.04)]
TRIALS += [(10, 256, 32, rate)
           for rate in (0.02, 0.03, 0.044, 0.066, 0.096, 0.14, 0.2, 0.3)]


def curve_of(seed, classes, width, batch, rate):
    """The accuracy after each of ITERATIONS, in per cent."""
    spec = {"schemes": ["bsp"], "workers": 1, "iterations": ITERATIONS[-1],
            "arguments": ["--shape", f"64,{width},{width},{classes}",
                          "--samples", "4000", "--batch", str(batch),
                          "--learning-rate", str(rate), "--seed", str(seed),
                          "--eval-every", "2", "--backend", "cpu",
                          "--sample-cost-us", str(60000 / batch)]}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(spec, file)
        file.flush()
        output = subprocess.run(
            [TRAINER, "compare", file.name, "--format", "json"], check=True,
            stdout=subprocess.PIPE).stdout
    points = json.loads(output)["schemes"][0]["points"]
    return [round(100 * next(accuracy for _, iteration, _, accuracy in
                             reversed(points) if iteration <= max(k, 1)))
            for k in ITERATIONS]


for seed, trial in enumerate(TRIALS, 1):
    percent = ", ".join(map(str, curve_of(seed, *trial)))
    print(f"    {{ {trial[0]}, {trial[3]}, {{ {percent} }} }},", flush=True)
