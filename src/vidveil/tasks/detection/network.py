"""TriDet: actions with their start and end in a sequence of features (Shi et al., CVPR 2023).

    features (B, T, D) → projection → SGP layers, six levels, each half as long as the one before → heads of every level

**SGP** (scalable-granularity perception) replaces the self-attention of a transformer, which makes moments alike. It
combines the mean of the video (instant level) with a narrow and a wide window of moments:

    SGP(x) = φ(x) · FC(x) + ψ(x) · (Conv_w(x) + Conv_kw(x)) + x       φ(x) = ReLU(FC(mean over time of x))
                                                                     ψ(x) = Conv_w(x)        Conv: depth-wise
    x ← x + SGP(LN(x)),    x ← x + FFN(GN(x))

**Trident head.** A boundary is not predicted by one moment alone: all moments near it respond to it. With responses
F_s, F_e (T,) of a level and offsets F_c (T, 2, B + 1), for the moment t

    p_b = softmax_b(F_s[t − b] + F_c[t, 0, b])      d_s(t) = stride · Σ_b b · p_b           b = 0 … B bins to the left
    q_b = softmax_b(F_e[t + b] + F_c[t, 1, b])      d_e(t) = stride · Σ_b b · q_b                     to the right

and the action around t goes from t − d_s to t + d_e.

Padding has no influence: windows see zeros there, as at the ends of a video; maxima, means and norms leave it out.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import RecipeError, UsageError


@dataclass(frozen=True)
class Shape:
    """How a network is built; the defaults are those for THUMOS14."""

    width: int
    """D, of the features."""
    classes: int
    embed: int = 512
    """Channels inside."""
    levels: int = 6
    stem: int = 2
    """SGP layers of the first level; each other level has one."""
    window: int = 1
    """w, moments of the narrow window."""
    wider: int = 5
    """k: the wide window has k · w moments."""
    bins: int = 16
    """B: a boundary is at most this many moments of the level away."""
    hidden: int = 0
    """Channels inside an FFN; 0: 1.5 · `embed`."""
    groups: int = 16
    """Of a group norm."""
    head_layers: int = 3
    prior: float = 0.01
    """Probability of every class at every moment in an untrained network: most moments show no action."""
    detach_boundaries: bool = True
    """Whether no gradient of the boundary branches reaches the pyramid, as in the released code."""

    def __post_init__(self) -> None:
        counts = ("width", "classes", "embed", "levels", "stem", "window", "wider", "bins", "groups", "head_layers")
        for name in counts:
            if getattr(self, name) < 1:
                raise RecipeError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if self.window % 2 == 0 or self.window * self.wider % 2 == 0:
            raise RecipeError(f"windows must have a middle: {self.window} and {self.window * self.wider} are not odd")
        if self.embed % self.groups:
            raise RecipeError(f"{self.embed} channels cannot be cut into {self.groups} groups")
        if not 0 < self.prior < 1 or self.hidden < 0:
            raise RecipeError(f"prior must be in (0, 1) and hidden 0 or more, got {self.prior} and {self.hidden}")


class TriDetOutput(NamedTuple):
    """For all M moments of all levels, the finest level first."""

    logits: Tensor
    """(B, M, classes), independent of one another."""
    distances: Tensor
    """(B, M, 2) from a moment back to the start and forward to the end, in features."""
    mask: Tensor
    """(B, M) False where a moment is padding."""


class TriDet(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.projection = nn.ModuleList([Conv(shape.width, shape.embed), Conv(shape.embed, shape.embed)])
        counts = [shape.stem, *[1] * (shape.levels - 1)]
        self.levels = nn.ModuleList(nn.ModuleList(SGP(shape) for _ in range(count)) for count in counts)
        self.norms = nn.ModuleList(ChannelNorm(shape.embed) for _ in counts)
        self.actions = Head(shape, shape.classes, bias=-math.log((1 - shape.prior) / shape.prior))
        self.starts, self.ends = Head(shape, 1), Head(shape, 1)
        self.offsets = Head(shape, 2 * (shape.bins + 1))

    def forward(self, features: Tensor, mask: Tensor) -> TriDetOutput:
        """(B, T, D), (B, T): False where a feature is padding."""
        if features.ndim != 3 or features.shape[2] != self.shape.width or mask.shape != features.shape[:2]:
            wanted = f"features of (B, T, {self.shape.width}) and a mask of (B, T)"
            raise UsageError(f"detection takes {wanted}, got {tuple(features.shape)} and {tuple(mask.shape)}")
        if 0 in features.shape[:2]:
            raise UsageError("a video without features has nothing to detect in")
        there = mask.bool()[:, None]  # (B, 1, T)
        x = features.transpose(1, 2).masked_fill(~there, 0)  # (B, D, T): padding may even be NaN
        for conv in self.projection:
            x = conv(x, there)
        found = []
        for number, (layers, norm) in enumerate(zip(self.levels, self.norms, strict=True)):
            if number:
                x, there = halved(x, there)
            for layer in layers:  # type: ignore[attr-defined]
                x = layer(x, there)
            found.append(self._heads(norm(x) * there, there, stride=2**number))
        return TriDetOutput(*(torch.cat(parts, 1) for parts in zip(*found, strict=True)))

    def _heads(self, x: Tensor, there: Tensor, stride: int) -> tuple[Tensor, Tensor, Tensor]:
        still = x.detach() if self.shape.detach_boundaries else x
        start, end = (full(head(still, there))[:, 0] for head in (self.starts, self.ends))  # (B, T)
        offsets = full(self.offsets(x, there)).transpose(1, 2)
        offsets = offsets.reshape(*offsets.shape[:2], 2, -1)  # (B, T, 2, bins + 1)
        distances = stride * torch.stack(
            [expected(start.flip(1), offsets[:, :, 0].flip(1)).flip(1), expected(end, offsets[:, :, 1])], 2
        )
        return full(self.actions(x, there)).transpose(1, 2), distances, there[:, 0]


def expected(responses: Tensor, offsets: Tensor) -> Tensor:
    """Bins from each moment forward to a boundary: responses (B, T), offsets (B, T, bins + 1) → (B, T).

    Beyond the ends responses are 0, so that a boundary half a stride past the last moment can be predicted.
    """
    length, bins = responses.shape[1], offsets.shape[2] - 1
    padded = F.pad(responses, (0, bins))
    near = torch.stack([padded[:, b : b + length] for b in range(bins + 1)], 2)  # (B, T, bins + 1)
    weights = (near + offsets).softmax(2)
    return (weights * torch.arange(bins + 1, device=weights.device)).sum(2)  # no matrix product: bf16 would round it


def full(x: Tensor) -> Tensor:
    """In 32 bits or more: bfloat16 has eight bits of precision, too few for seconds."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def halved(x: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """Maximum over three moments, at every second one: (B, C, T) → (B, C, ⌈T / 2⌉), and their mask."""
    count = -(-x.shape[2] // 2)
    padded = F.pad(x.masked_fill(~there, float("-inf")), (1, 1), value=float("-inf"))
    left, middle, right = (padded[:, :, k::2][:, :, :count] for k in range(3))
    most = torch.maximum(torch.maximum(left, right), middle)
    there = there[:, :, ::2]
    return most.masked_fill(~there, 0), there


class SGP(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        channels, wide = shape.embed, shape.window * shape.wider
        hidden = shape.hidden or 3 * channels // 2
        self.before = ChannelNorm(channels)
        self.instant = nn.Conv1d(channels, channels, 1)
        self.whole = nn.Linear(channels, channels)
        self.gate, self.narrow, self.wide = (
            nn.Conv1d(channels, channels, size, padding=size // 2, groups=channels)
            for size in (shape.window, shape.window, wide)
        )
        self.between = GroupNorm(shape.groups, channels)
        self.ffn = nn.Sequential(nn.Conv1d(channels, hidden, 1), nn.GELU(), nn.Conv1d(hidden, channels, 1))

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        """(B, C, T), (B, 1, T) → (B, C, T)."""
        z = self.before(x) * there
        mean = z.sum(2) / there.sum(2).clamp(min=1)  # (B, C)
        instant = F.relu(self.whole(mean))[:, :, None] * self.instant(z)
        x = x + (instant + self.gate(z) * (self.narrow(z) + self.wide(z)) + z) * there
        out: Tensor = x + self.ffn(self.between(x, there)) * there
        return out


class Conv(nn.Module):
    """Convolution over three moments, LayerNorm, ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, 3, padding=1, bias=False)  # the norm has one
        self.norm = ChannelNorm(outputs)

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x))) * there


class Head(nn.Module):
    """Shared by all levels."""

    def __init__(self, shape: Shape, outputs: int, bias: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Conv(shape.embed, shape.embed) for _ in range(shape.head_layers - 1))
        self.last = nn.Conv1d(shape.embed, outputs, 3, padding=1)
        assert self.last.bias is not None
        nn.init.constant_(self.last.bias, bias)

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, there)
        out: Tensor = self.last(x) * there
        return out


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of (B, C, T), per moment."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class GroupNorm(nn.Module):
    """Over a group of channels and all moments that are no padding."""

    def __init__(self, groups: int, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.groups, self.eps = groups, eps
        self.gain = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        """(B, C, T), (B, 1, T) → (B, C, T)."""
        parts = full(x).view(len(x), self.groups, -1, x.shape[2])  # (B, G, C / G, T)
        live = there[:, None]
        count = (live.sum((2, 3), keepdim=True) * parts.shape[2]).clamp(min=1)
        apart = (parts - (parts * live).sum((2, 3), keepdim=True) / count) * live
        scale = (apart.square().sum((2, 3), keepdim=True) / count + self.eps).rsqrt()
        out: Tensor = (apart * scale).flatten(1, 2) * self.gain[:, None] + self.bias[:, None]
        return out.to(x.dtype) * there
