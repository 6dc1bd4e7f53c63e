#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Eight workers that emulate GPUs of four kinds train through shaped links;
in the middle the link of the fastest worker loses half of its rate.  Prints
as JSON the number of iterations until no worker's batch takes 1.1 times as
long as another's again.  A batch's time is the one reported by its worker,
computing and transfers, as the median of three iterations.

usage: bandwidth-cut.py PROFILE [SCHEME]"""

import json
import sys

from shaped_workers import Run, network, set_rate

N = 8
RATE, CUT_RATE = "100mbit", "50mbit"
SETTLE, AFTER = 80, 60          # Iterations before the cut, and behind it.
END = SETTLE + AFTER
LIMIT = 1.1
WORKER = ["--batch", "1024", "--shape", "256,256,10", "--learning-rate",
          "0.02", "--eval-every", "1000", "--backend", "cpu"]


def ratio(run, first):
    """Slowest over fastest, of the medians of three iterations."""
    times = [sorted(w.get(k, 0) for k in range(first, first + 3))[1]
             for w in run.steps]
    return max(times) / max(min(times), 1e-6)


def measure(run):
    run.go_on(END)
    cut = run.until(SETTLE)
    set_rate("w0", CUT_RATE)
    run.until(END)
    run.everybody_waits()
    ratios = {k: ratio(run, k) for k in range(cut + 1, END - 1)}
    widest = max(list(ratios)[:10], key=ratios.get)
    calm = [k for k in ratios if k > widest and ratios[k] < LIMIT]
    return {
        "recover_iterations": calm[0] + 2 - cut if calm else None,
        "ratio_before": round(ratio(run, cut - 4), 3),
        "ratio_after_cut": round(ratios[widest], 3),
        "ratio_at_end": round(ratio(run, END - 3), 3),
        "iteration_s_before": round(run.iteration_s(cut - 10, cut), 4),
        "iteration_s_after_cut": round(
            run.iteration_s(cut + 1, cut + 4), 4),
        "iteration_s_at_end": round(run.iteration_s(END - 10, END), 4),
    }


def main():
    profile, scheme = (sys.argv[1:] + ["lbbsp-gpu"])[:2]
    with network(N, RATE):
        with Run(N, scheme, [*WORKER, "--speed-profile", profile], 80) as run:
            print(json.dumps(measure(run)))


if __name__ == "__main__":
    main()
