"""Self-attention in which dropped tokens are seen by nobody but themselves (Li et al., STPrivacy, ICCV 2023).

    eq. 8     S = Q Kᵀ / √d                                            d: width of a head
    eq. 9     M_ij = 1 where i = j, else Î_j                           Î (N,): 1 for live tokens, 0 for dropped ones
    eq. 10    A_ij = exp(S_ij) M_ij / Σ_k exp(S_ik) M_ik,   O = A V

Clips of a batch keep different numbers of tokens, so while learning all of them stay and Î says which count. In use
dropped tokens are taken out, and what is left is plain attention: the kept rows are the same.

Î learns through M. With g = ∂L/∂O, and Z_i the sum of eq. 10 without a dropped j,

    live j      ∂L/∂Î_j = Σ_{i≠j} A_ij (gᵢ·vⱼ − gᵢ·oᵢ),                A_ij = exp(S_ij) / Z_i
    dropped j   Σ_{i≠j} A_ij (gᵢ·vⱼ − gᵢ·oᵢ),                          A_ij = exp(S_ij) / (Z_i + exp(S_ij))

each summed over heads: of a dropped one how the loss would change, to first order in O, if it alone came back. Its
derivative has no bound, since exp(S_ij) / Z_i has none, and a few loud tokens would drown all other gradients. The
output and the gradients of q, k, v are those of a fused kernel with a mask. A is made on the way back and forgotten: no
N × N numbers are kept for it.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.models.layers.fused_attention import fused

FAINTEST = math.exp(-60.0)
"""Least Z next to the loudest of a row: quotients are numbers still."""


class MaskedAttention(nn.Module):
    """timm's names, so that published weights load."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, decision: Tensor | None = None) -> Tensor:
        """(B, N, D), and Î (B, N) float, or None if all are live → (B, N, D)."""
        q, k, v = self.qkv(x).chunk(3, -1)  # each (B, N, D)
        if decision is None:
            mixed = fused(q, k, v, self.heads, 0.0)
        else:
            q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (q, k, v))  # (B, H, N, d)
            mixed = masked_attention(q, k, v, decision).transpose(1, 2).flatten(2)
        out: Tensor = self.proj(mixed)  # (B, N, D)
        return out


def masked_attention(q: Tensor, k: Tensor, v: Tensor, decision: Tensor) -> Tensor:
    """Each (B, H, N, d), Î (B, N) of 0 and 1 → (B, H, N, d)."""
    seen = (decision > 0.5)[:, None, None, :] | torch.eye(q.shape[2], dtype=torch.bool, device=q.device)  # (B, 1, N, N)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    if decision.requires_grad and torch.is_grad_enabled():
        parts = (part.detach() for part in (q, k, v))
        out = _Decided.apply(out, *parts, decision)  # type: ignore[no-untyped-call]
    return out


class _Decided(torch.autograd.Function):
    """The output as it is; on the way back, Î gets its gradient."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, q: Tensor, k: Tensor, v: Tensor, decision: Tensor) -> Tensor:
        ctx.save_for_backward(out, q, k, v, decision)
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, Tensor]:
        out, q, k, v, decision = ctx.saved_tensors
        with torch.autocast(out.device.type, enabled=False):
            found = decision_gradient(gradient, out, q, k, v, decision.float())
        return gradient, None, None, None, found.to(decision.dtype)


def decision_gradient(g: Tensor, out: Tensor, q: Tensor, k: Tensor, v: Tensor, decision: Tensor) -> Tensor:
    """What Î gets: each (B, H, N, d), Î (B, N) float32 → (B, N) float32."""
    scores = (q * q.shape[3] ** -0.5) @ k.transpose(2, 3)  # (B, H, N, N)
    free = scores.sub_(scores.amax(3, keepdim=True)).exp_()
    live = decision[:, None]  # (B, 1, N)
    alone = free.diagonal(dim1=2, dim2=3).float()  # (B, H, N)
    total = (free @ live[..., None].to(free.dtype)).squeeze(3).float() + alone * (1 - live)  # Z (B, H, N)
    total = total.clamp(min=FAINTEST)
    dropped = (1 - live)[:, :, None].to(free.dtype)  # (B, 1, 1, N)
    weights = free.div_(torch.addcmul(total.unsqueeze(3).to(free.dtype), free, dropped))  # A, but for the diagonal
    g, v = g.float(), v.float()
    delta = (g * out.float()).sum(3, keepdim=True)  # (B, H, N, 1)
    back = (weights.transpose(2, 3) @ torch.cat([g, delta], 3).to(weights.dtype)).float()  # (B, H, N, d + 1)
    to_all = (v * back[..., :-1]).sum(3) - back[..., -1]  # (B, H, N)
    own = weights.diagonal(dim1=2, dim2=3).float()
    to_itself = own * ((g * v).sum(3) - delta.squeeze(3))
    found: Tensor = (to_all - to_itself).sum(1)
    return found
