"""The settings that all recipes share, and the recipe that trains one recognizer."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from vidveil.core.errors import RecipeError
from vidveil.core.registry import TASKS
from vidveil.core.text import close_to, printable


@dataclass(frozen=True, kw_only=True)
class LearningRecipe:
    """Data, clips, and settings of the training loop (`training.options` explains those)."""

    verb: ClassVar[str] = "train"
    """The command that carries it out."""
    name: str
    """Of the run: everything it writes is in `runs/NAME`."""
    data: str
    """Dataset, as printed by `vidveil ls data`."""
    data_seed: int = 0
    """Of built-in worlds: another number makes other people, on which nothing was tuned."""

    frames: int = 8
    """Frames per clip."""
    size: int = 64
    """Side of the square that networks see, in pixels."""
    stride: int = 1
    """Frames of the video from one frame of the clip to the next."""
    views: Literal["1x1", "5x1", "5x3"] = "1x1"
    """At test: evenly spaced clips x crops."""
    augment: Literal["none", "light", "crop", "squash", "turn"] = "light"
    """In training: light = small shifts, flips, brightness; crop = random resized crop and flip; squash = the whole
    picture made square, as methods that mask videos see it, and light; turn = rotated, stretched, shifted, flipped,
    brighter: for figures that were rotated at random."""

    epochs: int = 20
    """Passes over the training clips."""
    batch: int = 32
    """Clips per step."""
    lr: float = 2e-3
    """Of AdamW at its highest, after the warm-up; then it falls to 0 along a cosine."""
    backbone_lr: float = 1.0
    """Factor on the rate of pretrained weights below the heads."""
    weight_decay: float = 0.05
    """Of AdamW; not of biases and norms."""
    warmup_epochs: float = 1.0
    """In which the rate rises."""
    label_smoothing: float = 0.1
    """Share of the probability that is taken from the right class and spread over all."""
    clip_norm: float = 1.0
    """Largest norm of a gradient; longer ones are scaled down to it."""
    ema: float = 0.0
    """Decay of the running average of weights, which is then what is evaluated; 0: off."""
    patience: int = 0
    """Training stops after this many validations without an improvement; 0: never."""
    validate_every: int = 1
    """Epochs between validations; the last one is always validated."""
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """auto: bfloat16 on accelerators, except for adapters of features."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """A device that is not there is an error."""
    checkpoint_seconds: float = 30.0
    """Seconds between checkpoints: the most that is lost when a run is killed."""
    compile: bool | None = None
    """Whether torch compiles the networks. Empty: on an accelerator, in long trainings of large networks."""
    graphs: bool = True
    """Whether an accelerator replays recorded steps, which is faster; false needs less of its memory."""

    def __post_init__(self) -> None:
        for key in ("frames", "size", "stride", "epochs", "batch", "validate_every"):
            self.at_least_one(key)
        if not 0 <= self.label_smoothing < 1 or not 0 <= self.ema < 1:
            raise RecipeError("label_smoothing and ema are in [0, 1)")

    def at_least_one(self, key: str) -> None:
        if getattr(self, key) < 1:
            raise RecipeError(f"{key} must be at least 1, got {getattr(self, key)}")


@dataclass(frozen=True, kw_only=True)
class TrainRecipe(LearningRecipe):
    """`vidveil train`: one recognizer on one dataset. The epoch is chosen on validation; test is used once."""

    recognizer: str = "r3d_tiny"
    """The network; `NAME:pretrained` starts from fetched weights."""
    tasks: tuple[str, ...] = ("action",)
    """What it learns, one head per task: action, attributes, identity."""
    seed: int = 0
    """Of the first weights, the order of clips and their augmentation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tasks:
            raise RecipeError(f"tasks must name at least one of {', '.join(TASKS)}")
        for name in self.tasks:
            if name not in TASKS:
                raise RecipeError(f"tasks: no task is called {printable(repr(name))}; {close_to(name, TASKS)}")
