"""Gait on features: who still walks like themselves behind an adapter? Nothing is trained (SPLAVU, table 7).

    z of a walk    mean over the features of its clips
    rank-1         is the gallery walk whose z is nearest, by cosine, of the same person? Scopes and floors: `gait.py`

An attacker may also take the mean of all gallery walks off first, which needs no training either: where features have
much in common the cosine hardly sees where they differ. Of sets with validation people the better one there counts;
where there are none, the plain cosine does, as in the paper.
"""

from collections.abc import Mapping, Sequence
from time import monotonic

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from vidveil.core.machine import describe
from vidveil.core.recipe import as_values
from vidveil.data.about import about_data
from vidveil.data.clips import Split
from vidveil.data.features.sets import FeatureSet
from vidveil.evaluation.attacks.gait import Gait
from vidveil.evaluation.attacks.inversion import adapted
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.per_clip import write_per_clip
from vidveil.evaluation.protocols.clips import Judged, told
from vidveil.evaluation.recipes.features import FeaturesRecipe
from vidveil.evaluation.results import Results
from vidveil.methods.splavu.model import AAM
from vidveil.training.options import options_of
from vidveil.training.runs import Run

Walked = Mapping[str, NDArray[np.floating]]
"""(n, D) by split."""


class FeatureGaitEngine:
    """Raw features and those behind the adapters, one a seed, looked up alike: with the same draws of people."""

    def __init__(
        self,
        recipe: FeaturesRecipe,
        data: FeatureSet,
        adapters: Sequence[AAM | None],
        run: Run,
        console: Console | None,
    ) -> None:
        self.recipe, self.data, self.adapters, self.run, self.console = recipe, data, adapters, run, console
        self.device = options_of(recipe, 0).accelerator()
        self.measure = Measure(
            data.labels, permutations=recipe.permutations, resamples=recipe.resamples, device=self.device
        )
        self.gait = Gait(self.measure)
        self.began = monotonic()

    def evaluate(self) -> Results:
        recipe = self.recipe
        raw = self.judge([self.data] * len(recipe.seeds), Judged("raw", None))
        adapters = [one for one in self.adapters if one is not None]
        after = [adapted(self.data, one) for one in adapters]
        judged = [self.judge(after, Judged(recipe.method, None))] if after else []
        per_clip = {f"{one.tag}/{name}": number for one in (raw, *judged) for name, number in one.numbers.items()}
        write_per_clip(self.run.folder / "per_clip.safetensors", self.measure.people, per_clip)
        return Results(
            name=recipe.name,
            recipe=as_values(recipe),
            data=about_data(self.data.labels),
            machine=describe(self.device),
            seconds=round(monotonic() - self.began, 1),
            raw=told(raw, raw),
            points=[told(one, raw) for one in judged],
        )

    def judge(self, data: Sequence[FeatureSet], about: Judged) -> Judged:
        """One set a seed."""
        each: list[Walked] = [{split: walks(one, split) for split in self.gait.splits} for one in data]
        centred = [self._centred(one) for one in each]
        about.numbers, about.by_view = self.gait.numbers({"cosine": each, "cosine, centred": centred})
        if self.console is not None:
            values = ", ".join(f"{name} {one.leak.value.value:.3f}" for name, one in about.numbers.items())
            shown = f"{monotonic() - self.began:6.0f} s  {about.tag}: {values}"
            self.console.print(shown, highlight=False, markup=False, soft_wrap=True)
        return about

    def _centred(self, walked: Walked) -> Walked:
        return {split: all_ - all_[self.gait.walks[split].gallery].mean(axis=0) for split, all_ in walked.items()}


def walks(data: FeatureSet, split: Split) -> NDArray[np.floating]:
    """(n, D): the mean over all clips of each walk of a split."""
    rows = data.labels.indices(split)
    clips, whose = data.clips.of(rows)
    sums = torch.zeros(len(rows), clips.shape[1], dtype=torch.float64, device=clips.device)
    sums.index_add_(0, whose, clips.double())
    found: NDArray[np.floating] = sums.cpu().numpy() / data.clips.count[rows][:, None]
    return found
