"""Protocols that train nothing: clips are looked up among others, by the features of networks that are frozen.

    gait        probe walks among gallery walks, for the person     identity that is left in how people walk
    retrieval   test clips among training clips, for the action     a utility that features may have

Anonymization, settings, resuming and results are those of every evaluation of clips.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.clips import SPLITS, ClipSet, Split
from vidveil.evaluation.attacks.gait import Gait, energy
from vidveil.evaluation.checks import ENERGY
from vidveil.evaluation.evaluators.train import TrainedNetwork, learn
from vidveil.evaluation.measures.retrieval import retrieval_numbers
from vidveil.evaluation.protocols.clips_protocol import ClipsProtocol
from vidveil.evaluation.protocols.protocol import Evaluated, check_splits
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.tasks import Predictions
from vidveil.tasks.retrieval import Retrieval, retrieval


class LookupProtocol(ClipsProtocol):
    """What both have in common: networks compute features of the clips once per seed, and these are kept."""

    splits: tuple[Split, ...] = SPLITS

    def features(self, data: Sequence[ClipSet], network: str, tag: str) -> list[Mapping[str, Predictions]]:
        """By split, one entry per seed."""
        found: list[TrainedNetwork] = []
        for seed, clips in zip(self.seeds, data, strict=True):
            label = f"{tag} {network} seed {seed}"
            found.append(
                learn(clips, [], network, self.recipe, seed=seed, folder=self.folder(label), splits=self.splits)
            )
            self.say(f"{label}: {sum(len(one.rows) for one in found[-1].predictions.values())} clips")
        self.add_cost(f"{tag} {network}", found[0].parameters, [one.seconds for one in found])
        return [one.predictions for one in found]


class GaitProtocol(LookupProtocol):
    def __init__(self, recipe: EvaluateRecipe, data: ClipSet, root: Path | None = None) -> None:
        super().__init__(recipe, data, root)
        self.gait = Gait(self.measure)
        self.splits = self.gait.splits

    def evaluate_setting(self, data: Sequence[ClipSet], about: Evaluated) -> Evaluated:
        features: dict[str, list[Mapping[str, NDArray[np.floating]]]] = {}
        for network in self.recipe.attackers:
            if network == ENERGY:
                features[network] = [energy(clips, self.splits) for clips in data]
                continue
            each = self.features(data, network, about.tag)
            features[network] = [{split: one.features for split, one in by_split.items()} for by_split in each]
        about.numbers, about.by_view = self.gait.numbers(features)
        about.numbers |= self.truth.numbers(data) if about.raw else {}
        self.say_values(about)
        return about


class RetrievalProtocol(LookupProtocol):
    def __init__(self, recipe: EvaluateRecipe, data: ClipSet, root: Path | None = None) -> None:
        super().__init__(recipe, data, root)
        check_splits(data)
        if data.action_labels is not None:
            raise DataError(f"{data.name} shows several actions at once, and retrieval needs one action per clip")
        if len(set(data.action.tolist())) < 2:
            raise DataError(f"{data.name} has one action only: every lookup would find it")

    def evaluate_setting(self, data: Sequence[ClipSet], about: Evaluated) -> Evaluated:
        found: dict[str, dict[str, list[Retrieval]]] = {"val": {}, "test": {}}
        for network in self.recipe.attackers:
            each = self.features(data, network, about.tag)
            for split, by_network in found.items():
                by_network[network] = [retrieval(self.data, one[split], one["train"]) for one in each]
        about.numbers |= retrieval_numbers(self.measure, found)
        about.numbers |= self.truth.numbers(data) if about.raw else {}
        self.say_values(about)
        return about
