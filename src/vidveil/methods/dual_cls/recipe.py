"""How a dual-CLS anonymizer is trained: `verb: train` with `method: dual_cls`."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.methods.masking.recipe import MaskerRecipe


@dataclass(frozen=True, kw_only=True)
class DualCLSRecipe(MaskerRecipe):
    """`vidveil train` of the anonymizer. What it is worth is a question for `vidveil evaluate`."""

    method: Literal["dual_cls"] = "dual_cls"
    """What is trained."""
    after: str = "raw"
    """A method that videos go through before it sees them, in training and ever after (`figure:14`): what it keeps is
    then what that method leaves, not what was filmed. raw: none."""
    keep: float = 0.9
    """r: share of the live tubelets that each of three selections keeps; the knob of deployment starts here."""
    privacy_weight: float = 0.5
    """λ of eq. 4: how much a tubelet's privacy attention counts against it; likewise a knob."""
    privacy_attention: Literal["reversed", "plain", "detector"] = "plain"
    """reversed: a token of the backbone behind a gradient reversal, as the paper; plain: the same token, trained to
    predict; detector: a token next to the backbone, trained to predict."""
    train_on: Literal["heads", "pixels", "credit", "both"] = "credit"
    """heads: the losses of the two tokens alone. pixels: also those of two networks that see the masked clip. credit:
    attention learns where single tubelets tell something. both: credit and pixels."""
    smooth: bool = True
    """Whether a tubelet is chosen by its neighbours' scores, too; the paper's is not."""
    output: Literal["mask", "decode"] = "mask"
    """mask: kept tubelets are shown as they were filmed; decode: they are drawn from their tokens."""
    fill: Literal["black", "mean", "temporal"] = "black"
    """What stands in hidden tubelets: black, the mean colour of what is kept, or what is kept there at another time."""
    fusion: bool = True
    """Whether dropped tubelets go on as one token (eq. 6)."""
    reference: bool = False
    """As the authors released it: no mask between the tokens, fuse tokens compete."""

    keep_warmup: tuple[float, ...] = (0.0375, 0.375)
    """Shares of training between which the keep rate falls from 1 to r, along a cosine (heads)."""
    share_range: tuple[float, ...] = (0.1, 0.95)
    """Shares of all tubelets that stay, drawn anew each step (all but heads): one training serves all keep rates."""
    utility: str = "r3d_tiny"
    """Recognizer that plays f_T (pixels, both)."""
    attacker: str = "resnet_tiny"
    """Recognizer that plays f_B (pixels, both)."""
    head_weight: float = 0.1
    """Of the two tokens' own losses beside the others; heads has no others."""
    company: float = 0.5
    """Share of the tubelets whose votes are counted, drawn anew for each clip (credit, both)."""
    credit_weight: tuple[float, ...] = (1.0, 1.0)
    """Of what attention is taught by credit, at the beginning and at the end of training, straight in between."""
    budget_pull: float = 1.0
    """How strongly the mask is pulled away from what the attacker reads (pixels, both)."""
    random_masks: float = 0.5
    """Share of clips that the players see under random masks instead: they must not rely on one mask (pixels, both)."""
    temperature: float = 0.5
    """Of the straight-through gate, in standard deviations of the score (pixels, both)."""
    dropout: float = 0.0
    """Share of numbers that are dropped behind each layer in training."""
    attention_dropout: float = 0.0
    """The same of attentions."""
    drop_path: float = 0.0
    """The same of whole blocks, a clip at a time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.after != "raw" and self.output == "decode":
            raise RecipeError("output: decode draws a picture of its own, out of what was filmed: leave out after")
        if self.output == "decode" and not self.has_players:
            raise RecipeError("output: decode is taught by what networks see of it: train_on: pixels, or both")
        for key in ("keep_warmup", "share_range"):
            low, *rest = getattr(self, key)
            if len(rest) != 1 or not 0 <= low <= rest[0] <= 1:
                raise RecipeError(f"{key} is two rising numbers between 0 and 1")
        if len(self.credit_weight) != 2 or min(self.credit_weight) < 0:
            raise RecipeError("credit_weight is two numbers, 0 or more, at the beginning and at the end: [1, 0]")
        if self.share_range[0] == 0:
            raise RecipeError("share_range begins above 0: something has to stay")
        if not 0 < self.company <= 1:
            raise RecipeError("company is in (0, 1]: some votes have to be counted")
        if not 0 < self.keep <= 1 or not self.privacy_weight >= 0:
            raise RecipeError("keep is in (0, 1] and privacy_weight is 0 or more")

    @property
    def has_players(self) -> bool:
        """Whether two networks look at the masked clip."""
        return self.train_on in ("pixels", "both")

    @property
    def has_credit(self) -> bool:
        """Whether attention is taught where single tubelets tell something."""
        return self.train_on in ("credit", "both")

    @property
    def preprocess(self) -> str:
        return self.after
