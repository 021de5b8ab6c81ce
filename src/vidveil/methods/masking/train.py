"""`vidveil train` of a method that learns: the last epoch is kept, as a checkpoint that `--method` takes.

Validation is told, and nothing is chosen by it: what a method is worth is for attackers to say, who are trained anew.
"""

import hashlib
import json
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
from vidveil.core.version import __version__
from vidveil.data import load_data
from vidveil.data.about import about_data, use_of
from vidveil.data.clips import ClipSet
from vidveil.data.loader import Loader
from vidveil.data.parts import PARTS, refuse_part
from vidveil.data.puppets import PuppetClips, masks
from vidveil.methods.anonymized_data import Setting, anonymized
from vidveil.methods.masking.baselines import Grid
from vidveil.methods.masking.ground_truth import ALL_KEPT, of_clips
from vidveil.methods.masking.masker import loaded_unless_raw
from vidveil.methods.masking.recipe import MaskerRecipe
from vidveil.methods.trained import Trained
from vidveil.models import checkpoint
from vidveil.statistics.floors import largest_class, prevalence
from vidveil.tasks import TASKS, Identity, Predictions, Task
from vidveil.training.loop import fit
from vidveil.training.options import LAST, options_of
from vidveil.training.runs import Run
from vidveil.weights import describe, weights
from vidveil.weights.tensors import read_tensors


@dataclass(frozen=True, slots=True)
class Moment:
    """A batch, and how far training is."""

    video: Tensor
    index: Tensor
    progress: float
    """From 0 to 1."""


class Timed:
    """Batches that know how far training is: nothing has to be remembered for a resumed run to go on alike."""

    def __init__(self, loader: Loader, epochs: int, before: int = 0) -> None:
        """`epochs` of all phases, of which so many came `before` this one."""
        self.loader, self.epochs, self.before = loader, epochs, before

    def __len__(self) -> int:
        return len(self.loader)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Moment]:
        steps, epoch = len(self), epoch + self.before
        for number, batch in enumerate(self.loader.epoch(epoch, start), start):
            yield Moment(batch.video, batch.index, (epoch + number / steps) / self.epochs)


class ValidationOutput(NamedTuple):
    """What validation is told of a batch."""

    action: Tensor | None
    """(B, A) logits of the anonymizer's own head; None where that does not learn."""
    masked: Tensor | None
    """(B, A) of the player who sees what is shown; None where nobody does."""
    kept: Tensor
    """(B, M) bool"""
    scores: Tensor
    """(B, M)"""


def budget_task(name: str, data: ClipSet, device: str, label_smoothing: float) -> Task:
    if name == "identity":
        return Identity(data, device, label_smoothing, within_action=data.gallery == "same action")
    return TASKS[name](data, device, label_smoothing)


class Networks(nn.Module):
    """The anonymizer of a method, with the networks that it is trained with or against."""

    recipe: MaskerRecipe
    action: Task
    anonymizer: Any

    def forward(self, video: Tensor, rows: Tensor, progress: float) -> Tensor:
        """The loss of a batch."""
        raise NotImplementedError

    def validation_output(self, video: Tensor) -> ValidationOutput:
        """What validation measures, at the recipe's keep rate."""
        raise NotImplementedError


@dataclass(frozen=True)
class Training:
    """How a method is trained, where it differs from others."""

    check: Callable[[Any], None]
    """Refuses what contradicts itself in a recipe, before clips are drawn."""
    published: Callable[[Any], tuple[str, ...]]
    """Names of the published weights that a recipe starts from."""
    backbone: Callable[[Any], tuple[str, ...]]
    """How the names of the parameters begin that these fill."""
    phases: Callable[[Any], dict[str, int]]
    """Name of each phase, and its epochs."""
    prepare: Callable[[Any, ClipSet, str, Mapping[str, Tensor] | None], Networks]
    """The networks at the start, from recipe, data, device and the tensors of a picture ViT."""
    several_actions: bool
    """Whether clips may show several actions at once."""


def train(
    recipe: MaskerRecipe, training: Training, *, root: Path | None, resume: bool, strict: bool, console: Console | None
) -> Trained:
    training.check(recipe)
    start = ":pretrained" if training.published(recipe) else ""
    chosen = replace(options_of(recipe, recipe.seed, start), monitor=LAST, backbone=training.backbone(recipe))
    device = chosen.accelerator()
    loaded_unless_raw(recipe.preprocess)
    refuse_part(recipe.part, recipe.data)
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    data = load_data(
        recipe.data, frames=recipe.frames, size=recipe.size, root=root, seed=recipe.data_seed, strict=strict
    )
    _refuse(recipe, training, data)
    data = PARTS[recipe.part](data)
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
    last: dict[str, float] = {}

    def validate(_: nn.Module) -> Mapping[str, float]:
        last.clear()
        last.update(seen_on(networks, validation, data))
        return last

    with Run.create(recipe.name, as_values(recipe), resume=resume, accelerator=device, console=console) as made:
        batches, begun = loader("train", "shuffle", recipe.augment), 0
        for phase, epochs in training.phases(recipe).items():
            fit(
                networks,
                batches=Timed(batches, recipe.epochs, begun),
                loss=lambda model, moment: model(moment.video, moment.index, moment.progress),
                validate=validate,
                options=replace(chosen, epochs=epochs, seed=chosen.seed + begun),
                folder=made.part(phase),
                fingerprint=_key(recipe, training, data),
                log=made.log,
                label=recipe.name if phase == "train" else phase,
            )
            begun += epochs
        metrics = dict(last) or seen_on(networks, validation, data)  # nothing is left to do of a run that was finished
        guessed = floors(metrics, data)
        folder = made.folder / "checkpoint"
        checkpoint.write(
            folder,
            recipe.method,
            networks.anonymizer.about(),
            networks.anonymizer.state_dict(),
            recipe=as_values(recipe),
            data=about_data(data),
            metrics=metrics,
            floors=guessed,
        )
    before = loaded_unless_raw(recipe.preprocess)
    return Trained(
        method=recipe.method,
        name=recipe.name,
        data=recipe.data,
        folder=folder,
        metrics=metrics,
        floors=guessed,
        shows_filmed=recipe.shows_filmed and (before is None or not before.elsewhere),
    )


def seen_on(networks: Networks, loader: Loader, data: ClipSet) -> dict[str, float]:
    """At the recipe's keep rate: what the action head and f_T tell, and what the masks hide where that is known."""
    network = networks.eval().anonymizer
    outputs: list[ValidationOutput] = []
    rows = []
    with torch.inference_mode(), torch.autocast(loader.device.type, enabled=False):  # as it is deployed
        for batch in loader.views("1x1"):
            outputs.append(networks.validation_output(batch.video[:, 0]))
            rows.append(batch.index)
    own = [output.action for output in outputs if output.action is not None]
    masked = [output.masked for output in outputs if output.masked is not None]
    kept = torch.cat([output.kept for output in outputs]).view(-1, *network.grid)
    scores = torch.cat([output.scores for output in outputs]).view(-1, *network.grid)
    use = use_of(data)
    heads = {use: own, use.replace("action", "masked"): masked}
    found = {name: told(networks.action, logits, rows) for name, logits in heads.items() if logits}
    found[ALL_KEPT] = float(kept.float().mean())
    before = loaded_unless_raw(networks.recipe.preprocess)
    where_drawn = before is None or not before.elsewhere
    if where_drawn and isinstance(data, PuppetClips) and data.world.view == "all" and loader.stride == 1:
        every = masks(data)
        kinds = [every[row] for row in torch.cat(rows).tolist()]
        found |= of_clips(kinds, kept.cpu().numpy(), scores.cpu().numpy(), Grid(*network.tubelet[:2]))
    return found


def told(task: Task, logits: list[Tensor], rows: list[Tensor]) -> float:
    """The task's score of what a head says, batch by batch."""
    said = task.probabilities(torch.cat(logits)).cpu().numpy()
    where = torch.cat(rows).cpu().numpy()
    return task.score(Predictions(where, np.empty((len(where), 0), np.float32), {task.name: said}))


def floors(metrics: Mapping[str, float], data: ClipSet) -> dict[str, float]:
    """What guessing gets of each metric that it gets something of."""
    rows = data.indices("val")
    if data.action_labels is None:
        guessed = largest_class(data.action[rows])
    else:
        shares = prevalence(data.action_labels[rows].T)
        guessed = float(shares[(shares > 0) & (shares < 1)].mean())  # of the labels that cMAP is the mean over
    use = use_of(data)
    found = {use: guessed, use.replace("action", "masked"): guessed}
    if (kept := metrics.get(ALL_KEPT)) is not None:
        found |= {"identity_hidden": 1 - kept, "action_kept": kept, "score_auroc": 0.5}
    return {name: value for name, value in found.items() if name in metrics}


def _refuse(recipe: MaskerRecipe, training: Training, data: ClipSet) -> None:
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


def _key(recipe: MaskerRecipe, training: Training, data: ClipSet) -> str:
    free = ("device", "checkpoint_seconds", "compile", "name")
    about = {key: value for key, value in as_values(recipe).items() if key not in free}
    about |= {"clips": data.videos.fingerprint, "vidveil": __version__}
    about["published"] = [describe(name) for name in training.published(recipe)]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
