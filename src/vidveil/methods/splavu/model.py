"""SPLAVU: an adapter that anonymizes the features of a frozen video encoder ("Privacy Beyond Pixels").

    z = f_E(clip) (B, D)   →   AAM   →   ẑ (B, D)   →   whatever read z before reads ẑ

The adapter (AAM) is three layers of self-attention and nothing else, no norm and no MLP:

    z ← z + W_o · Attention(W_q z, W_k z, W_v z)                          8 heads

Attention over what? The published code hands it (B, D), and a sequence is what that becomes: clips attend to the other
clips of their batch, so that the result of one depends on its neighbours (`reference`). Here a clip is alone: queries,
keys and values are cut into g = 8 groups of channels, and these groups attend to each other, each with an embedding
of its own. (One token alone would attend to itself, which is a linear map.) W_o starts at 0, so the adapter starts as
the identity, exactly.

Training, one joint step (eq. 7):

    L = Σ ω · L_task  −  ω_B · min(NT-Xent(ẑ_s, ẑ_s′), log(2B − 1))  +  ω_L · ‖ẑ − z‖²             (eqs. 4, 5, 6)

z_s, z_s′ are static clips of the same video: one frame each, tiled. What they share is what is seen without motion.

**An adapter that can be inverted hides nothing** from whoever learns to read it, and this one can. So before it stands
a projection (`erase`, ours; see `erasure`) that loses the directions which moving clips share with still ones. What
comes behind it has no more than it leaves. The published method has none: erase 0.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import RecipeError, WeightsError
from vidveil.core.text import printable
from vidveil.core.typed import from_values
from vidveil.methods.feature_adapter import FeatureAdapter
from vidveil.models.checkpoint import MOST, Checkpoint, fill

Kind = Literal["attention", "mlp"]
MOST_LAYERS = 1000


@dataclass(frozen=True)
class Shape:
    """How an adapter is built."""

    width: int
    """D, of the features."""
    kind: Kind = "attention"
    layers: int = 3
    heads: int = 8
    groups: int = 8
    """Of channels, that attend to each other."""
    inner: int = 0
    """Channels of queries, keys and values; 0: a quarter of D; as published, D."""
    reference: bool = False
    """As published: clips attend across the batch; an MLP replaces its input."""
    dropout: float = 0.1
    """Of MLP layers."""
    erase: float = 0.0
    """Share of directions that are lost before, of those that do not separate the classes of the tasks."""

    def __post_init__(self) -> None:
        whole = (self.width, self.layers, self.heads, self.groups)
        if min(whole) < 1 or self.inner < 0 or max(*whole, self.inner) > MOST or self.layers > MOST_LAYERS:
            raise RecipeError("an adapter's numbers are from 1 to 1,000,000, and it has at most 1,000 layers")
        if not 0 <= self.dropout < 1 or not 0 <= self.erase <= 1:
            raise RecipeError("dropout is in [0, 1), and erase in [0, 1]")
        if self.kind == "attention" and self.channels % (self.heads * self.tokens):
            more = "" if self.reference else f" × {self.groups} groups"
            raise RecipeError(f"{self.channels} channels cannot be cut into {self.heads} heads{more}: choose others")

    @property
    def tokens(self) -> int:
        """That each head of a clip is cut into."""
        return 1 if self.reference else self.groups

    @property
    def channels(self) -> int:
        """Of queries, keys and values."""
        if self.inner or self.reference:
            return self.inner or self.width
        least = self.heads * self.groups
        return max(1, self.width // 4 // least) * least


class AttentionBlock(nn.Module):
    """z + W_o · Attention(z)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.inner = nn.Linear(shape.width, 3 * shape.channels)
        self.outer = nn.Linear(shape.channels, shape.width)
        nn.init.xavier_uniform_(self.inner.weight)
        for zero in (self.inner.bias, self.outer.weight, self.outer.bias):
            nn.init.zeros_(zero)
        if not shape.reference:
            self.places = nn.Parameter(torch.randn(2, shape.groups, shape.channels // shape.groups) * 0.02)

    def forward(self, z: Tensor) -> Tensor:
        mixed = self._across_clips(z) if self.shape.reference else self._within_clips(z)
        out: Tensor = z + self.outer(mixed)
        return out

    def _within_clips(self, z: Tensor) -> Tensor:
        places = F.pad(self.places.flatten(), (0, self.shape.channels))  # of queries and keys, not of values
        three = torch.addmm((self.inner.bias + places)[:, None], self.inner.weight, z.T)  # (3C, B)
        depth = self.shape.channels // (self.shape.groups * self.shape.heads)
        q, k, v = three.view(3, self.shape.groups, self.shape.heads, depth, len(z))
        return attend_side_by_side(q, k, v).reshape(self.shape.channels, len(z)).T

    def _across_clips(self, z: Tensor) -> Tensor:
        three = self.inner(z).chunk(3, dim=-1)
        q, k, v = (x.view(1, len(z), self.shape.heads, -1).transpose(1, 2) for x in three)  # (1, heads, B, d)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(len(z), -1)


def attend_side_by_side(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention p = softmax_j(qᵢ · kⱼ / √d), oᵢ = Σⱼ pᵢⱼ vⱼ: (tokens, heads, d, B) each → (tokens, heads, d, B).

    Kernels for long sequences spend most of their time on getting started where a clip has eight tokens of three
    channels. Here clips lie along the last axis, so that each of five steps is one long row of numbers.
    """
    scores = (q[:, None] * k[None]).sum(3) * q.shape[2] ** -0.5  # (i, j, heads, B)
    mixed: Tensor = (scores.softmax(1).unsqueeze(3) * v[None]).sum(1)
    return mixed


class MLP(nn.Module):
    """Layers of Linear, ReLU, BatchNorm and dropout (table 10), added to z by a projection that starts at 0; as
    published they replace z, and have to learn the identity first."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.layers = nn.Sequential(
            *(
                layer
                for _ in range(shape.layers)
                for layer in (nn.Linear(width, width), nn.ReLU(), nn.BatchNorm1d(width), nn.Dropout(shape.dropout))
            )
        )
        self.outer: nn.Linear | None = None
        if not shape.reference:
            self.outer = nn.Linear(width, width)
            nn.init.zeros_(self.outer.weight)
            nn.init.zeros_(self.outer.bias)

    def forward(self, z: Tensor) -> Tensor:
        found: Tensor = self.layers(z)
        return found if self.outer is None else z + self.outer(found)


LOSES_NOTHING = "this adapter erases nothing: whoever is trained on what it makes gets nearly all that was there before"


class AAM(FeatureAdapter):
    """The anonymizing adapter: (B, D) → (B, D).

    Features are first brought to a common size: `scale` is their root mean square over training clips, so that losses
    and rates mean the same for every encoder. It is a single number, and is undone at the end.
    """

    centre: Tensor
    left: Tensor
    into: Tensor | None
    out: Tensor | None
    """`left` as a product (D, r) · (r, D), see `thin`."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape, self.width = shape, shape.width
        if shape.erase:
            self.register_buffer("centre", torch.zeros(shape.width, dtype=torch.float64))
            self.register_buffer("left", torch.eye(shape.width, dtype=torch.float64))
        for name in ("into", "out"):
            self.register_buffer(name, None, persistent=False)
        blocks = [AttentionBlock(shape) for _ in range(shape.layers)] if shape.kind == "attention" else [MLP(shape)]
        self.blocks = nn.Sequential(*blocks)

    def forward(self, z: Tensor) -> Tensor:
        """Features as the encoder made them → the same, anonymized."""
        left = self.erased(z)
        of_size_1 = left / self.scale
        return left + (self.adapt(of_size_1) - of_size_1) * self.scale  # so that no change is exactly none

    def erased(self, z: Tensor) -> Tensor:
        """What the projection leaves of features: in 64 bits, or the last ones of 32 would reveal the rest."""
        if not self.shape.erase:
            return z
        apart = z.double() - self.centre
        if self.into is None or self.out is None:
            return (self.centre + apart @ self.left).to(z.dtype)
        return torch.addmm(self.centre, apart @ self.into, self.out).to(z.dtype)

    def thin(self) -> None:
        """Where the projection leaves few directions, go through these from now on: the same map in fewer products.

        Rows of `left` span what it leaves. With B an orthonormal basis of that, z · left = (z · left · Bᵀ) · B.
        """
        self.into = self.out = None
        if not self.shape.erase:
            return
        width, rank = self.shape.width, round(float(self.left.trace()))  # that of a projection is its rank
        if 0 < 2 * rank < width:
            random = torch.randn(rank, width, generator=torch.Generator().manual_seed(0), dtype=self.left.dtype)
            out = torch.linalg.qr((random.to(self.left) @ self.left).T).Q.T.contiguous()  # (r, D)
            into = self.left @ out.T
            if torch.dist(into @ out, self.left) < 1e-9 * self.left.norm():  # else it is no projection
                self.into, self.out = into, out

    def adapt(self, z: Tensor) -> Tensor:
        """What comes behind it, of features that are brought to size 1."""
        found: Tensor = self.blocks(z)
        return found

    def about(self) -> dict[str, Any]:
        return asdict(self.shape)

    @property
    def across_batch(self) -> bool:
        """Published attention looks across all features of a batch."""
        return self.shape.reference and self.shape.kind == "attention"

    def warnings(self, videos: int) -> list[str]:
        few, nothing = too_few(self.shape, videos), None if self.shape.erase else LOSES_NOTHING
        return [word for word in (few, nothing) if word]


def too_few(shape: Shape, videos: int) -> str | None:
    """A word on an adapter that erases by what so many training videos show, where these are few."""
    if not shape.erase or videos >= shape.width:
        return None
    return (
        f"it was fitted to {videos} training videos, and a feature has {shape.width} numbers: which directions are "
        "erased is partly luck, so evaluate it on people whom it never saw"
    )


def load(checkpoint: Checkpoint) -> AAM:
    return rebuilt(checkpoint.about["network"], checkpoint.tensors())


def rebuilt(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> AAM:
    """An adapter out of its checkpoint, ready for use."""
    try:
        with torch.device("meta"):
            adapter = AAM(from_values(Shape, about))
        fill(adapter, {name: tensor.clone() for name, tensor in tensors.items()})  # aligned: same last bits
    except (ValueError, RuntimeError, RecipeError) as error:
        first = printable(next(iter(str(error).splitlines()), type(error).__name__), 300)
        raise WeightsError(f"the checkpoint does not hold an adapter of this version: {first}") from error
    adapter.thin()
    return adapter.eval().requires_grad_(False)
