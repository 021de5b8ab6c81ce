"""Training of STPrivacy: the first two of the paper's three phases. The third is what `vidveil evaluate` does.

    eq. 12   L = L_spars + L'_action                                     its own head predicts the action
    eq. 13   L = L_spars + λ_a · L_action − λ_p · L_privacy               two recognizers predict from what is shown

In the paper recognizers and anonymizer are updated alternately on eq. 13. Here they are updated together, on

    L_spars + L_action(f_a(x₊)) + L_privacy(f_p(x₋)),   x₊ = x₋ = what is shown,   ∂x₊ = λ_a · ∂x,   ∂x₋ = −λ_p · ∂x

from which f_a and f_p get the gradients of their own losses, unweighted, and the anonymizer that of eq. 13. This
differs from alternating updates in two points: none of the networks sees what the others learned in the same step, and
gradients are clipped by the norm over all three. It costs one pass instead of two, and a run is resumed from weights
and moments alone.

The recognizers of the paper are video ViTs that attend to kept tubelets only (`MaskedViT`):

    x = tokens of the drawn clip, each of its own pixels alone
    depth ×   masked self-attention under Î (eq. 8-10), MLP
    logits = W · norm(Σ Î x / Σ Î)

Dropped tubelets are in their input as they would be drawn. No token attends to them, so the predictions are those of
the shown clip, but Î gets the gradient of what each of them would add. If they were black, as they are shown, it would
get the gradient of a black tubelet.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from vidveil.core.errors import UsageError
from vidveil.data.clips import ClipSet
from vidveil.methods.learned.train import Networks, Training
from vidveil.methods.learned.validation import ValidationOutput
from vidveil.methods.masking.train import picture_weights
from vidveil.methods.stprivacy.model import Backbone, Network, STPrivacy, STPrivacyOutput
from vidveil.methods.stprivacy.recipe import STPrivacyRecipe
from vidveil.methods.stprivacy.token_retention import averages, sparsity
from vidveil.models.layers.gradient_reversal import reverse_gradient
from vidveil.models.layers.tubelets import cut_into_clips
from vidveil.models.recognizers import RECOGNIZERS, build
from vidveil.models.recognizers.pretrained import fill_backbone, grown
from vidveil.models.recognizers.recognizer import Classifier
from vidveil.models.recognizers.vit import ConvolvedTubelets
from vidveil.tasks import Task
from vidveil.training.compiling import compiled_in_training

RECOGNIZER_PARTS = ("utility", "attacker")
BACKBONE = ("blocks.", "patch_embed.", "pos_embed", "norm.")
"""Prefixes of the parameters of a transformer that published weights fill; its time embedding starts at 0."""
PRETRAINED = "pretrained"
"""After the colon of a recognizer that starts from published weights."""
INITIALISE = "initialise"
"""The phase of eq. 12."""
KEPT_VIT = "kept_vit"
KEPT_VIT_DEPTHS = {"mini": 4}
"""Blocks of a recognizer, where it has fewer than the anonymizer: two CPU cores have to train three networks."""
GROUPS = 4


class MaskedViT(Backbone):
    """A transformer of the anonymizer's size, with a linear head for each named output: `{"action": 10}`."""

    def __init__(self, network: Network, outputs: Mapping[str, int]) -> None:
        super().__init__(network, KEPT_VIT_DEPTHS.get(network.size))
        if isinstance(self.patch_embed, ConvolvedTubelets):
            self.patch_embed.stem = without_batch_norm(self.patch_embed.stem)
        self.heads = nn.ModuleDict({name: nn.Linear(self.width, count) for name, count in outputs.items()})

    def patches(self, clip: Tensor) -> Tensor:
        """Each tubelet is a clip of its own: convolutions would mix pixels of dropped ones into their neighbours."""
        if not isinstance(self.patch_embed, ConvolvedTubelets):
            return super().patches(clip)
        tokens: Tensor = self.patch_embed(cut_into_clips(clip, self.tubelet))  # (B·M, 1, 1, D)
        return tokens.view(len(clip), self.grid[0], self.places, self.width)

    def forward(self, pixels: Tensor, decision: Tensor | None) -> dict[str, Tensor]:
        """(B, 3, T, H, W) in [0, 1] and Î (B, M), None if nothing is dropped → logits by name."""
        x = self.embed(pixels)
        for block in self.blocks:
            x = block(x, decision)
        features = self.norm(averages(x, None, 1, decision)[:, 0].to(x.dtype))
        return {name: head(features) for name, head in self.heads.items()}


def without_batch_norm(layers: nn.Sequential) -> nn.Sequential:
    """The same with norms over each input alone: those of a batch would depend on dropped tubelets."""
    return nn.Sequential(
        *(nn.GroupNorm(GROUPS, each.num_features) if isinstance(each, nn.BatchNorm3d) else each for each in layers)
    )


class STPrivacyNetworks(Networks):
    """The anonymizer, and two recognizers of its output."""

    recipe: STPrivacyRecipe

    def __init__(self, recipe: STPrivacyRecipe, data: ClipSet, device: str) -> None:
        super().__init__(recipe, data, device)
        self.anonymizer = STPrivacy(network_of(recipe, len(data.actions)))
        self.utility = _recognizer(recipe, [self.action])
        self.attacker = _recognizer(recipe, self.budget)

    @property
    def own_head_learns(self) -> bool:
        """Later it stands still under a backbone that changes."""
        return self.phase == INITIALISE

    def forward(self, video: Tensor, rows: Tensor, progress: Tensor, setting: None) -> dict[str, Tensor]:  # noqa: ARG002
        """The terms of the loss of a batch."""
        output = self.anonymizer(video)
        losses = {"sparsity": sparsity(output.decisions, self.recipe.alpha)} if output.decisions else {}
        if self.own_head_learns:
            return losses | {"action": self.action.loss(output.action, rows)}
        return losses | self.recognizer_losses(output, rows)

    def compile_parts(self) -> None:
        """The blocks of all transformers; they share what is compiled."""
        for network in (self.anonymizer, self.utility, self.attacker):
            if isinstance(network, Backbone):
                for block in network.blocks:
                    block.forward = compiled_in_training(block.forward)

    def recognizer_losses(self, output: STPrivacyOutput, rows: Tensor) -> dict[str, Tensor]:
        """L_action, and L_privacy, the mean over the budget; the anonymizer gets their gradients as in eq. 13."""
        action = self.predictions(self.utility, output, self.recipe.action_weight)["action"]
        private = self.predictions(self.attacker, output, -self.recipe.privacy_weight)
        privacy = torch.stack([task.loss(private[task.name], rows) for task in self.budget]).mean()
        return {"shown_action": self.action.loss(action, rows), "shown_privacy": privacy}

    def predictions(self, recognizer: nn.Module, output: STPrivacyOutput, pull: float = 0.0) -> dict[str, Tensor]:
        """A recognizer's logits for what is shown. Pixels and Î get `pull` times the gradient of its loss."""
        pulled = output._replace(
            pixels=reverse_gradient(output.pixels, -pull),
            decisions=[reverse_gradient(each, -pull) for each in output.decisions[-1:]],
        )
        if isinstance(recognizer, MaskedViT):
            logits: dict[str, Tensor] = recognizer(pulled.pixels, pulled.decision)
        else:
            logits = recognizer(self.anonymizer.shown(pulled))
        return logits

    def validation_output(self, video: Tensor) -> ValidationOutput:
        """At the recipe's α, tubelets taken out, as deployed."""
        output = self.anonymizer(video)
        kept = torch.ones_like(output.scores) if output.decision is None else output.decision
        own = output.action if self.own_head_learns else None
        masked = None if self.own_head_learns else self.predictions(self.utility, output)["action"]
        drawn = self.recipe.anonymize and not self.own_head_learns  # before, nobody teaches it to draw
        pictures = self.anonymizer.shown(output) if drawn else None
        return ValidationOutput(own, masked, kept > 0.5, output.scores, pictures)


def phases(recipe: STPrivacyRecipe) -> dict[str, int]:
    """Name → epochs, each with its own warm-up and cosine; where pictures are drawn, one epoch or more is of eq. 13."""
    first = min(round(recipe.initialise * recipe.epochs), recipe.epochs - recipe.anonymize)
    return {name: epochs for name, epochs in ((INITIALISE, first), ("train", recipe.epochs - first)) if epochs}


def check(recipe: STPrivacyRecipe) -> None:
    name, colon, start = recipe.recognizer.partition(":")
    with torch.device("meta"):
        STPrivacy(network_of(recipe, 1))
        if name != KEPT_VIT:
            build(name, frames=recipe.frames, size=recipe.size)
    if colon and (start != PRETRAINED or name == KEPT_VIT or RECOGNIZERS[name].weights is None):
        having = ", ".join(f"{known}:{PRETRAINED}" for known, entry in RECOGNIZERS.items() if entry.weights)
        raise UsageError(
            f"recognizer: {recipe.recognizer}: published weights have {having}; {KEPT_VIT} has pretrained: true"
        )


def published(recipe: STPrivacyRecipe) -> tuple[str, ...]:
    name, _, start = recipe.recognizer.partition(":")
    of_recognizers = RECOGNIZERS[name].weights if start == PRETRAINED else None
    return (*(("vits14",) if recipe.pretrained else ()), *((of_recognizers,) if of_recognizers else ()))


def backbone(recipe: STPrivacyRecipe) -> tuple[str, ...]:
    transformers = ("anonymizer", *RECOGNIZER_PARTS) if recipe.pretrained else ()
    recognizers = RECOGNIZER_PARTS if recipe.recognizer.endswith(f":{PRETRAINED}") else ()
    own = tuple(f"{network}.{part}" for network in transformers for part in BACKBONE)
    return own + tuple(f"{name}.recognizer." for name in recognizers)


def prepare(recipe: STPrivacyRecipe, data: ClipSet, device: str) -> STPrivacyNetworks:
    pictures = picture_weights(recipe)
    networks = STPrivacyNetworks(recipe, data, device)
    for network in (networks.anonymizer, networks.utility, networks.attacker):
        if pictures is not None and isinstance(network, Backbone):
            load_picture_weights(network, pictures)
    return networks


def load_picture_weights(network: Backbone, tensors: Mapping[str, Tensor]) -> list[str]:
    """Fill the backbone from a picture ViT (timm's names); returns the names of parameters that have no counterpart.

    Position embeddings are the same at all times. There is no CLS token: the ViT's own and its position are left out.
    """
    found = grown(tensors, network.tubelet, network.grid[1], token=False)
    found.pop("cls_token", None)
    found["time_embed"] = torch.zeros_like(network.time_embed)
    return fill_backbone(network, found, network.network.size)


def _recognizer(recipe: STPrivacyRecipe, tasks: list[Task]) -> nn.Module:
    outputs = {task.name: task.outputs for task in tasks}
    if recipe.recognizer == KEPT_VIT:
        return MaskedViT(network_of(recipe, 1), outputs)
    name, _, start = recipe.recognizer.partition(":")
    return Classifier(build(name, frames=recipe.frames, size=recipe.size, pretrained=start == PRETRAINED), outputs)


def network_of(recipe: STPrivacyRecipe, actions: int) -> Network:
    return Network(
        size=recipe.network,
        frames=recipe.frames,
        side=recipe.size,
        actions=actions,
        tubelet_frames=recipe.tubelet_frames,
        alpha=recipe.alpha,
        select=recipe.select,
        sparsify=recipe.sparsify,
        anonymize=recipe.anonymize,
    )


run = Training(
    prepare=prepare, check=check, published=published, backbone=backbone, several_actions=True, phases=phases
).run
