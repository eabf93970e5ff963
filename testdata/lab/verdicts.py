#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes verdicts.json, what the lab's statistics are compared with: p-values by scipy's exact
signed-rank test, estimates and intervals by brute force, Holm's values by the definition.

    pip install scipy numpy
    python3 testdata/lab/verdicts.py > testdata/lab/verdicts.json
"""

import itertools
import json

import numpy
import scipy
from scipy.stats import wilcoxon

TAIL = 0.025
MARGIN = float(numpy.log1p(0.02))


def p(values, at, alternative):
    return float(wilcoxon(values - at, alternative=alternative, method="exact").pvalue)


def means(values):
    pairs = itertools.combinations_with_replacement(values, 2)
    return numpy.sort([(left + right) / 2 for left, right in pairs])


def interval(values):
    """All places that neither one-sided test refuses, found by trying each gap between means."""
    cuts = means(values)
    places = numpy.concatenate(([cuts[0] - 1], (cuts[1:] + cuts[:-1]) / 2, [cuts[-1] + 1]))
    kept = [p(values, at, "greater") > TAIL and p(values, at, "less") > TAIL for at in places]
    first, last = kept.index(True), len(kept) - 1 - kept[::-1].index(True)
    return float(cuts[first - 1]), float(cuts[last])


def sample(values):
    low, high = interval(values)
    return {
        "logs": values.tolist(),
        "value": float(numpy.median(means(values))),
        "low": low,
        "high": high,
        "above_margin": p(values, MARGIN, "greater"),
        "below_margin": p(values, -MARGIN, "less"),
        "not_faster": p(values, -MARGIN, "greater"),
        "not_slower": p(values, MARGIN, "less"),
    }


def holm(values):
    """Step by step: the smallest value times all, the next times one less, never decreasing."""
    adjusted, left, reached = [0.0] * len(values), list(range(len(values))), 0.0
    while left:
        at = min(left, key=lambda place: values[place])
        reached = max(reached, min(1.0, values[at] * len(left)))
        adjusted[at] = reached
        left.remove(at)
    return adjusted


def main():
    random = numpy.random.default_rng(20)
    samples = []
    for count in (6, 7, 8, 10, 13, 17, 20, 25, 30, 40):
        for shift in (0.0, 0.02, -0.05):
            samples.append(sample(random.normal(shift, 0.03, count)))
            samples.append(sample(shift + 0.02 * random.standard_t(2, count)))
    families = [random.random(count) ** 3 for count in (1, 2, 5, 12)]
    result = {
        "scipy": scipy.__version__,
        "samples": samples,
        "holm": [{"values": f.tolist(), "adjusted": holm(f.tolist())} for f in families],
    }
    print(json.dumps(result, indent=1))


main()
