"""`vidveil train` of a learned method on pixels: a checkpoint that `--method` takes.

A method gives its networks, who of them learns from which loss, and what validation needs to know:

    class BlendNetworks(Networks):
        anonymizer: ...                     the network that is kept
        learners(), update_rules()          one loss, or several learners with optimizers of their own
        validation_output(video)

    TRAINING = Training(prepare=lambda recipe, data, device: BlendNetworks(recipe, data, device))
    TRAININGS["blend"] = Runnable(BlendRecipe, TRAINING.run)

The weights of the last epoch are kept, or those of the epoch with the best of a validation metric that the method
names. Other metrics are reported, and nothing is chosen by them: attackers that are trained anew evaluate a method.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn

from vidveil.core.errors import DataError, RecipeError
from vidveil.core.recipe import as_values
from vidveil.data import load_data
from vidveil.data.clips import ClipSet
from vidveil.data.description import data_description
from vidveil.data.loader import Loader
from vidveil.data.video_parts import VIDEO_PARTS, check_video_part
from vidveil.data.views import SETTING
from vidveil.methods.anonymized_data import Setting, anonymized
from vidveil.methods.learned.anonymizer import loaded_unless_raw
from vidveil.methods.learned.recipe import LearnedRecipe
from vidveil.methods.learned.validation import ValidationOutput, validation_floors, validation_metrics
from vidveil.methods.trained import Trained, Validation, finish, training_fingerprint
from vidveil.tasks import Identity, Task, make_task
from vidveil.training.batches import Batches
from vidveil.training.learner import Learner, Loss, UpdateRule
from vidveil.training.loop import fit
from vidveil.training.options import LAST, options_of
from vidveil.training.runs import Run
from vidveil.weights import describe


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    video: Tensor
    index: Tensor
    progress: Tensor
    """Of training, from 0 to 1: a scalar."""
    setting: Any
    """What the method sets for this step: a keep rate, say. Steps with the same setting can be replayed."""


class BatchesWithProgress:
    """Batches with the progress of training, and what a method sets for each: computed from (seed, epoch, number), so
    that a resumed run needs to remember nothing."""

    def __init__(self, loader: Loader, epochs: int, before: int, setting: Callable[[float, float], Any]) -> None:
        """`epochs` of all phases, of which so many came `before` this one. `setting` gets the progress, and a random
        number in [0, 1)."""
        self.loader, self.epochs, self.before, self.setting = loader, epochs, before, setting

    def __len__(self) -> int:
        return len(self.loader)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[TrainingBatch]:
        steps, epoch = len(self), epoch + self.before
        drawn = np.random.default_rng((self.loader.seed, SETTING, epoch)).random(steps)
        for number, batch in enumerate(self.loader.epoch(epoch, start), start):
            done = (epoch + number / steps) / self.epochs
            progress = torch.full((), done, dtype=torch.float64, device=self.loader.device)
            yield TrainingBatch(batch.video, batch.index, progress, self.setting(done, float(drawn[number])))


def budget_task(name: str, data: ClipSet, device: str, label_smoothing: float) -> Task:
    if name == "identity":
        return Identity(data, device, label_smoothing, within_action=data.gallery == "same action")
    return make_task(name, data, device, label_smoothing)


class Networks(nn.Module):
    """The anonymizer of a method, with the networks that it is trained with or against."""

    anonymizer: Any
    """The network that the checkpoint holds: an nn.Module with `about`."""
    phase = "train"
    """The phase of training that is on, by its name."""
    parts_are_compiled = False
    """Those of `compile_parts`, which networks may have (`training.compiling`)."""
    views_per_clip = 1
    """Views of each clip in a batch, for losses that compare them: then clips of a batch are (B, V, 3, T, H, W)."""

    def __init__(self, recipe: LearnedRecipe, data: ClipSet, device: str) -> None:
        super().__init__()
        self.recipe = recipe
        self.action: Task = make_task("action", data, device, recipe.label_smoothing)
        self.budget: list[Task] = [budget_task(name, data, device, recipe.label_smoothing) for name in recipe.budget]

    def forward(self, video: Tensor, rows: Tensor, progress: Tensor, setting: Any) -> Mapping[str, Tensor]:
        """The terms of the one loss of a batch, where there is one."""
        raise NotImplementedError

    def learners(self) -> Loss | Sequence[Learner]:
        """One loss, from `forward`, for all parameters; or learners, whose losses get these networks and a
        `TrainingBatch`. Asked for in every phase."""
        return lambda model, batch: model(batch.video, batch.index, batch.progress, batch.setting)

    def update_rules(self) -> Sequence[UpdateRule]:
        """Which learners are updated on which batches; none: all on every batch."""
        return ()

    def batches(self, clips: Batches) -> Batches:
        """What losses get: `TrainingBatch`es of clips, or these together with others (`BatchesTogether`)."""
        return clips

    def setting(self, progress: float, number: float) -> Any:  # noqa: ARG002
        """What is set for a step, from the progress of training and a random number in [0, 1)."""
        return None

    def validation_output(self, video: Tensor) -> ValidationOutput:
        """With the recipe's knobs."""
        raise NotImplementedError

    def more_metrics(self, metrics: Mapping[str, float], floors: Mapping[str, float]) -> dict[str, float]:  # noqa: ARG002
        """Further metrics of validation, from those that there are: a trade-off to choose the epoch by, say."""
        return {}


def nothing(recipe: Any) -> tuple[()]:  # noqa: ARG001
    return ()


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a method is trained, where methods differ."""

    prepare: Callable[[Any, ClipSet, str], Networks]
    """The networks at the start, from recipe, data and device."""
    check: Callable[[Any], Any] = nothing
    """Refuses contradictions in a recipe, before clips are loaded."""
    published: Callable[[Any], tuple[str, ...]] = nothing
    """Names of the published weights that a recipe starts from."""
    backbone: Callable[[Any], tuple[str, ...]] = nothing
    """Prefixes of the names of the parameters that these fill."""
    several_actions: bool = False
    """Whether clips may show several actions at once."""
    phases: Callable[[Any], dict[str, int]] = lambda recipe: {"train": recipe.epochs}
    """Name of each phase, and its epochs."""
    monitor: str = LAST
    """The metric of validation that chooses the epoch of the last phase, higher is better; `last`: the last one."""

    def run(
        self,
        recipe: Any,
        *,
        root: Path | None = None,
        resume: bool = False,
        strict: bool = False,
        console: Console | None = None,
    ) -> Trained:
        """Train as the recipe says. `root` is the data folder; `strict` refuses data that are incomplete."""
        return train(recipe, self, root=root, resume=resume, strict=strict, console=console)


def train(
    recipe: LearnedRecipe, training: Training, *, root: Path | None, resume: bool, strict: bool, console: Console | None
) -> Trained:
    training.check(recipe)
    start = ":pretrained" if training.published(recipe) else ""
    chosen = replace(options_of(recipe, recipe.seed, start), monitor=LAST, backbone=training.backbone(recipe))
    device = chosen.accelerator()
    preprocess = loaded_unless_raw(recipe.preprocess)
    check_video_part(recipe.part, recipe.data)
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    data = load_data(
        recipe.data, frames=recipe.frames, size=recipe.size, root=root, seed=recipe.data_seed, strict=strict
    )
    _check_labels(recipe, training, data)
    data = VIDEO_PARTS[recipe.part](data)
    data = anonymized(data, Setting(method=recipe.preprocess))
    torch.manual_seed(recipe.seed)
    networks = training.prepare(recipe, data, device)

    def loader(split: Any, order: Any, augment: Any, views: int = 1) -> Loader:
        return Loader(
            data, data.indices(split), frames=recipe.frames, size=recipe.size, stride=recipe.stride, batch=recipe.batch,
            augment=augment, whole=recipe.augment == "squash", seed=recipe.seed, device=device, order=order,
            views_per_clip=views,
        )  # fmt: skip

    validation = loader("val", "sequential", "none")
    validate = Validation(lambda: validation_metrics(networks, validation, data))

    with Run.create(recipe.name, as_values(recipe), resume=resume, accelerator=device, console=console) as run:
        fingerprint = training_fingerprint(
            recipe, clips=data.videos.fingerprint, published=[describe(name) for name in training.published(recipe)]
        )
        batches = loader("train", "shuffle", recipe.augment, networks.views_per_clip)
        before, problems = 0, []
        phases = training.phases(recipe)
        for number, (phase, epochs) in enumerate(phases.items(), 1):
            networks.phase = phase
            monitor = training.monitor if number == len(phases) else LAST
            found = fit(
                networks,
                batches=networks.batches(BatchesWithProgress(batches, recipe.epochs, before, networks.setting)),
                loss=networks.learners(),
                update_rules=networks.update_rules(),
                validate=validate,
                options=replace(chosen, epochs=epochs, seed=chosen.seed + before, monitor=monitor),
                folder=run.part(phase),
                fingerprint=fingerprint,
                log=run.log,
                label=recipe.name if phase == "train" else phase,
            )
            problems += [problem if phase == "train" else f"{phase}: {problem}" for problem in found.problems]
            before += epochs
            if found.best_epoch < len(found.history):  # the metrics of the weights that are kept
                validate.last = {}
        metrics = validate.metrics()
        return finish(
            run,
            recipe,
            networks.anonymizer,
            metrics,
            validation_floors(metrics, data),
            problems=problems,
            data=data_description(data),
            shows_filmed=recipe.shows_filmed and (preprocess is None or not preprocess.elsewhere),
        )


def _check_labels(recipe: LearnedRecipe, training: Training, data: ClipSet) -> None:
    if data.action_labels is not None and not training.several_actions:
        raise DataError(f"{data.name} shows several actions at once, and {recipe.method} learns one a clip")
    people, attributes = bool((data.person >= 0).any()), bool(len(data.attribute_names))
    if "attributes" in recipe.budget and not attributes:
        instead = "budget: identity" if people else "the file with its labels is missing, see docs/data.md"
        raise RecipeError(f"{data.name} names no attributes: {instead}")
    if "identity" in recipe.budget and not people:
        raise RecipeError(f"{data.name} names no people: budget: attributes")
    if "attributes" in recipe.budget and np.isnan(data.attributes[data.indices("train")]).all():
        raise RecipeError(f"{data.name}: its file of labels knows none of the clips to train on, see docs/data.md")
