"""How an adapter of features is trained: `verb: train` with `method: splavu`."""

from dataclasses import dataclass
from typing import Literal

from vidveil.errors import RecipeError
from vidveil.training.recipe import LearningRecipe


@dataclass(frozen=True, kw_only=True)
class SplavuRecipe(LearningRecipe):
    """`vidveil train` of the adapter. What it is worth is a question for `vidveil evaluate`."""

    method: Literal["splavu"] = "splavu"
    """What is trained."""
    encoder: str = ""
    """Whose features: `i3d`, `run:NAME`, `videomae:WHERE`; empty where data is `features:FOLDER`."""
    half: bool = False
    """Whether the encoder computes in bfloat16."""

    adapter: Literal["attention", "mlp"] = "attention"
    """attention: groups of channels attend to each other; mlp: Linear, ReLU, BatchNorm (table 10)."""
    layers: int = 3
    """Of the adapter."""
    heads: int = 8
    """Of its attention (table 12)."""
    groups: int = 8
    """Of channels."""
    reference: bool = False
    """As published: clips attend across the batch, and the budget has no cap."""
    erase: float = 0.75
    """Share of the directions that do not tell the tasks apart, of which those that moving clips share most with still
    ones are lost for good. 0: none, as published; 1: nothing is left but what tells the tasks apart."""

    tasks: tuple[Literal["action"], ...] = ("action",)
    """What the features have to stay useful for, a linear head each; none: no utility loss (table 6)."""
    known_actions: int = 0
    """How many of the set's actions the adapter is told of, the first ones; the others are uses that it does not know.
    0: all of them."""
    budget: Literal["static", "supervised", "none"] = "static"
    """static: two static clips of a video must not be found by each other (NT-Xent); supervised: a small network must
    not tell the attributes (table 2); none (table 6)."""
    task_weight: float = 1.0
    """ω of each task."""
    budget_weight: float = 1.0
    """ω of the budget."""
    latent_weight: float = 100.0
    """ω of latent consistency: mean squared change of features whose mean square is 1. 0: none (table 11)."""
    temperature: float = 0.1
    """τ of NT-Xent."""
    identity_epochs: int = 100
    """Of learning the identity first, by L1, where the adapter does not start as one: an MLP as published."""
    seed: int = 0
    """Of the start, the order of videos and all draws."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("layers", "heads", "groups"):
            self.at_least_one(key)
        if min(self.task_weight, self.budget_weight, self.latent_weight) < 0 or self.temperature <= 0:
            raise RecipeError("weights are 0 or more, and temperature is above 0")
        if self.known_actions < 0:
            raise RecipeError(f"known_actions is 0 or more, got {self.known_actions}")
        if not 0 <= self.erase <= 1:
            raise RecipeError(f"erase is a share between 0 and 1, got {self.erase:g}")
        if self.reference and self.erase:
            raise RecipeError("reference: true is the published method, which erases nothing: erase: 0")
        if not self.tasks and self.budget == "none":
            raise RecipeError("without tasks and without a budget there is nothing to learn")
