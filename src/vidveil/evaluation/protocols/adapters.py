"""Adapters of features: loaded for an evaluation, and applied to all features of a set."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.data.clips import SPLITS
from vidveil.data.features.sets import FeatureSet, Vectors
from vidveil.methods.splavu.load import load_adapter, refuse_other_encoder
from vidveil.methods.splavu.model import AAM
from vidveil.tasks.anomaly import AnomalyVideos
from vidveil.tasks.detection import DetectionVideos

AT_ONCE = 4096
"""Features through an adapter."""
BATCH = 512
"""Of published attention, which looks across a batch: as large as in training."""


class Adapters:
    """Those that `method` names, one a seed; none, where raw features are evaluated alone."""

    def __init__(self, method: str, seeds: Sequence[int]) -> None:
        loaded = [load_adapter(method.replace("{seed}", str(seed))) for seed in seeds]
        self._loaded = [one for one in loaded if one is not None]

    def on(self, data: FeatureSet, device: str) -> list[AAM]:
        """On the device. DataError if one was trained on features of another encoder."""
        for adapter, encoder in self._loaded:
            refuse_other_encoder(data, adapter, encoder)
        return [adapter.to(device) for adapter, _ in self._loaded]


def adapted(data: FeatureSet, adapter: AAM) -> FeatureSet:
    """The set after the adapter; static clips, too."""
    if adapter.shape.reference and adapter.shape.kind == "attention":
        return replace(data, clips=_in_batches(data, adapter), static=None)
    static = None if data.static is None else _one_by_one(data.static, adapter)
    return replace(data, clips=_one_by_one(data.clips, adapter), static=static)


@torch.inference_mode()
def _in_batches(data: FeatureSet, adapter: AAM) -> Vectors:
    """By published attention: in random batches of clips of one split."""
    made = torch.empty_like(data.clips.all)
    rng = np.random.default_rng(0)
    for split in SPLITS:
        rows = rng.permutation(np.flatnonzero(np.repeat(data.labels.split == split, data.clips.count)))
        for some in torch.split(torch.from_numpy(rows).to(made.device), BATCH):
            made[some] = adapter(data.clips.all[some])
    return replace(data.clips, all=made)


@torch.inference_mode()
def _one_by_one(vectors: Vectors, adapter: AAM) -> Vectors:
    return replace(vectors, all=torch.cat([adapter(part) for part in torch.split(vectors.all, AT_ONCE)]))


def adapted_videos(data: DetectionVideos | AnomalyVideos, adapter: AAM, device: str) -> DetectionVideos | AnomalyVideos:
    """The same whole videos after the adapter."""
    change = partial(_adapted_video, adapter, device)
    if isinstance(data, DetectionVideos):
        return data.with_features(change)
    return replace(data, features=tuple(map(change, data.features)))


@torch.inference_mode()
def _adapted_video(adapter: AAM, device: str, features: NDArray[np.float32]) -> NDArray[np.float32]:
    """(T, D) → (T, D). Published attention looks across all features of a video."""
    given = torch.from_numpy(features).to(device)
    parts: Sequence[Tensor] = (given,) if adapter.shape.reference else torch.split(given, AT_ONCE)
    return np.asarray(torch.cat([adapter(part) for part in parts]).float().cpu().numpy(), np.float32)
