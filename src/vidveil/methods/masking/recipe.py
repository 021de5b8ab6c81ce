"""What recipes of methods that mask tubelets share."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.methods.learned.recipe import LearnedRecipe


@dataclass(frozen=True, kw_only=True)
class MaskerRecipe(LearnedRecipe):
    """`vidveil train` of the anonymizer. How well it works is measured by `vidveil evaluate`."""

    network: Literal["mini", "vit_ti", "vit_s", "vit_b"] = "mini"
    """mini: tubelets of 8 × 8 pixels, for clips of 8 × 64 × 64; the others: tubelets of 16 × 16 pixels."""
    pretrained: bool = False
    """Whether it starts from published weights of pictures (`vidveil fetch vits14`, for vit_s), and so do its
    recognizers of the same kind."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretrained and self.network != "vit_s":
            raise RecipeError("there are published weights of vit_s alone: leave out pretrained")

    @property
    def shows_filmed(self) -> bool:
        """Whether kept tubelets are shown as they were filmed, not drawn by the network."""
        return True
