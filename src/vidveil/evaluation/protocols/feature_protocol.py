"""What protocols on features have in common: the same raw features, and features behind each method.

Raw features are evaluated once per process, however many runs compare methods with them.
"""

import json
from dataclasses import dataclass, field, replace
from typing import TypeVar

from torch import Tensor

from vidveil.core.recipe import as_values
from vidveil.data.description import labels_fingerprint
from vidveil.data.features.sets import FeatureSet
from vidveil.evaluation.evaluators.features import TrainedHead
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.protocols.feature_methods import FeatureMethods
from vidveil.evaluation.protocols.protocol import Data, Evaluated, Protocol
from vidveil.evaluation.recipes.recipe import EvaluationRecipe
from vidveil.evaluation.results import Point

LOWER_BOUND = "; seen through a frozen encoder, so a lower bound"
"""Of leakage, and of utility: the encoder never saw anonymized video, and networks that learn on it may find more."""
Heads = dict[str, list[TrainedHead]]
"""By name, one per seed."""


@dataclass(eq=False)
class RawFeatures:
    """What the evaluation of raw features leaves for that of methods."""

    evaluated: Evaluated = field(default_factory=Evaluated)
    heads: dict[str, Heads] = field(default_factory=dict)
    """By task."""
    filmed: Tensor | None = None
    """The pictures themselves, where they are reconstructed."""
    reconstructed: dict[str, Tensor] = field(default_factory=dict)
    cost: dict[str, dict[str, float]] = field(default_factory=dict)

    def copy(self) -> "RawFeatures":
        """One to which a method may add what is its own."""
        return replace(self, reconstructed=dict(self.reconstructed), cost=dict(self.cost))


AnyRecipe = TypeVar("AnyRecipe", bound=EvaluationRecipe)
_RAW: dict[type, tuple[str, RawFeatures]] = {}
"""By protocol, of the last set that this process evaluated."""


class FeatureProtocol(Protocol[Data]):
    """Raw features, and those behind methods of video and adapters."""

    recipe: EvaluationRecipe

    def __init__(
        self,
        recipe: EvaluationRecipe,
        data: Data,
        features: FeatureSet,
        methods: FeatureMethods | None = None,
        measure: Measure | None = None,
    ) -> None:
        """`features` are those that `data` is made of; `methods` those of the recipe, if they are loaded already."""
        super().__init__(recipe, data, features.labels, measure)
        self.store, self.raw = features.store, RawFeatures()
        self.methods = methods or FeatureMethods(recipe, self.device)
        self.methods.check(features)

    def raw_recipe(self) -> EvaluationRecipe:
        """What the evaluation of raw features depends on."""
        return raw_of(self.recipe)

    def as_point(self, one: Evaluated) -> Point:
        found = super().as_point(one)
        return replace(found, verdict=found.verdict + self.how_seen(one))

    def how_seen(self, one: Evaluated) -> str:
        """What is added to the verdict on a method of video, and on what is inverted of it."""
        of = [each for each in self.settings if f"{one.method} ".startswith(f"{each.method} ")]
        if not of:
            return ""
        setting = max(of, key=lambda each: len(each.method))
        return LOWER_BOUND if self.methods.adapter(setting.of_seed(self.seeds[0])) is None else ""

    def evaluate_raw(self) -> Evaluated:
        about = [
            self.labels.name,
            labels_fingerprint(self.labels),
            self.store.fingerprint,
            as_values(self.raw_recipe()),
        ]
        key = json.dumps(about)
        known, kept = _RAW.get(type(self), ("", self.raw))
        if known != key:
            self.raw.evaluated = super().evaluate_raw()
            self.raw.cost = self.cost
            kept = self.raw.copy()
            _RAW[type(self)] = key, kept
        self.raw = kept.copy()
        self.cost = self.raw.cost
        return self.raw.evaluated


def raw_of(recipe: AnyRecipe) -> AnyRecipe:
    """The same evaluation without any method."""
    return replace(recipe, name="raw", method=("raw",), region="frame", keep=(), privacy_weight=None, fill=None)
