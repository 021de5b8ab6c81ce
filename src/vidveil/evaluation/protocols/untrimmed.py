"""The evaluation of an adapter on whole videos: train TriDet or MGFN anew behind it, test once, set it beside raw.

    raw features ──┬────────────────► network, each seed ─► mAP, AUC
                   └─► adapter ─► ẑ ─► network, each seed ─► the same            retention, change on the same videos

The epoch is chosen on validation, by mAP or by the AUC of videos. Nothing is attacked here: what an adapter hides is
told by `protocol: features` on clips; this tells what it costs.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from vidveil.core.errors import DataError, UsageError
from vidveil.core.machine import describe
from vidveil.core.recipe import as_values
from vidveil.data.about import about_data, labels_fingerprint
from vidveil.evaluation.evaluators.features import SALT
from vidveil.evaluation.measures.measure import Number
from vidveil.evaluation.measures.untrimmed import Drawn, anomaly_numbers, detection_numbers
from vidveil.evaluation.points import LEVEL
from vidveil.evaluation.protocols.clips import Judged, told
from vidveil.evaluation.recipes.untrimmed import WEIGHTS, AnomalyRecipe, DetectionRecipe
from vidveil.evaluation.results import Point, Results
from vidveil.methods.splavu.load import load_adapter, refuse_other_encoder
from vidveil.methods.splavu.model import AAM
from vidveil.statistics.intervals import Resamples
from vidveil.tasks.anomaly import Told, Watched, fit_anomaly
from vidveil.tasks.detection import Detections, Untrimmed, detected, fit_detection
from vidveil.tasks.long_videos import LongFeatures, features_a_clip, long_features
from vidveil.training.log import Log
from vidveil.training.options import options_of
from vidveil.training.runs import Run, runs_folder

Recipe = DetectionRecipe | AnomalyRecipe
Features = NDArray[np.float32]
AT_ONCE = 4096
"""Features through an adapter."""
_RAW: dict[str, tuple[Judged, dict[str, dict[str, float]]]] = {}
"""Of the last set that this process looked at: raw features are judged once, however many adapters follow."""


@dataclass(frozen=True)
class Trained:
    """One seed's network."""

    said: Any
    """Of test videos: `Detections` or `Told`."""
    score: float
    """On validation, by which its epoch was chosen."""
    parameters: int
    seconds: float


def run(
    recipe: Recipe,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Results:
    device = options_of(recipe, 0).accelerator()
    features_a_clip(recipe.data, recipe.protocol)  # of another set there are none
    adapters = [load_adapter(recipe.method.replace("{seed}", str(seed))) for seed in recipe.seeds]
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    data = long_features(
        recipe.data, recipe.encoder, recipe.protocol, frames=recipe.frames, size=recipe.size, stride=recipe.stride,
        half=recipe.half, root=root, seed=recipe.data_seed, strict=strict, device=device, hop=recipe.hop,
    )  # fmt: skip
    for adapter, encoder in filter(None, adapters):
        refuse_other_encoder(data.data, adapter, encoder)
    with Run.create(recipe.name, as_values(recipe), resume=resume, accelerator=device, console=console) as made:
        trained = [one[0].to(device) for one in adapters if one is not None]
        results = UntrimmedEngine(recipe, data, trained, made, console).evaluate()
        results.write(made.folder / "results.json")
    return results


class UntrimmedEngine:
    def __init__(
        self, recipe: Recipe, data: LongFeatures, adapters: Sequence[AAM], run: Run, console: Console | None
    ) -> None:
        self.recipe, self.data, self.adapters, self.run, self.console = recipe, data, adapters, run, console
        labels = data.data.labels
        if empty := [split for split in ("train", "val", "test") if not len(labels.indices(split))]:
            raise DataError(f"{labels.name} has no videos in {' and '.join(empty)}")
        self.device = options_of(recipe, 0).accelerator()
        self.tested = labels.indices("test")
        self.drawn = Drawn(Resamples(labels.group[self.tested], resamples=recipe.resamples), recipe.permutations)
        self.whole = data.untrimmed() if recipe.protocol == "detection" else data.watched()
        self.cost: dict[str, dict[str, float]] = {}
        self.began = monotonic()

    def evaluate(self) -> Results:
        recipe = self.recipe
        raw = self._raw()
        judged = [raw]
        if self.adapters:
            after = [_behind(self.whole, adapter, self.device) for adapter in self.adapters]
            judged.append(self.judge(after, Judged(recipe.method, None)))
        points = [self._told(one, raw) for one in judged]
        return Results(
            name=recipe.name,
            recipe=as_values(recipe),
            data=about_data(self.data.data.labels),
            machine=describe(self.device),
            seconds=round(monotonic() - self.began, 1),
            raw=points[0],
            points=points[1:],
            cost=self.cost,
        )

    def _raw(self) -> Judged:
        labels = self.data.data.labels
        recipe = as_values(replace(self.recipe, name="raw", method="raw", raw=""))
        key = json.dumps([labels.name, labels_fingerprint(labels), recipe, self.data.data.store.fingerprint])
        if key not in _RAW:
            found = self.judge([self.whole] * len(self.recipe.seeds), Judged("raw", None))
            _RAW.clear()
            _RAW[key] = found, dict(self.cost)
        found, self.cost = _RAW[key][0], dict(_RAW[key][1])
        return found

    def judge(self, data: Sequence[Untrimmed | Watched], about: Judged) -> Judged:
        """A network on each seed's features."""
        learn: Callable[..., Trained] = _detect if self.recipe.protocol == "detection" else _watch
        trained = []
        for seed, one in zip(self.recipe.seeds, data, strict=True):
            label = f"{about.tag} {self.recipe.protocol} seed {seed}"
            trained.append(
                learn(one, self.recipe, seed=seed, folder=self._folder(label), log=self.run.log, label=label)
            )
            self._say(f"{label}: {trained[-1].score:.3f} (val), {len(trained)} of {len(data)}")
        self.cost[f"{about.tag} {self.recipe.protocol}"] = {
            "parameters": trained[0].parameters,
            "seconds": round(sum(one.seconds for one in trained), 1),
        }
        said, val = [one.said for one in trained], float(np.mean([one.score for one in trained]))
        about.numbers = self._numbers(said, val)
        values = {name: number.leak.value.value for name, number in about.numbers.items()}
        self._say(f"{about.tag}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
        return about

    def _numbers(self, said: list[Any], val: float) -> dict[str, Number]:
        if isinstance(self.whole, Untrimmed):
            return detection_numbers(self.whole, self.tested, said, val, self.drawn)
        return anomaly_numbers(self.whole, said, val, self.drawn)

    def _told(self, one: Judged, raw: Judged) -> Point:
        """With a sentence about it. A network that cannot tell raw videos has not learned to judge."""
        first = next(iter(one.numbers))
        what = "events are found" if self.recipe.protocol == "detection" else "anomalies are told"
        if raw.numbers[first].least_p > LEVEL:
            verdict = f"too few permutations to say whether {what}"
        elif not _above_chance(raw.numbers[first]):
            verdict = f"nothing can be said: on raw features it is not better than chance that {what}"
        elif one is raw:
            verdict = f"{what} on raw features"
        else:
            verdict = f"{what} still" if _above_chance(one.numbers[first]) else f"{what} no better than by chance"
        return replace(told(one, raw), verdict=verdict)

    def _folder(self, label: str) -> Path:
        """Where a training is kept: in this run, or in the one that judged raw features already."""
        here = self.run.part(label)
        if not self.recipe.raw or not label.startswith("raw "):
            return here
        there = runs_folder() / self.recipe.raw
        if not (there / "results.json").is_file():
            raise UsageError(f"the run {self.recipe.raw} is not finished: finish it first, or leave out raw=")
        if not (there / here.relative_to(self.run.folder)).is_dir():
            raise UsageError(f"the run {self.recipe.raw} has no training {here.name}: leave out raw=")
        return there / here.relative_to(self.run.folder)

    def _say(self, line: str) -> None:
        if self.console is not None:
            shown = f"{monotonic() - self.began:6.0f} s  {line}"
            self.console.print(shown, highlight=False, markup=False, soft_wrap=True)


def _above_chance(number: Number) -> bool:
    """Hardly ever by dealing videos, and wherever videos are drawn."""
    above = number.leak.above_floor()
    low = above.low if np.isfinite(above.low) else above.value
    return bool(low > 0 and (number.p is None or number.p <= LEVEL))


def _behind(data: Untrimmed | Watched, adapter: AAM, device: str) -> Untrimmed | Watched:
    """The same videos of anonymized features."""
    change = partial(_changed, adapter, device)
    if isinstance(data, Untrimmed):
        return data.through(change)
    return replace(data, features=tuple(map(change, data.features)))


@torch.inference_mode()
def _changed(adapter: AAM, device: str, features: Features) -> Features:
    """(T, D) → (T, D). Published attention looks across what it is given: then a video is, as a whole."""
    given = torch.from_numpy(features).to(device)
    parts = (given,) if adapter.shape.reference else torch.split(given, AT_ONCE)
    return np.asarray(torch.cat([adapter(part) for part in parts]).float().cpu().numpy(), np.float32)


def _detect(data: Untrimmed, recipe: DetectionRecipe, *, seed: int, folder: Path, log: Log, label: str) -> Trained:
    began = monotonic()
    model, went = fit_detection(
        data, shape=recipe.shape(data.width, len(data.classes)),
        options=replace(options_of(recipe, seed + SALT), monitor="map", channels_last=False),
        batch=recipe.batch, longest=recipe.longest, folder=folder, log=log, label=label,
    )  # fmt: skip
    said: Detections = detected(model, data, data.indices("test"))
    return Trained(said, went.best, _parameters(model), round(monotonic() - began, 1))


def _watch(data: Watched, recipe: AnomalyRecipe, *, seed: int, folder: Path, log: Log, label: str) -> Trained:
    began = monotonic()
    model, went = fit_anomaly(
        data, shape=recipe.shape(data.width), weights=WEIGHTS[recipe.weights],
        options=replace(options_of(recipe, seed + SALT), monitor="video_auc", channels_last=False),
        batch=recipe.batch, folder=folder, log=log, label=label,
    )  # fmt: skip
    said: Told = model.predict(data.of("test"))
    return Trained(said, went.best, _parameters(model), round(monotonic() - began, 1))


def _parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
