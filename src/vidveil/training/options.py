"""How to train: everything about `fit` that is a number or a name."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch

from vidveil.core.errors import DeviceError, RecipeError
from vidveil.core.recipe_keys import FREE
from vidveil.training.recipe import LearningRecipe

PRECISIONS = ("auto", "32-true", "bf16-mixed")
STRATEGIES = ("auto", "ddp")
DEVICES = ("auto", "cpu", "cuda")
LAST = "last"


@dataclass(frozen=True, kw_only=True)
class Options:
    epochs: int = 20
    """Passes over the training set, at most."""
    lr: float = 1e-3
    """Learning rate at its peak, after the warm-up."""
    weight_decay: float = 0.05
    """Of AdamW, on matrices and kernels only: not on biases, gains of norms, tokens or position embeddings."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Of AdamW: decay of the running means of gradients and of their squares."""
    warmup_epochs: float = 1.0
    """Epochs, or a part of one, in which the rate rises linearly from 0; then it falls to 0 along a cosine."""
    backbone_lr: float = 1.0
    """Factor on the rate of a pretrained backbone: 0.1 lets new heads learn ten times as fast."""
    backbone: tuple[str, ...] = ("recognizer.",)
    """Prefixes of the names of the backbone's parameters."""
    clip_norm: float = 1.0
    """Largest norm of a gradient; longer ones are scaled down to it. 0 is off."""
    ema: float = 0.0
    """Decay per step of the running average of weights, which is what is validated and returned; 0 is off."""
    precision: str = "auto"
    """`32-true`, `bf16-mixed`, or `auto`: bf16 on CUDA, 32 bits on a CPU."""
    patience: int = 0
    """Stop after this many epochs without a better validation; 0 never stops early."""
    monitor: str = ""
    """The validation metric that chooses the epoch, higher is better. Empty: the first that `validate` returns. `last`:
    the last epoch is taken, and metrics are only logged."""
    validate_every: int = 1
    """Epochs between validations; the last epoch is always validated."""
    seed: int = 0
    """Of dropout and all other random numbers of training; the order of data is up to the batches."""
    device: str = "auto"
    """`cpu`, `cuda`, or `auto`: CUDA where there is one."""
    devices: int = 1
    """Processes, one per GPU, that share the batches of an epoch; more than one needs torchrun."""
    strategy: str = "auto"
    """How several devices work together: `auto` or `ddp`."""
    checkpoint_seconds: float = 30.0
    """Seconds between checkpoints: the most that is lost when a run is killed. 0: after every step."""
    log_every: int = 25
    """Steps between lines of the log. On CUDA also between checks that numbers are finite."""
    compile: bool | None = None
    """Whether torch compiles networks: slower to start, faster afterwards. None: on CUDA, where enough time is left to
    gain by it, networks that say which of their parts are worth it."""
    graphs: bool = True
    """Whether CUDA replays recorded steps (`training.recorded`)."""
    channels_last: bool = False
    """Whether kernels of convolutions are in channels-last layout, which tensor cores and oneDNN are faster with."""

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
        """What must be the same when a run is resumed, as JSON would give it back."""
        kept = {name: value for name, value in asdict(self).items() if name not in FREE}
        return kept | {"betas": list(self.betas), "backbone": list(self.backbone)}

    def accelerator(self) -> str:
        """`cpu` or `cuda`: what `device` means on this machine."""
        here = torch.cuda.is_available()
        if self.device == "cuda" and not here:
            raise DeviceError("device=cuda: there is no CUDA device here; device=auto takes what there is")
        return "cuda" if here and self.device != "cpu" else "cpu"

    def exact_precision(self) -> Any:
        """`precision` by Fabric's name, without `auto`."""
        if self.precision != "auto":
            return self.precision
        return "bf16-mixed" if self.accelerator() == "cuda" else "32-true"


def options_of(recipe: LearningRecipe, seed: int, network: str = "") -> Options:
    """The options of a recipe: all fields that both have. `backbone_lr` counts for a pretrained backbone only."""
    shared = {field.name for field in fields(LearningRecipe)} & {field.name for field in fields(Options)}
    options = Options(
        **{name: getattr(recipe, name) for name in shared}, channels_last=True, monitor="score", seed=seed
    )
    is_pretrained = network.endswith((":pretrained", ":raw"))
    return options if is_pretrained else replace(options, backbone_lr=1.0)
