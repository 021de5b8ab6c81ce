"""What an evaluation of features is asked for: `verb: evaluate` with `protocol: features`."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.evaluation.recipes.recipe import AttackRecipe

HeadKind = Literal["linear", "mlp", "mlp2"]
Attack = Literal["linkage", "attributes", "inversion", "reconstruction", "gait"]


@dataclass(frozen=True, kw_only=True)
class FeaturesRecipe(AttackRecipe):
    """`vidveil evaluate` of features: anonymize a store, train heads and attackers anew on the result, report."""

    protocol: Literal["features"] = "features"
    """Features of a frozen encoder are evaluated, not videos."""
    encoder: str = ""
    """Whose features: `i3d`, `run:NAME`, `videomae:WHERE`; empty where data is `features:FOLDER`."""
    half: bool = False
    """Whether the encoder computes in bfloat16."""

    utility: HeadKind = "linear"
    """Head of the action, trained on anonymized features."""
    attackers: tuple[HeadKind, ...] = ("linear", "mlp", "mlp2")
    """Heads that predict attributes; every one is reported, the strongest on validation counts. mlp: a hidden layer, as
    in the paper; mlp2: two. Each tries on anonymized features, and on what it recovers of raw ones by pairs."""
    attack: tuple[Attack, ...] = ("linkage", "attributes")
    """What attackers are after. inversion: the raw features, out of anonymized ones, by pairs (black box) and by the
    adapter itself (white box); reconstruction: the pixels; gait, alone: who walks, by cosine to gallery walks, of sets
    that have tags for gallery and view. Gait trains nothing: all settings of heads are ignored."""
    attacker_epochs: int = 100
    least_steps: int = 1000
    """Of each training of a head: a small set has few steps per epoch, and is used for more epochs."""
    attacker_lr: tuple[float, ...] = (1e-3,)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least_one("least_steps")
        if "gait" in self.attack and len(self.attack) > 1:
            raise RecipeError("attack: gait trains nothing, and stands alone: evaluate the others in another run")
        if not {"linkage", "attributes", "gait"} & set(self.attack):
            raise RecipeError("attack: what inversion recovers is evaluated by linkage or attributes: add one")
