"""Training of a dual-CLS anonymizer, four ways.

    heads        L = CE(act_CLS) + BCE(priv_CLS)         reversed: the backbone under priv_CLS gets minus its gradient
    pixels       L + CE(f_T(m ⊙ clip)) + BCE(f_B(m ⊙ clip)), m the mask of the last selection, straight-through:
                 f_T and f_B learn to read the masked clip; the mask learns to help f_T and to make f_B fail
    attribution  L − Σ t_act log α_act − Σ t_priv log α_priv at every selection: t is how much each tubelet predicts by
                 itself (`supervision`); nothing is reversed, and no network works against another
    both         attribution finds where the information is, pixels how much of it is worth keeping: all of these losses

With a detector each token learns from its own recognizer: f_T moves α_act alone, f_B moves α_priv alone.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from vidveil.data.clips import ClipSet
from vidveil.methods.dual_cls.model import DualCLS, DualCLSOutput, Network
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.dual_cls.supervision import (
    Votes,
    attention_loss,
    attribution_shares,
    random_tubelets,
    straight_through,
    sum_votes,
    vote_strength,
)
from vidveil.methods.learned.train import Networks, Training
from vidveil.methods.learned.validation import ValidationOutput
from vidveil.methods.masking.train import picture_weights
from vidveil.models.layers.gradient_reversal import ramp, reverse_gradient
from vidveil.models.layers.tubelets import over_pixels
from vidveil.models.recognizers import build
from vidveil.models.recognizers.pretrained import fill_backbone, grown
from vidveil.models.recognizers.recognizer import Classifier
from vidveil.models.recognizers.vit import ConvolvedTubelets
from vidveil.tasks import Task

BACKBONE = tuple(f"anonymizer.{part}" for part in ("blocks.", "patch_embed.", "pos_embed", "cls_token", "norm."))
VOTES_WIDTH = 256
SHARE_LEVELS = 12
"""Number of keep rates that are drawn from, and"""
WARMUP_LEVELS = 8
"""from 1 down to r: a step is recorded for each of them (`training.recorded`)."""


class DualCLSNetworks(Networks):
    """The anonymizer, with a utility network and an attacker on masked pixels, and a network of votes for tubelets."""

    recipe: DualCLSRecipe

    def __init__(self, recipe: DualCLSRecipe, data: ClipSet, device: str) -> None:
        super().__init__(recipe, data, device)
        widths = {task.name: task.outputs for task in self.budget}
        self.anonymizer = DualCLS(network_of(recipe, len(data.actions), widths))
        self.utility: Classifier | None = None
        self.attacker: Classifier | None = None
        self.votes: Votes | None = None
        if recipe.uses_recognizers:
            self.utility = _recognizer(recipe.utility, recipe, [self.action])
            self.attacker = _recognizer(recipe.attacker, recipe, self.budget)
        if recipe.uses_attribution:
            embed = ConvolvedTubelets(3, self.anonymizer.tubelet, VOTES_WIDTH)
            outputs = {task.name: task.outputs for task in (self.action, *self.budget)}
            self.votes = Votes(embed, self.anonymizer.tubelet, VOTES_WIDTH, outputs)

    def attribution_losses(
        self, video: Tensor, rows: Tensor, output: DualCLSOutput, weight: float | Tensor = 1.0
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """One loss of the votes for each task; two attention losses, of α_act and α_priv, over all selections."""
        assert self.votes is not None
        votes = self.votes(self.anonymizer.standardize(video))
        share = self.recipe.shown_share
        shown = random_tubelets(len(video), self.anonymizer.count, share, video.device)  # (B, M)
        tasks = (self.action, *self.budget)
        vote_losses = {
            f"votes_{task.name}": task.loss(sum_votes(votes[task.name], shown, share), rows) for task in tasks
        }
        strength = {name: vote_strength(each.detach(), several=name == "attributes") for name, each in votes.items()}
        useful = attribution_shares(strength["action"])
        private = torch.stack([attribution_shares(strength[task.name]) for task in self.budget]).mean(0)
        act, priv = (
            torch.stack([attention_loss(alpha, target, live) for alpha, live in maps]).sum()
            for target, maps in (
                (useful, [(selection.act, selection.live) for selection in output.selections]),
                (private, [(selection.priv, selection.live) for selection in output.selections]),
            )
        )
        return vote_losses, {"attention_action": weight * act, "attention_privacy": weight * priv}

    def forward(self, video: Tensor, rows: Tensor, progress: Tensor, setting: float) -> dict[str, Tensor]:
        """The terms of the loss of a batch; `setting` is the keep rate."""
        recipe = self.recipe
        output = self.anonymizer(video, setting)
        pull = ramp(progress)
        features = output.privacy_features
        features = reverse_gradient(features, pull) if recipe.privacy_attention == "reversed" else features
        losses = {"action": self.action.loss(output.action, rows)}
        for task in self.budget:
            losses[task.name] = task.loss(self.anonymizer.budget_heads[task.name](features), rows)
        if recipe.train_on != "heads":
            losses = {name: recipe.head_weight * loss for name, loss in losses.items()}
        if self.votes is not None:
            begin, end = recipe.attribution_weight
            of_votes, of_attention = self.attribution_losses(video, rows, output, begin + (end - begin) * progress)
            losses |= of_votes | of_attention
        if self.utility is not None and self.attacker is not None:
            for_utility, for_attacker = self.shown_clips(video, output, pull * recipe.budget_pull)
            losses["masked_action"] = self.action.loss(self.utility(for_utility)["action"], rows)
            predictions = self.attacker(for_attacker)
            losses |= {f"masked_{task.name}": task.loss(predictions[task.name], rows) for task in self.budget}
        return losses

    def setting(self, progress: float, number: float) -> float:
        """The keep rate. Heads: from 1 to r along a cosine, in steps. Else: drawn at random, so that one training
        serves all keep rates."""
        recipe = self.recipe
        if recipe.train_on != "heads":
            low, high = recipe.share_range
            share = low + (high - low) * int(SHARE_LEVELS * number) / (SHARE_LEVELS - 1)
            return float(share ** (1 / len(self.anonymizer.prune_at)))
        begin, end = recipe.keep_warmup
        done = min(max((progress - begin) / max(end - begin, 1e-9), 0.0), 1.0)
        fallen = round(WARMUP_LEVELS * 0.5 * (1 - math.cos(math.pi * done))) / WARMUP_LEVELS
        return 1 - (1 - recipe.keep) * fallen

    def compile_parts(self) -> None:
        """The blocks of the anonymizer."""
        for block in self.anonymizer.blocks:
            block.compile_parts()

    def shown_clips(
        self, video: Tensor, output: DualCLSOutput, pull: float | Tensor, *, random_masks: bool = True
    ) -> tuple[Tensor, Tensor]:
        """The inputs of f_T and f_B: the same pixels, with gradients to the mask that help f_T and make f_B fail."""
        network = self.anonymizer
        separate = self.recipe.privacy_attention == "detector"
        helping, failing = (
            straight_through(output.selections, network.count, network.score, self.recipe.temperature, only)
            for only in (("act", "priv") if separate else (None, None))
        )  # each (B, M)
        failing = reverse_gradient(failing, pull)
        if network.decoder is not None:
            pictures = network.decode(output)
            return pictures, reverse_gradient(pictures, pull)
        if random_masks and self.recipe.random_masks > 0:
            order = torch.rand(helping.shape, device=video.device)
            count = output.selections[-1].kept.shape[1]
            random_mask = (order.argsort(1).argsort(1) < count).to(helping.dtype)
            replaced = torch.rand(len(video), 1, device=video.device) < self.recipe.random_masks
            # the gradient of a gate under a random mask: the value of this tubelet next to others than its usual ones
            helping, failing = (
                torch.where(replaced, random_mask + mask - mask.detach(), mask) for mask in (helping, failing)
            )
        masks = (over_pixels(mask.view(-1, *network.grid), network.tubelet).unsqueeze(1) for mask in (helping, failing))
        for_utility, for_attacker = (video * mask for mask in masks)
        return for_utility, for_attacker

    def validation_output(self, video: Tensor) -> ValidationOutput:
        output = self.anonymizer(video)
        masked = pictures = None
        if self.utility is not None:
            shown, _ = self.shown_clips(video, output, 0.0, random_masks=False)
            masked = self.utility(shown)["action"]
            pictures = None if self.anonymizer.decoder is None else shown
        return ValidationOutput(output.action, masked, output.kept, output.scores, pictures)


def published(recipe: DualCLSRecipe) -> tuple[str, ...]:
    return ("vits14",) if recipe.pretrained else ()


def backbone(recipe: DualCLSRecipe) -> tuple[str, ...]:
    return BACKBONE if recipe.pretrained else ()


def check(recipe: DualCLSRecipe) -> None:
    with torch.device("meta"):
        DualCLS(network_of(recipe, 1, dict.fromkeys(recipe.budget, 1)))


def prepare(recipe: DualCLSRecipe, data: ClipSet, device: str) -> DualCLSNetworks:
    pictures = picture_weights(recipe)
    networks = DualCLSNetworks(recipe, data, device)
    if pictures is not None:
        load_picture_weights(networks.anonymizer, pictures)
    return networks


def load_picture_weights(network: DualCLS, tensors: Mapping[str, Tensor]) -> list[str]:
    """Fill the backbone from a picture ViT (timm's names); returns the names of parameters that have no counterpart.

    Patch kernels are repeated over time and divided by its length, position embeddings are resampled and the same at
    all times. The CLS token and its position serve both tokens, the privacy token with noise added (two equal tokens
    would have equal maps); a detector's query, output and MLP start as the backbone's own.
    """
    found = grown(tensors, network.tubelet, network.grid[1], token=True)
    token = found["cls_token"]  # (1, 1, D)
    found["cls_token"] = torch.cat([token, token + token.std() * torch.randn_like(token)], 1)
    found["time_embed"] = torch.zeros_like(network.time_embed)
    found |= {f"priv_{name}": tensor for name, tensor in found.items() if name.startswith("norm.")}
    for name in [name for name in network.state_dict() if ".reader." in name]:
        block, _, part = name.partition(".reader.")
        if part.startswith("query."):
            found[name] = found[f"{block}.attn.qkv.{part[6:]}"].chunk(3)[0]
        else:
            found[name] = found[f"{block}.{'attn.' if part.startswith('proj.') else ''}{part}"]
    return fill_backbone(network, found, network.network.size)


def _recognizer(name: str, recipe: DualCLSRecipe, tasks: list[Task]) -> Classifier:
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
        shared_keys=recipe.uses_attribution,
        smooth=recipe.smooth,
        fusion=recipe.fusion,
        output=recipe.output,
        fill=recipe.fill,
        reference=recipe.reference,
        dropout=recipe.dropout,
        attention_dropout=recipe.attention_dropout,
        drop_path=recipe.drop_path,
    )


run = Training(prepare=prepare, check=check, published=published, backbone=backbone).run
