"""From what networks said of clips to numbers: the strongest attacker, chosen on validation, with floor and interval.

Which attacker stands behind a number is decided by the mean over seeds of its score on **validation** people. Its
number on test people is then looked at once; those of the others stand beside it, for the reader, and decide nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vidveil.data.clips import ClipSet, Split
from vidveil.evaluation import floors, metrics
from vidveil.evaluation.intervals import Estimate, Resamples, combined
from vidveil.evaluation.learner import Learned
from vidveil.evaluation.linkage import Clothes, Lineup, Linkage, rank
from vidveil.evaluation.projections import lda, whitening
from vidveil.evaluation.tradeoff import Leak
from vidveil.tasks import Predictions

Floats = NDArray[np.float64]
CLOTHES: dict[str, Clothes] = {"_same_clothes": "same", "_changed_clothes": "changed"}


@dataclass(frozen=True)
class Number:
    """A measured number and everything that another one needs to be set beside it."""

    leak: Leak
    """Value with its resamples, floor and chance. (Of a utility metric, too: the arithmetic is the same.)"""
    floor_range: tuple[float, float]
    measured_by: str
    others: dict[str, dict[str, float]] = field(default_factory=dict)
    per_clip: Floats | None = None
    """(S, N) what the number is the mean of, where it is one: for paired comparisons with other runs."""
    p: float | None = None
    """Share of permutations of the labels that reach the value."""
    chance_per_clip: Floats | None = None
    """(N,) what its floor by formula is the mean of."""


@dataclass(frozen=True)
class Crossing:
    """Anonymized and raw clips in one space, by split."""

    probes: Mapping[str, Floats]
    gallery: Mapping[str, Floats]


class Measure:
    """Measures on the test clips of one set, always with the same draws of people: all numbers can be paired."""

    def __init__(self, data: ClipSet, *, permutations: int, resamples: int) -> None:
        self.data = data
        self.rows = data.indices("test")
        self.permutations = permutations
        known = data.person[self.rows] >= 0  # else the group that the clip was split by is the best guess of who
        self.people = np.where(known, data.person[self.rows].astype(str), data.group[self.rows])
        self.resamples = Resamples(self.people, resamples=resamples)

    def action(self, networks: Mapping[str, Sequence[Learned]]) -> Number:
        """Top-1, by the network that is best on validation."""
        truth = self.data.action[self.rows]
        hits = {
            name: np.stack([metrics.top1_hits(_log(_test(one).probabilities["action"]), truth) for one in learned])
            for name, learned in networks.items()
        }
        val = {name: _mean([one.scores["action"] for one in learned]) for name, learned in networks.items()}
        best = max(val, key=lambda name: val[name])
        tried = {name: {"test": float(hits[name].mean()), "val": val[name]} for name in networks}
        floor = floors.largest_class(truth)  # higher than what permuted labels give: always saying that class is no use
        return Number(Leak("top-1", self.resamples.mean(hits[best]), floor), (floor, floor), best, tried, hits[best])

    # ---- linkage

    def lineup(self, split: Split, clothes: Clothes = "any") -> Lineup:
        rows = self.data.indices(split)
        return Lineup(
            person=self.data.person[rows],
            rule=self.data.gallery,
            action=self.data.action[rows],
            outfit=self.data.tags["outfit"][rows] if "outfit" in self.data.tags else None,
            clothes=clothes,
        )

    def linkage(self, attackers: Mapping[str, Sequence[Learned]]) -> dict[str, Number]:
        """Rank-1 and mAP by the strongest attacker in its best space; with same and changed clothes, where known."""
        lineups = {split: self.lineup(split) for split in ("val", "test")}
        spaces: dict[str, list[dict[str, Floats]]] = {}  # attack → one a seed → split → embeddings
        for name, learned in attackers.items():
            each = [self._spaces(one) for one in learned]
            spaces |= {f"{name}, {space}": [one[space] for one in each] for space in each[0]}
        val = {name: _mean([rank(one["val"], lineups["val"]).rank1 for one in seeds]) for name, seeds in spaces.items()}
        best = max(val, key=lambda name: val[name])
        test = {name: [rank(one["test"], lineups["test"]) for one in seeds] for name, seeds in spaces.items()}
        tried = {name: {"test": _mean([one.rank1 for one in test[name]]), "val": val[name]} for name in spaces}
        embeddings = [one["test"] for one in spaces[best]]
        found = {"linkage_rank1": self._rank1(embeddings, lineups["test"], test[best], best, tried)}
        found["linkage_map"] = self._map(embeddings, lineups["test"], test[best], best)
        for suffix, clothes in CLOTHES.items() if "outfit" in self.data.tags else ():
            lineup = self.lineup("test", clothes)
            ranked = [rank(embedding, lineup) for embedding in embeddings]
            found["linkage_rank1" + suffix] = self._rank1(embeddings, lineup, ranked, best, {})
        return found

    def raw_gallery(self, crossings: Mapping[str, Sequence[Crossing]]) -> Number:
        """Rank-1 of anonymized probes among raw clips: what somebody gets who has the person's ordinary videos."""
        lineups = {split: self.lineup(split) for split in ("val", "test")}

        def ranked(name: str, split: Split) -> list[Linkage]:
            return [rank(one.probes[split], lineups[split], gallery=one.gallery[split]) for one in crossings[name]]

        val = {name: _mean([one.rank1 for one in ranked(name, "val")]) for name in crossings}
        best = max(val, key=lambda name: val[name])
        found = {name: ranked(name, "test") for name in crossings}
        tried = {name: {"test": _mean([one.rank1 for one in found[name]]), "val": val[name]} for name in crossings}
        probes, gallery = ([getattr(one, side)["test"] for one in crossings[best]] for side in ("probes", "gallery"))
        return self._rank1(probes, lineups["test"], found[best], best, tried, gallery)

    def _spaces(self, learned: Learned) -> dict[str, dict[str, Floats]]:
        """The test and validation embeddings as they are, whitened, and in the discriminants of training people."""
        train = learned.predictions["train"]
        maps: dict[str, Callable[[NDArray[np.float32]], Floats]] = {
            "cosine": lambda features: features.astype(np.float64),
            "whitened": whitening(train.features),
            "LDA": lda(train.features, self.data.person[train.rows]),
        }
        said = learned.predictions
        return {name: {split: to(said[split].features) for split in ("val", "test")} for name, to in maps.items()}

    def _rank1(
        self,
        embeddings: Sequence[Floats],
        lineup: Lineup,
        ranked: Sequence[Linkage],
        name: str,
        tried: dict[str, dict[str, float]],
        galleries: Sequence[Floats] | None = None,
    ) -> Number:
        among: Sequence[Floats | None] = galleries or [None] * len(embeddings)
        floor = floors.over_seeds(
            [
                floors.linkage_floor(embedding, lineup, one, gallery=gallery, permutations=self.permutations)
                for embedding, one, gallery in zip(embeddings, ranked, among, strict=True)
            ]
        )
        hits = np.stack([one.hit for one in ranked])
        leak = Leak("rank-1", self.resamples.mean(hits), floor.value, self.resamples.mean(ranked[0].chance))
        return Number(leak, (floor.low, floor.high), name, tried, hits, floor.p, ranked[0].chance)

    def _map(self, embeddings: Sequence[Floats], lineup: Lineup, ranked: Sequence[Linkage], name: str) -> Number:
        floor = floors.over_seeds(
            [
                floors.linkage_map_floor(embedding, lineup, one, permutations=self.permutations)
                for embedding, one in zip(embeddings, ranked, strict=True)
            ]
        )
        precision = np.stack([one.average_precision for one in ranked])
        queries = ranked[0].queries
        expected = np.full(len(queries), np.nan)
        expected[queries] = floors.expected_average_precision(ranked[0].positives[queries], ranked[0].gallery[queries])
        leak = Leak("mAP", self.resamples.mean(precision), floor.value, self.resamples.mean(expected))
        return Number(leak, (floor.low, floor.high), name, {}, precision, floor.p, expected)

    # ---- attributes

    def attributes(self, attackers: Mapping[str, Sequence[Learned]]) -> tuple[dict[str, Number], list[str]]:
        """AP and AUROC of every attribute by its strongest attacker, cMAP and F1 by the strongest of all; and the
        attributes that are constant in test, which are left out."""
        names, truth = list(self.data.attribute_names), self.data.attributes[self.rows].astype(np.float64)
        alive = metrics.varying(truth)
        found: dict[str, Number] = {}
        for a, name in enumerate(names):
            if alive[a]:
                best, tried = self._strongest(attackers, a, truth)
                scores = [_logit(_test(one).probabilities["attributes"][:, a]) for one in attackers[best]]
                found[f"ap_{name}"] = self._attribute(metrics.average_precision, truth[:, a], scores, best, tried)
                found[f"auroc_{name}"] = self._attribute(metrics.auroc, truth[:, a], scores, best, {})
        if alive.any():
            found |= self._together(attackers, truth, alive)
        return found, [name for a, name in enumerate(names) if not alive[a]]

    def _strongest(
        self, attackers: Mapping[str, Sequence[Learned]], column: int, truth: Floats
    ) -> tuple[str, dict[str, dict[str, float]]]:
        tried = {}
        for name, learned in attackers.items():
            val = _mean([self._val_precision(one, column) for one in learned])
            scores = [_logit(_test(one).probabilities["attributes"][:, column]) for one in learned]
            test = _mean([float(metrics.average_precision(truth[:, column], each)) for each in scores])
            tried[name] = {"test": test, "val": val}
        return max(tried, key=lambda name: np.nan_to_num(tried[name]["val"], nan=-1.0)), tried

    def _val_precision(self, learned: Learned, column: int) -> float:
        said = learned.predictions["val"]
        return float(
            metrics.average_precision(
                self.data.attributes[said.rows, column], _logit(said.probabilities["attributes"][:, column])
            )
        )

    def _attribute(
        self,
        metric: metrics.Weighted,
        truth: Floats,
        scores: Sequence[Floats],
        name: str,
        tried: dict[str, dict[str, float]],
    ) -> Number:
        value = self.resamples.statistic([_weighted(metric, truth, each) for each in scores])
        floor = floors.over_seeds(
            [
                floors.permutation_floor(
                    _relabelled(metric, each), truth, self.people, observed=seen, permutations=self.permutations
                )
                for each, seen in zip(scores, value.per_seed, strict=True)
            ]
        )
        chance = None
        if metric is metrics.average_precision:
            chance = self.resamples.statistic(lambda weights: floors.prevalence(truth, weights))
        kind = "average precision" if metric is metrics.average_precision else "AUROC"
        return Number(Leak(kind, value, floor.value, chance), (floor.low, floor.high), name, tried, None, floor.p)

    def _together(
        self, attackers: Mapping[str, Sequence[Learned]], truth: Floats, alive: NDArray[np.bool_]
    ) -> dict[str, Number]:
        columns = np.flatnonzero(alive)
        val = {name: _mean([one.scores["attributes"] for one in learned]) for name, learned in attackers.items()}
        best = max(val, key=lambda name: np.nan_to_num(val[name], nan=-1.0))
        scores = [_logit(_test(one).probabilities["attributes"]) for one in attackers[best]]
        precision = [
            self._attribute(metrics.average_precision, truth[:, a], [each[:, a] for each in scores], best, {})
            for a in columns
        ]
        mean = Leak("cMAP", _over([n.leak.value for n in precision]), _mean([n.leak.floor for n in precision]))
        ranges = np.array([n.floor_range for n in precision]).mean(axis=0)
        f1 = [
            self.resamples.statistic([_weighted(metrics.f1, truth[:, a], each[:, a]) for each in scores])
            for a in columns
        ]
        floor = _mean([floors.f1_floor(truth[:, a]) for a in columns])
        return {
            "cmap": Number(mean, (float(ranges[0]), float(ranges[1])), best),
            "f1": Number(Leak("F1", _over(f1), floor), (floor, floor), best),
        }


def _over(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of several numbers, seed by seed and resample by resample."""
    mean = combined(lambda *parts: np.mean(parts, axis=0), *estimates)
    seeds = np.mean([one.per_seed for one in estimates], axis=0)
    return Estimate(mean.value, mean.samples, tuple(map(float, seeds)), mean.drawn)


def _weighted(metric: metrics.Weighted, truth: Floats, scores: Floats) -> Callable[[Floats], Floats]:
    return lambda weights: metric(truth, scores, weights)


def _relabelled(metric: metrics.Weighted, scores: Floats) -> Callable[[Floats], Floats]:
    return lambda labels: metric(labels, scores, None)


def _test(learned: Learned) -> Predictions:
    return learned.predictions["test"]


def _log(probabilities: NDArray[np.float32]) -> Floats:
    return np.log(np.maximum(probabilities.astype(np.float64), 1e-12))


def _logit(probabilities: NDArray[np.float32]) -> Floats:
    """Settled: what differs by the noise of arithmetic alone is a tie."""
    p = np.clip(probabilities.astype(np.float64), 1e-7, 1 - 1e-7)
    return metrics.settled(np.log(p) - np.log1p(-p))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
