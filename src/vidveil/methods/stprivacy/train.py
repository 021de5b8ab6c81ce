"""Training of STPrivacy: the first two of the paper's three phases. The third is what `vidveil evaluate` does.

    eq. 12   L = L_spars + L'_action                                     its own head tells the action
    eq. 13   L = L_spars + λ_a · L_action − λ_p · L_privacy               two recognizers tell from what is shown

In the paper recognizers and anonymizer take steps in turn on eq. 13. Here they take one together:

    L_spars + L_action(f_a(x₊)) + L_privacy(f_p(x₋)),   x₊ = x₋ = what is shown,   ∂x₊ = λ_a · ∂x,   ∂x₋ = −λ_p · ∂x

of which f_a and f_p get the gradients of their own losses, undivided, and the anonymizer that of eq. 13: the gradients
of steps in turn, but for those of who comes second, who would see what the first one just learned; and the norm that
they are clipped by is that of all three. It costs one pass instead of two, and a run that was stopped goes on from
weights and moments alone.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor, nn

from vidveil.core.errors import UsageError
from vidveil.data.clips import ClipSet
from vidveil.methods.masking.train import Networks, Training, ValidationOutput, budget_task, train
from vidveil.methods.stprivacy.model import Backbone, Network, Seen, STPrivacy
from vidveil.methods.stprivacy.recipe import STPrivacyRecipe
from vidveil.methods.stprivacy.recognizers import KEPT_VIT, KeptViT
from vidveil.methods.stprivacy.token_retention import sparsity
from vidveil.methods.stprivacy.weights import load_picture_weights
from vidveil.methods.trained import Trained
from vidveil.models.layers.gradient_reversal import reverse_gradient
from vidveil.models.recognizers import RECOGNIZERS, build
from vidveil.models.recognizers.recognizer import Classifier
from vidveil.tasks import TASKS, Task

PLAYERS = ("utility", "attacker")
BACKBONE = ("blocks.", "patch_embed.", "pos_embed", "norm.")
"""How the names of parameters of a transformer begin that published weights fill; its time embedding starts at 0."""
PRETRAINED = "pretrained"
"""Behind the colon of a recognizer that starts from published weights."""
FIRST = "initialise"
"""The phase of eq. 12."""


class STPrivacyNetworks(Networks):
    """The anonymizer, and the two recognizers that it is shown to."""

    recipe: STPrivacyRecipe

    def __init__(self, recipe: STPrivacyRecipe, data: ClipSet, device: str) -> None:
        super().__init__()
        self.recipe = recipe
        self.action: Task = TASKS["action"](data, device, recipe.label_smoothing)
        self.budget: list[Task] = [budget_task(name, data, device, recipe.label_smoothing) for name in recipe.budget]
        self.anonymizer = STPrivacy(network_of(recipe, len(data.actions)))
        self.initialised = (phases(recipe).get(FIRST, 0) - 1e-6) / recipe.epochs
        """How far training is when the recognizers come."""
        self.by_itself = "train" not in phases(recipe)
        """Whether its own head is what learns; later that stands still under a backbone that moves."""
        self.utility = _player(recipe, [self.action])
        self.attacker = _player(recipe, self.budget)

    def forward(self, video: Tensor, rows: Tensor, progress: float) -> Tensor:
        """The loss of a batch."""
        seen = self.anonymizer(video)
        losses = [sparsity(seen.decisions, self.recipe.alpha)] if seen.decisions else []
        self.by_itself = progress < self.initialised
        if self.by_itself:
            losses.append(self.action.loss(seen.action, rows))
        else:
            losses += self.of_recognizers(seen, rows)
        return torch.stack(losses).sum()

    def of_recognizers(self, seen: Seen, rows: Tensor) -> list[Tensor]:
        """L_action, and L_privacy, the mean over the budget, with what the anonymizer gets of them as in eq. 13."""
        helped = self.told(self.utility, seen, self.recipe.action_weight)["action"]
        failed = self.told(self.attacker, seen, -self.recipe.privacy_weight)
        privacy = torch.stack([task.loss(failed[task.name], rows) for task in self.budget]).mean()
        return [self.action.loss(helped, rows), privacy]

    def told(self, player: nn.Module, seen: Seen, pull: float = 0.0) -> dict[str, Tensor]:
        """What a recognizer says of what is shown. Pixels and Î get `pull` times the gradient of its loss."""
        pulled = seen._replace(
            pixels=reverse_gradient(seen.pixels, -pull),
            decisions=[reverse_gradient(each, -pull) for each in seen.decisions[-1:]],
        )
        if isinstance(player, KeptViT):
            said: dict[str, Tensor] = player(pulled.pixels, pulled.decision)
        else:
            said = player(self.anonymizer.shown(pulled))
        return said

    def validation_output(self, video: Tensor) -> ValidationOutput:
        """At the recipe's α, tubelets taken out, as deployed."""
        seen = self.anonymizer(video)
        kept = torch.ones_like(seen.scores) if seen.decision is None else seen.decision
        own = seen.action if self.by_itself else None
        return ValidationOutput(
            own, None if self.by_itself else self.told(self.utility, seen)["action"], kept > 0.5, seen.scores
        )


def phases(recipe: STPrivacyRecipe) -> dict[str, int]:
    """Name → epochs, each with a warm-up and a cosine of its own; recognizers teach what is drawn for one at least."""
    first = min(round(recipe.initialise * recipe.epochs), recipe.epochs - recipe.anonymize)
    return {name: epochs for name, epochs in ((FIRST, first), ("train", recipe.epochs - first)) if epochs}


def check(recipe: STPrivacyRecipe) -> None:
    """What contradicts itself is refused, before any clip is drawn."""
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
    """Weights of others that it and its recognizers start from."""
    name, _, start = recipe.recognizer.partition(":")
    taught = RECOGNIZERS[name].weights if start == PRETRAINED else None
    return (*(("vits14",) if recipe.pretrained else ()), *((taught,) if taught else ()))


def backbone(recipe: STPrivacyRecipe) -> tuple[str, ...]:
    """How the names of parameters begin that these fill."""
    transformers = ("anonymizer", *PLAYERS) if recipe.pretrained else ()
    taught = PLAYERS if recipe.recognizer.endswith(f":{PRETRAINED}") else ()
    own = tuple(f"{network}.{part}" for network in transformers for part in BACKBONE)
    return own + tuple(f"{player}.recognizer." for player in taught)


def prepare(
    recipe: STPrivacyRecipe, data: ClipSet, device: str, pictures: Mapping[str, Tensor] | None
) -> STPrivacyNetworks:
    """Everybody at the start; all transformers filled from a picture ViT, where its tensors are given."""
    game = STPrivacyNetworks(recipe, data, device)
    for network in (game.anonymizer, game.utility, game.attacker):
        if pictures is not None and isinstance(network, Backbone):
            load_picture_weights(network, pictures)
    return game


def _player(recipe: STPrivacyRecipe, tasks: list[Task]) -> nn.Module:
    outputs = {task.name: task.outputs for task in tasks}
    if recipe.recognizer == KEPT_VIT:
        return KeptViT(network_of(recipe, 1), outputs)
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


TRAINING = Training(check, published, backbone, phases, prepare, several_actions=True)


def run(
    recipe: STPrivacyRecipe,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Trained:
    return train(recipe, TRAINING, root=root, resume=resume, strict=strict, console=console)
