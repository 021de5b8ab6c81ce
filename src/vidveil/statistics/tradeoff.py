"""Leakage against utility: excess, retention, methods at equal retention, and one number for a whole curve.

    excess leakage   (v − f) / (R − f)          share of raw video's leakage above chance that is left
    retention        top-1 / raw top-1
    NHV              area of ∪ [0, uₖ] × [0, pₖ],  u = (top-1 − chance)/(raw − chance), p = 1 − excess, in [0, 1]

v is what the strongest attacker gets on anonymized video, R on raw video, f what it would get if nothing leaked: by
permutation under the same scores, so v and R each stand above their own. Nothing is clipped but in NHV. An excess
above 1 means that the method made the attack easier, one below 0 that the attacker did worse than chance.

Everything takes and gives `Estimate`s, which hold the number in each resample of people: ratios and areas are computed
in each, so intervals are of the ratio, and differences of methods are paired. A floor moves with the people who were
drawn, since prevalence does; it moves as the floor by formula does.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import UsageError
from vidveil.statistics.intervals import Difference, Estimate, combined, difference, must_pair

Floats = NDArray[np.float64]

MEASURABLE = 0.05
"""What raw video must give away beyond its floor: shares of less than this are shares of noise."""
OPERATING_POINTS = 6
"""A method's settings in NHV, at most: with more settings any method covers more area."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """What the strongest attacker, chosen on validation, gets out of test clips."""

    metric: str
    """`average precision`, `rank-1`, `AUROC` …; never F1."""
    value: Estimate
    floor: float
    """By permutation; the mean over seeds."""
    chance: Estimate | None = None
    """The floor by formula, with its resamples, if it depends on who is drawn: prevalence, positives / gallery."""

    def above_floor(self) -> Estimate:
        """value − floor, in each resample, too."""
        if "f1" in re.split(r"[^a-z0-9]+", self.metric.lower()):
            raise UsageError(
                "no excess is taken of F1: it depends on a threshold, and always saying yes beats many attackers"
            )
        if self.chance is None:
            return combined(lambda value: value - self.floor, self.value)
        moved = self.floor - self.chance.value
        return combined(lambda value, chance: value - chance - moved, self.value, self.chance)


@dataclass(frozen=True, eq=False)
class Excess:
    """A share of leakage, or why there is none."""

    estimate: Estimate | None
    """None if nothing was measurable."""
    measured: tuple[str, ...]
    not_measurable: dict[str, str]
    """Name of each attribute that was left out, and why."""


def excess(leak: Measurement, raw: Measurement, name: str = "linkage") -> Excess:
    """Excess leakage of one number."""
    return excess_over_attributes({name: leak}, {name: raw})


def excess_over_attributes(leaks: Mapping[str, Measurement], raw: Mapping[str, Measurement]) -> Excess:
    """Σ (v − f) / Σ (R − f) over the attributes in which raw video leaks measurably.

    Sums and not a mean of shares: an attribute that hardly leaks has a share that is hardly known.
    """
    if leaks.keys() != raw.keys():
        raise UsageError(f"attributes of raw video are {', '.join(raw)}, but of the method {', '.join(leaks)}")
    refused = {name: reason for name in raw if (reason := why_not_measurable(raw[name]))}
    measured = tuple(name for name in raw if name not in refused)
    for name in measured:
        if leaks[name].metric != raw[name].metric:
            raise UsageError(f"{name}: {leaks[name].metric} and {raw[name].metric} cannot be compared")
    if not measured:
        return Excess(None, (), refused)
    tops, bottoms = ([leak[name].above_floor() for name in measured] for leak in (leaks, raw))
    sums = [combined(lambda *parts: np.sum(parts, axis=0), *parts) for parts in (tops, bottoms)]
    return Excess(combined(_share, *sums), measured, refused)


def why_not_measurable(raw: Measurement) -> str | None:
    """Why a share of this leak of raw video would say nothing; None if it does say something."""
    leak = raw.above_floor()
    if np.isnan(leak.value):
        return "undefined on raw video"
    if leak.value < MEASURABLE:
        return f"raw video is {leak.value:.3f} above its floor, less than {MEASURABLE}"
    if len(leak.samples) and not leak.low > 0:
        return f"the interval of raw video above its floor, {leak.low:.3f} to {leak.high:.3f}, is not above 0"
    return None


def retention(top1: Estimate, raw: Estimate) -> Estimate:
    """top-1 / raw top-1."""
    return combined(_share, top1, raw)


@dataclass(frozen=True, eq=False)
class Point:
    """A method at one setting of its knob."""

    retention: Estimate
    leakage: Estimate
    knob: float | None = None
    measured: bool = True
    """False of raw video as the end of a curve: known without a run, and nothing that methods differ in."""


@dataclass(frozen=True, eq=False)
class LeakageAtRetention:
    """Leakage of a method at a given retention, or why it cannot be read."""

    leakage: Estimate | None
    reason: str | None = None
    ambiguous: bool = False
    """The curve passes this retention more than once."""
    next_to_raw: bool = False
    """It lies between raw video and the setting next to it."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two methods at the same retention."""

    retention: float
    first: LeakageAtRetention
    second: LeakageAtRetention
    difference: Difference | None
    """Leakage of the first minus the second; None if one of them does not reach this retention."""


def read(curve: Sequence[Point], at: Estimate, *, lucky: bool = False) -> LeakageAtRetention:
    """Leakage at a retention, by straight lines between neighbouring settings of the knob.

    Never beyond the ends: what a method does at a retention that it was not run at is not known; nor in a resample that
    does not reach it. A curve may pass a retention more than once, since retention need not fall evenly with the knob;
    a user does not know which of these settings is the lucky one, so the worst counts. `lucky`: the best does, as of
    the rival in a claim that something leaks less.
    """
    if not curve:
        raise UsageError("a method needs at least one point to be compared")
    must_pair(at, *(estimate for point in curve for estimate in (point.retention, point.leakage)))
    places = sorted(curve, key=lambda point: point.knob if point.knob is not None else 0.0)
    if len(places) > 1 and any(point.knob is None for point in places):
        raise UsageError("the points of a curve need the setting of their knob, to know which ones are neighbours")
    kept, leaked = [point.retention for point in places], [point.leakage for point in places]
    if len(places) == 1 and abs(kept[0].value - at.value) < 1e-9:
        return LeakageAtRetention(leaked[0])
    values = np.array([[one.value for one in row] for row in (kept, leaked)])  # (2, K)
    least, most = _crossings(values[0, None], values[1, None], np.array([at.value]))
    if np.isnan(most[0]):
        low, high = values[0].min(), values[0].max()
        reach = f"{low:.3f} to {high:.3f}" if len(places) > 1 else f"{low:.3f} only"
        return LeakageAtRetention(None, f"retention {at.value:.3f} is outside what was measured: {reach}")
    which = 0 if lucky else 1
    value = (least, most)[which][0]
    samples = np.stack([[one.samples for one in row] for row in (kept, leaked)]).swapaxes(1, 2)  # (2, B, K)
    reading = Estimate(float(value), _crossings(samples[0], samples[1], at.samples)[which], drawn=at.drawn)
    measured = values[:, [point.measured for point in places]]
    by_runs = _crossings(measured[0, None], measured[1, None], np.array([at.value]))[which][0]
    next_to_raw = not abs(by_runs - value) <= 1e-9  # NaN, too
    return LeakageAtRetention(reading, ambiguous=bool(most[0] - least[0] > 1e-9), next_to_raw=next_to_raw)


def compare(first: Sequence[Point], second: Sequence[Point], at: Sequence[float] = ()) -> list[Comparison]:
    """Two methods at equal retention: at those asked for, else wherever either was measured.

    A method without a knob is one point: the curve of the other is read at its retention. Where a curve passes a
    retention more than once, the most that the first leaks stands against the least that the second does.
    """
    like = first[0].retention
    if at and (len(first) == 1 or len(second) == 1):
        raise UsageError("a method without a knob has one retention of its own: leave out the one to compare at")
    if at:
        targets = [Estimate(value, np.full(len(like.samples), value), drawn=like.drawn) for value in at]
    elif len(first) == 1 or len(second) == 1:
        targets = [(first if len(first) == 1 else second)[0].retention]
    else:
        own = (point.retention for point in (*first, *second) if point.measured)
        targets = sorted(own, key=lambda one: -one.value)
    result = []
    for target in targets:
        one, other = read(first, target), read(second, target, lucky=True)
        both = None if one.leakage is None or other.leakage is None else difference(one.leakage, other.leakage)
        result.append(Comparison(target.value, one, other, both))
    return result


def usefulness(top1: Estimate, raw: Estimate, chance: float) -> Estimate:
    """u = (top-1 − chance) / (raw top-1 − chance), not clipped."""
    return combined(lambda value, full: _share(value - chance, full - chance), top1, raw)


def trade_off(points: Sequence[tuple[Estimate, Estimate]]) -> Estimate:
    """NHV of (usefulness, excess) of a method's operating points, which were fixed on validation.

    1 is all utility and no leakage. Raw video has no privacy, noise no utility: both get 0.
    """
    if not 1 <= len(points) <= OPERATING_POINTS:
        raise UsageError(f"the trade-off is of 1 to {OPERATING_POINTS} operating points, got {len(points)}")
    useful, leaking = zip(*points, strict=True)

    def area(*parts: Floats) -> Floats:
        u, e = np.stack(parts[: len(points)], axis=-1), np.stack(parts[len(points) :], axis=-1)
        return hypervolume(np.clip(u, 0, 1), np.clip(1 - e, 0, 1))

    return combined(area, *useful, *leaking)


def hypervolume(u: ArrayLike, p: ArrayLike) -> Floats:
    """Area of the union of the rectangles [0, uₖ] × [0, pₖ], exactly. (..., K) twice -> (...)

    From the right: between one u and the next smaller one the union is as high as the highest p so far.
    """
    wide, high = np.asarray(u, dtype=np.float64), np.asarray(p, dtype=np.float64)
    order = np.argsort(-wide, axis=-1)
    wide, high = np.take_along_axis(wide, order, axis=-1), np.take_along_axis(high, order, axis=-1)
    steps = wide - np.concatenate([wide[..., 1:], np.zeros_like(wide[..., :1])], axis=-1)
    area: Floats = (steps * np.maximum.accumulate(high, axis=-1)).sum(axis=-1)
    return area


def _share(part: Floats, whole: Floats) -> Floats:
    """part / whole, NaN where there is no whole to have a share of."""
    share: Floats = np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    return share


def _crossings(kept: Floats, leaked: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Least and most leakage where the line through the points passes a retention; NaN where it does not.

    (B, K), (B, K), (B,) -> (B,), (B,)
    """
    least, most = np.full(len(at), np.inf), np.full(len(at), -np.inf)
    for k in range(kept.shape[1] - 1):
        (r0, r1), (y0, y1) = kept[:, k : k + 2].T, leaked[:, k : k + 2].T
        inside = (np.minimum(r0, r1) <= at) & (at <= np.maximum(r0, r1))
        flat = r0 == r1  # the knob changed leakage alone: both ends are at this retention
        share = np.divide(at - r0, r1 - r0, out=np.zeros(len(at)), where=~flat)
        along = y0 + share * (y1 - y0)
        least = np.where(inside, np.minimum(least, np.where(flat, np.minimum(y0, y1), along)), least)
        most = np.where(inside, np.maximum(most, np.where(flat, np.maximum(y0, y1), along)), most)
    missed = np.isinf(most)
    return np.where(missed, np.nan, least), np.where(missed, np.nan, most)
