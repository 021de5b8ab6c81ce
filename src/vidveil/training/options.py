"""How to train: everything about `fit` that is a number or a name."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from vidveil.core.errors import DeviceError, RecipeError

if TYPE_CHECKING:
    from vidveil.training.recipe import LearningRecipe

PRECISIONS = ("auto", "32-true", "bf16-mixed")
STRATEGIES = ("auto", "ddp")
DEVICES = ("auto", "cpu", "cuda")
LAST = "last"
FREE = ("checkpoint_seconds", "device", "compile")
"""What may change between a run and its resumption: the weights that come out do not depend on them by intent."""


@dataclass(frozen=True, kw_only=True)
class Options:
    epochs: int = 20
    """Times that the training set is gone through, at most."""
    lr: float = 1e-3
    """Learning rate at its peak, after the warm-up."""
    weight_decay: float = 0.05
    """AdamW's decay, on matrices and kernels only: not on biases, gains of norms, tokens, embeddings of position."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's memory of gradients and of their squares."""
    warmup_epochs: float = 1.0
    """Epochs, or a part of one, over which the rate rises from 0 in a straight line; then it falls as a cosine to 0."""
    backbone_lr: float = 1.0
    """Factor on the rate of a pretrained backbone: 0.1 lets new heads learn ten times as fast."""
    backbone: tuple[str, ...] = ("recognizer.",)
    """How the names of the backbone's parameters begin."""
    clip_norm: float = 1.0
    """Gradients longer than this are scaled down to it; 0 leaves them as they are."""
    ema: float = 0.0
    """Decay a step of the running average of weights that is validated and returned; 0 is off."""
    precision: str = "auto"
    """`32-true`, `bf16-mixed`, or `auto`: bf16 on CUDA, 32 bits on a CPU."""
    patience: int = 0
    """Stop after this many epochs without a better validation; 0 never stops early."""
    monitor: str = ""
    """The validation metric that chooses the epoch, higher is better; empty: the first that `validate` gives; `last`:
    none does, the last epoch is taken and metrics are only told."""
    validate_every: int = 1
    """Epochs between validations; the last epoch is always validated."""
    seed: int = 0
    """Of dropout and whatever else draws numbers while training; the order of data is up to the batches."""
    device: str = "auto"
    """`cpu`, `cuda`, or `auto`: CUDA where there is one."""
    devices: int = 1
    """Processes, one a GPU, that share the batches of an epoch; more than one needs torchrun."""
    strategy: str = "auto"
    """How several devices work together: `auto` or `ddp`."""
    checkpoint_seconds: float = 30.0
    """Seconds between checkpoints, the most that is lost when a run is killed. 0: after every step."""
    log_every: int = 25
    """Steps between lines of the log. On CUDA also between looks at whether the numbers are finite."""
    compile: bool = False
    """torch.compile: slower to start, faster after."""
    channels_last: bool = False
    """Kernels of convolutions in the layout that tensor cores and oneDNN like."""

    def __post_init__(self) -> None:
        if isinstance(self.backbone, str):
            object.__setattr__(self, "backbone", (self.backbone,))
        for name in ("betas", "backbone"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # a list, where it comes from JSON or YAML
        for name, choices in (("precision", PRECISIONS), ("strategy", STRATEGIES), ("device", DEVICES)):
            if getattr(self, name) not in choices:
                raise RecipeError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")
        for name in ("epochs", "validate_every", "devices", "log_every"):
            if getattr(self, name) < 1:
                raise RecipeError(f"{name} must be 1 or more, got {getattr(self, name)}")
        for name in (
            "lr",
            "weight_decay",
            "warmup_epochs",
            "clip_norm",
            "patience",
            "checkpoint_seconds",
            "backbone_lr",
        ):
            if not 0 <= getattr(self, name) < float("inf"):
                raise RecipeError(f"{name} must be 0 or more, and finite, got {getattr(self, name)}")
        for name, value in (("ema", self.ema), *(("betas", beta) for beta in self.betas)):
            if not 0 <= value < 1:
                raise RecipeError(f"{name} must be in [0, 1), got {value}")
        if len(self.betas) != 2:
            raise RecipeError(f"betas must be two numbers, got {len(self.betas)}")

    def fixed(self) -> dict[str, Any]:
        """What must be the same when a run is resumed, as JSON gives it back."""
        kept = {name: value for name, value in asdict(self).items() if name not in FREE}
        return kept | {"betas": list(self.betas), "backbone": list(self.backbone)}

    def accelerator(self) -> str:
        """`cpu` or `cuda`: where it will run here."""
        here = torch.cuda.is_available()
        if self.device == "cuda" and not here:
            raise DeviceError("device=cuda: there is no CUDA device here; device=auto takes what there is")
        return "cuda" if here and self.device != "cpu" else "cpu"

    def exact_precision(self) -> Any:
        """A precision as Fabric names it."""
        if self.precision != "auto":
            return self.precision
        return "bf16-mixed" if self.accelerator() == "cuda" else "32-true"


def options_of(recipe: "LearningRecipe", seed: int, network: str = "") -> Options:
    """The loop's part of a recipe. Only a backbone that has learned before is held back by `backbone_lr`."""
    learned = network.endswith((":pretrained", ":raw"))
    return Options(
        epochs=recipe.epochs,
        lr=recipe.lr,
        backbone_lr=recipe.backbone_lr if learned else 1.0,
        weight_decay=recipe.weight_decay,
        warmup_epochs=recipe.warmup_epochs,
        clip_norm=recipe.clip_norm,
        ema=recipe.ema,
        patience=recipe.patience,
        validate_every=recipe.validate_every,
        precision=recipe.precision,
        channels_last=True,
        device=recipe.device,
        compile=recipe.compile,
        checkpoint_seconds=recipe.checkpoint_seconds,
        monitor="score",
        seed=seed,
    )
