"""What an evaluation of features is told: `verb: evaluate` with `protocol: features`."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.statistics.metrics import Threshold
from vidveil.training.recipe import LearningRecipe

HeadKind = Literal["linear", "mlp", "mlp2"]
Attack = Literal["linkage", "attributes", "inversion", "reconstruction", "gait"]


@dataclass(frozen=True, kw_only=True)
class FeaturesRecipe(LearningRecipe):
    """`vidveil evaluate` of features: anonymize a store, train heads and attackers anew on the result, report."""

    protocol: Literal["features"] = "features"
    """Features of a frozen encoder are evaluated, not videos."""
    encoder: str = ""
    """Whose features: `i3d`, `run:NAME`, `videomae:WHERE`; empty where data is `features:FOLDER`."""
    half: bool = False
    """Whether the encoder computes in bfloat16."""
    method: str = "raw"
    """What is evaluated: `splavu:RUN`, or raw. `{seed}` in the name stands for each of `seeds`, so that every seed of the
    evaluators looks at an adapter of its own."""

    utility: HeadKind = "linear"
    """Head of the action, trained on anonymized features."""
    attackers: tuple[HeadKind, ...] = ("linear", "mlp", "mlp2")
    """Heads that tell attributes; every one is reported, the strongest on validation counts. mlp: a hidden layer, as in
    the paper; mlp2: two. Each tries on anonymized features, and on what it recovers of raw ones by pairs."""
    attack: tuple[Attack, ...] = ("linkage", "attributes")
    """What attackers are after. inversion: the raw features, out of anonymized ones, by pairs (black box) and by the
    adapter itself (white box); reconstruction: the pixels; gait, alone: who walks, by cosine to gallery walks, of sets
    that tell gallery and view. Of gait nothing is trained, and what is said of heads means nothing."""
    attacker_epochs: int = 100
    """As `epochs`, of attackers."""
    least_steps: int = 1000
    """Of each training of a head: a small set has few steps an epoch, and is gone through more often."""
    attacker_lr: tuple[float, ...] = (1e-3,)
    """Each attacker is trained at each of these, and the better one on validation counts."""

    f1_threshold: Threshold = "probability"
    """Where F1 takes an attacker to say yes: a probability above 0.5, or a logit above 0.5."""
    seeds: tuple[int, ...] = (0,)
    """Every head and attacker is trained once a seed; numbers are means."""
    permutations: int = 1000
    """Of the labels, for the floor under the same scores."""
    resamples: int = 2000
    """Of the test people, for the interval."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("attacker_epochs", "least_steps", "permutations", "resamples"):
            self.at_least_one(key)
        if not self.attackers or not self.attack or not self.attacker_lr:
            raise RecipeError("attackers, attack and attacker_lr need one entry at least: unattacked proves nothing")
        if "gait" in self.attack and len(self.attack) > 1:
            raise RecipeError(
                "attack: gait trains nothing, and stands alone: leave the others out, or judge them apart"
            )
        if not {"linkage", "attributes", "gait"} & set(self.attack):
            raise RecipeError("attack: what comes back by inversion is for linkage or attributes to judge: add one")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise RecipeError("seeds must be different numbers, at least one")
