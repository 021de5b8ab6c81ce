"""What protocols on clips have in common: methods of video are applied to clips once, one set per seed."""

from collections.abc import Iterator
from pathlib import Path

from vidveil.data.clips import ClipSet
from vidveil.data.store.anonymized import forget, kept_as_filmed
from vidveil.evaluation.measures.ground_truth import Truth
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.protocols.protocol import Evaluated, Protocol, measure_of
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.methods.anonymized_data import Setting, anonymized


class ClipsProtocol(Protocol[ClipSet]):
    recipe: EvaluateRecipe
    measure: Measure

    def __init__(self, recipe: EvaluateRecipe, data: ClipSet, root: Path | None = None) -> None:
        """`root`: where the dataset is, for controls that load a part of it."""
        super().__init__(recipe, data, data, measure_of(recipe, data))
        self.root, self.raw_run = root, recipe.raw
        self.truth = Truth(data, self.measure)

    def after(self, setting: Setting) -> ClipSet:
        return anonymized(self.data, setting, device=self.device)

    def evaluate_method(self, setting: Setting, raw: Evaluated) -> Iterator[Evaluated]:
        """Nothing else holds the clips of a setting: a file that is still mapped fills the disk."""
        data = self.anonymized(setting)
        found = self.evaluate_setting(
            data, Evaluated(setting.method, setting.keep, raw, kept_as_filmed=kept_as_filmed(data))
        )
        if self.recipe.tidy:
            forget(data)
        del data
        yield found
