"""Plain attention, by the fastest kernel of the device."""

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

FASTEST = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""On Hopper and later. Which of them torch itself prefers differs from version to version."""


def fused(q: Tensor, k: Tensor, v: Tensor, heads: int, dropout: float) -> Tensor:
    """softmax(q kᵀ / √d) v, head by head, by the fastest kernel that this device has for it: each (B, n, D)."""
    q, k, v = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in (q, k, v))  # (B, H, n, d)
    if _hopper(q.get_device()):
        with sdpa_kernel(FASTEST, set_priority=True):
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout).transpose(1, 2).flatten(2)
    return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout).transpose(1, 2).flatten(2)


def _hopper(number: int) -> bool:
    """Whether this CUDA device is a Hopper or later. CPUs have the number -1."""
    return number >= 0 and bool(torch.cuda.get_device_capability(number)[0] >= 9)


if torch.cuda.is_available():  # the compiler takes two seconds to import, which a CPU need not pay
    _hopper = torch.compiler.assume_constant_result(_hopper)  # type: ignore[no-untyped-call]
