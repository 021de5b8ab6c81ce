"""The learning rate over time, and which parameters learn how fast and decay.

With w steps of warm-up out of n in all, step i = 0 … n-1 has the rate

    lr(i) = peak · (i + 1) / w                                  i < w
    lr(i) = peak · (1 + cos(π (i - w) / (n - w))) / 2           i ≥ w

so that the first step already moves, and the step after the last would not. It depends on the step alone, so that
checkpoints need not hold it.
"""

import math
from typing import Any

from torch import nn

from vidveil.core.errors import RecipeError
from vidveil.training.options import Options


def rate(step: int, total: int, warmup: int) -> float:
    """Share of the peak rate at this step, in (0, 1]."""
    if step < warmup:
        return (step + 1) / warmup
    return (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1))) / 2


def parameter_groups(model: nn.Module, options: Options) -> list[dict[str, Any]]:
    """AdamW's groups. `scale` is a group's factor on the learning rate; parameters that do not learn are left out.

    Matrices and kernels have weight decay. Biases and gains of norms (one dimension), tokens and position embeddings
    (not called `weight`) have none: pulling them to zero changes the output, not the complexity of the network.
    """
    groups: dict[tuple[bool, bool], dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
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
        raise RecipeError("no parameter of the model learns: each has requires_grad=False")
    if options.backbone_lr != 1 and not any(in_backbone for in_backbone, _ in groups):
        raise RecipeError(
            f"backbone_lr={options.backbone_lr}, but no parameter's name begins with {' or '.join(options.backbone)}"
        )
    return list(groups.values())
