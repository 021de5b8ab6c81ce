"""`vidveil train` of a method that masks tubelets: the last epoch is kept, as a checkpoint that `--method` takes.

Validation metrics are reported, and nothing is chosen by them: attackers that are trained anew evaluate a method.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn

from vidveil.core.errors import DataError, RecipeError
from vidveil.core.recipe import as_values
from vidveil.data import load_data
from vidveil.data.clips import ClipSet
from vidveil.data.description import data_description, utility_metric
from vidveil.data.loader import Loader
from vidveil.data.puppets import PuppetClips, masks
from vidveil.data.video_parts import VIDEO_PARTS, check_video_part
from vidveil.data.views import SETTING
from vidveil.methods.anonymized_data import Setting, anonymized
from vidveil.methods.learned.recipe import MaskerRecipe
from vidveil.methods.masking.baselines import Grid
from vidveil.methods.masking.ground_truth import ALL_KEPT, of_clips
from vidveil.methods.masking.masker import loaded_unless_raw
from vidveil.methods.trained import Trained, Validation, finish, training_fingerprint
from vidveil.statistics.floors import largest_class, prevalence
from vidveil.tasks import Identity, Predictions, Task, make_task
from vidveil.training.loop import fit
from vidveil.training.options import LAST, options_of
from vidveil.training.runs import Run
from vidveil.weights import describe, weights
from vidveil.weights.tensors import read_tensors


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


class ValidationOutput(NamedTuple):
    """What validation needs to know about a batch."""

    action: Tensor | None
    """(B, A) logits of the anonymizer's own head; None where that does not learn."""
    masked: Tensor | None
    """(B, A) logits of the recognizer that sees the anonymized clip; None where there is none."""
    kept: Tensor | None = None
    """(B, M) bool; None where nothing is hidden by a mask."""
    scores: Tensor | None = None
    """(B, M)"""


def budget_task(name: str, data: ClipSet, device: str, label_smoothing: float) -> Task:
    if name == "identity":
        return Identity(data, device, label_smoothing, within_action=data.gallery == "same action")
    return make_task(name, data, device, label_smoothing)


class Networks(nn.Module):
    """The anonymizer of a method, with the networks that it is trained with or against."""

    anonymizer: Any
    phase = "train"
    """The phase of training that is on, by its name."""

    def __init__(self, recipe: MaskerRecipe, data: ClipSet, device: str) -> None:
        super().__init__()
        self.recipe = recipe
        self.action: Task = make_task("action", data, device, recipe.label_smoothing)
        self.budget: list[Task] = [budget_task(name, data, device, recipe.label_smoothing) for name in recipe.budget]

    def forward(self, video: Tensor, rows: Tensor, progress: Tensor, setting: Any) -> Mapping[str, Tensor]:
        """The terms of the loss of a batch."""
        raise NotImplementedError

    def setting(self, progress: float, number: float) -> Any:  # noqa: ARG002
        """What is set for a step, from the progress of training and a random number in [0, 1)."""
        return None

    def validation_output(self, video: Tensor) -> ValidationOutput:
        """At the recipe's keep rate."""
        raise NotImplementedError


@dataclass(frozen=True)
class Training:
    """How a method is trained, where methods differ."""

    check: Callable[[Any], None]
    """Refuses contradictions in a recipe, before clips are loaded."""
    published: Callable[[Any], tuple[str, ...]]
    """Names of the published weights that a recipe starts from."""
    backbone: Callable[[Any], tuple[str, ...]]
    """Prefixes of the names of the parameters that these fill."""
    prepare: Callable[[Any, ClipSet, str, Mapping[str, Tensor] | None], Networks]
    """The networks at the start, from recipe, data, device and the tensors of a picture ViT."""
    several_actions: bool
    """Whether clips may show several actions at once."""
    phases: Callable[[Any], dict[str, int]] = lambda recipe: {"train": recipe.epochs}
    """Name of each phase, and its epochs."""

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
    recipe: MaskerRecipe, training: Training, *, root: Path | None, resume: bool, strict: bool, console: Console | None
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
    pictures = read_tensors(weights("vits14")) if recipe.pretrained else None
    networks: Networks = training.prepare(recipe, data, device, pictures)

    def loader(split: Any, order: Any, augment: Any) -> Loader:
        return Loader(
            data, data.indices(split), frames=recipe.frames, size=recipe.size, stride=recipe.stride, batch=recipe.batch,
            augment=augment, whole=recipe.augment == "squash", seed=recipe.seed, device=device, order=order,
        )  # fmt: skip

    validation = loader("val", "sequential", "none")
    validate = Validation(lambda: validation_metrics(networks, validation, data))

    with Run.create(recipe.name, as_values(recipe), resume=resume, accelerator=device, console=console) as run:
        fingerprint = training_fingerprint(
            recipe, clips=data.videos.fingerprint, published=[describe(name) for name in training.published(recipe)]
        )
        batches, before = loader("train", "shuffle", recipe.augment), 0
        for phase, epochs in training.phases(recipe).items():
            networks.phase = phase
            fit(
                networks,
                batches=BatchesWithProgress(batches, recipe.epochs, before, networks.setting),
                loss=lambda model, batch: model(batch.video, batch.index, batch.progress, batch.setting),
                validate=validate,
                options=replace(chosen, epochs=epochs, seed=chosen.seed + before),
                folder=run.part(phase),
                fingerprint=fingerprint,
                log=run.log,
                label=recipe.name if phase == "train" else phase,
            )
            before += epochs
        metrics = validate.metrics()
        return finish(
            run,
            recipe,
            networks.anonymizer,
            metrics,
            validation_floors(metrics, data),
            data=data_description(data),
            shows_filmed=recipe.shows_filmed and (preprocess is None or not preprocess.elsewhere),
        )


def validation_metrics(networks: Networks, loader: Loader, data: ClipSet) -> dict[str, float]:
    """At the recipe's keep rate: scores of the action head and of f_T, and what the masks hide where that is known."""
    network = networks.eval().anonymizer
    outputs: list[ValidationOutput] = []
    rows = []
    with torch.inference_mode(), torch.autocast(loader.device.type, enabled=False):  # as it is deployed
        for batch in loader.views("1x1"):
            outputs.append(networks.validation_output(batch.video[:, 0]))
            rows.append(batch.index)
    own = [output.action for output in outputs if output.action is not None]
    masked = [output.masked for output in outputs if output.masked is not None]
    utility = utility_metric(data)
    heads = {utility: own, utility.replace("action", "masked"): masked}
    found = {name: _score(networks.action, logits, rows) for name, logits in heads.items() if logits}
    hidden = [(output.kept, output.scores) for output in outputs if output.kept is not None]
    if not hidden:
        return found
    kept, scores = (torch.cat(parts).view(-1, *network.grid) for parts in zip(*hidden, strict=True))
    found[ALL_KEPT] = float(kept.float().mean())
    preprocess = loaded_unless_raw(networks.recipe.preprocess)
    in_place = preprocess is None or not preprocess.elsewhere
    if in_place and isinstance(data, PuppetClips) and data.world.view == "all" and loader.stride == 1:
        every = masks(data)
        kinds = [every[row] for row in torch.cat(rows).tolist()]
        found |= of_clips(kinds, kept.cpu().numpy(), scores.cpu().numpy(), Grid(*network.tubelet[:2]))
    return found


def _score(task: Task, logits: list[Tensor], rows: list[Tensor]) -> float:
    """The task's score of the logits of all batches."""
    probabilities = task.probabilities(torch.cat(logits)).cpu().numpy()
    clips = torch.cat(rows).cpu().numpy()
    return task.score(Predictions(clips, np.empty((len(clips), 0), np.float32), {task.name: probabilities}))


def validation_floors(metrics: Mapping[str, float], data: ClipSet) -> dict[str, float]:
    """The chance level of each metric that has one."""
    rows = data.indices("val")
    if data.action_labels is None:
        chance = largest_class(data.action[rows])
    else:
        shares = prevalence(data.action_labels[rows].T)
        chance = float(shares[(shares > 0) & (shares < 1)].mean())  # of the labels that cMAP is the mean over
    utility = utility_metric(data)
    found = {utility: chance, utility.replace("action", "masked"): chance}
    if (kept := metrics.get(ALL_KEPT)) is not None:
        found |= {"identity_hidden": 1 - kept, "action_kept": kept, "score_auroc": 0.5}
    return {name: value for name, value in found.items() if name in metrics}


def _check_labels(recipe: MaskerRecipe, training: Training, data: ClipSet) -> None:
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
