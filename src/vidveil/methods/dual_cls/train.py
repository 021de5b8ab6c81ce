"""Training of a dual-CLS anonymizer, four ways.

    heads    L = CE(act_CLS) + BCE(priv_CLS)            reversed: the backbone under priv_CLS gets minus its gradient
    pixels   L + CE(f_T(m ⊙ clip)) + BCE(f_B(m ⊙ clip)), m the mask of the last selection, straight-through:
             f_T and f_B learn to read the masked clip; the mask learns to help the one and to fail the other
    credit   L − Σ t_act log α_act − Σ t_priv log α_priv at every selection: t is how much each tubelet tells by itself
             (`layers.credit`); nothing is reversed, and nobody plays against anybody
    both     credit says where to look, pixels how much of it is worth keeping: all of these losses

With a detector each token is taught by its own player: f_T moves α_act alone, f_B moves α_priv alone.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

from vidveil.data.clips import ClipSet
from vidveil.methods.dual_cls.model import DualCLS, Network, Seen
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.dual_cls.straight_through import gate
from vidveil.methods.dual_cls.weights import load_picture_weights
from vidveil.methods.masking.train import Networks, Training, ValidationOutput, budget_task, train
from vidveil.methods.trained import Trained
from vidveil.models.layers.attribution import Votes, counted, loudness, random_company, taught, where
from vidveil.models.layers.gradient_reversal import ramp, reverse_gradient
from vidveil.models.layers.tubelets import over_pixels
from vidveil.models.recognizers import build
from vidveil.models.recognizers.recognizer import Classifier
from vidveil.models.recognizers.vit import ConvolvedTubelets
from vidveil.tasks import TASKS, Task

BACKBONE = tuple(f"anonymizer.{part}" for part in ("blocks.", "patch_embed.", "pos_embed", "cls_token", "norm."))
WIDTH = 256  # of the reader of single tubelets
LEVELS = 12
"""Shares that are drawn from: an accelerator looks for kernels anew at every number of tokens it has not met."""


class DualCLSNetworks(Networks):
    """The anonymizer, with a utility network and an attacker on masked pixels, and a classifier of single tubelets."""

    recipe: DualCLSRecipe

    def __init__(self, recipe: DualCLSRecipe, data: ClipSet, device: str) -> None:
        super().__init__()
        self.recipe = recipe
        self.action: Task = TASKS["action"](data, device, recipe.label_smoothing)
        self.budget: list[Task] = [budget_task(name, data, device, recipe.label_smoothing) for name in recipe.budget]
        widths = {task.name: task.outputs for task in self.budget}
        self.anonymizer = DualCLS(network_of(recipe, len(data.actions), widths))
        self.utility: Classifier | None = None
        self.attacker: Classifier | None = None
        self.votes: Votes | None = None
        if recipe.has_players:
            self.utility = _player(recipe.utility, recipe, [self.action])
            self.attacker = _player(recipe.attacker, recipe, self.budget)
        if recipe.has_credit:
            embed = ConvolvedTubelets(3, self.anonymizer.tubelet, WIDTH)
            outputs = {task.name: task.outputs for task in (self.action, *self.budget)}
            self.votes = Votes(embed, self.anonymizer.tubelet, WIDTH, outputs)

    def lessons(self, video: Tensor, rows: Tensor, seen: Seen, weight: float = 1.0) -> list[Tensor]:
        """A reader learns to tell by the votes of single tubelets; the attentions learn where they are loud."""
        assert self.votes is not None
        votes = self.votes(self.anonymizer.standardize(video))
        shown = random_company(len(video), self.anonymizer.count, self.recipe.company, video.device)  # (B, M)
        tasks = (self.action, *self.budget)
        losses = [task.loss(counted(votes[task.name], shown, self.recipe.company), rows) for task in tasks]
        loud = {name: loudness(each.detach(), several=name == "attributes") for name, each in votes.items()}
        useful = where(loud["action"])
        private = torch.stack([where(loud[task.name]) for task in self.budget]).mean(0)
        for chosen in seen.selections:
            for alpha, target in ((chosen.act, useful), (chosen.priv, private)):
                losses.append(weight * taught(alpha, target, chosen.live))
        return losses

    def forward(self, video: Tensor, rows: Tensor, progress: float) -> Tensor:
        """The loss of a batch."""
        recipe = self.recipe
        seen = self.anonymizer(video, self.keep_at(progress))
        pull = ramp(progress)
        told = reverse_gradient(seen.told, pull) if recipe.privacy_attention == "reversed" else seen.told
        losses = [self.action.loss(seen.action, rows)]
        losses += [task.loss(self.anonymizer.budget_heads[task.name](told), rows) for task in self.budget]
        if recipe.train_on != "heads":
            losses = [recipe.head_weight * loss for loss in losses]
        if self.votes is not None:
            begin, end = recipe.credit_weight
            losses += self.lessons(video, rows, seen, begin + (end - begin) * progress)
        if self.utility is not None and self.attacker is not None:
            helped, failed = self.shown(video, seen, pull * recipe.budget_pull)
            losses.append(self.action.loss(self.utility(helped)["action"], rows))
            said = self.attacker(failed)
            losses += [task.loss(said[task.name], rows) for task in self.budget]
        return torch.stack(losses).sum()

    def keep_at(self, progress: float) -> float:
        """Heads: from 1 to r along a cosine. Else: drawn, so that one training serves all keep rates."""
        recipe = self.recipe
        if recipe.train_on != "heads":
            low, high = recipe.share_range
            share = low + (high - low) * int(torch.randint(LEVELS, ())) / (LEVELS - 1)
            return float(share ** (1 / len(self.anonymizer.prune_at)))
        begin, end = recipe.keep_warmup
        done = min(max((progress - begin) / max(end - begin, 1e-9), 0.0), 1.0)
        return recipe.keep + (1 - recipe.keep) * 0.5 * (1 + math.cos(math.pi * done))

    def shown(self, video: Tensor, seen: Seen, pull: float, *, lots: bool = True) -> tuple[Tensor, Tensor]:
        """What f_T and f_B see: the same pixels, with gradients to the mask that help the one and fail the other."""
        network = self.anonymizer
        apart = self.recipe.privacy_attention == "detector"
        helping, failing = (
            gate(seen.selections, network.count, network.score, self.recipe.temperature, only)
            for only in (("act", "priv") if apart else (None, None))
        )  # each (B, M)
        failing = reverse_gradient(failing, pull)
        if network.decoder is not None:
            drawn = network.decode(seen)
            return drawn, reverse_gradient(drawn, pull)
        if lots and self.recipe.random_masks > 0:
            order = torch.rand(helping.shape, device=video.device)
            as_many = seen.selections[-1].kept.shape[1]
            drawn_by_lot = (order.argsort(1).argsort(1) < as_many).to(helping.dtype)
            other = torch.rand(len(video), 1, device=video.device) < self.recipe.random_masks
            # the gradient of a gate in random company: what this tubelet is worth beside others than its usual ones
            helping, failing = (
                torch.where(other, drawn_by_lot + mask - mask.detach(), mask) for mask in (helping, failing)
            )
        masks = (over_pixels(mask.view(-1, *network.grid), network.tubelet).unsqueeze(1) for mask in (helping, failing))
        first, second = (video * mask for mask in masks)
        return first, second

    def validation_output(self, video: Tensor) -> ValidationOutput:
        """At the recipe's keep rate."""
        seen = self.anonymizer(video)
        masked = None
        if self.utility is not None:
            masked = self.utility(self.shown(video, seen, 0.0, lots=False)[0])["action"]
        return ValidationOutput(seen.action, masked, seen.kept, seen.scores)


def phases(recipe: DualCLSRecipe) -> dict[str, int]:
    return {"train": recipe.epochs}


def published(recipe: DualCLSRecipe) -> tuple[str, ...]:
    """Weights of others that it starts from."""
    return ("vits14",) if recipe.pretrained else ()


def backbone(recipe: DualCLSRecipe) -> tuple[str, ...]:
    """How the names of parameters begin that these fill."""
    return BACKBONE if recipe.pretrained else ()


def check(recipe: DualCLSRecipe) -> None:
    """What contradicts itself is refused, before any clip is drawn."""
    with torch.device("meta"):
        DualCLS(network_of(recipe, 1, dict.fromkeys(recipe.budget, 1)))


def prepare(
    recipe: DualCLSRecipe, data: ClipSet, device: str, pictures: Mapping[str, Tensor] | None
) -> DualCLSNetworks:
    """Everybody at the start; the anonymizer's backbone filled from a picture ViT, where its tensors are given."""
    game = DualCLSNetworks(recipe, data, device)
    if pictures is not None:
        load_picture_weights(game.anonymizer, pictures)
    return game


def _player(name: str, recipe: DualCLSRecipe, tasks: list[Task]) -> Classifier:
    recognizer = build(name, frames=recipe.frames, size=recipe.size)
    return Classifier(recognizer, {task.name: task.outputs for task in tasks})


def network_of(recipe: DualCLSRecipe, actions: int, budget: Mapping[str, int]) -> Network:
    return Network(
        size=recipe.network,
        frames=recipe.frames,
        side=recipe.size,
        actions=actions,
        budget=budget,
        keep=recipe.keep,
        privacy_weight=recipe.privacy_weight,
        privacy_attention=recipe.privacy_attention,
        shared_keys=recipe.has_credit,
        smooth=recipe.smooth,
        fusion=recipe.fusion,
        output=recipe.output,
        fill=recipe.fill,
        reference=recipe.reference,
        dropout=recipe.dropout,
        attention_dropout=recipe.attention_dropout,
        drop_path=recipe.drop_path,
    )


TRAINING = Training(check, published, backbone, phases, prepare, several_actions=False)


def run(
    recipe: DualCLSRecipe,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Trained:
    return train(recipe, TRAINING, root=root, resume=resume, strict=strict, console=console)
