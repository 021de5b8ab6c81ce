"""Protocols that train nothing: clips are looked up among others, by the features of networks that are frozen.

    gait        probe walks among gallery walks, for the person     what still tells who walks
    retrieval   test clips among training clips, for the action     a use that features may be put to

Anonymization, settings, resuming and results are those of every evaluation.
"""

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.progress import phase
from vidveil.data.clips import ClipSet, Split
from vidveil.evaluation.attacks.gait import Gait, energy
from vidveil.evaluation.checks import ENERGY
from vidveil.evaluation.evaluators.train import Learned, learn
from vidveil.evaluation.measures.measure import Measure, Number, choose, mean
from vidveil.evaluation.protocols.clips import Engine, Judged
from vidveil.statistics.floors import expected_average_precision
from vidveil.statistics.tradeoff import Leak
from vidveil.tasks import Predictions
from vidveil.tasks.retrieval import CUTS, Retrieval, retrieval

Floats = NDArray[np.float64]


class LookupEngine(Engine):
    """What both have in common: networks look at clips once a seed, and what they saw is found again."""

    splits: tuple[Split, ...]

    def seen(self, data: Sequence[ClipSet], network: str, tag: str) -> list[Mapping[str, Predictions]]:
        found: list[Learned] = []
        for seed, clips in zip(self.recipe.seeds, data, strict=True):
            label = f"{tag} {network} seed {seed}"
            found.append(
                learn(clips, [], network, self.recipe, seed=seed, folder=self.run.part(label), splits=self.splits)
            )
            self._say(f"{label}: {sum(len(one.rows) for one in found[-1].predictions.values())} clips")
        self.cost[f"{tag} {network}"] = {
            "parameters": found[0].parameters,
            "seconds": round(sum(one.seconds for one in found), 1),
        }
        return [one.predictions for one in found]

    def _headlines(self, about: Judged) -> Judged:
        values = {name: number.leak.value.value for name, number in about.numbers.items()}
        self._say(f"{about.tag}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
        return about


class GaitEngine(LookupEngine):
    def prepare(self) -> None:
        self.gait = Gait(self.measure)
        self.splits = self.gait.splits

    def judge(self, data: Sequence[ClipSet], about: Judged, raw: Judged | None = None) -> Judged:
        features: dict[str, list[Mapping[str, NDArray[np.floating]]]] = {}
        for network in self.recipe.attackers:
            if network == ENERGY:
                features[network] = [energy(clips, self.splits) for clips in data]
                continue
            seen = self.seen(data, network, about.tag)
            features[network] = [{split: said.features for split, said in one.items()} for one in seen]
        about.numbers, about.by_view = self.gait.numbers(features)
        about.numbers |= self.truth.numbers(data) if raw is not None else {}
        return self._headlines(about)


class RetrievalEngine(LookupEngine):
    splits = ("train", "val", "test")

    def prepare(self) -> None:
        counts = {split: len(self.data.indices(split)) for split in self.splits}
        if empty := [split for split, count in counts.items() if not count]:
            raise DataError(f"{self.data.name} has no clips in {' and '.join(empty)}: nothing can be looked up in it")
        if self.data.action_labels is not None:
            raise DataError(f"{self.data.name} shows several actions at once, and retrieval looks for one a clip")
        if len(set(self.data.action.tolist())) < 2:
            raise DataError(f"{self.data.name} has one action, which is found wherever one looks")

    def judge(self, data: Sequence[ClipSet], about: Judged, raw: Judged | None = None) -> Judged:
        found: dict[str, dict[str, list[Retrieval]]] = {"val": {}, "test": {}}
        for network in self.recipe.attackers:
            seen = self.seen(data, network, about.tag)
            for split, these in found.items():
                these[network] = [retrieval(self.data, one[split], one["train"]) for one in seen]
        about.numbers |= retrieval_numbers(self.measure, found)
        about.numbers |= self.truth.numbers(data) if raw is not None else {}
        return self._headlines(about)


@phase("retrieval: permutation tests and intervals")
def retrieval_numbers(measure: Measure, found: Mapping[str, Mapping[str, Sequence[Retrieval]]]) -> dict[str, Number]:
    """R@k and mAP, each by who is best at it on validation clips; `found` by split, by who looked, one a seed."""
    names = (*(f"retrieval_r{k}" for k in CUTS), "retrieval_map")
    return {name: _number(measure, name, found) for name in names}


def _number(measure: Measure, name: str, found: Mapping[str, Mapping[str, Sequence[Retrieval]]]) -> Number:
    each = {
        split: {network: [_of_clips(name, one) for one in seeds] for network, seeds in these.items()}
        for split, these in found.items()
    }
    val, test = (
        {network: mean([float(np.nanmean(one)) for one in seeds]) for network, seeds in each[split].items()}
        for split in ("val", "test")
    )
    best = choose(val, name)
    tested = len(measure.rows)
    values = np.stack(each["test"][best])[:, :tested]
    chance = measure.resamples.mean(_by_lot(name, found["test"][best][0])[:tested])
    return Number(
        leak=Leak(name, measure.resamples.mean(values), chance.value, chance),
        analytic=chance.value,
        floor_range=(chance.value, chance.value),
        measured_by=best,
        others={network: {"test": test[network], "val": val[network]} for network in val},
        kind="utility",
        per_clip=values,
    )


def _of_clips(name: str, found: Retrieval) -> Floats:
    """What the number is the mean of, one entry a clip, test clips first."""
    if name == "retrieval_map":
        return found.ranked.average_precision
    return found.ranked.recall(int(name.removeprefix("retrieval_r")))


def _by_lot(name: str, found: Retrieval) -> Floats:
    """The same of training clips in random order."""
    ranked = found.ranked
    positives, size = ranked.positives, ranked.gallery
    if name == "retrieval_map":
        expected = expected_average_precision(positives, np.maximum(size, 1))
    else:
        k = int(name.removeprefix("retrieval_r"))
        pairs = zip(positives.tolist(), size.tolist(), strict=True)
        expected = np.array([1 - comb(n - good, min(k, n)) / comb(n, min(k, n)) if n else 0.0 for good, n in pairs])
    return np.where(ranked.queries, expected, np.nan)
