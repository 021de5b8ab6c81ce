"""From what networks said of clips to numbers: the strongest attacker, chosen on validation, with floor and interval.

Which attacker stands behind a number is decided by the mean over seeds of its score on **validation** people. Its
number on test people is then looked at once; those of the others stand beside it, for the reader, and decide nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.data.clips import ClipSet, Split
from vidveil.errors import DataError
from vidveil.evaluation import floors, metrics
from vidveil.evaluation.intervals import Estimate, Resamples, combined
from vidveil.evaluation.learner import Learned
from vidveil.evaluation.linkage import Clothes, Lineup, Linkage, rank
from vidveil.evaluation.projections import lda, whitening
from vidveil.evaluation.tradeoff import Leak
from vidveil.tasks import Predictions

Floats = NDArray[np.float64]
CLOTHES: dict[str, Clothes] = {"_same_clothes": "same", "_changed_clothes": "changed"}


@dataclass(frozen=True, kw_only=True)
class Number:
    """A measured number and everything that another one needs to be set beside it."""

    leak: Leak
    """Value with its resamples, floor and chance. (Of a utility metric, too: the arithmetic is the same.)"""
    analytic: float
    """Its floor by formula."""
    floor_range: tuple[float, float]
    measured_by: str
    others: dict[str, dict[str, float]]
    """Every attacker that tried: what it got on test and on validation."""
    p: float | None = None
    """Share of permutations of the labels that reach the value."""
    least_p: float = 0.0
    """The smallest that so many permutations can give."""
    per_clip: Floats | None = None
    """(S, N) what the number is the mean of, where it is one: for paired comparisons with other runs."""
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
        best = choose(val, "top-1")
        floor = floors.largest_class(truth)  # higher than what permuted labels give: always saying that class is no use
        return Number(
            leak=Leak("top-1", self.resamples.mean(hits[best]), floor),
            analytic=floor,
            floor_range=(floor, floor),
            measured_by=best,
            others={name: {"test": float(hits[name].mean()), "val": val[name]} for name in networks},
            per_clip=hits[best],
        )

    # ---- linkage: every number is by the attacker, and the space, that is best at it on validation

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
        """Rank-1 and mAP; rank-1 with same and with changed clothes, where they are known."""
        spaces: dict[str, list[Crossing]] = {}
        for name, learned in attackers.items():
            each = [self._spaces(one) for one in learned]
            spaces |= {f"{name}, {space}": [Crossing(one[space], one[space]) for one in each] for space in each[0]}
        found = {"linkage_rank1": self._link(spaces), "linkage_map": self._link(spaces, metric="mAP")}
        for suffix, clothes in CLOTHES.items() if "outfit" in self.data.tags else ():
            found["linkage_rank1" + suffix] = self._link(spaces, clothes=clothes)
        return found

    def raw_gallery(self, crossings: Mapping[str, Sequence[Crossing]]) -> Number:
        """Rank-1 of anonymized probes among raw clips: what somebody gets who has the person's ordinary videos."""
        return self._link(crossings)

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

    def _link(
        self, spaces: Mapping[str, Sequence[Crossing]], *, metric: str = "rank-1", clothes: Clothes = "any"
    ) -> Number:
        """Probes looked up in the gallery, one entry a seed; both are the same unless they cross."""
        lineups: dict[str, Lineup] = {split: self.lineup(split, clothes) for split in ("val", "test")}

        def value(one: Linkage) -> float:
            return one.rank1 if metric == "rank-1" else one.mean_average_precision

        def ranked(name: str, split: str) -> list[Linkage]:
            return [rank(one.probes[split], lineups[split], gallery=one.gallery[split]) for one in spaces[name]]

        val = {name: _mean([value(one) for one in ranked(name, "val")]) for name in spaces}
        best = choose(val, f"linkage {metric}")
        test = {name: ranked(name, "test") for name in spaces}
        permute = floors.linkage_floor if metric == "rank-1" else floors.linkage_map_floor
        floor = floors.over_seeds(
            [
                permute(
                    one.probes["test"],
                    lineups["test"],
                    found,
                    gallery=one.gallery["test"],
                    permutations=self.permutations,
                )
                for one, found in zip(spaces[best], test[best], strict=True)
            ]
        )
        each = [one.hit if metric == "rank-1" else one.average_precision for one in test[best]]
        first = test[best][0]
        chance = first.chance if metric == "rank-1" else _expected_precision(first)
        by_lot = self.resamples.mean(chance)
        return Number(
            leak=Leak(metric, self.resamples.mean(np.stack(each)), floor.value, by_lot),
            analytic=by_lot.value,
            floor_range=(floor.low, floor.high),
            measured_by=best,
            others={name: {"test": _mean([value(one) for one in test[name]]), "val": val[name]} for name in spaces},
            p=floor.p,
            least_p=1 / (1 + floor.permutations),
            per_clip=np.stack(each),
            chance_per_clip=chance,
        )

    # ---- attributes

    def attributes(self, attackers: Mapping[str, Sequence[Learned]]) -> tuple[dict[str, Number], list[str]]:
        """AP and AUROC of every attribute, cMAP and F1 of all, each by the attacker that is best at it on validation;
        and the attributes that are constant in test, which are left out."""
        names, truth = list(self.data.attribute_names), self.data.attributes[self.rows].astype(np.float64)
        alive = [int(a) for a in np.flatnonzero(metrics.varying(truth))]
        found: dict[str, Number] = {}
        for a in alive:
            for key, metric in (("ap", metrics.average_precision), ("auroc", metrics.auroc)):
                val = {name: self._on_validation(learned, metric, a) for name, learned in attackers.items()}
                best = choose(val, f"{names[a]} {key}", fallback=True)
                tried = {
                    name: {
                        "test": _mean([float(metric(truth[:, a], each, None)) for each in _scores(learned, a)]),
                        "val": val[name],
                    }
                    for name, learned in attackers.items()
                }
                found[f"{key}_{names[a]}"] = self._attribute(
                    metric, truth[:, a], _scores(attackers[best], a), best, tried
                )
        if alive:
            found |= self._together(attackers, truth, alive)
        return found, [name for a, name in enumerate(names) if a not in alive]

    def _on_validation(self, learned: Sequence[Learned], metric: metrics.Weighted, column: int) -> float:
        said = [one.predictions["val"] for one in learned]
        truth = [self.data.attributes[one.rows, column].astype(np.float64) for one in said]
        scores = [_logit(one.probabilities["attributes"][:, column]) for one in said]
        return _mean([float(metric(labels, each, None)) for labels, each in zip(truth, scores, strict=True)])

    def _attribute(
        self,
        metric: metrics.Weighted,
        truth: Floats,
        scores: Sequence[Floats],
        name: str,
        tried: dict[str, dict[str, float]],
    ) -> Number:
        value = self.resamples.statistic([_weighted(metric, truth, each) for each in scores])
        floor = self._permuted(metric, truth, scores, value.per_seed)
        precision = metric is metrics.average_precision
        chance = self.resamples.statistic(lambda weights: floors.prevalence(truth, weights)) if precision else None
        return Number(
            leak=Leak("average precision" if precision else "AUROC", value, floor.value, chance),
            analytic=chance.value if chance else floors.AUROC_FLOOR,
            floor_range=(floor.low, floor.high),
            measured_by=name,
            others=tried,
            p=floor.p,
            least_p=1 / (1 + floor.permutations),
        )

    def _permuted(
        self, metric: metrics.Weighted, truth: Floats, scores: Sequence[Floats], observed: Sequence[float]
    ) -> floors.Floor:
        return floors.over_seeds(
            [
                floors.permutation_floor(
                    _relabelled(metric, each), truth, self.people, observed=seen, permutations=self.permutations
                )
                for each, seen in zip(scores, observed, strict=True)
            ]
        )

    def _together(
        self, attackers: Mapping[str, Sequence[Learned]], truth: Floats, columns: Sequence[int]
    ) -> dict[str, Number]:
        """cMAP and macro F1 over the attributes that vary. All of them are dealt to people alike, so the floor of the
        mean is the mean in each deal."""
        val = {name: _mean([one.scores["attributes"] for one in learned]) for name, learned in attackers.items()}
        best = choose(val, "cMAP", fallback=True)

        def values(metric: metrics.Weighted, name: str) -> list[Estimate]:
            by_column = [(truth[:, a], _scores(attackers[name], a)) for a in columns]
            return [self.resamples.statistic([_weighted(metric, y, each) for each in said]) for y, said in by_column]

        precision = values(metrics.average_precision, best)
        floor = floors.over_seeds(
            [
                self._permuted(metrics.average_precision, truth[:, a], _scores(attackers[best], a), one.per_seed)
                for a, one in zip(columns, precision, strict=True)
            ]
        )
        tried = {
            name: {
                "test": _mean(
                    [
                        float(metrics.average_precision(truth[:, a], each))
                        for a in columns
                        for each in _scores(learned, a)
                    ]
                ),
                "val": val[name],
            }
            for name, learned in attackers.items()
        }
        always = _mean([floors.f1_floor(truth[:, a]) for a in columns])
        return {
            "cmap": Number(
                leak=Leak("cMAP", _over(precision), floor.value),
                analytic=_mean([float(floors.prevalence(truth[:, a])) for a in columns]),
                floor_range=(floor.low, floor.high),
                measured_by=best,
                others=tried,
                p=floor.p,
                least_p=1 / (1 + floor.permutations),
            ),
            "f1": Number(
                leak=Leak("F1", _over(values(metrics.f1, best)), always),
                analytic=always,
                floor_range=(always, always),
                measured_by=best,
                others={},
            ),
        }


def choose(val: Mapping[str, float], what: str, *, fallback: bool = False) -> str:
    """The best on validation. Where validation says nothing about anybody, nobody can be chosen honestly; with
    `fallback` the first one stands in, for attributes that happen to be constant among validation people."""
    known = {name: value for name, value in val.items() if not np.isnan(value)}
    if not known and not fallback:
        raise DataError(f"validation cannot choose by {what}: no clip there has another of its person to be found")
    return max(known, key=lambda name: known[name]) if known else next(iter(val))


def _expected_precision(found: Linkage) -> Floats:
    """What average precision is on the mean over all orders of the gallery, a query each. (N,)"""
    expected = np.full(len(found.hit), np.nan)
    asked = found.queries
    expected[asked] = floors.expected_average_precision(found.positives[asked], found.gallery[asked])
    return expected


def _scores(learned: Sequence[Learned], column: int) -> list[Floats]:
    """Logits of one attribute of the test clips, one a seed."""
    return [_logit(_test(one).probabilities["attributes"][:, column]) for one in learned]


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
