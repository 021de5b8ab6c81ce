"""What protocols on clips have in common: clips are anonymized once, one set per seed, and then evaluated."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vidveil.data.clips import ClipSet
from vidveil.data.store.anonymized import forget, kept_as_filmed
from vidveil.evaluation.checks import setting_of
from vidveil.evaluation.measures.ground_truth import Truth
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.protocols.protocol import Evaluated, Protocol, measure_of
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.methods.anonymized_data import anonymized


class ClipsProtocol(Protocol[ClipSet]):
    recipe: EvaluateRecipe
    measure: Measure

    def __init__(self, recipe: EvaluateRecipe, data: ClipSet, root: Path | None = None) -> None:
        """`root`: where the dataset is, for controls that load a part of it."""
        super().__init__(recipe, data, data, measure_of(recipe, data))
        self.root, self.raw_run = root, recipe.raw
        self.truth = Truth(data, self.measure)

    def evaluate_settings(self, raw: Evaluated) -> Iterator[Evaluated]:
        """The method at each keep rate."""
        for keep in () if self.recipe.method == "raw" else self.recipe.keep or (None,):
            yield self._evaluate_keep(keep, raw)

    def _evaluate_keep(self, keep: float | None, raw: Evaluated) -> Evaluated:
        """Nothing else holds the clips of a setting: a file that is still mapped fills the disk."""
        data = self.anonymized(keep)
        about = Evaluated(self.recipe.method, keep, raw, kept_as_filmed=kept_as_filmed(data))
        found = self.evaluate_setting(data, about)
        if self.recipe.tidy:
            forget(data)
        return found

    def anonymized(self, keep: float | None) -> list[ClipSet]:
        """The anonymized clips, one set per seed; the same one, unless the method was trained once per seed."""
        setting = replace(setting_of(self.recipe), keep=keep)
        each = [setting.of_seed(seed) for seed in self.recipe.seeds]
        made = {one: anonymized(self.data, one, device=self.device) for one in dict.fromkeys(each)}
        return [made[one] for one in each]
