"""Dual-CLS tubelet pruning (Aslam et al., From Pixels to Privacy): two class tokens decide which tubelets may stay.

    tokens       [act_CLS], [priv_CLS], x_1 … x_M           a picture ViT, its patches grown into tubelets
    eq. 3        α_act, α_priv = mean over heads of each CLS token's attention, over the live tubelets
    eq. 4        s = α_act − λ · α_priv
    eq. 5        keep the k = ceil(r · m) of the m live tubelets with the highest s, over the whole clip
    eq. 6        t_fuse = Σ_dropped α_act · x, appended
    output       the clip where tubelets were kept to the end, black elsewhere

Tubelets are selected inside blocks 3, 6 and 9, after the attention's residual and before the MLP. What the paper leaves
open, and what was chosen: docs/methods/dual_cls.md.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import RecipeError, UsageError
from vidveil.core.tubelets import grid, kept_count
from vidveil.methods.dual_cls.attention import Attended, DualCLSAttention, PrivacyReader, average_neighbours
from vidveil.methods.masking.masker import Decision
from vidveil.methods.masking.network import MaskingNetwork
from vidveil.models.layers.tubelet_projection import TubeletProjection
from vidveil.models.layers.tubelets import as_mask
from vidveil.models.recognizers.recognizer import Standardize
from vidveil.models.recognizers.resnet import IMAGENET_DEVIATION, IMAGENET_MEAN
from vidveil.models.recognizers.vit import MLP, ConvolvedTubelets
from vidveil.training.compiling import compiled_in_training

SIZES = {  # width, depth, heads, where it prunes, tubelet
    "mini": (96, 6, 3, (2, 4, 6), (2, 8, 8)),
    "vit_ti": (192, 12, 3, (3, 6, 9), (2, 16, 16)),
    "vit_s": (384, 12, 6, (3, 6, 9), (2, 16, 16)),
    "vit_b": (768, 12, 12, (3, 6, 9), (2, 16, 16)),
}
"""`mini` is for two CPU cores and clips of 8 × 64 × 64; it cuts its tubelets with convolutions."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """Everything that the network's shape and behaviour depend on."""

    size: str = "vit_s"
    frames: int = 16
    side: int = 112
    actions: int
    budget: Mapping[str, int]
    """Outputs of the heads on priv_CLS: `{"attributes": 5, "identity": 100}`."""
    keep: float = 0.9
    """r: share of the live tubelets kept by each selection. May be changed by call."""
    privacy_weight: float = 0.5
    """λ of eq. 4; 0: the action token alone, inf: the privacy token alone. May be changed by call."""
    privacy_attention: Literal["reversed", "plain", "detector"] = "reversed"
    """`reversed`: priv_CLS is a token of the backbone, its head trained behind a gradient reversal (paper). `plain`:
    the same token, trained to predict. `detector`: it reads the backbone's keys with a query of its own, trained
    to predict."""
    shared_keys: bool = False
    """Whether what a detector learns may change the backbone's keys; else they are detached."""
    smooth: bool = False
    """Whether scores are averaged over neighbouring tubelets (`attention.average_neighbours`); not in the paper."""
    fusion: bool = True
    output: Literal["mask", "decode"] = "mask"
    fill: Literal["black", "mean", "temporal"] = "black"
    reference: bool = False
    """As released: CLS tokens see each other, and fuse tokens compete with tubelets."""
    dropout: float = 0.0
    attention_dropout: float = 0.0
    drop_path: float = 0.0

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise RecipeError(f"no network is called {self.size!r}; there are {', '.join(SIZES)}")
        if self.reference and self.privacy_attention == "detector":
            raise RecipeError("reference is the released code, which has no detector: leave one of them out")
        if self.reference and self.smooth:
            raise RecipeError("reference is the released code, which averages no neighbours: smooth: false")
        if self.output == "decode" and self.fusion:
            raise RecipeError("output: decode needs fusion: false, since a fuse token belongs to no place")
        kept_count(1, self.keep)
        if not self.privacy_weight >= 0:
            raise RecipeError(f"privacy_weight is 0 or more, got {self.privacy_weight}")


class Selection(NamedTuple):
    """One pruning layer. m tubelets were live, k of them stay."""

    live: Tensor
    """(B, m) numbers of tubelets; M stands for a fuse token, in `reference` only."""
    act: Tensor
    """(B, m) α_act, and"""
    priv: Tensor
    """(B, m) α_priv, with their gradients."""
    scores: Tensor
    """(B, m) s, divided by 1 + λ: the same order, and λ may be infinite. With `smooth`: s̃."""
    kept: Tensor
    """(B, k) positions in `live`."""


class DualCLSOutput(NamedTuple):
    action: Tensor
    """(B, A) logits."""
    privacy_features: Tensor
    """(B, D): priv_CLS at the end, the input of the budget's heads."""
    kept: Tensor
    """(B, M) bool: after the last selection."""
    scores: Tensor
    """(B, M): higher for tubelets that were dropped later, and within a selection for those with the higher s."""
    selections: list[Selection]
    tokens: Tensor
    """(B, k, D) of the kept tubelets at the end, in the order of the last selection's `kept`."""


class Block(nn.Module):
    """timm's names, so that published weights load."""

    def __init__(self, width: int, heads: int, network: Network, drop_path: float) -> None:
        super().__init__()
        detector = network.privacy_attention == "detector"
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = DualCLSAttention(
            width, heads, tokens=1 if detector else 2, isolated=not network.reference, hidden_cls=detector,
            dropout=network.dropout, attention_dropout=network.attention_dropout,
        )  # fmt: skip
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = MLP(width)
        self.dropout = nn.Dropout(network.dropout)
        self.drop_path = drop_path
        self.reader: PrivacyReader | None = None
        if detector:
            self.reader = PrivacyReader(
                width, heads, MLP(width), detached=not network.shared_keys, dropout=network.dropout
            )

    def attend(self, x: Tensor, live: int) -> Attended:
        return self.attn(self.norm1(x), live)  # type: ignore[no-any-return]

    def after_attention(self, x: Tensor) -> Tensor:
        """The second half of the block."""
        return x + self.dropped(self.transformed(x))

    def transformed(self, x: Tensor) -> Tensor:
        return self.dropout(self.mlp(self.norm2(x)))  # type: ignore[no-any-return]

    def compile_parts(self) -> None:
        """In place, with any number of tokens: all blocks share what is compiled. A rate of `drop_path` would be
        compiled into it, and each block has another one."""
        self.attend = compiled_in_training(self.attend)  # type: ignore[method-assign]
        if self.drop_path:
            self.transformed = compiled_in_training(self.transformed)  # type: ignore[method-assign]
        else:
            self.after_attention = compiled_in_training(self.after_attention)  # type: ignore[method-assign]

    def dropped(self, x: Tensor) -> Tensor:
        """Stochastic depth: in training a clip skips this branch with probability `drop_path`."""
        if not self.training or self.drop_path == 0:
            return x
        stays = x.new_empty(len(x), 1, 1).bernoulli_(1 - self.drop_path)
        return x * stays / (1 - self.drop_path)


class DualCLS(MaskingNetwork):
    own: dict[str, float]

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        width, depth, heads, self.prune_at, self.tubelet = SIZES[network.size]
        self.frames, self.size = network.frames, network.side
        self.own = {"keep": network.keep, "privacy_weight": network.privacy_weight}
        self.grid = grid(network.frames, network.side, self.tubelet)  # L, h, w
        self.count = self.grid[0] * self.grid[1] * self.grid[2]  # M
        self.tokens = 1 if network.privacy_attention == "detector" else 2
        self.standardize = Standardize(IMAGENET_MEAN, IMAGENET_DEVIATION, 3)
        embed = ConvolvedTubelets if network.size == "mini" else TubeletProjection
        self.patch_embed = embed(3, self.tubelet, width)
        self.cls_token = nn.Parameter(torch.zeros(1, 2, width))  # act, priv
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + self.grid[1] * self.grid[2], width))
        self.time_embed = nn.Parameter(torch.zeros(1, self.grid[0], width))
        rates = [network.drop_path * number / (depth - 1) for number in range(depth)]
        self.blocks = nn.ModuleList([Block(width, heads, network, rate) for rate in rates])
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.priv_norm = nn.LayerNorm(width, eps=1e-6)
        self.action_head = nn.Linear(width, network.actions)
        self.budget_heads = nn.ModuleDict({name: nn.Linear(width, outputs) for name, outputs in network.budget.items()})
        pixels = 3 * self.tubelet[0] * self.tubelet[1] * self.tubelet[2]
        self.decoder = nn.Linear(width, pixels) if network.output == "decode" else None
        for parameter in (self.pos_embed, self.time_embed):
            nn.init.trunc_normal_(parameter, std=0.02)
        nn.init.normal_(self.cls_token, std=0.2)  # far apart compared with the position they share, or they part slowly
        for module in self.blocks.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def embed(self, clip: Tensor) -> Tensor:
        """(B, 3, T, H, W) in [0, 1] → (B, C + M, D): the backbone's CLS tokens, then the tubelets."""
        patches = self.patch_embed(self.standardize(clip))  # (B, L, S, D)
        x = (patches + self.pos_embed[:, None, 1:] + self.time_embed[:, :, None]).flatten(1, 2)  # (B, M, D)
        cls = (self.cls_token + self.pos_embed[:, :1])[:, : self.tokens].expand(len(x), -1, -1)
        # In the type of matrix products: under autocast blocks then have half as much to read and to write.
        return torch.cat([cls, x], 1).to(patches.dtype)

    def forward(self, clip: Tensor, keep: float | None = None, privacy_weight: float | None = None) -> DualCLSOutput:
        x, priv, selections = self._run_blocks(clip, keep, privacy_weight)
        kept, scores = final_decision(selections, self.count)
        tokens = x[:, self.tokens : self.tokens + selections[-1].kept.shape[1]]
        privacy_features = self.priv_norm(priv[:, 0]) if self.tokens == 1 else self.norm(x[:, 1])
        return DualCLSOutput(self.action_head(self.norm(x[:, 0])), privacy_features, kept, scores, selections, tokens)

    def mask(
        self, clip: Tensor, keep: float | None = None, privacy_weight: float | Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """`kept` and `scores` alone. What comes after the last selection changes neither and is left out."""
        return final_decision(self._run_blocks(clip, keep, privacy_weight, upto_mask=True)[2], self.count)

    def _run_blocks(
        self, clip: Tensor, keep: float | None, weight: float | Tensor | None, *, upto_mask: bool = False
    ) -> tuple[Tensor, Tensor, list[Selection]]:
        """The tokens at the end (B, N, D), a detector's privacy token (B, 1, D), and the selections."""
        keep = self.network.keep if keep is None else keep
        x = self.embed(clip)
        # The position embedding of the CLS tokens is the backbone's: a detector must not move it.
        priv = (self.cls_token[:, 1:] + self.pos_embed[:, :1].detach()).expand(len(x), -1, -1)  # (B, 1, D)
        live = torch.arange(self.count, device=x.device).expand(len(x), -1)  # (B, m)
        selections: list[Selection] = []
        for number, block in enumerate(self.blocks, 1):
            assert isinstance(block, Block)
            attended = block.attend(x, live.shape[1])
            maps = attended.maps  # (B, 2, m), a detector's backbone: (B, 1, m)
            if block.reader is not None:
                priv, priv_map = block.reader(priv, attended.keys, attended.values, live.shape[1])
                maps = torch.cat([maps, priv_map], 1)
            if number in self.prune_at:
                scores = self.score(maps[:, 0], maps[:, 1], live, weight)
                selections.append(select(live, maps[:, 0], maps[:, 1], scores, keep))
                if upto_mask and number == self.prune_at[-1]:
                    break
            x = x + block.dropped(attended.out)
            if number in self.prune_at:
                x, live = self._prune(x, selections[-1])
            x = block.after_attention(x)
        return x, priv, selections

    def score(self, act: Tensor, priv: Tensor, live: Tensor, weight: float | Tensor | None = None) -> Tensor:
        """Eq. 4, divided by 1 + λ, of the live tubelets (B, m); `smooth`: averaged over neighbours."""
        weight = self.network.privacy_weight if weight is None else weight
        privacy_only = isinstance(weight, float) and math.isinf(weight)
        scores = -priv if privacy_only else (act - weight * priv) / (1 + weight)
        return average_neighbours(scores, live, self.grid) if self.network.smooth else scores

    def _prune(self, x: Tensor, selection: Selection) -> tuple[Tensor, Tensor]:
        """Tokens and live numbers without the dropped tubelets, whose features go into a fuse token."""
        first, count = self.tokens, selection.live.shape[1]
        tubelets = x[:, first : first + count]  # (B, m, D)
        kept = tubelets.gather(1, selection.kept.unsqueeze(2).expand(-1, -1, x.shape[2]))  # (B, k, D)
        live = selection.live.gather(1, selection.kept)
        parts = [x[:, :first], kept, x[:, first + count :]]
        if self.network.fusion:
            dropped = selection.act.scatter(1, selection.kept, 0.0)  # α_act of the dropped, 0 of the kept
            # Seven rows of zeros more: with a row alone, GPUs leave their matrix units for a kernel many times slower.
            rows = F.pad(dropped.unsqueeze(2), (0, 7)).to(x.dtype).transpose(1, 2)  # (B, 8, m)
            fused = torch.bmm(rows, tubelets)[:, :1]  # (B, 1, D), eq. 6
            if self.network.reference:  # from now on it competes with the tubelets
                parts.insert(2, fused)
                live = torch.cat([live, torch.full_like(live[:, :1], self.count)], 1)
            else:
                parts.append(fused)
        return torch.cat(parts, 1), live

    # ---- called by a masker

    @torch.inference_mode()
    def decide(self, clips: Tensor, keep: float | None = None, privacy_weight: float | None = None) -> Decision:
        """Which tubelets stay: (B, L, h, w)."""
        kept, scores = self.mask(clips, keep, privacy_weight)
        return Decision(kept.view(-1, *self.grid), scores.view(-1, *self.grid))

    def decode(self, output: DualCLSOutput) -> Tensor:
        """Tokens → (B, 3, T, H, W) in [0, 1], pruned tubelets black. An obfuscation: tokens have attended to what was
        pruned."""
        if self.decoder is None:
            raise UsageError("this network masks: train one with output: decode")
        pixels = self.decoder(self.norm(output.tokens)).sigmoid()  # (B, k, 3·t·p·p)
        last = output.selections[-1]
        live = last.live.gather(1, last.kept)
        full = pixels.new_zeros(len(pixels), self.count, pixels.shape[2])
        full = full.scatter(1, live.unsqueeze(2).expand_as(pixels), pixels)
        cells = full.view(-1, *self.grid, 3, *self.tubelet)  # (B, L, h, w, 3, t, p, p)
        video: Tensor = cells.permute(0, 4, 1, 5, 2, 6, 3, 7).reshape(-1, 3, self.frames, self.size, self.size)
        return video

    def about(self) -> dict[str, Any]:
        return asdict(self.network)


def select(live: Tensor, act: Tensor, priv: Tensor, scores: Tensor, keep: float) -> Selection:
    """Eq. 5."""
    # Unsorted: sorting is half of the cost, and attention does not depend on the order.
    kept = scores.detach().topk(kept_count(live.shape[1], keep), 1, sorted=False).indices
    return Selection(live, act, priv, scores, kept)


def final_decision(selections: list[Selection], count: int) -> tuple[Tensor, Tensor]:
    """(B, M) bool: kept to the end; (B, M) float: later selections above earlier ones, s decides within one."""
    first, last = selections[0].scores, selections[-1]
    scores = first.new_full((len(first), count + 1), -1.0, dtype=torch.float32)  # one more: for fuse tokens
    for number, selection in enumerate(selections):
        s = selection.scores.detach().float() * selection.scores.shape[1]  # about 1, whatever the number of tubelets
        scores = scores.scatter(1, selection.live, 2 * number + s / (1 + s.abs()))  # in (−1, 1), the order unchanged
    kept = as_mask(last.live.gather(1, last.kept), count + 1)
    return kept[:, :count], scores[:, :count]
