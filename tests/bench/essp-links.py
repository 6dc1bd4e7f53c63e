#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Eight equal workers through links on which gradient and weights take about
as long as computing.  Prints the seconds of an iteration as JSON, under ssp,
where workers wait for weights, and under essp, where servers send weights
during the computation."""

import json

from shaped_workers import Run, network

N = 8
WORKER = ["--batch", "256", "--shape", "256,256,10", "--learning-rate",
          "0.02", "--eval-every", "1000", "--backend", "cpu",
          "--sample-cost-us", "1500"]
ITERATIONS = 120


def main():
    result = {}
    for scheme in ("bsp", "ssp,staleness=3", "essp,staleness=3"):
        with network(N, "100mbit"):
            with Run(N, scheme, WORKER, 60) as run:
                run.go_on(ITERATIONS)
                run.until(ITERATIONS)
                result[scheme.split(",")[0]] = round(
                    run.iteration_s(20, ITERATIONS), 4)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
