"""The learning rate over time, and which parameters learn how fast and decay.

With w steps of warm-up out of n in all, step i = 0 … n-1 has the rate

    lr(i) = peak · (i + 1) / w                                  i < w
    lr(i) = peak · (1 + cos(π (i - w) / (n - w))) / 2           i ≥ w

so that the first step already moves, and the step after the last would not. `constant` stays at the peak after the
warm-up. The rate depends on the step alone, so that checkpoints need not hold it.
"""

import math
from typing import Any

from torch import nn

from vidveil.core.errors import RecipeError
from vidveil.training.options import Options


def rate(step: int, total: int, warmup: int, schedule: str = "cosine") -> float:
    """Share of the peak rate at this step, in (0, 1]."""
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "constant":
        return 1.0
    return (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1))) / 2


def parameter_groups(model: nn.Module, options: Options, parts: tuple[str, ...] = ("",)) -> list[dict[str, Any]]:
    """AdamW's groups, of parameters whose names begin with one of `parts`. `scale` is a group's factor on the learning
    rate; parameters that do not learn are left out.

    Matrices and kernels have weight decay. Biases and gains of norms (one dimension), tokens and position embeddings
    (not called `weight`) have none: pulling them to zero changes the output, not the complexity of the network.
    """
    groups: dict[tuple[bool, bool], dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad or not name.startswith(parts):
            continue
        in_backbone = options.backbone_lr != 1 and name.startswith(options.backbone)
        is_matrix = parameter.ndim > 1 and name.endswith("weight")
        group = groups.setdefault(
            (in_backbone, is_matrix),
            {
                "params": [],
                "scale": options.backbone_lr if in_backbone else 1.0,
                "weight_decay": options.weight_decay if is_matrix else 0.0,
            },
        )
        group["params"].append(parameter)
    if not groups:
        whose = "of the model" if parts == ("",) else f"of {' and '.join(parts)}"
        raise RecipeError(f"no parameter {whose} learns: each has requires_grad=False")
    return list(groups.values())


def check_backbone(model: nn.Module, options: Options) -> None:
    """RecipeError if `backbone_lr` is of parameters that are not there."""
    learning = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    if learning and options.backbone_lr != 1 and not any(name.startswith(options.backbone) for name in learning):
        raise RecipeError(
            f"backbone_lr={options.backbone_lr}, but no parameter's name begins with {' or '.join(options.backbone)}"
        )
