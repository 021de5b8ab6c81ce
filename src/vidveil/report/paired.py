"""Methods beside each other on the very same clips, in the same draws of people.

    difference          v₁ − v₂ of top-1, rank-1 and mAP
    at equal retention  excess₁(r) − excess₂(r), each read off its curve of (top-1 / raw top-1, excess of linkage)
    NHV                 area under the staircase of (usefulness, 1 − excess) over the settings of a method

Intervals of two runs that overlap do not mean that the methods are alike: who is hard to recognise is so for both, and
cancels in the difference. Every share is one of the run's own raw video, and every floor the one that the run found.
"""

from dataclasses import dataclass

from vidveil.errors import DataError
from vidveil.evaluation.intervals import Difference, Estimate, Resamples, difference
from vidveil.evaluation.results import Point
from vidveil.evaluation.tradeoff import (
    OPERATING_POINTS,
    Comparison,
    Excess,
    Leak,
    compare,
    excess,
    retention,
    trade_off,
    usefulness,
)
from vidveil.evaluation.tradeoff import Point as Place
from vidveil.report.same_clips import COMPARED, RANK1, TOP1, Run
from vidveil.report.tables import setting


@dataclass(frozen=True, eq=False)
class Setting:
    """A method at one setting of its knob."""

    label: str
    keep: float | None
    numbers: dict[str, Estimate]
    retention: Estimate | None
    usefulness: Estimate | None
    excess: Excess | None


@dataclass(frozen=True, eq=False)
class Method:
    """What one run judged."""

    name: str
    settings: list[Setting]
    raw: dict[str, Estimate]

    def why_no_curve(self) -> str | None:
        """Why there is no leakage over retention; None if there is."""
        for one in self.settings:
            if one.retention is None:
                return "the action was not measured"
            if one.excess is None:
                return "nobody tried to link its clips"
            if one.excess.estimate is None:
                return "; ".join(one.excess.not_measurable.values())
        return None

    def curve(self) -> list[Place]:
        return [
            Place(one.retention, one.excess.estimate, one.keep)
            for one in self.settings
            if one.retention and one.excess and one.excess.estimate
        ]


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
    """At the same keep rate; where one of the methods has one setting only, with each setting of the other."""
    alone = min(len(first.settings), len(second.settings)) == 1
    return [
        Pair(metric, (one.label, two.label), a, b, difference(a, b))
        for one in first.settings
        for two in second.settings
        if alone or one.keep == two.keep
        for metric in COMPARED
        if (a := one.numbers.get(metric)) and (b := two.numbers.get(metric))
    ]


def at_equal_retention(first: Method, second: Method) -> list[Comparison]:
    """Excess of linkage wherever either method was measured, by falling retention. DataError where nothing can be."""
    for one in (first, second):
        if reason := one.why_no_curve():
            raise DataError(f"{one.name} has no excess to read at a retention: {reason}")
    return compare(first.curve(), second.curve())


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
    if TOP1 in numbers and TOP1 in raw:
        kept = retention(numbers[TOP1], raw[TOP1])
        useful = usefulness(numbers[TOP1], raw[TOP1], before.metrics[TOP1].floor)
    if RANK1 in numbers and RANK1 in raw:
        left = excess(_leak(run, point, numbers[RANK1], draws), _leak(run, before, raw[RANK1], draws))
    return Setting(setting(point), point.keep, numbers, kept, useful, left)


def _numbers(run: Run, point: Point, draws: Resamples) -> dict[str, Estimate]:
    return {name: draws.mean(run.values(point, name)) for name in COMPARED if name in point.metrics}


def _leak(run: Run, point: Point, value: Estimate, draws: Resamples) -> Leak:
    chance = run.chance(point, RANK1)
    floor: float | None = point.metrics[RANK1].floor  # null in the file where nothing was measured
    known = float("nan") if floor is None else floor
    return Leak("rank-1", value, known, None if chance is None else draws.mean(chance))
