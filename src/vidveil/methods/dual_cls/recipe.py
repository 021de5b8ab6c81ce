"""How a dual-CLS anonymizer is trained: `verb: train` with `method: dual_cls`."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.methods.masking.recipe import MaskerRecipe


@dataclass(frozen=True, kw_only=True)
class DualCLSRecipe(MaskerRecipe):
    """`vidveil train` of the anonymizer. How well it works is measured by `vidveil evaluate`."""

    method: Literal["dual_cls"] = "dual_cls"
    """What is trained."""
    preprocess: str = "raw"
    """A method that is applied to videos before the network, in training and in use (`figure:14`): what is kept is then
    that method's output, not what was filmed. raw: none."""
    keep: float = 0.9
    """r: share of the live tubelets that each of three selections keeps. May be changed with every use."""
    privacy_weight: float = 0.5
    """λ of eq. 4: how much a tubelet's privacy attention counts against it. May be changed with every use."""
    privacy_attention: Literal["reversed", "plain", "detector"] = "plain"
    """reversed: a token of the backbone behind a gradient reversal, as in the paper; plain: the same token, trained to
    predict; detector: a token outside the backbone, trained to predict."""
    train_on: Literal["heads", "pixels", "attribution", "both"] = "attribution"
    """heads: the losses of the two tokens alone. pixels: also those of two networks that see the masked clip.
    attribution: attention learns how much single tubelets predict. both: attribution and pixels."""
    smooth: bool = True
    """Whether scores are averaged over neighbouring tubelets; not in the paper."""
    output: Literal["mask", "decode"] = "mask"
    """mask: kept tubelets are shown as they were filmed; decode: they are drawn from their tokens."""
    fill: Literal["black", "mean", "temporal"] = "black"
    """What replaces hidden tubelets: black, the mean colour of what is kept, or what is kept there at another time."""
    fusion: bool = True
    """Whether dropped tubelets go on as one token (eq. 6)."""
    reference: bool = False
    """As the authors released it: no mask between the tokens, fuse tokens compete."""

    keep_warmup: tuple[float, ...] = (0.0375, 0.375)
    """Shares of training between which the keep rate falls from 1 to r, along a cosine (heads)."""
    share_range: tuple[float, ...] = (0.1, 0.95)
    """Shares of all tubelets that stay, drawn anew each step (all but heads): one training serves all keep rates."""
    utility: str = "r3d_tiny"
    """Recognizer of the action, f_T (pixels, both)."""
    attacker: str = "resnet_tiny"
    """Recognizer of private attributes, f_B (pixels, both)."""
    head_weight: float = 0.1
    """Of the losses of the two tokens, relative to the others; heads has no others."""
    shown_share: float = 0.5
    """Share of the tubelets whose votes are added, drawn anew for each clip (attribution, both)."""
    attribution_weight: tuple[float, ...] = (1.0, 1.0)
    """Of the attention losses, at the beginning and at the end of training, linear in between (attribution, both)."""
    budget_pull: float = 1.0
    """How strongly the mask is pulled away from what the attacker predicts (pixels, both)."""
    random_masks: float = 0.5
    """Share of clips that both recognizers see under random masks instead, so that they do not rely on one mask
    (pixels, both)."""
    temperature: float = 0.5
    """Of the straight-through gate, in standard deviations of the score (pixels, both)."""
    dropout: float = 0.0
    """After each layer, in training."""
    attention_dropout: float = 0.0
    """Of attention weights."""
    drop_path: float = 0.0
    """Of whole blocks, for each clip."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preprocess != "raw" and self.output == "decode":
            raise RecipeError("output: decode draws its pictures from what was filmed: leave out preprocess")
        if self.output == "decode" and not self.uses_recognizers:
            raise RecipeError("output: decode learns from networks that see its pictures: train_on: pixels, or both")
        for key in ("keep_warmup", "share_range"):
            low, *rest = getattr(self, key)
            if len(rest) != 1 or not 0 <= low <= rest[0] <= 1:
                raise RecipeError(f"{key} is two rising numbers between 0 and 1")
        if len(self.attribution_weight) != 2 or min(self.attribution_weight) < 0:
            raise RecipeError("attribution_weight is two numbers, 0 or more, at the beginning and at the end: [1, 0]")
        if self.share_range[0] == 0:
            raise RecipeError("share_range begins above 0: something has to stay")
        if not 0 < self.shown_share <= 1:
            raise RecipeError("shown_share is in (0, 1]: some votes have to be counted")
        if not 0 < self.keep <= 1 or not self.privacy_weight >= 0:
            raise RecipeError("keep is in (0, 1] and privacy_weight is 0 or more")

    @property
    def uses_recognizers(self) -> bool:
        """Whether two networks see the masked clip."""
        return self.train_on in ("pixels", "both")

    @property
    def uses_attribution(self) -> bool:
        """Whether attention learns how much single tubelets predict."""
        return self.train_on in ("attribution", "both")
