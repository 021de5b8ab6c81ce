"""Whom a recognizer serves better: the action of each subgroup of test people, and the gap between the two.

    top-1 of f, of m     share of the clips of those people whose action is predicted rightly
    mean per class       the same in each class, then averaged: where some actions are rare, top-1 hardly counts them.
                         Of subgroups over the classes that both are tested on, so that both have the same task
    gap                  |f − m|

A set has them where its tag `subgroup` (0 f, 1 m, -1 unknown) names two test people of each, at least. Where the tag
`shortcut` marks one action, whose people are of the other subgroup than everywhere else, that action has numbers of its
own.

**Two groups of people always differ.** So the floor of a gap is the gap between people who were put in two groups at
random, as large as the subgroups are. Of a few people it is high, and a gap inside its range means nothing.

**An absolute value is never below 0**, so its interval would not reach 0 even where there is no gap. The interval is
that of the difference in the direction in which it was found: where it reaches below 0, other people may turn it round.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.core.progress import phase
from vidveil.data.readers.annotations import SUBGROUPS
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.measures.measured import log_of, on_test
from vidveil.evaluation.number import Number
from vidveil.statistics import floors, metrics
from vidveil.statistics.intervals import Estimate
from vidveil.statistics.tradeoff import Measurement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SUBGROUP, SHORTCUT = "subgroup", "shortcut"
GAP = "gap"
FEWEST = 2  # people of each subgroup: one is no group


@dataclass(frozen=True, eq=False)
class HitCounts:
    """Hits by person and class: all that these numbers depend on."""

    hits: Floats
    """(S, P, C) summed over clips, one table per seed."""
    clips: Floats
    """(P, C)"""
    per_class: bool

    def of(self, weights: Floats, seed: int) -> Floats:
        """Top-1, or the mean over classes, of people with these weights. (B, P) -> (B,)"""
        found, seen = weights @ self.hits[seed], weights @ self.clips  # (B, C)
        if not self.per_class:
            found, seen = found.sum(axis=1, keepdims=True), seen.sum(axis=1, keepdims=True)
        each = np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)
        there = (seen > 0).sum(axis=1)  # classes that somebody of them does
        mean: Floats = np.divide(each.sum(axis=1), there, out=np.full(len(each), np.nan), where=there > 0)
        return mean


@phase("subgroups: permutation tests and intervals")
def subgroups(measure: Measure, action: Number, learned: Sequence[TrainedNetwork]) -> dict[str, Number]:
    """Next to `action`, the top-1 that `learned` has, one entry per seed. Empty where no subgroups are known."""
    tags, rows = measure.data.tags, measure.rows
    if SUBGROUP not in tags or action.per_clip is None or measure.data.action_labels is not None:
        return {}  # of several actions at once there is no hit of a clip
    if too_few(measure):
        return {}
    member = tags[SUBGROUP][rows]
    truth, hits = measure.data.action[rows], action.per_clip
    found = _Subgroups(measure, member, action).numbers("action_top1", truth, hits)
    found["action_class_mean"] = _Subgroups(measure, np.zeros_like(member), action).of_everybody(truth, hits)
    both = set.intersection(*(set(truth[member == number].tolist()) for number in range(len(SUBGROUPS))))
    if len(both) > 1:
        common = np.isin(truth, list(both))
        alike = _Subgroups(measure, np.where(common, member, -1), action)
        found |= alike.numbers("action_class_mean", truth, np.where(common, hits, np.nan), per_class=True)
    marked = tags[SHORTCUT][rows] == 1 if SHORTCUT in tags else np.zeros(len(rows), np.bool_)
    if set(member[marked].tolist()) >= set(range(len(SUBGROUPS))):
        found |= _shortcut(measure, member, action, learned, marked)
    return found


def too_few(measure: Measure) -> str:
    """Why subgroups that a set has are not measured; empty where they are, or where it has none."""
    if SUBGROUP not in measure.data.tags:
        return ""
    member = measure.data.tags[SUBGROUP][measure.rows]
    if not (member >= 0).any():
        return ""
    counts = [len(np.unique(measure.people[member == number])) for number in range(len(SUBGROUPS))]
    if min(counts) >= FEWEST:
        return ""
    tested = " and ".join(f"{count} {name}" for count, name in zip(counts, SUBGROUPS, strict=True))
    return f"accuracy by subgroup is not measured: {tested} are tested, and two of each are needed"


def _shortcut(
    measure: Measure, member: Ints, action: Number, learned: Sequence[TrainedNetwork], marked: NDArray[np.bool_]
) -> dict[str, Number]:
    """Of the one action. Always predicting it would find all of it: the floor is how often it is predicted at all."""
    truth = measure.data.action[measure.rows]
    (which,) = np.unique(truth[marked])
    everywhere = np.full(len(truth), which)
    logs = [log_of(on_test(one).probabilities["action"]) for one in learned]
    predicted = np.stack([metrics.top1_hits(each, everywhere) for each in logs])
    assert action.per_clip is not None
    only = _Subgroups(measure, np.where(marked, member, -1), action)
    found = only.numbers("action_top1_shortcut", truth, np.where(marked, action.per_clip, np.nan))
    for number, name in enumerate(SUBGROUPS):
        these = member == number
        found[f"action_top1_shortcut_{name}"] = only.share(
            np.where(marked & these, action.per_clip, np.nan),
            floor=float(predicted[:, these].mean()),
            formula=float((truth[these] == which).mean()),
        )
    return found


class _Subgroups:
    """Numbers of one kind, over the clips whose `member` is not -1."""

    def __init__(self, measure: Measure, member: Ints, action: Number) -> None:
        self.measure, self.member, self.action = measure, member, action
        self.first = np.unique(measure.resamples.row, return_index=True)[1]  # a clip of each person

    def numbers(self, name: str, truth: Ints, hits: Floats, *, per_class: bool = False) -> dict[str, Number]:
        """`name_f`, `name_m`, `name_gap`."""
        tally = self._tally(truth, hits, per_class=per_class)
        found = {}
        for number, group in enumerate(SUBGROUPS):
            these = truth[self.member == number]
            floor = 1 / len(np.unique(these)) if per_class else floors.largest_class(these)
            if per_class:
                found[f"{name}_{group}"] = self._class_mean(tally, self._people(number), floor)
            else:
                found[f"{name}_{group}"] = self.share(np.where(self.member == number, hits, np.nan), floor)
        return found | {f"{name}_{GAP}": self._gap(tally)}

    def of_everybody(self, truth: Ints, hits: Floats) -> Number:
        """The mean per class over all classes, also of people whose subgroup is unknown."""
        tally = self._tally(truth, hits, per_class=True)
        return self._class_mean(tally, np.ones(len(self.first)), 1 / len(np.unique(truth)))

    def share(self, hits: Floats, floor: float, formula: float | None = None) -> Number:
        """A mean over clips; those with NaN are not asked about. (S, N)"""
        value = self.measure.resamples.mean(hits)
        return self._number(value, floor, formula, per_clip=hits)

    def _class_mean(self, tally: HitCounts, people: Floats, floor: float) -> Number:
        value = self.measure.resamples.statistic([self._drawn(tally, people, seed) for seed in range(len(tally.hits))])
        return self._number(value, floor)

    def _drawn(self, tally: HitCounts, people: Floats, seed: int) -> Callable[[Floats], Floats]:
        return lambda weights: tally.of(weights[:, self.first] * people, seed)

    def _number(
        self, value: Estimate, floor: float, formula: float | None = None, per_clip: Floats | None = None
    ) -> Number:
        return Number(
            measured=Measurement("top-1", value, floor),
            formula=formula,
            measured_by=self.action.measured_by,
            others={},
            kind="utility",
            per_clip=per_clip,
        )

    def _gap(self, tally: HitCounts) -> Number:
        f, m = (self._people(number) for number in range(len(SUBGROUPS)))
        seeds = range(len(tally.hits))

        def minus(seed: int) -> Callable[[Floats], Floats]:
            one, other = self._drawn(tally, f, seed), self._drawn(tally, m, seed)
            return lambda weights: one(weights) - other(weights)

        signed = self.measure.resamples.statistic([minus(seed) for seed in seeds])
        sign = -1.0 if signed.value < 0 else 1.0
        value = Estimate(
            abs(signed.value), sign * signed.samples, tuple(sign * s for s in signed.per_seed), signed.drawn
        )
        known = np.flatnonzero(f + m)  # people of a subgroup; the others are in neither group
        rng = np.random.default_rng(0)
        permuted = rng.permuted(np.tile(f[known], (self.measure.permutations, 1)), axis=1)  # (B, K)
        by_chance, others = (np.zeros((len(permuted), len(f))) for _ in range(2))
        by_chance[:, known], others[:, known] = permuted, 1 - permuted
        gaps = np.mean([tally.of(by_chance, seed) - tally.of(others, seed) for seed in seeds], axis=0)
        floor = floors.floor_of(np.abs(gaps), value.value)
        better = SUBGROUPS[int(sign < 0)]
        return Number(
            measured=Measurement(GAP, value, floor.value),
            permuted=floor,
            measured_by=self.action.measured_by,
            others={},
            kind="gap",
            note=f"{better} is higher" if value.value else "",
        )

    def _people(self, number: int) -> Floats:
        """(P,) 1 for who is of a subgroup."""
        found: Floats = (np.bincount(self.measure.resamples.row, weights=self.member == number) > 0).astype(np.float64)
        return found

    def _tally(self, truth: Ints, hits: Floats, *, per_class: bool) -> HitCounts:
        counted = self.member >= 0
        people, classes = len(self.first), len(self.measure.data.actions)
        cell = (self.measure.resamples.row * classes + truth)[counted]
        shape = people, classes
        clips = np.bincount(cell, minlength=people * classes).reshape(shape).astype(np.float64)
        tables = [np.bincount(cell, weights=row[counted], minlength=people * classes).reshape(shape) for row in hits]
        return HitCounts(np.stack(tables), clips, per_class)
