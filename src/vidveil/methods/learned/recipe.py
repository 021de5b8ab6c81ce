"""What recipes of learned methods on pixels share."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.training.recipe import LearningRecipe


@dataclass(frozen=True, kw_only=True)
class LearnedRecipe(LearningRecipe):
    """`vidveil train` of an anonymizer. How well it works is measured by `vidveil evaluate`."""

    method: str
    """What is trained."""
    part: Literal["whole", "person_crop"] = "whole"
    """Of recorded video, what it is trained on: all of it, or a square around the person detected with the highest
    score. It cuts nothing itself: give it such squares later, too."""
    budget: tuple[Literal["attributes", "identity"], ...] = ("attributes",)
    """What is private: what the method learns to hide."""
    deploy_stride: int = 0
    """Once trained, it sees every so many-th frame of a video; 0: `stride`. A clip of the synthetic people has 8 frames
    in 1.6 seconds: that is 5 at 25 frames a second."""
    seed: int = 0
    """Of the initial weights, the order of clips, their augmentation and all random draws."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deploy_stride < 0:
            raise RecipeError(f"deploy_stride is 0 or more, got {self.deploy_stride}")
        if not self.budget:
            raise RecipeError("budget must name attributes, identity or both")

    @property
    def preprocess(self) -> str:
        """The method that is applied to videos before the network sees them; raw: none."""
        return "raw"

    @property
    def shows_filmed(self) -> bool:
        """Whether parts of a video are shown as they were filmed, and not drawn by the network."""
        return False
