"""The test clips of one set, always with the same draws of people: all numbers of them can be paired.

Which network or attacker stands behind a number is decided by the mean over seeds of its score on **validation** people
(`choose`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.number import Floats
from vidveil.statistics import metrics
from vidveil.statistics.intervals import Resamples
from vidveil.tasks import Predictions


class MeasuredClips:
    def __init__(
        self,
        data: ClipSet,
        *,
        permutations: int,
        resamples: int,
        f1_threshold: metrics.Threshold = "probability",
        device: str = "cpu",
    ) -> None:
        self.data = data
        self.device = device
        self.f1_threshold = f1_threshold
        self.rows = data.indices("test")
        self.permutations = permutations
        known = data.person[self.rows] >= 0  # else the group that the clip was split by is the best guess of who
        self.people = np.where(known, data.person[self.rows].astype(str), data.group[self.rows])
        self.resamples = Resamples(self.people, resamples=resamples)


def choose(val: Mapping[str, float], what: str, *, fallback: bool = False) -> str:
    """The best on validation. Where validation says nothing about anybody, nobody can be chosen honestly; with
    `fallback` the first one stands in, for attributes that happen to be constant among validation people."""
    known = {name: value for name, value in val.items() if not np.isnan(value)}
    if not known and not fallback:
        raise DataError(f"validation cannot choose by {what}: no clip there has another of its person to be found")
    return max(known, key=lambda name: known[name]) if known else next(iter(val))


def on_test(learned: TrainedNetwork) -> Predictions:
    return learned.predictions["test"]


def log_of(probabilities: NDArray[np.float32]) -> Floats:
    return np.log(np.maximum(probabilities.astype(np.float64), 1e-12))


def logit_of(probabilities: NDArray[np.float32]) -> Floats:
    """Settled: what differs by the noise of arithmetic alone is a tie."""
    p = np.clip(probabilities.astype(np.float64), 1e-7, 1 - 1e-7)
    return metrics.settled(np.log(p) - np.log1p(-p))


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
