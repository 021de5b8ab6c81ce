"""The evaluation of methods on whole videos: train TriDet or MGFN anew after them, test once, compare with raw.

    raw features ──┬────────────────► network, each seed ─► mAP, AUC
                   └─► adapter ─► ẑ ─► network, each seed ─► the same            retention, change on the same videos
    video ─► method ─► encoder ───┘

The epoch is chosen on validation, by mAP or by the AUC of videos. Nothing is attacked here: other protocols on clips
measure what a method hides, this one what it costs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch

from vidveil.evaluation.evaluators.features import SALT
from vidveil.evaluation.measures.untrimmed import VideoResamples, anomaly_numbers, detection_numbers
from vidveil.evaluation.number import Number
from vidveil.evaluation.points import LEVEL
from vidveil.evaluation.protocols.feature_methods import FeatureMethods
from vidveil.evaluation.protocols.feature_protocol import FeatureProtocol, raw_of
from vidveil.evaluation.protocols.protocol import Evaluated, check_splits, run_protocol
from vidveil.evaluation.recipes.untrimmed import WEIGHTS, AnomalyRecipe, DetectionRecipe
from vidveil.evaluation.results import Point
from vidveil.methods.anonymized_data import Setting
from vidveil.statistics.intervals import Resamples
from vidveil.tasks.anomaly import AnomalyScores, AnomalyVideos, fit_anomaly
from vidveil.tasks.detection import Detections, DetectionVideos, detect, fit_detection
from vidveil.tasks.long_videos import LongFeatures, features_per_clip, long_features
from vidveil.training.log import Log
from vidveil.training.options import options_of
from vidveil.training.runs import training_of_run

Recipe = DetectionRecipe | AnomalyRecipe
Videos = DetectionVideos | AnomalyVideos


@dataclass(frozen=True)
class Trained:
    """One seed's network."""

    predictions: Any
    """Of test videos: `Detections` or `AnomalyScores`."""
    score: float
    """On validation, by which its epoch was chosen."""
    parameters: int
    seconds: float


class UntrimmedProtocol(FeatureProtocol[LongFeatures]):
    recipe: Recipe

    def __init__(self, recipe: Recipe, data: LongFeatures, methods: FeatureMethods | None = None) -> None:
        labels = data.data.labels
        check_splits(labels)
        super().__init__(recipe, data, data.data, methods)
        self.videos = self._videos(data)
        self.raw_run, self.tested = recipe.raw, labels.indices("test")
        self.trained, self.planned = 0, len(self.seeds) * (1 + len(self.settings))
        self.drawn = VideoResamples(
            Resamples(labels.group[self.tested], resamples=recipe.resamples), recipe.permutations
        )

    def after(self, setting: Setting) -> LongFeatures:
        return self.methods.after_long(self.data, setting)

    def raw_recipe(self) -> Recipe:
        return replace(raw_of(self.recipe), raw="")

    def evaluate_raw(self) -> Evaluated:
        found = super().evaluate_raw()
        self.trained = len(self.seeds)  # also where raw features were evaluated by an earlier run of this process
        return found

    def _videos(self, data: LongFeatures) -> Videos:
        return data.detection_videos() if self.recipe.protocol == "detection" else data.anomaly_videos()

    def evaluate_setting(self, data: Sequence[LongFeatures], about: Evaluated) -> Evaluated:
        """A network on each seed's features."""
        train: Callable[..., Trained] = _detect if self.recipe.protocol == "detection" else _anomalies
        trained: list[Trained] = []
        videos = {id(one): self._videos(one) for one in data}
        for seed, one in zip(self.seeds, data, strict=True):
            label = f"{about.tag} {self.recipe.protocol} seed {seed}"
            elsewhere = self.raw_run and label.startswith("raw ")
            folder = training_of_run(self.raw_run, label) if elsewhere else self.folder(label)
            trained.append(train(videos[id(one)], self.recipe, seed=seed, folder=folder, log=self.run.log, label=label))
            self.trained += 1
            self.say(f"{label}: {trained[-1].score:.3f} (val), {self.trained} of {self.planned}")
        self.add_cost(f"{about.tag} {self.recipe.protocol}", trained[0].parameters, [one.seconds for one in trained])
        val = float(np.mean([one.score for one in trained]))
        about.numbers = self._numbers([one.predictions for one in trained], val)
        self.say_values(about)
        return about

    def _numbers(self, predictions: list[Any], val: float) -> dict[str, Number]:
        if isinstance(self.videos, DetectionVideos):
            return detection_numbers(self.videos, self.tested, predictions, val, self.drawn)
        return anomaly_numbers(self.videos, predictions, val, self.drawn)

    def as_point(self, one: Evaluated) -> Point:
        """With a sentence about it. Where a network is at chance level on raw videos, it says nothing of a method."""
        first = next(iter(one.numbers))
        raw_number = one.raw_numbers[first]
        what = "events are found" if self.recipe.protocol == "detection" else "anomalies are detected"
        if raw_number.least_p > LEVEL:
            verdict = f"too few permutations to say whether {what}"
        elif not _above_chance(raw_number):
            verdict = f"nothing can be said: on raw features it is not better than chance that {what}"
        elif one.raw is None:
            verdict = f"{what} on raw features"
        else:
            verdict = f"{what} still" if _above_chance(one.numbers[first]) else f"{what} no better than by chance"
        return replace(super().as_point(one), verdict=verdict + self.how_seen(one))


def _above_chance(number: Number) -> bool:
    """Hardly ever reached if videos are permuted, and above the floor wherever videos are drawn."""
    above = number.measured.above_floor()
    low = above.low if np.isfinite(above.low) else above.value
    return bool(low > 0 and (number.p is None or number.p <= LEVEL))


def _detect(
    data: DetectionVideos, recipe: DetectionRecipe, *, seed: int, folder: Path, log: Log, label: str
) -> Trained:
    began = monotonic()
    model, outcome = fit_detection(
        data, shape=recipe.shape(data.width, len(data.classes)),
        options=replace(options_of(recipe, seed + SALT), monitor="map", channels_last=False),
        batch=recipe.batch, longest=recipe.longest, folder=folder, log=log, label=label,
    )  # fmt: skip
    found: Detections = detect(model, data, data.indices("test"))
    return Trained(found, outcome.best, _parameters(model), round(monotonic() - began, 1))


def _anomalies(data: AnomalyVideos, recipe: AnomalyRecipe, *, seed: int, folder: Path, log: Log, label: str) -> Trained:
    began = monotonic()
    model, outcome = fit_anomaly(
        data, shape=recipe.shape(data.width), weights=WEIGHTS[recipe.weights],
        options=replace(options_of(recipe, seed + SALT), monitor="video_auc", channels_last=False),
        batch=recipe.batch, folder=folder, log=log, label=label,
    )  # fmt: skip
    found: AnomalyScores = model.predict(data.of("test"))
    return Trained(found, outcome.best, _parameters(model), round(monotonic() - began, 1))


def _parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def load(recipe: Recipe, root: Path | None, strict: bool) -> UntrimmedProtocol:
    """The protocol, with the features and methods of its recipe."""
    device = options_of(recipe, 0).accelerator()
    features_per_clip(recipe.data, recipe.protocol)  # of another set there are none
    methods = FeatureMethods(recipe, device)
    data = long_features(
        recipe.data, recipe.encoder, recipe.protocol, frames=recipe.frames, size=recipe.size, stride=recipe.stride,
        half=recipe.half, root=root, seed=recipe.data_seed, strict=strict, device=device, hop=recipe.hop,
    )  # fmt: skip
    return UntrimmedProtocol(recipe, data, methods)


run = partial(run_protocol, load)
"""`vidveil evaluate` of whole videos."""
