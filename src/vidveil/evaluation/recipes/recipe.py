"""What all evaluations are asked for: a method, seeds of the evaluators, and how sure the numbers must be."""

from dataclasses import dataclass
from typing import ClassVar

from vidveil.core.errors import RecipeError
from vidveil.statistics.metrics import Threshold
from vidveil.training.recipe import LearningRecipe


@dataclass(frozen=True, kw_only=True)
class EvaluationRecipe(LearningRecipe):
    """`vidveil evaluate`, whatever the protocol."""

    verb: ClassVar[str] = "evaluate"
    method: str = "raw"
    """What is evaluated. `{seed}` in the name stands for each of `seeds`, so that each seed of the evaluators gets a
    training of the method of its own."""
    seeds: tuple[int, ...] = (0,)
    """Every network is trained once per seed; numbers are means."""
    permutations: int = 1000
    """Of the labels, for the floor under the same scores."""
    resamples: int = 2000
    """Of the test people, for the interval."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("permutations", "resamples"):
            self.at_least_one(key)
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise RecipeError("seeds must be different numbers, at least one")


@dataclass(frozen=True, kw_only=True)
class AttackRecipe(EvaluationRecipe):
    """An evaluation in which attackers are trained."""

    attackers: tuple[str, ...]
    """Networks or heads that attack; every one is reported, the strongest on validation counts."""
    attack: tuple[str, ...] = ("linkage", "attributes")
    """What attackers are after."""
    attacker_epochs: int
    """As `epochs`, of attackers."""
    attacker_lr: tuple[float, ...]
    """Each attacker is trained at each of these, and the better one on validation counts."""
    f1_threshold: Threshold = "probability"
    """Where F1 takes an attacker to say yes: a probability above 0.5, or a logit above 0.5, that is a probability above
    0.62. Several released codes do the latter, and their tables can be compared with nothing else."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least_one("attacker_epochs")
        if not self.attackers or not self.attack or not self.attacker_lr:
            raise RecipeError("attackers, attack and attacker_lr need one entry at least: unattacked proves nothing")
