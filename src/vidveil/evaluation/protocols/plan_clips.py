"""What an evaluation of clips, or the training of a recognizer, will do: `training.plan`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidveil.data import load_data
from vidveil.data.clips import SPLITS, ClipSet
from vidveil.data.loader import Batch
from vidveil.data.store.videos import NotInCacheError, VideoStore, cache_folder, only_from_cache
from vidveil.data.video_parts import VIDEO_PARTS
from vidveil.data.views import parse_views
from vidveil.evaluation.checks import ENERGY, check_network, each_of, refuse_mistakes, settings_of
from vidveil.evaluation.evaluators.train import classifier
from vidveil.evaluation.measures.actions import readable
from vidveil.evaluation.protocols.clips import TARGETS, targets
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.recipes.recipe import EvaluationRecipe
from vidveil.evaluation.trainings import RAW, Training, trainings
from vidveil.methods.anonymized_data import Setting, cached_anonymized, some_anonymized
from vidveil.models.recognizers import build
from vidveil.models.recognizers.recognizer import Recognizer
from vidveil.models.recognizers.resnet import fold_biases
from vidveil.tasks import make_task
from vidveil.training.log import file_name
from vidveil.training.loop import fit
from vidveil.training.options import options_of
from vidveil.training.plan import (
    FORWARD,
    STEPS,
    Plan,
    PlannedTraining,
    PlannedWork,
    Repeated,
    Speed,
    decoding,
    fit_speed,
    predicted_clips,
    speed_of,
    steps_of,
)
from vidveil.training.recipe import LearningRecipe, TrainRecipe
from vidveil.training.runs import runs_folder, training_of_run

MOST_SECONDS = 2.0
"""For timing a network, about."""
FEW = 4
"""Clips by which the time of one more is found."""
SAMPLE = 4
"""Clips by which a method is timed."""
MADE_UP = "networks are timed on pixels that are made up, large ones in small batches; reading clips comes on top"
ON_TOP = "permutations, resamples and comparisons with raw clips come on top"


def plan(recipe: EvaluateRecipe, root: Path | None) -> Plan:
    refuse_mistakes(recipe)
    found = plan_of(recipe)
    data = labels_of(found, recipe, root)
    if data is not None and recipe.part != "whole":
        try:
            with only_from_cache():
                data = VIDEO_PARTS[recipe.part](data)
        except NotInCacheError:
            found.notes.append(f"the part {recipe.part} of each video is made first; that is not timed")
    _add_methods(found, recipe, data)
    if recipe.protocol == "attack":
        asked = [TARGETS[name] for name in recipe.attack] if data is None else targets(recipe, data)
        for one in trainings(recipe, asked, readable=data is None or readable(data)):
            found.trainings += [_planned(found, recipe, one, seed, data) for seed in recipe.seeds]
    else:
        found.trainings += _lookups(found, recipe, data)
    found.trainings = once_each(found.trainings)
    found.notes += [MADE_UP, ON_TOP]
    return found


def plan_recognizer(recipe: TrainRecipe, root: Path | None) -> Plan:
    check_network(recipe.recognizer)
    found = plan_of(recipe)
    data = labels_of(found, recipe, root)
    folder = runs_folder() / recipe.name / "fits" / "train"
    found.trainings.append(
        network_training(
            recipe, recipe.name, recipe.tasks, recipe.recognizer, recipe.seed, data, found.device,
            done=(folder / "learned.json").is_file(),
        )
    )  # fmt: skip
    found.notes.append(MADE_UP)
    return found


def plan_of(recipe: LearningRecipe) -> Plan:
    found = Plan(recipe.name, recipe.data, options_of(recipe, 0).accelerator())
    found.folders = {"cache": cache_folder(), "runs": runs_folder()}
    return found


def labels_of(found: Plan, recipe: LearningRecipe, root: Path | None) -> ClipSet | None:
    """The clips, without decoding any; None where labels are not known before that."""
    try:
        with only_from_cache():
            data = load_data(recipe.data, frames=recipe.frames, size=recipe.size, root=root, seed=recipe.data_seed)
    except NotInCacheError:
        found.work.append(decoding(recipe.data, None))
        return None
    if not is_decoded(data):
        found.work.append(decoding(recipe.data, len(data)))
    return data


def is_decoded(data: ClipSet) -> bool:
    try:
        data.videos.frames(0)
    except NotInCacheError:
        return False
    return True


def anonymized_work(data: ClipSet | None, setting: Setting, device: str) -> PlannedWork:
    """The clips of a set after a method; none, where they are in the cache."""
    what = f"clips after {setting}"
    if data is None or not is_decoded(data):
        shape = getattr(data.videos, "shape", None) if data is not None else None
        if data is None or shape is None:
            return PlannedWork(what=what, count=None if data is None else len(data), unit="clips", bytes=None)
        return PlannedWork(what=what, count=len(data), unit="clips", bytes=int(np.prod(shape)) * len(data))
    if cached_anonymized(data, setting, device=device) is not None:
        return PlannedWork(what=what, count=0, unit="clips")
    rows = np.linspace(0, len(data) - 1, min(SAMPLE, len(data))).astype(int).tolist()
    videos = data.videos
    shapes = videos.shapes if isinstance(videos, VideoStore) else [videos.frames(row).shape for row in rows]
    bytes_each = float(np.mean([np.prod(shape) for shape in shapes]))

    def seconds() -> float:
        return speed_of(lambda: some_anonymized(data, setting, rows, device=device), device).seconds / len(rows)

    return PlannedWork(what=what, count=len(data), unit="clips", bytes=round(bytes_each * len(data)), seconds=seconds)


def methods_by_setting(recipe: EvaluationRecipe) -> list[Setting]:
    """Each setting of each seed, once; without raw."""
    return [setting for setting in each_of(recipe) if setting.method != "raw"]


def _add_methods(found: Plan, recipe: EvaluateRecipe, data: ClipSet | None) -> None:
    found.work += [anonymized_work(data, setting, found.device) for setting in methods_by_setting(recipe)]


def _planned(found: Plan, recipe: EvaluateRecipe, one: Training, seed: int, data: ClipSet | None) -> PlannedTraining:
    label = one.label(seed)
    run = recipe.raw if one.tag == RAW else ""
    folder = training_of_run(run, label) if run else runs_folder() / recipe.name / "fits" / file_name(label)
    done = (folder / "learned.json").is_file()
    made = network_training(one.recipe, label, one.tasks, one.network, seed, data, found.device, done=done)
    return replace(made, group=one.tag, run=run)


def network_training(
    recipe: LearningRecipe,
    label: str,
    tasks: Sequence[str],
    network: str,
    seed: int,
    data: ClipSet | None,
    device: str,
    *,
    done: bool,
) -> PlannedTraining:
    """One training of a recognizer; of a frozen one, whose heads are trained in seconds, its features."""
    count = {split: 0 if data is None else len(data.indices(split)) for split in SPLITS}
    views = int(np.prod(parse_views(recipe.views)))
    frozen = network.endswith(":frozen")
    once = count["test"] * views + (count["train"] if "identity" in tasks else 0)
    predicted = predicted_clips(recipe.epochs, recipe.validate_every, count["val"] * views, once)
    steps = steps_of(count["train"], recipe.batch, recipe.epochs)
    if frozen:
        steps = -(-sum(count.values()) // recipe.batch)
    start = network.partition(":")[0] if network.endswith(":raw") else network

    def speed() -> Speed:
        if frozen:
            return _features_speed(recipe, start.partition(":")[0], views, device)
        return _training_speed(recipe, tasks, start, seed, data, device)

    like = (start.partition(":")[0], frozen, recipe.batch, recipe.frames, recipe.size)  # heads take no time
    return PlannedTraining(
        label=label,
        task="+".join(tasks) or "features",
        network=network,
        clips=None if data is None else count["train"],
        epochs=0 if frozen else recipe.epochs,
        steps=None if data is None else steps,
        batch=recipe.batch,
        predicted=0 if frozen else predicted,
        done=done,
        like=like,
        speed=None if data is None else speed,
    )


def once_each(planned: Sequence[PlannedTraining]) -> list[PlannedTraining]:
    """Features of a frozen network are computed once for all tasks and seeds of the same clips."""
    found, known = [], set[tuple[str, str]]()
    for one in planned:
        clips = one.label.partition(f" {one.network} ")[0].removesuffix(f" {one.task}")
        again = one.network.endswith(":frozen") and (clips, one.network) in known
        found.append(replace(one, steps=0) if again and one.steps else one)
        known.add((clips, one.network))
    return found


def _training_speed(
    recipe: LearningRecipe, names: Sequence[str], network: str, seed: int, data: ClipSet | None, device: str
) -> Speed:
    assert data is not None
    tasks = [make_task(name, data, device, recipe.label_smoothing) for name in names]
    model = classifier(network.partition(":")[0], tasks, recipe, seed).to(device)  # without published weights

    def loss(model: Any, batch: Batch) -> torch.Tensor:
        outputs = model(batch.video)
        return torch.stack([task.loss(outputs[task.name], batch.index) for task in tasks]).sum()

    rows = data.indices("train")
    whole = min(recipe.batch, len(rows))
    size, more = _affordable(model.recognizer, recipe, whole, device)
    video = torch.rand(size, 3, recipe.frames, recipe.size, recipe.size, device=device)
    same = Repeated(Batch(video, torch.from_numpy(np.array(rows[:size]))))
    speed = fit_speed(fit, model, same, options_of(recipe, seed), loss=loss)
    return Speed(speed.seconds + FORWARD * more * (whole - size), speed.parameters)


def _affordable(model: Recognizer, recipe: LearningRecipe, whole: int, device: str) -> tuple[int, float]:
    """How many clips a step may have that is timed, since those of a large network take minutes on a CPU; and how many
    seconds the features of one more clip take."""

    def seconds(count: int) -> float:
        clips = torch.rand(count, 3, recipe.frames, recipe.size, recipe.size, device=device)
        with torch.inference_mode():
            return speed_of(lambda: model.features(clips), device).seconds

    model.eval()
    few = min(FEW, whole)
    one, several = seconds(1), seconds(few)
    more = max(several - one, 0.05 * one) / max(few - 1, 1)
    size = 2 + int(max(MOST_SECONDS / (STEPS[device] * FORWARD) - one, 0.0) / more)
    return min(whole, size), more


def _features_speed(recipe: LearningRecipe, network: str, views: int, device: str) -> Speed:
    """Of the features of a batch of clips, all views."""
    model = build(network, frames=recipe.frames, size=recipe.size, pretrained=False).eval()
    fold_biases(model.to(device))
    whole = recipe.batch * views
    size, more = _affordable(model, recipe, whole, device)
    clips = torch.rand(size, 3, recipe.frames, recipe.size, recipe.size, device=device)

    @torch.inference_mode()
    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=clips.is_cuda):
            model.features(clips)

    return Speed(speed_of(step, device).seconds + more * (whole - size))


def _lookups(found: Plan, recipe: EvaluateRecipe, data: ClipSet | None) -> list[PlannedTraining]:
    """Nothing is trained: features of frozen networks, which a run keeps by the same names."""
    tags = [RAW, *(setting.tag for setting in settings_of(recipe))]
    planned = []
    for tag in tags:
        for network in recipe.attackers:
            for seed in recipe.seeds if network != ENERGY else ():
                label = f"{tag} {network} seed {seed}"
                done = (runs_folder() / recipe.name / "fits" / file_name(label) / "learned.json").is_file()
                one = network_training(recipe, label, (), network, seed, data, found.device, done=done)
                planned.append(replace(one, group=tag))
    return planned
