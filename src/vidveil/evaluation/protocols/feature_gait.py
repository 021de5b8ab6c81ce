"""Gait on features: whose walks are still linked after a method? Nothing is trained (SPLAVU, table 7).

    z of a walk    mean over the features of its clips
    rank-1         is the gallery walk whose z is nearest, by cosine, of the same person? Scopes and floors: `gait.py`

An attacker may also subtract the mean of all gallery walks first, which needs no training either: where features have
much in common the cosine hardly depends on how they differ. Of sets with validation people the better of the two
counts; where there are none, the plain cosine does, as in the paper.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from vidveil.data.clips import Split
from vidveil.data.features.sets import FeatureSet
from vidveil.evaluation.attacks.gait import Gait
from vidveil.evaluation.protocols.feature_methods import FeatureMethods
from vidveil.evaluation.protocols.feature_protocol import FeatureProtocol
from vidveil.evaluation.protocols.protocol import Evaluated, measure_of
from vidveil.evaluation.recipes.features import FeaturesRecipe
from vidveil.methods.anonymized_data import Setting

GaitSequences = Mapping[str, NDArray[np.floating]]
"""(n, D) by split."""


class FeatureGaitProtocol(FeatureProtocol[FeatureSet]):
    """Walks are looked up in the same way in raw and anonymized features: with the same draws of people."""

    def __init__(self, recipe: FeaturesRecipe, data: FeatureSet, methods: FeatureMethods | None = None) -> None:
        measure = measure_of(recipe, data.labels)
        super().__init__(recipe, data, data, methods, measure)
        self.gait = Gait(measure)

    def after(self, setting: Setting) -> FeatureSet:
        return self.methods.after(self.data, setting)

    def evaluate_setting(self, data: Sequence[FeatureSet], about: Evaluated) -> Evaluated:
        each: list[GaitSequences] = [{split: walks(one, split) for split in self.gait.splits} for one in data]
        centred = [self._centred(one) for one in each]
        about.numbers, about.by_view = self.gait.numbers({"cosine": each, "cosine, centred": centred})
        self.say_values(about)
        return about

    def _centred(self, found: GaitSequences) -> GaitSequences:
        return {split: all_ - all_[self.gait.walks[split].gallery].mean(axis=0) for split, all_ in found.items()}


def walks(data: FeatureSet, split: Split) -> NDArray[np.floating]:
    """(n, D): the mean over all clips of each walk of a split."""
    rows = data.labels.indices(split)
    clips, walk = data.clips.of(rows)
    sums = torch.zeros(len(rows), clips.shape[1], dtype=torch.float64, device=clips.device)
    sums.index_add_(0, walk, clips.double())
    found: NDArray[np.floating] = sums.cpu().numpy() / data.clips.count[rows][:, None]
    return found
