"""How STPrivacy is trained: `verb: train` with `method: stprivacy`."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.methods.masking.recipe import MaskerRecipe


@dataclass(frozen=True, kw_only=True)
class STPrivacyRecipe(MaskerRecipe):
    """`vidveil train` of the anonymizer. What it is worth is a question for `vidveil evaluate`."""

    method: Literal["stprivacy"] = "stprivacy"
    """What is trained."""
    tubelet_frames: Literal[1, 2, 4] = 2
    """δT: frames of a tubelet."""
    alpha: float = 0.7
    """α: share of the live tubelets that each of three stages keeps; the knob of deployment, `keep`, starts here."""
    select: Literal["clip", "segment"] = "segment"
    """Once trained, whether tubelets compete within their segment, as released, or within the clip, as written."""
    sparsify: bool = True
    """Whether tubelets are dropped; false: anonymization alone, with α = 1."""
    anonymize: bool = True
    """Whether what stays is drawn anew; false: sparsification alone, and it is shown as it was filmed."""
    action_weight: float = 0.5
    """λ_action of eq. 13: how much the drawing heeds the action recognizer."""
    privacy_weight: float = 0.5
    """λ_privacy of eq. 13: how much it works against the privacy recognizer. No knob of deployment."""
    initialise: float = 2 / 3
    """Share of the epochs, in whole ones, in which it learns by itself (eq. 12), before the recognizers come (eq. 13):
    80 of 120."""
    recognizer: str = "kept_vit"
    """Who the two recognizers are: kept_vit, transformers of the same kind that see kept tubelets only, or the name of
    any recognizer, which then sees the whole clip; `i3d:pretrained` starts from fetched weights."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha <= 1:
            raise RecipeError(f"alpha is a share in (0, 1], got {self.alpha:g}")
        if not (self.action_weight >= 0 and self.privacy_weight >= 0):
            raise RecipeError("action_weight and privacy_weight are 0 or more")
        if not 0 <= self.initialise <= 1:
            raise RecipeError(f"initialise is a share of the epochs, from 0 to 1, got {self.initialise:g}")
        if self.initialise == 1 and self.anonymize:
            raise RecipeError("what is drawn is taught by the recognizers: initialise below 1, or anonymize: false")
        if not self.sparsify and not self.anonymize:
            raise RecipeError("without sparsify and anonymize the video stays as it was filmed: leave one of them on")

    @property
    def shows_filmed(self) -> bool:
        return not self.anonymize
