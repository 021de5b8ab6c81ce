"""Training of an adapter: one joint step for the adapter and the heads of its tasks (Algorithm 1).

    ẑ = AAM(z)                            z: a clip of each video, drawn anew each epoch
    L = Σ ω_T · CE(head(ẑ)) − ω_B · min(NT-Xent(AAM(z_s), AAM(z_s′)), log(2B − 1)) + ω_L · mean (ẑ − z)²

NT-Xent asks which of 2B vectors belongs to which (Chen et al. 2020, "A Simple Framework for Contrastive Learning"):

    ℓ(i, j) = − log exp(sim(z_i, z_j)/τ) / Σ_{k ≠ i} exp(sim(z_i, z_k)/τ)        sim: cosine; mean over all 2B vectors

Its minimum makes two views of the same thing alike. A method that hides maximizes it, up to what knowing nothing gives,
log(2B − 1): beyond that, two views of the same thing are made opposites, and opposites can be found as easily.

Tasks on whole videos (`splavu_untrimmed`) add a batch of these to each step, and ω_T times their own losses. Latent
consistency is then the mean of that of clips and of each of these batches: none of them counts more for being long.
No network learns the budget: two static clips of a video, z_s and z_s′, are simply not to be found by each other. With
`budget: supervised` a small network learns to predict the attributes, and the adapter to make it fail, behind a
gradient reversal.
"""

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import DataError, RecipeError
from vidveil.data.clips import ClipSet
from vidveil.data.features.sets import GIVEN, FeatureSet
from vidveil.data.views import ORDER, VIEW, draw
from vidveil.methods.splavu.erasure import erasing
from vidveil.methods.splavu.long_videos import (
    Videos,
    Whole,
    WholeVideoTask,
    means_of_classes,
    refuse_videos,
    whole_video_task,
)
from vidveil.methods.splavu.model import AAM, Shape
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.models.layers.gradient_reversal import ramp, reverse_gradient
from vidveil.tasks import Task, make_task

BLIND = -100
"""What torch's cross-entropy takes for no label."""


class Moment(NamedTuple):
    """A batch of videos, and how far training is."""

    clip: Tensor
    """(B, D), a clip of each: what is left of it, where some is erased."""
    static: tuple[Tensor, Tensor] | None
    """(B, D) twice, static clips."""
    rows: Tensor
    """(B,) of the set."""
    progress: Tensor
    """From 0 to 1: a scalar."""
    videos: tuple[Videos, ...] = ()
    """Whole ones, of each task that needs them."""


class SeededBatches:
    """Batches that depend on (seed, epoch) alone."""

    def __init__(
        self,
        data: FeatureSet,
        recipe: SplavuRecipe,
        adapter: AAM,
        *,
        static: bool,
        others: Sequence[WholeVideoTask] = (),
    ) -> None:
        self.data, self.recipe, self.static, self.others = left_of(data, adapter), recipe, static, others
        self.rows = data.labels.indices("train")
        self.batch = min(recipe.batch, len(self.rows))

    def __len__(self) -> int:
        return len(self.rows) // self.batch

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Moment]:
        seed, data = self.recipe.seed, self.data
        order = np.random.default_rng((seed, ORDER, epoch)).permutation(self.rows)
        others = [one.videos(epoch * len(self) + start) for one in self.others]
        for number in range(start, len(self)):
            rows = order[number * self.batch : (number + 1) * self.batch]
            random = draw(seed, VIEW, epoch, rows, 3)  # (B, 3)
            static = data.static.two(rows, random[:, 1:]) if self.static and data.static is not None else None
            done = torch.tensor((epoch + number / len(self)) / self.recipe.epochs)
            videos = tuple(map(next, others))
            yield Moment(data.clips.one(rows, random[:, 0]), static, torch.from_numpy(rows), done, videos)


class SplavuNetworks(nn.Module):
    """The adapter, and the networks that learn next to it."""

    def __init__(self, recipe: SplavuRecipe, data: FeatureSet, device: str, whole: Sequence[Whole] = ()) -> None:
        super().__init__()
        self.recipe = recipe
        self.adapter = AAM(shape_of(recipe, data.width))
        rows = data.labels.indices("train")
        self.adapter.scale.copy_(data.clips.even(rows).pow(2).mean().sqrt())
        if not float(self.adapter.scale) > 0:
            raise DataError(f"{data.labels.name}: all features of training clips are 0")
        if recipe.erase:
            centre, left = erasing_of(data, recipe, whole)
            self.adapter.centre.copy_(centre)
            self.adapter.left.copy_(left)
        labels = with_known_actions(data.labels, recipe.known_actions)
        on_clips = [name for name in recipe.tasks if name not in recipe.whole_videos]
        self.tasks: list[Task] = [make_task(name, labels, device, recipe.label_smoothing) for name in on_clips]
        self.heads = nn.ModuleDict({task.name: nn.Linear(data.width, task.outputs) for task in self.tasks})
        self.budget: Task | None = None
        self.attacker: nn.Module | None = None
        if recipe.budget == "supervised":
            self.budget = make_task("attributes", data.labels, device, 0.0)
            self.attacker = nn.Sequential(
                nn.Linear(data.width, data.width), nn.ReLU(), nn.Linear(data.width, self.budget.outputs)
            )
        self.on_whole_videos = nn.ModuleList(whole_video_task(videos, recipe, self.adapter, device) for videos in whole)

    @property
    def others(self) -> list[WholeVideoTask]:
        """The networks that learn on whole videos, in the order of tasks."""
        return [one for one in self.on_whole_videos if isinstance(one, WholeVideoTask)]

    def forward(self, moment: Moment) -> dict[str, Tensor]:
        """The terms of the loss of a batch."""
        recipe = self.recipe
        moving = [moment.clip, *(videos.clips for videos in moment.videos)]
        before = [features / self.adapter.scale for features in (*moving, *(moment.static or ()))]
        counts = [None, *(videos.counts for videos in moment.videos), *(None for _ in moment.static or ())]
        changed = self._after(before, counts)
        after, whole, static = changed[0], changed[1 : len(moving)], changed[len(moving) :]
        losses = {
            task.name: recipe.task_weight * task.loss(self.heads[task.name](after), moment.rows) for task in self.tasks
        }
        for one, features, videos in zip(self.others, whole, moment.videos, strict=True):
            losses[one.name] = recipe.task_weight * one.loss(features, videos)
        if recipe.latent_weight:
            moved = [F.mse_loss(a.float(), b) for a, b in zip((after, *whole), before, strict=False)]
            losses["latent"] = recipe.latent_weight * torch.stack(moved).mean()
        if static:
            found = nt_xent(static[0], static[1], recipe.temperature)
            most = found if recipe.reference else found.clamp(max=chance(len(after)))
            losses["budget"] = -recipe.budget_weight * most
        if self.attacker is not None and self.budget is not None:
            features = reverse_gradient(after, recipe.budget_weight * ramp(moment.progress))
            losses["attacker"] = self.budget.loss(self.attacker(features), moment.rows)
        return losses

    def _after(self, features: list[Tensor], counts: Sequence[Sequence[int] | None]) -> list[Tensor]:
        """Features after the adapter, in one call unless clips attend across a batch, or BatchNorm averages over it.

        Of whole videos (`counts`: how many features each has) attention looks across one at a time, as in evaluation.
        """
        if self.recipe.reference and self.recipe.adapter == "attention":
            parts = [torch.split(each, list(own or [len(each)])) for each, own in zip(features, counts, strict=True)]
            return [torch.cat([self.adapter.adapt(part) for part in each]) for each in parts]
        if self.recipe.adapter == "mlp":
            return [self.adapter.adapt(each) for each in features]
        changed = self.adapter.adapt(torch.cat(features))
        return list(changed.tensor_split(np.cumsum([len(each) for each in features])[:-1].tolist()))


def with_known_actions(labels: ClipSet, known: int) -> ClipSet:
    """The labels of the first actions alone: a loss ignores the others."""
    if not known:
        return labels
    changed = copy(labels)
    object.__setattr__(changed, "action", np.where(labels.action < known, labels.action, BLIND))
    return changed


@torch.no_grad()
def left_of(data: FeatureSet, adapter: AAM) -> FeatureSet:
    """What the adapter's projection leaves. It does not learn, so it is done once."""
    if not adapter.shape.erase:
        return data
    clips = replace(data.clips, all=adapter.erased(data.clips.all))
    static = None if data.static is None else replace(data.static, all=adapter.erased(data.static.all))
    return replace(data, clips=clips, static=static)


def erasing_of(data: FeatureSet, recipe: SplavuRecipe, whole: Sequence[Whole] = ()) -> tuple[Tensor, Tensor]:
    """Of training videos: every clip, with the mean of its video's static clips.

    What separates the classes of any task is kept.
    """
    assert data.static is not None
    rows = data.labels.indices("train")
    clips, owners = data.clips.of(rows)
    static, whose = data.static.of(rows)
    count = torch.from_numpy(data.static.count[rows]).to(static)
    still = static.new_zeros(len(rows), data.width).index_add_(0, whose, static) / count[:, None]  # (V, D)
    labels = with_known_actions(data.labels, recipe.known_actions).action[rows]
    classes = torch.from_numpy(labels).to(owners.device)[owners] if "action" in recipe.tasks else None
    also = [means_of_classes(videos) for videos in whole]
    return erasing(clips, still[owners], classes, recipe.erase, ridge=data.width / len(rows), also=also)


class IdentityPretraining(nn.Module):
    """Learning the identity by L1, before anything else."""

    def __init__(self, adapter: AAM) -> None:
        super().__init__()
        self.adapter = adapter

    def forward(self, moment: Moment) -> Tensor:
        given = moment.clip / self.adapter.scale
        return F.l1_loss(self.adapter.adapt(given), given)


def shape_of(recipe: SplavuRecipe, width: int) -> Shape:
    return Shape(
        width=width,
        kind=recipe.adapter,
        layers=recipe.layers,
        heads=recipe.heads,
        groups=recipe.groups,
        reference=recipe.reference,
        erase=recipe.erase,
    )


def refuse(recipe: SplavuRecipe, data: FeatureSet, whole: Sequence[Whole] = ()) -> None:
    """What cannot be learned is said before anything is."""
    labels = data.labels
    if not len(labels.indices("train")):
        raise DataError(f"{labels.name} has no training videos")
    if data.static is None and (recipe.budget == "static" or recipe.erase):
        raise RecipeError(
            f"{labels.name} has no static clips; without them only budget=supervised erase=0 trains, and that takes "
            "nothing away for good (docs/features.md)"
        )
    if recipe.budget == "static" and data.static is not None and data.static.count.min() < 2:
        raise RecipeError(f"{labels.name} has videos of one static clip, and budget=static compares two of each")
    if recipe.erase and "action" in recipe.tasks and labels.action_labels is not None:
        raise RecipeError(f"{labels.name} shows several actions at once, and erasing knows one a clip: erase: 0")
    if recipe.budget == "supervised" and not len(labels.attribute_names):
        raise RecipeError(f"{labels.name} names no attributes: budget: static needs none")
    made_by = str(data.store.about["encoder"].get("spec", ""))
    if whole and recipe.data.startswith(GIVEN) and made_by != recipe.encoder:
        raise RecipeError(f"{recipe.data} was made by {made_by}, and whole videos would be seen by {recipe.encoder}")
    for videos in whole:
        refuse_videos(videos, recipe, data.width)
    shape_of(recipe, data.width)


def nt_xent(first: Tensor, second: Tensor, temperature: float = 0.1) -> Tensor:
    """(B, D), (B, D): the i-th of both belong together. → a scalar."""
    vectors = F.normalize(torch.cat([first, second]).float(), dim=1)  # (2B, D)
    similar = vectors @ vectors.T / temperature  # (2B, 2B)
    itself = torch.eye(len(similar), dtype=torch.bool, device=similar.device)
    similar = similar.masked_fill(itself, float("-inf"))
    partner = torch.arange(len(similar), device=similar.device).roll(len(first))
    return F.cross_entropy(similar, partner)


def chance(batch: int) -> float:
    """The NT-Xent where every other vector is as near as the partner."""
    return math.log(2 * batch - 1)
