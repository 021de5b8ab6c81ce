"""How sure a number is: the cluster bootstrap over people.

Clips of one person are not independent: who is easy to recognise once is easy each time. What was sampled is people, so
people are what is drawn again: P people with replacement, all clips of each come along, the number is computed anew.
2.5 % of 2,000 such numbers lie below the interval and 2.5 % above it.

    cₚ ~ Multinomial(P, 1/P)      a clip of person p weighs cₚ      v* = v(weights)

Drawing clips instead treats 20 clips of a person as 20 witnesses and gives intervals two or three times too narrow.

**Linkage** is a mean over queries, and queries are drawn with their people while the gallery stays as it is. Were the
gallery drawn, too, a person drawn twice would stand in it twice, every clip would meet its own copy, and the number
would go up for no reason. So the interval is of this question: other people asked against this gallery.

**Seeds.** Every training seed has its value; the number is their mean, and the interval is that of the mean: on each
draw of people all seeds are measured, then averaged. Seeds are not drawn, three are too few for that: the values of the
seeds, not the interval, show how much training itself varies.

**Differences** of two methods use the same draws, since both were measured on the same videos: what makes a person hard
for both cancels.

With fewer than about 20 people such an interval is somewhat too narrow; with one it does not exist (NaN).
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import UsageError

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Weights (B, N), one row a resample -> (B,) values."""

RESAMPLES = 2_000
LEVEL = 0.95
_AT_ONCE = 2_000_000  # weights in memory at a time: 16 MB, and the few arrays a metric makes of them


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, and what it is in each resample of people."""

    value: float
    """The mean over seeds."""
    samples: Floats
    """(B,) the same in each resample; NaN where it is undefined there. Empty if nothing was resampled."""
    per_seed: tuple[float, ...] = ()
    drawn: str = ""
    """Which resamples: two estimates can be paired if this is the same."""

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % percentile interval. NaN if it is undefined in more than every 20th resample."""
        return percentile_interval(self.samples)

    @property
    def low(self) -> float:
        return self.interval[0]

    @property
    def high(self) -> float:
        return self.interval[1]


@dataclass(frozen=True)
class Difference:
    """First minus second, on the same videos and the same resamples."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


class Resamples:
    """Draws of people, made once, so that everything measured with them is paired."""

    def __init__(self, person: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> None:
        """`person` has one entry per clip, numbers or names. Where people are not known, give groups or files."""
        names = np.asarray(person)
        if names.ndim != 1 or not len(names):
            raise UsageError(f"one person a clip is needed to draw people, got {names.shape}")
        people, self.row = np.unique(names, return_inverse=True)  # (P,), (N,)
        self.people = len(people)
        chances = np.full(self.people, 1 / self.people)
        rng = np.random.default_rng(seed)
        self.counts = rng.multinomial(self.people, chances, size=resamples).astype(np.int32)  # (B, P)
        about = f"{names.dtype.kind} {resamples} {seed} {','.join(map(str, names.tolist()))}"
        self.drawn = hashlib.sha256(about.encode()).hexdigest()

    def mean(self, contributions: ArrayLike) -> Estimate:
        """Of a number that is a mean over clips. (N,), or (S, N) for S seeds; clips with NaN are left out."""
        values = np.atleast_2d(np.asarray(contributions, dtype=np.float64))  # (S, N)
        self._check(values)
        counted = ~np.isnan(values)
        sums = self._by_person(np.where(counted, values, 0.0))  # (S, P)
        sizes = self._by_person(counted.astype(np.float64))
        points = _ratio(sums.sum(axis=1), sizes.sum(axis=1))  # (S,)
        samples = _ratio(self.counts @ sums.T, self.counts @ sizes.T)  # (B, S)
        return self._estimate(points, samples.T)

    def statistic(self, statistics: Statistic | Sequence[Statistic]) -> Estimate:
        """Of anything that can be computed with weights; one function per seed."""
        each = [statistics] if callable(statistics) else list(statistics)
        clips = len(self.row)
        step = max(1, _AT_ONCE // clips)
        samples = np.empty((len(each), len(self.counts)))
        for start in range(0, len(self.counts), step):
            weights = self.counts[start : start + step, self.row].astype(np.float64)  # (b, N)
            for seed, function in enumerate(each):
                samples[seed, start : start + step] = function(weights)
        points = np.array([np.asarray(function(np.ones((1, clips)))).item() for function in each])
        return self._estimate(points, samples)

    def _estimate(self, points: Floats, samples: Floats) -> Estimate:
        if self.people < 2:
            samples = np.full_like(samples, np.nan)  # one person, drawn again and again, would look like certainty
        return Estimate(float(points.mean()), samples.mean(axis=0), tuple(map(float, points)), self.drawn)

    def _by_person(self, values: Floats) -> Floats:
        return np.stack([np.bincount(self.row, weights=row, minlength=self.people) for row in values])

    def _check(self, values: Floats) -> None:
        if values.ndim != 2 or values.shape[1] != len(self.row):
            raise UsageError(f"{len(self.row)} clips were drawn from, but values are {values.shape}")


def percentile_interval(samples: Floats) -> tuple[float, float]:
    """Percentiles of the resamples in which the number is defined; NaN if more than 5 % of them are not."""
    defined = samples[~np.isnan(samples)]
    if not len(defined) or len(defined) < 0.95 * len(samples):
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def difference(first: Estimate, second: Estimate) -> Difference:
    """first − second with the interval of the paired difference. Both must have been drawn alike."""
    must_pair(first, second)
    low, high = percentile_interval(first.samples - second.samples)
    return Difference(first.value - second.value, low, high)


def combined(function: Callable[..., Floats], *parts: Estimate) -> Estimate:
    """A number made of other numbers, such as a ratio: of the seed means, and in each resample.

    `function` works on arrays and gives NaN where the result does not exist.
    """
    must_pair(*parts)
    value = float(function(*(np.array([part.value], dtype=np.float64) for part in parts))[0])
    return Estimate(value, function(*(part.samples for part in parts)), drawn=parts[0].drawn)


def must_pair(*parts: Estimate) -> None:
    if len({(part.drawn, len(part.samples)) for part in parts}) != 1:
        raise UsageError(
            "these numbers come from different draws of people, so they cannot be paired; use one Resamples"
        )


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    ratio: Floats = np.divide(numerator, denominator, out=np.full(denominator.shape, np.nan), where=denominator > 0)
    return ratio
