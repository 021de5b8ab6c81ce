"""Gradient reversal: identity forwards, minus the strength times the gradient backwards (Ganin & Lempitsky 2015).

    y = x          dL/dx = -strength · dL/dy

The network above learns to predict the attribute; the network below learns to make that impossible.
"""

from typing import Any

import torch
from torch import Tensor


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float | Tensor) -> Tensor:
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradient, None


def reverse_gradient(x: Tensor, strength: float | Tensor) -> Tensor:
    """`strength` is a number, or a tensor of one that may change between steps that are recorded."""
    reversed_: Tensor = _Reverse.apply(x, strength)  # type: ignore[no-untyped-call]
    return reversed_


def ramp(progress: Tensor) -> Tensor:
    """Strength in [0, 1) at a share `progress` of training: 0 at first, so that the attacker learns first."""
    return 2 / (1 + (-10 * progress).exp()) - 1
