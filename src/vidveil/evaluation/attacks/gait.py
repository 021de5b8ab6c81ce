"""Gait: is the gallery walk that is most similar to a probe walk of the same person? Nothing is trained.

    rank-1 of (p, g)    share of the probe walks of view p whose nearest gallery walk of view g, by cosine, is of the
                        same person
    cross view          mean over the views p of probes of the mean over the other views g: the usual number, since
                        whoever is seen from one side is easily found from that side
    same view           g = p alone
    all views           the mean over all g, the same view included
    any view            one gallery of all views: a probe is looked up among all of it

A set has these where its tags are `gallery` (1: gallery, 0: probe) and `view`. Where its tag is `condition`, probes as
they are (nm), with a bag (bg) and in a coat (cl) have numbers of their own; the gallery is what the set says. Ties are
broken at random, and probes whose person is not in the gallery of a view are left out there, as in `linkage`.

**Floors.** By formula the hit of a gallery walk drawn at random. By permutation the people of the gallery are permuted,
each with all of their walks: an attacker that always takes somebody for the same other person is right about a few by
luck, and about all of their walks at once. Permuting single walks would make the range far too narrow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.progress import phase
from vidveil.data.clips import ClipSet, Split
from vidveil.data.readers.casia_b import CONDITIONS
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.measures.measured import choose, mean
from vidveil.evaluation.number import Number
from vidveil.evaluation.results import ByView
from vidveil.statistics import floors
from vidveil.statistics.linkage import LinkageSetup, nearest, rank
from vidveil.statistics.tradeoff import Measurement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Features = Mapping[str, Sequence[Mapping[str, NDArray[np.floating]]]]
"""(n, D) of each attacker, one entry per seed, by split."""
SCOPES = ("cross_view", "same_view", "all_views", "any_view")
ALL = -1  # the gallery of all views, in the last column
ENERGY_SIDE = 64


@dataclass(frozen=True, eq=False)
class GaitSequences:
    """Who walks, seen from where. All arrays have one entry per walk of one split."""

    person: Ints
    """0 to P − 1."""
    view: Ints
    gallery: NDArray[np.bool_]
    condition: Ints | None

    @classmethod
    def of(cls, data: ClipSet, split: Split) -> "GaitSequences":
        rows = data.indices(split)
        return cls(
            np.unique(data.person[rows], return_inverse=True)[1].astype(np.int64),
            data.tags["view"][rows],
            data.tags["gallery"][rows] == 1,
            data.tags["condition"][rows] if "condition" in data.tags else None,
        )

    @property
    def views(self) -> list[int]:
        return [int(view) for view in np.unique(self.view)]

    def conditions(self) -> dict[str, NDArray[np.bool_]]:
        """Probes of each condition, by what is appended to the name of a number."""
        if self.condition is None:
            return {"": ~self.gallery}
        each = {f"_{name}": ~self.gallery & (self.condition == number) for number, name in enumerate(CONDITIONS)}
        return {name: probes for name, probes in each.items() if probes.any()}


@dataclass(frozen=True, eq=False)
class GaitRanking:
    """Every probe looked up among the gallery walks of each view, and in the last column among all of them."""

    hit: Floats
    """(N, V + 1), NaN of gallery walks and where the person is not to be found."""
    chance: Floats
    """(N, V + 1) positives / gallery."""
    nearest: Ints
    """(N, V + 1) whose walk is the nearest, ties at random; -1 where nobody was asked."""


def look_up(features: NDArray[np.floating], walks: GaitSequences) -> GaitRanking:
    """One pair of views at a time: (N, D) -> what was found."""
    views = walks.views
    shape = len(walks.person), len(views) + 1
    hit, chance, near = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, -1, np.int64)
    for view in views:
        asked = np.flatnonzero(~walks.gallery & (walks.view == view))
        for column, among in enumerate((*views, ALL)):
            there = np.flatnonzero(walks.gallery & ((walks.view == among) | (among == ALL)))
            if not len(asked) or not len(there):
                continue
            rows = np.concatenate([asked, there])
            probes = np.arange(len(rows)) < len(asked)
            setup = LinkageSetup(person=walks.person[rows], probes=probes, among=~probes)
            found = rank(features[rows], setup, precision=False)
            first = nearest(features[rows], setup)[: len(asked), 0]
            hit[asked, column], chance[asked, column] = found.hit[: len(asked)], found.chance[: len(asked)]
            near[asked, column] = walks.person[rows[first]]
    return GaitRanking(hit, chance, np.where(np.isnan(hit), -1, near))


def columns(scope: str, view: int, views: Sequence[int]) -> list[int]:
    """Which galleries a probe of this view is looked up in."""
    own = views.index(view)
    every = list(range(len(views)))
    return {"cross_view": [g for g in every if g != own], "same_view": [own], "all_views": every, "any_view": [ALL]}[
        scope
    ]


class Gait:
    """Measures on the test walks of one set."""

    def __init__(self, measure: Measure) -> None:
        data = measure.data
        if missing := [tag for tag in ("gallery", "view") if tag not in data.tags]:
            raise DataError(f"{data.name} has no tag {missing[0]}: it has no gaits to look up")
        self.measure, self.data = measure, data
        self.walks: dict[str, GaitSequences] = {"test": GaitSequences.of(data, "test")}
        if not self.walks["test"].gallery.any() or self.walks["test"].gallery.all():
            raise DataError(f"{data.name} has no gallery among its test clips, or nothing to look up in it")
        if len(data.indices("val")):
            self.walks["val"] = GaitSequences.of(data, "val")

    @property
    def splits(self) -> tuple[Split, ...]:
        return ("val", "test") if "val" in self.walks else ("test",)

    @phase("gait: permutation tests and intervals")
    def numbers(self, features: Features) -> tuple[dict[str, Number], ByView]:
        """Each by the attacker that is best at it on validation people; by the first one, where the set has none."""
        found: dict[str, list[Mapping[str, GaitRanking]]] = {
            name: [{split: look_up(one[split], walks) for split, walks in self.walks.items()} for one in seeds]
            for name, seeds in features.items()
        }
        numbers, tables = {}, {}
        for suffix in self.walks["test"].conditions():
            for scope in SCOPES:
                if scope == "cross_view" and len(self.walks["test"].views) < 2:
                    continue
                numbers[f"gait_rank1_{scope}{suffix}"] = self._number(found, scope, suffix)
            first = numbers[f"gait_rank1_all_views{suffix}"].measured_by
            tables[suffix.strip("_") or "all"] = self._table([one["test"] for one in found[first]], suffix)
        return numbers, tables

    def _number(self, found: Mapping[str, Sequence[Mapping[str, GaitRanking]]], scope: str, suffix: str) -> Number:
        def value(name: str, split: str) -> float:
            walks = self.walks[split]
            if suffix not in walks.conditions():
                return float("nan")
            ones = np.ones((1, len(walks.person)))
            return mean([float(_mean(one[split].hit, walks, scope, suffix, ones)[0]) for one in found[name]])

        val = {name: value(name, "val") if "val" in self.walks else float("nan") for name in found}
        best = choose(val, "gait", fallback=True)
        walks, test = self.walks["test"], [one["test"] for one in found[best]]
        resamples = self.measure.resamples
        measured = resamples.statistic([_statistic(one.hit, walks, scope, suffix) for one in test])
        by_chance = resamples.statistic(_statistic(test[0].chance, walks, scope, suffix))
        floor = floors.over_seeds(
            [
                floors.floor_of(_permuted(one, walks, scope, suffix, self.measure.permutations), observed)
                for one, observed in zip(test, measured.per_seed, strict=True)
            ]
        )
        return Number(
            measured=Measurement("rank-1", measured, floor.value, by_chance),
            measured_by=best,
            others={name: {"test": value(name, "test"), "val": val[name]} for name in found},
            permuted=floor,
        )

    def _table(self, found: Sequence[GaitRanking], suffix: str) -> dict[str, dict[str, float]]:
        """Rank-1 by the view of the probe and that of the gallery, mean over seeds."""
        walks = self.walks["test"]
        table: dict[str, dict[str, float]] = {}
        for view in walks.views:
            asked = walks.conditions()[suffix] & (walks.view == view)
            hits = np.mean([one.hit[asked] for one in found], axis=0)  # (n, V + 1)
            each = [mean(known.tolist()) if len(known := hit[~np.isnan(hit)]) else float("nan") for hit in hits.T]
            table[f"{view:03d}"] = {f"{other:03d}": value for other, value in zip(walks.views, each, strict=False)}
        return table


def energy(data: ClipSet, splits: Sequence[Split]) -> dict[str, NDArray[np.floating]]:
    """The mean of all frames of each walk, in grey: of silhouettes the gait energy image (Han and Bhanu 2006)."""
    found: dict[str, NDArray[np.floating]] = {}
    for split in splits:
        pictures = []
        for row in data.indices(split):
            picture = data.videos.frames(int(row)).mean(axis=(0, 3), dtype=np.float32)
            pictures.append(np.asarray(cv2.resize(picture, (ENERGY_SIDE, ENERGY_SIDE), interpolation=cv2.INTER_AREA)))
        found[split] = np.stack(pictures).reshape(len(pictures), -1)
    return found


def _pairs(walks: GaitSequences, scope: str, suffix: str) -> Iterator[tuple[Ints, list[int]]]:
    """Probes of each view, and the galleries that they are looked up in."""
    for view in walks.views:
        asked = np.flatnonzero(walks.conditions()[suffix] & (walks.view == view))
        if len(asked):
            yield asked, columns(scope, view, walks.views)


def _statistic(values: Floats, walks: GaitSequences, scope: str, suffix: str) -> Callable[[Floats], Floats]:
    return lambda weights: _mean(values, walks, scope, suffix, weights)


def _mean(values: Floats, walks: GaitSequences, scope: str, suffix: str, weights: Floats) -> Floats:
    """Mean over views of probes of the mean over galleries, of walks with these weights. (B, N) -> (B,)"""
    by_probe = []
    for asked, among in _pairs(walks, scope, suffix):
        known = ~np.isnan(values[asked][:, among])  # (n, G)
        found = weights[:, asked] @ np.where(known, values[asked][:, among], 0.0)  # (B, G)
        by_probe.append(_mean_of_known(_ratio(found, weights[:, asked] @ known)))
    return _mean_of_known(np.stack(by_probe, axis=1)) if by_probe else np.full(len(weights), np.nan)


def _permuted(found: GaitRanking, walks: GaitSequences, scope: str, suffix: str, permutations: int) -> Floats:
    """The number under each permutation of the gallery's people.

    It depends on how often (in the weights of the mean) person i was taken for person j and on nothing else, so each
    permutation reads one entry of that matrix for every person.
    """
    people = int(walks.person.max(initial=-1)) + 1
    taken = np.zeros((people, people))
    pairs = [
        (asked[found.nearest[asked, g] >= 0], g, number)
        for number, (asked, among) in enumerate(_pairs(walks, scope, suffix))
        for g in among
    ]
    pairs = [pair for pair in pairs if len(pair[0])]
    galleries = np.bincount([number for *_, number in pairs], minlength=1)  # in which somebody of the view can be found
    for asked, g, number in pairs:
        share = 1 / (np.count_nonzero(galleries) * galleries[number] * len(asked))
        np.add.at(taken, (walks.person[asked], found.nearest[asked, g]), share)
    there = np.unique(walks.person[walks.gallery])
    rng = np.random.default_rng(0)
    permuted = rng.permuted(np.tile(there, (permutations, 1)), axis=1)  # (B, K) who they are now
    values: Floats = taken[permuted, there].sum(axis=1)
    return values


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    ratio: Floats = np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0)
    return ratio


def _mean_of_known(values: Floats) -> Floats:
    """Over the last axis, NaN left out."""
    known = ~np.isnan(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1).astype(np.float64))
