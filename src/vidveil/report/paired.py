"""Methods next to each other on the very same clips, in the same draws of people.

    difference          v₁ − v₂ of top-1 (or cMAP of actions), rank-1 and mAP
    at equal retention  excess₁(r) − excess₂(r), each read off its curve of (top-1 / raw top-1, excess of linkage)
    at a retention      the same at r = 0.97 and 0.95, of linkage, of attributes, and of their mean, the leak
    NHV                 area under the staircase of (usefulness, 1 − excess) over the settings of a method

Intervals of two runs that overlap do not mean that the methods are alike: who is hard to recognise is so for both, and
cancels in the difference. Every share is one of the run's own raw video, and every floor the one that the run found.

A mask that keeps everything leaves raw video, pixel by pixel. So the curve of a method that hides by a mask ends at
retention 1 and excess 1, without a run at keep 1; unless what it keeps is not shown as it was filmed, but drawn anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vidveil.core.errors import DataError
from vidveil.evaluation.results import Point, utility_in
from vidveil.methods.masking.ground_truth import ALL_KEPT
from vidveil.report.same_clips import COMPARED, RANK1, Run
from vidveil.report.tables import setting
from vidveil.statistics.intervals import Difference, Estimate, Resamples, combined, difference
from vidveil.statistics.tradeoff import (
    OPERATING_POINTS,
    Comparison,
    Excess,
    Measurement,
    compare,
    excess,
    read,
    retention,
    trade_off,
    usefulness,
)
from vidveil.statistics.tradeoff import Point as TradeoffPoint

RETENTIONS = (0.97, 0.95)
"""Shares of raw top-1 at which methods are compared: nobody deploys what costs more than a twentieth of the utility."""
Leakage = Literal["linkage", "attributes", "leak"]
ALL = 1.0
"""The keep rate at which a mask hides nothing."""
SAME_SHARE = 0.01
"""Of all tubelets: several selections round up several times."""
LEAKAGES: tuple[Leakage, ...] = ("linkage", "attributes", "leak")


@dataclass(frozen=True, eq=False)
class Setting:
    """A method at one setting of its knob."""

    label: str
    keep: float | None
    numbers: dict[str, Estimate]
    retention: Estimate | None
    usefulness: Estimate | None
    excess: Excess | None
    attributes: Estimate | None
    """Excess over all measurable attributes together."""
    share: float | None
    """Of all tubelets that are kept, where the method hides by a mask."""
    by_seed: tuple[tuple[float, float], ...] = ()
    """Retention and excess of linkage of each seed, as shares of raw video's means."""
    as_filmed: bool = True
    """Whether what a mask keeps is shown as it was filmed."""

    def keeps_as_much_as(self, other: "Setting") -> bool:
        """A keep rate may be a share of all tubelets, or of those that each of several selections finds: where both
        shares are known they decide, and not the rates."""
        if self.share is None or other.share is None:
            return self.keep == other.keep
        return abs(self.share - other.share) <= SAME_SHARE

    def leakage(self, of: Leakage) -> Estimate | None:
        linkage = self.excess.estimate if self.excess else None
        if of == "linkage":
            return linkage
        if of == "attributes":
            return self.attributes
        if linkage is None or self.attributes is None:
            return None
        return combined(lambda one, other: (one + other) / 2, linkage, self.attributes)


@dataclass(frozen=True, eq=False)
class Method:
    """What one run evaluated."""

    name: str
    settings: list[Setting]
    raw: dict[str, Estimate]

    def why_no_curve(self, of: Leakage = "linkage") -> str | None:
        """Why there is no leakage over retention; None if there is."""
        for one in self.settings:
            if one.retention is None:
                return "the action was not measured"
            if of != "attributes" and one.excess is None:
                return "nobody tried to link its clips"
            if of != "attributes" and one.excess and one.excess.estimate is None:
                return "; ".join(one.excess.not_measurable.values())
            if of != "linkage" and one.attributes is None:
                return "no excess of attributes was measured, or not in the same draws of people"
        return None

    def curve(self, of: Leakage = "linkage") -> list[TradeoffPoint]:
        places = ((one.retention, one.leakage(of), one.keep) for one in self.settings)
        return self._to_raw([TradeoffPoint(kept, leaked, keep) for kept, leaked, keep in places if kept and leaked])

    def curve_of_seed(self, seed: int) -> list[TradeoffPoint]:
        """Excess of linkage over retention, of one training, without draws of people."""
        pairs = ((one.by_seed[seed], one.keep) for one in self.settings)
        exact = (
            TradeoffPoint(Estimate(utility, np.empty(0)), Estimate(leak, np.empty(0)), keep)
            for (utility, leak), keep in pairs
        )
        return self._to_raw(list(exact))

    def _to_raw(self, measured: list[TradeoffPoint]) -> list[TradeoffPoint]:
        if not measured or not self.ends_raw:
            return measured
        like = measured[0].retention
        whole = Estimate(1.0, np.ones(len(like.samples)), drawn=like.drawn)
        return [*measured, TradeoffPoint(whole, whole, ALL, measured=False)]

    @property
    def ends_raw(self) -> bool:
        """Whether raw video is one end of its curve: it hides by a mask, at keep rates that were given, and shows what
        it keeps as it was filmed. A run at keep 1 stands for itself."""
        masks = all(one.share is not None and one.as_filmed for one in self.settings)
        return masks and all(one.keep is not None and one.keep < ALL for one in self.settings)


@dataclass(frozen=True, eq=False)
class Pair:
    """One number of two settings, and how they differ."""

    metric: str
    settings: tuple[str, str]
    first: Estimate
    second: Estimate
    difference: Difference


@dataclass(frozen=True, eq=False)
class Area:
    """NHV of a method, or why it has none."""

    points: int
    estimate: Estimate | None
    reason: str = ""


def method(run: Run, draws: Resamples) -> Method:
    """Everything that is compared, of every setting of a run."""
    raw = _numbers(run, run.results.raw, draws)
    return Method(run.name, [_setting(run, point, raw, draws) for point in run.results.points], raw)


def differences(first: Method, second: Method) -> list[Pair]:
    """Where both keep as much; where one of the methods has one setting only, with each setting of the other."""
    alone = min(len(first.settings), len(second.settings)) == 1
    return [
        Pair(metric, (one.label, two.label), a, b, difference(a, b))
        for one in first.settings
        for two in second.settings
        if alone or one.keeps_as_much_as(two)
        for metric in COMPARED
        if (a := one.numbers.get(metric)) and (b := two.numbers.get(metric))
    ]


def at_equal_retention(first: Method, second: Method) -> list[Comparison]:
    """Excess of linkage wherever either method was measured, by falling retention. DataError where nothing can be."""
    for one in (first, second):
        if reason := one.why_no_curve():
            raise DataError(f"{one.name} has no excess to read at a retention: {reason}")
    return compare(first.curve(), second.curve())


def compared_with_curve(one: Setting, other: Method, of: Leakage = "linkage") -> Comparison | None:
    """A single setting minus another method, whose curve is read at the same retention; None if the setting has no such
    leakage."""
    leaked = one.leakage(of)
    if one.retention is None or leaked is None:
        return None
    return compare([TradeoffPoint(one.retention, leaked, one.keep)], other.curve(of))[0]


@dataclass(frozen=True, eq=False)
class AtRetention:
    """Two methods at a retention that was asked for: how much leaks, and how they differ."""

    retention: float
    leakage: Leakage
    compared: Comparison | None
    reasons: tuple[str, ...] = ()
    """Why there is no difference."""
    seeds: tuple[float, ...] = ()
    """The difference of linkage, training by training; NaN where a curve of one does not reach."""


def at_retention(first: Method, second: Method, at: Sequence[float] = RETENTIONS) -> list[AtRetention]:
    """Excess of linkage, of attributes and their mean, where both methods keep so much of raw top-1.

    Each is read off the straight lines between settings, and from the mildest setting of a mask to raw video, in each
    draw of people anew; the draws are the same for both methods, and seeds are averaged. Nothing is read where a curve
    does not reach.
    """
    found = []
    for share in at:
        for of in LEAKAGES:
            missing = [f"of {one.name}, {why}" for one in (first, second) if (why := one.why_no_curve(of))]
            if missing:
                found.append(AtRetention(share, of, None, tuple(missing)))
                continue
            like = first.settings[0].retention
            assert like is not None
            target = Estimate(share, np.full(len(like.samples), share), drawn=like.drawn)
            one, two = read(first.curve(of), target), read(second.curve(of), target, lucky=True)
            minus = difference(one.leakage, two.leakage) if one.leakage and two.leakage else None
            sides = ((first.name, one.reason), (second.name, two.reason))
            reasons = tuple(f"of {name}, {reason}" for name, reason in sides if reason)
            seeds = by_seed(first, second, share) if of == "linkage" else ()
            found.append(AtRetention(share, of, Comparison(share, one, two, minus), reasons, seeds))
    return found


def by_seed(first: Method, second: Method, at: float) -> tuple[float, ...]:
    """Excess of linkage of the first minus the second at a retention, of each seed that both were evaluated with."""
    target = Estimate(at, np.empty(0))
    count = min(len(one.by_seed) for side in (first, second) for one in side.settings)
    differences = []
    for seed in range(count):
        one = read(first.curve_of_seed(seed), target).leakage
        two = read(second.curve_of_seed(seed), target, lucky=True).leakage
        differences.append(one.value - two.value if one and two else float("nan"))
    return tuple(differences)


def area(one: Method) -> Area:
    """NHV over all settings of a run."""
    count = len(one.settings)
    if reason := one.why_no_curve():
        return Area(count, None, reason)
    if count > OPERATING_POINTS:
        return Area(count, None, f"of at most {OPERATING_POINTS} operating points, fixed on validation")
    points = [
        (point.usefulness, point.excess.estimate)
        for point in one.settings
        if point.usefulness and point.excess and point.excess.estimate
    ]
    return Area(count, trade_off(points))


def _setting(run: Run, point: Point, raw: dict[str, Estimate], draws: Resamples) -> Setting:
    numbers, before = _numbers(run, point, draws), run.results.raw
    kept = useful = left = None
    utility = utility_in(numbers)
    if utility is not None and utility in raw:
        kept = retention(numbers[utility], raw[utility])
        useful = usefulness(numbers[utility], raw[utility], before.metrics[utility].floor)
    if RANK1 in numbers and RANK1 in raw:
        left = excess(_leak(run, point, numbers[RANK1], draws), _leak(run, before, raw[RANK1], draws))
    attributes = _attributes(run, point, draws)
    share = point.metrics[ALL_KEPT].value if ALL_KEPT in point.metrics else None
    seeds = _by_seed(numbers, raw, point, before, utility) if utility and kept and left and left.estimate else ()
    filmed = point.kept_as_filmed is not False
    return Setting(setting(point), point.keep, numbers, kept, useful, left, attributes, share, seeds, filmed)


def _by_seed(
    numbers: dict[str, Estimate], raw: dict[str, Estimate], point: Point, before: Point, utility: str
) -> tuple[tuple[float, float], ...]:
    floor, whole = point.metrics[RANK1].floor, raw[RANK1].value - before.metrics[RANK1].floor
    pairs = zip(numbers[utility].per_seed, numbers[RANK1].per_seed, strict=False)
    return tuple((value / raw[utility].value, (leak - floor) / whole) for value, leak in pairs)


def _attributes(run: Run, point: Point, draws: Resamples) -> Estimate | None:
    """As the evaluation found it. Its draws are those of the report, if they are as many: the people are the same."""
    samples = run.attribute_draws(point)
    if point.attribute_excess is None or samples is None or len(samples) != len(draws.counts):
        return None
    return Estimate(point.attribute_excess, samples, drawn=draws.drawn)


def _numbers(run: Run, point: Point, draws: Resamples) -> dict[str, Estimate]:
    return {name: draws.mean(run.values(point, name)) for name in COMPARED if name in point.metrics}


def _leak(run: Run, point: Point, value: Estimate, draws: Resamples) -> Measurement:
    chance = run.chance(point, RANK1)
    floor: float | None = point.metrics[RANK1].floor  # null in the file where nothing was measured
    known = float("nan") if floor is None else floor
    return Measurement("rank-1", value, known, None if chance is None else draws.mean(chance))
