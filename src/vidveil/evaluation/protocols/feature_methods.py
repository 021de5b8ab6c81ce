"""Features after a method: a method of video goes before the encoder, an adapter behind it.

method of video    videos ─► method ─► encoder ─► features      videos and features are cached
adapter            videos ─► encoder ─► features ─► adapter     `splavu:RUN`
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from vidveil.core.errors import UsageError
from vidveil.data.clips import SPLITS
from vidveil.data.features.sets import FeatureSet, Vectors
from vidveil.evaluation.checks import check_on_video, each_of
from vidveil.evaluation.recipes.recipe import EvaluationRecipe
from vidveil.methods import works_on_features
from vidveil.methods.anonymized_data import Setting
from vidveil.methods.anonymized_files import anonymized_videos
from vidveil.methods.feature_adapter import FeatureAdapter, adapted, load_adapter, refuse_other_encoder
from vidveil.tasks.long_videos import LongFeatures

AT_ONCE = 4096
"""Features through an adapter."""
BATCH = 512
"""Of published attention, which looks across a batch: as large as in training."""


class FeatureMethods:
    """The methods of a recipe, each setting and seed of them."""

    def __init__(self, recipe: EvaluationRecipe, device: str) -> None:
        """Adapters are loaded. UsageError for a method that does not exist, or has no such knob."""
        self.device = device
        self._adapters: dict[Setting, tuple[FeatureAdapter, str]] = {}
        """With the fingerprint of the encoder that each belongs to."""
        self._on_video: list[Setting] = []
        for setting in each_of(recipe):
            if not works_on_features(setting.method):
                check_on_video(setting, recipe)
                self._on_video += [setting] if setting.method != "raw" else []
                continue
            _refuse_knobs(setting)
            if (found := load_adapter(setting.method)) is not None:
                self._adapters[setting] = found[0].to(device), found[1]

    def check(self, data: FeatureSet) -> None:
        """DataError if an adapter belongs to another encoder, UsageError if a method of video has no videos here."""
        for adapter, encoder in self._adapters.values():
            refuse_other_encoder(data, adapter, encoder)
        if self._on_video and data.extraction is None:
            raise UsageError(
                f"{self._on_video[0]} works on video, and {data.store.folder} holds features alone: name the dataset "
                "(data=NAME) and the encoder (encoder=i3d), or evaluate an adapter of features"
            )

    def adapter(self, setting: Setting) -> FeatureAdapter | None:
        """None of a method of video."""
        return self._adapters[setting][0] if setting in self._adapters else None

    def after(self, data: FeatureSet, setting: Setting) -> FeatureSet:
        """The same clips after the method; static ones, too."""
        adapter = self.adapter(setting)
        return self._filmed(data, setting) if adapter is None else adapted_set(data, adapter)

    def after_long(self, data: LongFeatures, setting: Setting) -> LongFeatures:
        """The same whole videos after the method, which an adapter gets one by one."""
        adapter = self.adapter(setting)
        changed = self._filmed(data.data, setting) if adapter is None else adapted_videos(data.data, adapter)
        return replace(data, data=changed)

    def _filmed(self, data: FeatureSet, setting: Setting) -> FeatureSet:
        assert data.extraction is not None, setting  # see `check`
        return data.extraction.of(anonymized_videos(data.extraction.clips, setting, device=self.device))


def _refuse_knobs(setting: Setting) -> None:
    """An adapter of features has none of those that methods of video have."""
    given = {"keep": setting.keep, "privacy_weight": setting.privacy_weight, "fill": setting.fill}
    named = [name for name, value in given.items() if value is not None]
    named += ["region"] if setting.region != "frame" else []
    if named:
        raise UsageError(f"{named[0]} is a setting of methods of video, and {setting.method} is an adapter of features")


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


@torch.inference_mode()
def adapted_videos(data: FeatureSet, adapter: FeatureAdapter) -> FeatureSet:
    """An adapter that looks across a batch sees a whole video."""

    def one(features: Tensor) -> Tensor:
        parts: Sequence[Tensor] = (features,) if adapter.across_batch else torch.split(features, AT_ONCE)
        return torch.cat([adapted(adapter, part) for part in parts]).float()

    each = torch.split(data.clips.all, data.clips.count.tolist())
    return replace(data, clips=replace(data.clips, all=torch.cat([one(features) for features in each])), static=None)
