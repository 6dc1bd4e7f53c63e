# SPDX-License-Identifier: Apache-2.0
"""Figures with a 95 % interval by Student's t, as of reporting/interval.h."""

import math
import statistics


def student(n):
    """Returns the quantile 0.975 of Student's t, by its density."""
    def density(t):
        return (1 + t * t / n) ** (-(n + 1) / 2)
    whole = (math.sqrt(n * math.pi)
             * math.exp(math.lgamma(n / 2) - math.lgamma((n + 1) / 2)))
    step, t, area = 1e-3, 0, 0
    while area < 0.475 * whole:
        area += step * density(t + step / 2)
        t += step
    return t


def with_interval(name, values):
    """Returns the mean as NAME and the ends as NAME_low and NAME_high, which
    one value does not have."""
    mean = statistics.mean(values)
    figures = {name: round(mean, 4)}
    if len(values) > 1:
        half = (student(len(values) - 1) * statistics.stdev(values)
                / math.sqrt(len(values)))
        figures[name + "_low"] = round(mean - half, 4)
        figures[name + "_high"] = round(mean + half, 4)
    return figures
