"""What recipes of methods that mask tubelets share."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.training.recipe import LearningRecipe


@dataclass(frozen=True, kw_only=True)
class MaskerRecipe(LearningRecipe):
    """`vidveil train` of the anonymizer. How well it works is measured by `vidveil evaluate`."""

    method: str
    """What is trained."""
    network: Literal["mini", "vit_ti", "vit_s", "vit_b"] = "mini"
    """mini: tubelets of 8 × 8 pixels, for clips of 8 × 64 × 64; the others: tubelets of 16 × 16 pixels."""
    pretrained: bool = False
    """Whether it starts from published weights of pictures (`vidveil fetch vits14`, for vit_s), and so do its
    recognizers of the same kind."""
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
        if self.pretrained and self.network != "vit_s":
            raise RecipeError("there are published weights of vit_s alone: leave out pretrained")

    @property
    def preprocess(self) -> str:
        """The method that is applied to videos before the network sees them; raw: none."""
        return "raw"

    @property
    def shows_filmed(self) -> bool:
        """Whether kept tubelets are shown as they were filmed, not drawn by the network."""
        return True
