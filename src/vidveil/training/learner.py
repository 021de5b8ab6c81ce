"""Who learns in a training, from which losses, and when.

    Learner("all", loss)                                          one network, or several that share one loss

    Learner("anonymizer", hide, parts=("anonymizer.",))           adversaries: each learner has an optimizer of its own,
    Learner("attacker", attack, parts=("attackers.",), lr=1e-4)   and its loss changes its own parameters alone

    UpdateRule("anonymizer", "attacker")                          both on every batch, one after the other (the default)
    UpdateRule("attacker", batches=5), UpdateRule("anonymizer")   five batches for one, then one for the other
    UpdateRule("attacker", batches=50, until=("loss", 0.5))       until its loss is below 0.5, 50 batches at most

Rules follow each other, again and again. Which one is on, and since when, is part of a checkpoint.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vidveil.core.errors import TrainingError
from vidveil.training.options import Options
from vidveil.training.seeds import seeded

Terms = Tensor | Mapping[str, Tensor]
"""A loss, or its terms by name: the sum is minimised, and each is logged."""
Loss = Callable[[nn.Module, Any], Terms]


@dataclass(frozen=True)
class Restart:
    """The learner starts again from fresh weights: an attacker that is stuck says little about what is left."""

    every: int
    """Batches between restarts; after the last batch there is none."""
    fresh: Callable[[], nn.Module]
    """A new network of the same kind, for the learner's only part."""


@dataclass(frozen=True)
class Learner:
    """Parameters with an optimizer. None: as `Options` says."""

    name: str
    loss: Loss
    """Of the model, as Fabric wraps it, and a batch."""
    parts: tuple[str, ...] = ("",)
    """Prefixes of the names of its parameters in the model: `attacker.`."""
    lr: float | None = None
    weight_decay: float | None = None
    betas: tuple[float, float] | None = None
    clip_norm: float | None = None
    warmup_epochs: float | None = None
    schedule: Literal["cosine", "constant"] = "cosine"
    """Of the rate after the warm-up. Both count all batches of the training, also those of other learners."""
    restart: Restart | None = None
    guess: float | None = None
    """Its loss if it knew nothing: a learner that never gets below is reported."""

    def options(self, options: Options) -> Options:
        """The options of the training, with its own instead."""
        own = {name: getattr(self, name) for name in ("lr", "weight_decay", "betas", "clip_norm", "warmup_epochs")}
        return replace(options, **{name: value for name, value in own.items() if value is not None})

    def has(self, name: str) -> bool:
        """Whether the parameter or buffer of this name is one of its own."""
        return name.startswith(self.parts)


@dataclass(frozen=True, init=False)
class UpdateRule:
    """Who is updated on the next batches."""

    learners: tuple[str, ...]
    batches: int
    """With `until`: at most."""
    until: tuple[str, float] | None
    """A term of its first learner (or `loss`, their sum) and a number: the rule ends when the term is below it."""

    def __init__(self, *learners: str, batches: int = 1, until: tuple[str, float] | None = None) -> None:
        for name, value in (("learners", learners), ("batches", batches), ("until", until)):
            object.__setattr__(self, name, value)
        if not learners or batches < 1:
            raise TrainingError("an update rule names one learner or more, and one batch or more")


ONE = "all"
"""The learner of a training that has only one."""


def learners_of(loss: Loss | Sequence[Learner]) -> list[Learner]:
    return [Learner(ONE, loss)] if callable(loss) else list(loss)


def check(learners: Sequence[Learner], rules: Sequence[UpdateRule], model: nn.Module) -> None:
    """TrainingError unless every parameter that learns has one learner, and every learner is in a rule."""
    names = [learner.name for learner in learners]
    if len(set(names)) < len(names):
        raise TrainingError(f"two learners have one name: {', '.join(names)}")
    for name, parameter in model.named_parameters():
        own = [learner.name for learner in learners if learner.has(name)]
        if parameter.requires_grad and len(own) != 1:
            whose = f"of {' and '.join(own)}" if own else "of no learner"
            raise TrainingError(f"the parameter {name} is {whose}: each belongs to one, or has requires_grad=False")
    in_rules = [name for rule in rules for name in rule.learners]
    if strange := [name for name in in_rules if name not in names]:
        raise TrainingError(f"an update rule names {strange[0]}, and no learner is called so")
    if idle := [name for name in names if name not in in_rules]:
        raise TrainingError(f"no update rule names the learner {idle[0]}")
    for learner in learners:
        if learner.restart is not None:
            _check_restart(learner, learner.restart, model)


def _check_restart(learner: Learner, restart: Restart, model: nn.Module) -> None:
    if restart.every < 1 or len(learner.parts) != 1:
        raise TrainingError(f"{learner.name}: a restart is after one batch or more, of a learner with one part")
    (part,) = learner.parts
    with seeded(0):
        fresh = {part + name: tensor.shape for name, tensor in restart.fresh().state_dict().items()}
    own = {name: tensor.shape for name, tensor in model.state_dict().items() if name.startswith(part)}
    if fresh != own:
        strange = next(name for name in (*own, *fresh) if fresh.get(name) != own.get(name))
        raise TrainingError(f"{learner.name}: the fresh network of its restart is another one: {strange} differs")


def strongest(losses: Sequence[Tensor]) -> Tensor:
    """Of an ensemble of attackers, the loss of the one that attacks best on this batch: who hides, hides from it."""
    return torch.stack(list(losses)).amin()
