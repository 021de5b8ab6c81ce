"""What an evaluation of whole videos is asked for: `verb: evaluate` with `protocol: detection` or `anomaly`."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.evaluation.recipes.recipe import EvaluationRecipe
from vidveil.tasks.anomaly.losses import FIRM
from vidveil.tasks.anomaly.losses import LossWeights as Parts
from vidveil.tasks.anomaly.network import Shape as AnomalyShape
from vidveil.tasks.detection.network import Shape as DetectionShape

WEIGHTS = {"firm": FIRM, "published": Parts(), "released": Parts(released=True)}


@dataclass(frozen=True, kw_only=True)
class UntrimmedRecipe(EvaluationRecipe):
    """What both have in common: a network is trained anew on raw and on anonymized features of whole videos."""

    encoder: str = ""
    """Whose features: `i3d`, `run:NAME`, `videomae:WHERE`."""
    half: bool = False
    """Whether the encoder computes in bfloat16."""
    hop: int = 0
    """Frames from one feature to the next; 0: a quarter of a clip for detection, half of one for anomalies, a whole one
    where videos last for minutes."""
    raw: str = ""
    """A finished run whose networks on raw features are used again, of the same recipe but for the method."""

    precision: Literal["auto", "32-true", "bf16-mixed"] = "32-true"
    """bfloat16 would round the features themselves."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """The network is trained once per seed; numbers are means."""
    permutations: int = 200
    """Of the videos that predictions are compared with, for the floor."""
    resamples: int = 2000
    """Of the test videos, for the interval; those of one person or place are drawn together."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hop < 0:
            raise RecipeError(f"hop must be 0 or more, got {self.hop}")


@dataclass(frozen=True, kw_only=True)
class DetectionRecipe(UntrimmedRecipe):
    """`vidveil evaluate`: which action happens from when to when, detected by TriDet on features."""

    protocol: Literal["detection"] = "detection"
    """Actions are detected in whole videos."""
    embed: int = 512
    """Channels of TriDet."""
    levels: int = 6
    """Of its pyramid, each half as long as the one before."""
    head_layers: int = 3
    """Of each of its heads."""
    longest: int = 2304
    """Features of a training video, at most: of a longer one as many in a row, drawn anew each epoch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least_one("longest")
        self.shape(1, 1)

    def shape(self, width: int, classes: int) -> DetectionShape:
        return DetectionShape(width, classes, embed=self.embed, levels=self.levels, head_layers=self.head_layers)


@dataclass(frozen=True, kw_only=True)
class AnomalyRecipe(UntrimmedRecipe):
    """`vidveil evaluate`: in which videos, and when, something abnormal happens, detected by MGFN on features."""

    protocol: Literal["anomaly"] = "anomaly"
    """Anomalies are detected in whole videos, of which one knows only whether there are any."""
    widths: tuple[int, ...] = (64, 128, 1024)
    """Channels of each stage of MGFN; the first one glances, the others focus."""
    depths: tuple[int, ...] = (3, 3, 2)
    """Blocks of each stage."""
    weights: Literal["firm", "published", "released"] = "firm"
    """Of the parts of its loss. As published, it learned in our trials which videos are abnormal, and when by luck;
    firm ones let magnitudes count, by which it chooses the moments that it learns from. `released`: as published, with
    videos compared as the released code does it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch % 2:
            raise RecipeError(f"batch must be even, half normal and half abnormal videos, got {self.batch}")
        self.shape(1)

    def shape(self, width: int) -> AnomalyShape:
        kinds = ("glance", *["focus"] * (len(self.widths) - 1))
        return AnomalyShape(width=width, widths=self.widths, depths=self.depths, kinds=kinds)  # type: ignore[arg-type]
