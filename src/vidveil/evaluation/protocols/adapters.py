"""Adapters of features: loaded for an evaluation, applied to all features of a set, and compared with raw features.

Raw features are evaluated once per process, however many adapters are compared with them.
"""

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.core.recipe import as_values
from vidveil.data.clips import SPLITS
from vidveil.data.description import labels_fingerprint
from vidveil.data.features.sets import FeatureSet, Vectors
from vidveil.evaluation.evaluators.features import TrainedHead
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.protocols.protocol import Data, Evaluated, Protocol
from vidveil.evaluation.recipes.recipe import EvaluationRecipe
from vidveil.methods.feature_adapter import FeatureAdapter, adapted, load_adapter, refuse_other_encoder
from vidveil.tasks.anomaly import AnomalyVideos
from vidveil.tasks.detection import DetectionVideos

AT_ONCE = 4096
"""Features through an adapter."""
BATCH = 512
"""Of published attention, which looks across a batch: as large as in training."""
Heads = dict[str, list[TrainedHead]]
"""By name, one per seed."""


@dataclass(eq=False)
class RawFeatures:
    """What the evaluation of raw features leaves for that of adapters."""

    evaluated: Evaluated = field(default_factory=Evaluated)
    heads: dict[str, Heads] = field(default_factory=dict)
    """By task."""
    filmed: Tensor | None = None
    """The pictures themselves, where they are reconstructed."""
    reconstructed: dict[str, Tensor] = field(default_factory=dict)
    cost: dict[str, dict[str, float]] = field(default_factory=dict)

    def copy(self) -> "RawFeatures":
        """One to which an adapter may add what is its own."""
        return replace(self, reconstructed=dict(self.reconstructed), cost=dict(self.cost))


_RAW: dict[type, tuple[str, RawFeatures]] = {}
"""By protocol, of the last set that this process evaluated."""


class AdapterProtocol(Protocol[Data]):
    """Raw features, and those behind adapters, one per seed."""

    def __init__(
        self,
        recipe: EvaluationRecipe,
        data: Data,
        features: FeatureSet,
        adapters: Sequence[FeatureAdapter],
        measure: Measure | None = None,
    ) -> None:
        """`features` are those that `data` is made of. Without `adapters` raw features are evaluated alone."""
        super().__init__(recipe, data, features.labels, measure)
        self.store, self.adapters, self.raw = features.store, adapters, RawFeatures()

    @abstractmethod
    def adapt(self, adapter: FeatureAdapter) -> Data:
        """The data behind an adapter."""

    def raw_recipe(self) -> EvaluationRecipe:
        """What the evaluation of raw features depends on."""
        return replace(self.recipe, name="raw", method="raw")

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

    def evaluate_settings(self, raw: Evaluated) -> Iterator[Evaluated]:
        if self.adapters:
            after = [self.adapt(adapter) for adapter in self.adapters]
            yield self.evaluate_setting(after, Evaluated(self.recipe.method, raw=raw))


class Adapters:
    """Those that `method` names, one per seed; none, where raw features are evaluated alone."""

    def __init__(self, method: str, seeds: Sequence[int]) -> None:
        loaded = [load_adapter(method.replace("{seed}", str(seed))) for seed in seeds]
        self._loaded = [one for one in loaded if one is not None]

    def on(self, data: FeatureSet, device: str) -> list[FeatureAdapter]:
        """On the device. DataError if one was trained on features of another encoder."""
        for adapter, encoder in self._loaded:
            refuse_other_encoder(data, adapter, encoder)
        return [adapter.to(device) for adapter, _ in self._loaded]


def adapted_set(data: FeatureSet, adapter: FeatureAdapter) -> FeatureSet:
    """The set after the adapter; static clips, too."""
    if adapter.across_batch:
        return replace(data, clips=_in_batches(data, adapter), static=None)
    static = None if data.static is None else _one_by_one(data.static, adapter)
    return replace(data, clips=_one_by_one(data.clips, adapter), static=static)


@torch.inference_mode()
def _in_batches(data: FeatureSet, adapter: FeatureAdapter) -> Vectors:
    """By published attention: in random batches of clips of one split."""
    made = torch.empty_like(data.clips.all)
    rng = np.random.default_rng(0)
    for split in SPLITS:
        rows = rng.permutation(np.flatnonzero(np.repeat(data.labels.split == split, data.clips.count)))
        for some in torch.split(torch.from_numpy(rows).to(made.device), BATCH):
            made[some] = adapted(adapter, data.clips.all[some])
    return replace(data.clips, all=made)


@torch.inference_mode()
def _one_by_one(vectors: Vectors, adapter: FeatureAdapter) -> Vectors:
    return replace(vectors, all=torch.cat([adapted(adapter, part) for part in torch.split(vectors.all, AT_ONCE)]))


def adapted_videos(
    data: DetectionVideos | AnomalyVideos, adapter: FeatureAdapter, device: str
) -> DetectionVideos | AnomalyVideos:
    """The same whole videos after the adapter."""
    change = partial(_adapted_video, adapter, device)
    if isinstance(data, DetectionVideos):
        return data.with_features(change)
    return replace(data, features=tuple(map(change, data.features)))


@torch.inference_mode()
def _adapted_video(adapter: FeatureAdapter, device: str, features: NDArray[np.float32]) -> NDArray[np.float32]:
    """(T, D) → (T, D). An adapter that looks across a batch sees the whole video."""
    given = torch.from_numpy(features).to(device)
    parts: Sequence[Tensor] = (given,) if adapter.across_batch else torch.split(given, AT_ONCE)
    return np.asarray(torch.cat([adapted(adapter, part) for part in parts]).float().cpu().numpy(), np.float32)
