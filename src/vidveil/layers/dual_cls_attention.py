"""Self-attention with two class tokens that never look at each other, and whose looks at the tubelets are handed out.

    rows of tubelets     softmax(q kᵀ / √d) v                    fused, no mask, no n × n matrix
    rows of CLS tokens   softmax(q kᵀ / √d + mask) v             by hand: 2 × n, mask = −∞ where one CLS meets the other
    α  (eq. 3)           mean over heads of the CLS rows, renormalised over the live tubelets

Only the two CLS rows need the mask and the weights, so only they are written out. α is taken before dropout.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

FASTEST = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""On Hopper and later. Which of them torch itself prefers differs from version to version."""


class Attended(NamedTuple):
    out: Tensor
    """(B, N, D)"""
    maps: Tensor
    """(B, C, live): α of each CLS token."""
    keys: Tensor
    """(B, H, n, d) of all tokens but the CLS tokens."""
    values: Tensor


class DualCLSAttention(nn.Module):
    """Tokens in: C class tokens (act, priv; or act alone), then `live` tubelets, then fused ones."""

    def __init__(
        self, width: int, heads: int, *, tokens: int = 2, isolated: bool = True, hidden_cls: bool = False,
        dropout: float = 0.0, attention_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.tokens = heads, tokens
        self.isolated = isolated
        """Whether CLS tokens are blind to each other; the released code forgot that."""
        self.hidden_cls = hidden_cls
        """Whether tubelets are blind to CLS tokens."""
        self.attention_dropout = attention_dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, live: int) -> Attended:
        first = self.tokens
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, N, d)
        drop = self.attention_dropout if self.training else 0.0
        seen_k, seen_v = (k[:, :, first:], v[:, :, first:]) if self.hidden_cls else (k, v)
        rows = fused(q[:, :, first:], seen_k, seen_v, drop)  # (B, H, n, d)
        weights = self._cls_weights(q[:, :, :first], k)  # (B, H, C, N)
        cls = (F.dropout(weights, drop) if drop else weights).to(v.dtype) @ v  # (B, H, C, d)
        out = self.dropout(self.proj(torch.cat([cls, rows], 2).transpose(1, 2).flatten(2)))  # (B, N, D)
        return Attended(out, attention_map(weights[..., first : first + live]), k[:, :, first:], v[:, :, first:])

    def _cls_weights(self, q: Tensor, k: Tensor) -> Tensor:
        logits = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)  # (B, H, C, N)
        if self.isolated and self.tokens == 2:
            others = torch.eye(2, dtype=torch.bool, device=q.device).flip(0)  # act sees no priv, priv no act
            logits = logits.masked_fill(F.pad(others, (0, logits.shape[-1] - 2)), float("-inf"))
        weights: Tensor = logits.float().softmax(-1)
        return weights


class PrivacyReader(nn.Module):
    """A privacy token beside the trunk: its own query, output and MLP; the trunk's keys and values.

    No tubelet ever sees it: it points at what is private, and that is all it does. `detached`, nothing that it learns
    changes the trunk; otherwise the keys learn what it has to point at, the values never.
    """

    def __init__(self, width: int, heads: int, mlp: nn.Module, *, detached: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.detached = detached
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.query = nn.Linear(width, width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = mlp
        self.dropout = nn.Dropout(dropout)

    def forward(self, token: Tensor, keys: Tensor, values: Tensor, live: int) -> tuple[Tensor, Tensor]:
        """(B, 1, D), (B, H, n, d) → the token after the block (B, 1, D), and α_priv (B, 1, live)."""
        q = self.query(self.norm1(token)).unflatten(2, (self.heads, -1)).transpose(1, 2)  # (B, H, 1, d)
        keys = keys.detach() if self.detached else keys
        weights = ((q * q.shape[-1] ** -0.5) @ keys.transpose(-2, -1)).float().softmax(-1)  # (B, H, 1, n)
        read = (weights.to(values.dtype) @ values.detach()).transpose(1, 2).flatten(2)  # (B, 1, D)
        token = token + self.dropout(self.proj(read))
        return token + self.mlp(self.norm2(token)), attention_map(weights[..., :live])


def fused(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> Tensor:
    """softmax(q kᵀ / √d) v by the fastest kernel that this device has for it."""
    if _hopper(q.get_device()):
        with sdpa_kernel(FASTEST, set_priority=True):
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
    return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)


def _hopper(number: int) -> bool:
    """Whether this CUDA device is a Hopper or later. CPUs have the number -1."""
    return number >= 0 and bool(torch.cuda.get_device_capability(number)[0] >= 9)


if torch.cuda.is_available():  # the compiler takes two seconds to import, which a CPU need not pay
    _hopper = torch.compiler.assume_constant_result(_hopper)  # type: ignore[no-untyped-call]


def attention_map(weights: Tensor) -> Tensor:
    """Eq. 3: (B, H, C, live) → (B, C, live), each row with the sum 1."""
    mean = weights.mean(1)
    return mean / mean.sum(-1, keepdim=True).clamp(min=1e-12)
