"""MGFN: which segments of a video are abnormal (Chen et al., AAAI 2023, "Magnitude-Contrastive Glance-and-Focus").

    z (B, crops, T, D)                                      T = 32 segments, of features that a frozen encoder made
    x = Conv₃(z) + 0.1 · Conv₃(‖z‖₂)                        feature amplification: the norm as one more channel

    glance    x ← x + DW₃(x)                                a short-cut convolution, a channel at a time: where in time
    64 × 3    x ← x + W_o · Attention(LN x)                 every segment sees all others
              x ← x + FFN(LN x)
    focus     x ← x + DW₃(x)
    128 × 3,  x ← x + W_o · a,   aₜ = Σ_{|j| ≤ 2} w_hj vₜ₊ⱼ,   v = W_v LN x      head h of channels has its own w
    1024 × 2  x ← x + FFN(LN x)

    h = LN x (B, crops, T, 1024)                            ‖h‖₂ is what videos are compared by (`losses`)
    s = mean over crops of σ(w · Dropout₀.₇(h) + b)         (B, T), the score of each segment

Glance blocks see the whole video, focus blocks a segment and its neighbours. Videos of a batch do not influence one
another, in training either: norms are over a segment's own channels.

W_o and the last layer of each FFN start at 0 (ours). Segments are chosen by ‖h‖ to represent their video, and glance
blocks can pass to any segment that something happened elsewhere. With unequal magnitudes at the start, the network may
keep choosing the wrong segments: then it finds abnormal videos, but not the time. At this start a segment depends on
its neighbours alone, and all magnitudes are √1024.

Features are first divided by `scale`, their root mean square over training clips, so that the margin and learning rates
mean the same for every encoder.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import RecipeError, UsageError
from vidveil.tasks.anomaly.segments import SEGMENTS

Kind = Literal["glance", "focus"]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a network is built; the defaults are as published."""

    width: int
    """D, of the features."""
    widths: tuple[int, ...] = (64, 128, 1024)
    """Channels of each stage."""
    depths: tuple[int, ...] = (3, 3, 2)
    """Blocks of each stage."""
    kinds: tuple[Kind, ...] = ("glance", "focus", "focus")
    head: int = 64
    """Channels of a head: of attention, and of focus, where they share the weights of a neighbourhood."""
    reach: int = 2
    """Neighbours on each side that focus sees."""
    wider: int = 4
    """Hidden width of a feed-forward layer, in widths."""
    ratio: float = 0.1
    """Weight of the magnitude relative to the features."""
    dropout: float = 0.7
    """Before the score."""
    segments: int = SEGMENTS
    """T, into which a video is cut."""

    def __post_init__(self) -> None:
        for name in ("widths", "depths", "kinds"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # a list, where it comes from JSON
        if not len(self.widths) == len(self.depths) == len(self.kinds) > 0:
            raise RecipeError(
                f"stages need as many widths {self.widths} as depths {self.depths} and kinds {self.kinds}"
            )
        if min(self.width, self.head, self.wider, self.segments, *self.widths, *self.depths) < 1 or self.reach < 0:
            raise RecipeError("widths, depths, heads and segments are 1 or more, reach is 0 or more")
        if odd := next((width for width in self.widths if width % self.head), None):
            raise RecipeError(f"{odd} channels cannot be cut into heads of {self.head}: choose others")
        if not 0 <= self.dropout < 1:
            raise RecipeError(f"dropout must be in [0, 1), got {self.dropout:g}")


class MGFNOutput(NamedTuple):
    """Of a batch of videos."""

    scores: Tensor
    """(B, T) in [0, 1], high where something is abnormal."""
    features: Tensor
    """(B, crops, T, C), whose magnitudes are compared."""


def _over_time(layer: nn.Module, x: Tensor) -> Tensor:
    """A convolution along the segments of (N, T, C)."""
    out: Tensor = layer(x.mT).mT
    return out


class Glance(nn.Module):
    """Attention among all segments of a video."""

    def __init__(self, width: int, shape: Shape) -> None:
        super().__init__()
        self.heads = width // shape.head
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.outer = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        three = self.qkv(x).unflatten(-1, (3, self.heads, -1))  # (N, T, 3, H, d)
        q, k, v = three.permute(2, 0, 3, 1, 4)  # each (N, H, T, d)
        mixed: Tensor = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        out: Tensor = self.outer(mixed)
        return out


class Focus(nn.Module):
    """Each segment as a weighted sum of its neighbours; channels of a head share the weights."""

    def __init__(self, width: int, shape: Shape) -> None:
        super().__init__()
        self.channels, self.reach = shape.head, shape.reach
        heads = width // shape.head
        self.value = nn.Linear(width, width, bias=False)
        self.near = nn.Conv1d(heads, heads, 2 * shape.reach + 1, groups=heads)
        self.outer = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        v = self.value(x).mT  # (N, C, T)
        weight = self.near.weight.repeat_interleave(self.channels, 0)  # (C, 1, 2 reach + 1)
        assert self.near.bias is not None
        bias = self.near.bias.repeat_interleave(self.channels)
        around = F.conv1d(v, weight, bias, padding=self.reach, groups=len(weight))
        out: Tensor = self.outer(around.mT)
        return out


class Block(nn.Module):
    """Short-cut convolution, glance or focus, feed-forward; the attributes keep the names that checkpoints have."""

    def __init__(self, kind: Kind, width: int, shape: Shape) -> None:
        super().__init__()
        self.place = nn.Conv1d(width, width, 3, padding=1, groups=width)
        self.norm = nn.LayerNorm(width)
        self.look = Glance(width, shape) if kind == "glance" else Focus(width, shape)
        self.think = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, shape.wider * width),
            nn.GELU(),
            last := nn.Linear(shape.wider * width, width),
        )
        for zero in (self.look.outer.weight, self.look.outer.bias, last.weight, last.bias):
            nn.init.zeros_(zero)

    def forward(self, x: Tensor) -> Tensor:
        """(N, T, C) → (N, T, C)."""
        x = x + _over_time(self.place, x)
        x = x + self.look(self.norm(x))
        out: Tensor = x + self.think(x)
        return out


class Widen(nn.Module):
    """From the channels of a stage to those of the next."""

    def __init__(self, width: int, wider: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, wider)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(self.norm(x))
        return out


class MGFN(nn.Module):
    """(B, crops, T, D), or (B, T, D) of one crop → scores (B, T), and features to compare."""

    scale: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("scale", torch.ones(()))
        self.feature = nn.Conv1d(shape.width, shape.widths[0], 3, padding=1)
        self.magnitude = nn.Conv1d(1, shape.widths[0], 3, padding=1)
        layers: list[nn.Module] = []
        for number, (kind, width, depth) in enumerate(zip(shape.kinds, shape.widths, shape.depths, strict=True)):
            if number:
                layers.append(Widen(shape.widths[number - 1], width))
            layers += [Block(kind, width, shape) for _ in range(depth)]
        self.stages = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(shape.widths[-1])
        self.dropout = nn.Dropout(shape.dropout)
        self.score = nn.Linear(shape.widths[-1], 1)

    def forward(self, z: Tensor) -> MGFNOutput:
        if z.ndim == 3:
            z = z[:, None]
        if z.ndim != 4 or z.shape[-1] != self.shape.width or 0 in z.shape:
            raise UsageError(f"features are (B, crops, T, {self.shape.width}) here, got {tuple(z.shape)}")
        videos, crops = z.shape[:2]
        x = self.stages(self.amplified(z.flatten(0, 1) / self.scale))  # (B · crops, T, C)
        h = self.norm(x).unflatten(0, (videos, crops))  # (B, crops, T, C)
        scores = self.score(self.dropout(h)).squeeze(-1).float().sigmoid()  # (B, crops, T)
        return MGFNOutput(scores.mean(1), h)

    def amplified(self, z: Tensor) -> Tensor:
        """(N, T, D) → (N, T, C)."""
        length = torch.linalg.vector_norm(z, dim=-1, keepdim=True)  # (N, T, 1)
        return _over_time(self.feature, z) + self.shape.ratio * _over_time(self.magnitude, length)
