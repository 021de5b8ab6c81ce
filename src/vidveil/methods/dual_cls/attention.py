"""Self-attention with two class tokens that never attend to each other, and whose attention maps are returned.

    rows of tubelets     softmax(q kᵀ / √d) v                    fused, no mask, no n × n matrix
    rows of CLS tokens   softmax(q kᵀ / √d + mask) v             by hand: 2 × n, mask = −∞ where one CLS meets the other
    α  (eq. 3)           mean over heads of the CLS rows, renormalised over the live tubelets

Only the two CLS rows need the mask and the weights, so only they are written out. α is taken before dropout.

A product for each head would copy all keys and values, whose heads lie side by side in memory, for two rows. So the
heads of CLS tokens are rows of one product, each with zeros in the channels of other heads: H times very few
operations, no copy, and enough rows for a matrix unit.

    Q  (B, C·H, D)       row (c, h) is q_c in the channels of head h, 0 elsewhere
    logits               k Qᵀ  (B, N, C·H)                       in this order, and C·H padded to a multiple of
                                                                 8, memory is aligned for every N
    read                 softmaxᵀ v, of row (c, h) the channels of head h

A head or a torso is larger than one tubelet, so scores made of the maps may be averaged over neighbours:

    s̃_i = Σ w_ij s_j / Σ w_ij      over the live ones of i itself and the 26 tubelets around it;
                                   w_ij is 1, times 1/2 for a step in time, times 1/4 for each step to a side
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.models.layers.fused_attention import fused

NEIGHBOUR_WEIGHTS = (0.5, 0.25, 0.25)
"""Of the tubelets before and after, above and below, left and right."""


class Attended(NamedTuple):
    out: Tensor
    """(B, N, D)"""
    maps: Tensor
    """(B, C, live): α of each CLS token."""
    keys: Tensor
    """(B, n, D) of all tokens but the CLS tokens, and"""
    values: Tensor
    """theirs."""


class DualCLSAttention(nn.Module):
    """Tokens in: C class tokens (act, priv; or act alone), then `live` tubelets, then fused ones."""

    def __init__(
        self, width: int, heads: int, *, tokens: int = 2, isolated: bool = True, hidden_cls: bool = False,
        dropout: float = 0.0, attention_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.tokens = heads, tokens
        self.isolated = isolated
        """Whether CLS tokens do not attend to each other; the released code omits this."""
        self.hidden_cls = hidden_cls
        """Whether tubelets do not attend to CLS tokens."""
        self.attention_dropout = attention_dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, live: int) -> Attended:
        first = self.tokens
        q, k, v = self.qkv(x).chunk(3, -1)  # each (B, N, D)
        drop = self.attention_dropout if self.training else 0.0
        visible_k, visible_v = (k[:, first:], v[:, first:]) if self.hidden_cls else (k, v)
        rows = fused(q[:, first:], visible_k, visible_v, self.heads, drop)  # (B, n, D)
        weights = self.cls_weights(q[:, :first], k)  # (B, N, C, H)
        cls = cls_reads(F.dropout(weights, drop) if drop else weights, v)  # (B, C, D)
        # Joined after the projection, where a compiler fuses it with the sum that follows.
        out = torch.cat([self.proj(cls), self.proj(rows)], 1)  # (B, N, D)
        maps = attention_map(weights[:, first : first + live])
        return Attended(self.dropout(out), maps, k[:, first:], v[:, first:])

    def cls_weights(self, q: Tensor, k: Tensor) -> Tensor:
        logits = cls_logits(q, k, self.heads)  # (B, N, C, H)
        if self.isolated and self.tokens == 2:
            others = torch.eye(2, dtype=torch.bool, device=q.device).flip(0)  # neither attends to the other
            others = F.pad(others, (0, 0, 0, logits.shape[1] - 2)).unsqueeze(2)  # (N, C, 1)
            logits = logits.masked_fill(others, float("-inf"))
        return logits.softmax(1)


class PrivacyReader(nn.Module):
    """A privacy token outside the backbone: its own query, output and MLP; the backbone's keys and values.

    No tubelet attends to it: all it gives is its attention map. `detached`: nothing that it learns changes the
    backbone; otherwise its gradients reach the keys, but never the values.
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
        """(B, 1, D), (B, n, D) → the token after the block (B, 1, D), and α_priv (B, 1, live)."""
        keys = keys.detach() if self.detached else keys
        weights = cls_logits(self.query(self.norm1(token)), keys, self.heads).softmax(1)  # (B, n, 1, H)
        read = cls_reads(weights, values.detach())  # (B, 1, D)
        token = token + self.dropout(self.proj(read))
        return token + self.mlp(self.norm2(token)), attention_map(weights[:, :live])


def cls_logits(q: Tensor, k: Tensor, heads: int) -> Tensor:
    """q kᵀ / √d, head by head, of a few queries: (B, C, D), (B, N, D) → (B, N, C, H) in float32."""
    apart = (q.unsqueeze(2) * _channels(q, heads)).flatten(1, 2)  # (B, C·H, D)
    rows = apart.shape[1]
    logits = torch.bmm(k, F.pad(apart, (0, 0, 0, -rows % 8)).transpose(1, 2))[..., :rows]
    scaled: Tensor = logits.float().view(*k.shape[:2], -1, heads) * (q.shape[2] // heads) ** -0.5
    return scaled


def cls_reads(weights: Tensor, v: Tensor) -> Tensor:
    """Σ weights · v, head by head: (B, N, C, H), (B, N, D) → (B, C, D)."""
    rows, heads = weights.shape[2] * weights.shape[3], weights.shape[3]
    flat = F.pad(weights.flatten(2), (0, -rows % 8)).to(v.dtype)
    read = torch.bmm(flat.transpose(1, 2), v)[:, :rows]  # (B, C·H, D)
    return (read.view(len(v), -1, heads, v.shape[2]) * _channels(v, heads)).sum(2)


def _channels(like: Tensor, heads: int) -> Tensor:
    """(H, D): 1 where a channel belongs to a head."""
    own = torch.eye(heads, dtype=like.dtype, device=like.device)
    return own.unsqueeze(2).expand(-1, -1, like.shape[2] // heads).flatten(1)


def attention_map(weights: Tensor) -> Tensor:
    """Eq. 3: (B, live, C, H) → (B, C, live), each row with the sum 1."""
    mean = weights.mean(3).transpose(1, 2)
    return mean / mean.sum(-1, keepdim=True).clamp(min=1e-12)


def average_neighbours(scores: Tensor, live: Tensor, grid: tuple[int, int, int]) -> Tensor:
    """(B, m) scores of the tubelets with these numbers (B, m) → (B, m).

    Tubelets that are not live have no weight, so that a hole does not count as a low score. The average is linear: it
    may be taken of s or of the two attentions that s is made of.
    """
    empty = scores.new_zeros(len(scores), grid[0] * grid[1] * grid[2])
    total = _neighbour_sums(empty.scatter(1, live, scores), grid)
    weight = _neighbour_sums(empty.scatter(1, live, scores.new_ones(scores.shape)), grid)
    return total.gather(1, live) / weight.gather(1, live)


def _neighbour_sums(flat: Tensor, grid: tuple[int, int, int]) -> Tensor:
    """(B, M) → (B, M): weighted sums over neighbours; 0 outside the clip."""
    x = flat.view(-1, *grid)
    for axis, weight in enumerate(NEIGHBOUR_WEIGHTS, 1):
        pads = [0] * 6
        pads[2 * (3 - axis)] = pads[2 * (3 - axis) + 1] = 1  # F.pad counts axes from the last
        near, count = F.pad(x, pads), x.shape[axis]
        x = x + weight * (near.narrow(axis, 0, count) + near.narrow(axis, 2, count))
    return x.flatten(1)
