"""Retrieval: R@k and mAP of test clips looked up among training clips, with chance level and intervals."""

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np

from vidveil.core.progress import phase
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.measures.measured import choose, mean
from vidveil.evaluation.number import Floats, Number
from vidveil.statistics.floors import expected_average_precision
from vidveil.statistics.tradeoff import Measurement
from vidveil.tasks.retrieval import CUTS, Retrieval

Found = Mapping[str, Mapping[str, Sequence[Retrieval]]]
"""By split, by network, one entry per seed."""


@phase("retrieval: permutation tests and intervals")
def retrieval_numbers(measure: Measure, found: Found) -> dict[str, Number]:
    """R@k and mAP, each by the network that is best at it on validation clips."""
    names = (*(f"retrieval_r{k}" for k in CUTS), "retrieval_map")
    return {name: _number(measure, name, found) for name in names}


def _number(measure: Measure, name: str, found: Found) -> Number:
    each = {
        split: {network: [_by_clip(name, one) for one in seeds] for network, seeds in by_network.items()}
        for split, by_network in found.items()
    }
    val, test = (
        {network: mean([float(np.nanmean(one)) for one in seeds]) for network, seeds in each[split].items()}
        for split in ("val", "test")
    )
    best = choose(val, name)
    tested = len(measure.rows)
    values = np.stack(each["test"][best])[:, :tested]
    chance = measure.resamples.mean(_chance_by_clip(name, found["test"][best][0])[:tested])
    return Number(
        measured=Measurement(name, measure.resamples.mean(values), chance.value, chance),
        measured_by=best,
        others={network: {"test": test[network], "val": val[network]} for network in val},
        kind="utility",
        per_clip=values,
    )


def _by_clip(name: str, found: Retrieval) -> Floats:
    """The number is the mean of these; one entry per clip, test clips first."""
    if name == "retrieval_map":
        return found.ranked.average_precision
    return found.ranked.recall(int(name.removeprefix("retrieval_r")))


def _chance_by_clip(name: str, found: Retrieval) -> Floats:
    """The same if training clips were in random order."""
    ranked = found.ranked
    positives, size = ranked.positives, ranked.gallery
    if name == "retrieval_map":
        expected = expected_average_precision(positives, np.maximum(size, 1))
    else:
        k = int(name.removeprefix("retrieval_r"))
        pairs = zip(positives.tolist(), size.tolist(), strict=True)
        expected = np.array([1 - comb(n - good, min(k, n)) / comb(n, min(k, n)) if n else 0.0 for good, n in pairs])
    return np.where(ranked.queries, expected, np.nan)
