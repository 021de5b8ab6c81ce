"""What all evaluations are asked for: methods, seeds of the evaluators, and how sure the numbers must be."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from vidveil.core.errors import RecipeError
from vidveil.statistics.metrics import Threshold
from vidveil.training.recipe import LearningRecipe


@dataclass(frozen=True, kw_only=True)
class EvaluationRecipe(LearningRecipe):
    """`vidveil evaluate`, whatever the protocol."""

    verb: ClassVar[str] = "evaluate"
    method: tuple[str, ...] = ("raw",)
    """What is evaluated, one or several: a method of video from `vidveil ls methods`, a checkpoint or the name of a
    training run; where features are evaluated also an adapter of features, `splavu:RUN`. `{seed}` in the name stands
    for each of `seeds`, so that each seed of the evaluators gets a training of the method of its own. raw alone: no
    method. For comparison: noise, and tubelets that are random, moving, centre or oracle (`random:8`: of 8 pixels a
    side)."""
    region: str = "frame"
    """Where a method of video works: frame, faces, people."""
    keep: tuple[float, ...] = ()
    """Keep rates to sweep over, for methods that have that knob; empty: the method's own."""
    privacy_weight: float | None = None
    """λ of a learned method at deployment: 0 is the action attention alone, .inf the privacy attention alone; empty:
    the method's own."""
    fill: Literal["black", "mean", "temporal", "mask"] | None = None
    """What hidden tubelets become; empty: the method's own, and black for controls. mask: what is kept becomes white,
    so that the mask alone is evaluated."""
    seeds: tuple[int, ...] = (0,)
    """Every network is trained once per seed; numbers are means."""
    permutations: int = 1000
    """Of the labels, for the floor under the same scores."""
    resamples: int = 2000
    """Of the test people, for the interval."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.method, str):
            object.__setattr__(self, "method", (self.method,))  # one word is a list of one, also in Python
        for key in ("permutations", "resamples"):
            self.at_least_one(key)
        if not self.method or not all(self.method):
            raise RecipeError("method is empty")
        if again := next((one for one in self.method if self.method.count(one) > 1), None):
            raise RecipeError(f"method: {again} is in the list twice")
        if "raw" in self.method and len(self.method) > 1:
            raise RecipeError("method: raw is evaluated next to every method; leave it out of the list")
        if any(not 0 < keep <= 1 for keep in self.keep):
            raise RecipeError(f"keep rates are in (0, 1], got {list(self.keep)}")
        if self.privacy_weight is not None and not self.privacy_weight >= 0:
            raise RecipeError(f"privacy_weight is 0 or more, got {self.privacy_weight}")
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
