"""STPrivacy (Li et al., ICCV 2023): tubelets that the action does not need are dropped, the others are redrawn.

    tokens       x_1 … x_M, M = L segments · N places; no CLS         a picture ViT, its patches grown into tubelets
    eq. 1-6      z: how likely each token is retained; I drawn from it; Î ← Î ⊙ I     `token_retention`
    eq. 7        L_spars: a share α^m of each segment is left after stage m           `token_retention`
    eq. 8-10     masked self-attention: only itself attends to a dropped token      `masked_attention`
    eq. 11       pixels = sigmoid(W x + b) where Î is 1, black elsewhere              `STPrivacy.drawn_from`, `shown`
    eq. 12, 13   how it is trained                                                    `train`

The blocks are divided into quarters: there is a predictor before the second, third and fourth quarter, and the fourth
is the anonymization block. In training all tokens stay and Î masks them. In use the floor(n · α^m) most likely of n
tubelets, of a segment or of the clip, pass stage m, and the others are taken out: the same numbers, faster.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from vidveil.core.errors import RecipeError, UsageError
from vidveil.core.tubelets import grid
from vidveil.methods.masking.masker import Decision
from vidveil.methods.masking.network import MaskingNetwork
from vidveil.methods.stprivacy.masked_attention import MaskedAttention
from vidveil.methods.stprivacy.token_retention import Predictor, averages, sampled
from vidveil.models.layers.tubelet_projection import TubeletProjection
from vidveil.models.layers.tubelets import as_mask, over_pixels
from vidveil.models.recognizers.recognizer import Standardize
from vidveil.models.recognizers.resnet import IMAGENET_DEVIATION, IMAGENET_MEAN
from vidveil.models.recognizers.vit import MLP, ConvolvedTubelets

SIZES = {  # width, depth, heads, pixels a side of a tubelet
    "mini": (96, 8, 3, 8),
    "vit_ti": (192, 12, 3, 16),
    "vit_s": (384, 12, 6, 16),
    "vit_b": (768, 12, 12, 16),
}
"""`mini` is for two CPU cores and clips of 8 × 64 × 64; it cuts its tubelets with convolutions."""
STAGES = 3
"""M of eq. 7: predictors, each before another quarter of the blocks."""
SELECTS = ("clip", "segment")


@dataclass(frozen=True, kw_only=True)
class Network:
    """Everything that the network's shape and behaviour depend on."""

    size: str = "vit_s"
    frames: int = 16
    side: int = 112
    actions: int
    tubelet_frames: int = 2
    """δT."""
    alpha: float = 0.7
    """α: share of the live tubelets that each stage keeps. May be changed by call."""
    select: Literal["clip", "segment"] = "segment"
    """Whether tubelets compete with those of their segment (as released) or of the whole clip (as written). May be
    changed by call."""
    sparsify: bool = True
    """Whether tubelets are dropped; if not, α is 1 and there are no predictors."""
    anonymize: bool = True
    """Whether what stays is drawn anew; if not, it is shown as it was filmed."""

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise RecipeError(f"no network is called {self.size!r}; there are {', '.join(SIZES)}")
        if self.tubelet_frames not in (1, 2, 4):
            raise RecipeError(f"tubelet_frames is 1, 2 or 4, got {self.tubelet_frames}")
        if self.select not in SELECTS:
            raise RecipeError(f"select is {' or '.join(SELECTS)}, got {self.select!r}")
        if not 0 < self.alpha <= 1:
            raise RecipeError(f"alpha is a share in (0, 1], got {self.alpha:g}")
        if not self.sparsify and not self.anonymize:
            raise RecipeError("without sparsify and anonymize the video stays as it was filmed: leave one of them on")


class STPrivacyOutput(NamedTuple):
    action: Tensor
    """(B, A) logits of the network's own head."""
    decisions: list[Tensor]
    """Î_(1), Î_(2), Î_(3), each (B, L, N) of 0 and 1, in training with gradients; none where nothing is dropped."""
    pixels: Tensor
    """(B, 3, T, H, W) in [0, 1]: what would be shown if all were kept; black or filmed where tokens were taken out."""
    scores: Tensor
    """(B, M): higher for tubelets that were dropped later, and within a stage for those more likely to be retained."""

    @property
    def decision(self) -> Tensor | None:
        """(B, M): Î at the end."""
        return self.decisions[-1].flatten(1) if self.decisions else None


class Block(nn.Module):
    """timm's names, so that published weights load."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = MaskedAttention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = MLP(width)

    def forward(self, x: Tensor, decision: Tensor | None = None) -> Tensor:
        x = x + self.attn(self.norm1(x), decision)
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class Backbone(nn.Module):
    """Tubelets to tokens, and the blocks: of the anonymizer and of the recognizers of its pictures."""

    def __init__(self, network: Network, depth: int | None = None) -> None:
        super().__init__()
        self.network = network
        self.width, most, heads, side = SIZES[network.size]
        self.tubelet = (network.tubelet_frames, side, side)
        self.frames, self.size = network.frames, network.side
        self.grid = grid(network.frames, network.side, self.tubelet)  # L, h, w
        self.places = self.grid[1] * self.grid[2]  # N
        self.count = self.grid[0] * self.places  # M
        self.standardize = Standardize(IMAGENET_MEAN, IMAGENET_DEVIATION, 3)
        embed = ConvolvedTubelets if network.size == "mini" else TubeletProjection
        self.patch_embed = embed(3, self.tubelet, self.width)
        self.pos_embed = nn.Parameter(torch.zeros(1, self.places, self.width))
        self.time_embed = nn.Parameter(torch.zeros(1, self.grid[0], self.width))
        self.blocks = nn.ModuleList([Block(self.width, heads) for _ in range(depth or most)])
        self.norm = nn.LayerNorm(self.width, eps=1e-6)
        for parameter in (self.pos_embed, self.time_embed):
            nn.init.trunc_normal_(parameter, std=0.02)
        for module in self.blocks.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def patches(self, clip: Tensor) -> Tensor:
        """(B, 3, T, H, W) standardized → (B, L, N, D)."""
        found: Tensor = self.patch_embed(clip)
        return found

    def embed(self, clip: Tensor) -> Tensor:
        """(B, 3, T, H, W) in [0, 1] → (B, M, D)."""
        if clip.shape[1:] != (3, self.frames, self.size, self.size):
            built, given = f"3 × {self.frames} × {self.size} × {self.size}", " × ".join(map(str, clip.shape[1:]))
            raise UsageError(f"this network was built for clips of {built}, not {given}")
        patches = self.patches(self.standardize(clip))
        x = (patches + self.pos_embed[:, None] + self.time_embed[:, :, None]).flatten(1, 2)  # (B, M, D)
        return x.to(patches.dtype)  # the type of matrix products: blocks then have half as much to read and to write


class STPrivacy(Backbone, MaskingNetwork):
    tubelet: tuple[int, int, int]

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.own = {"keep": network.alpha} if network.sparsify else {}
        quarter = len(self.blocks) // (STAGES + 1)
        self.stages = tuple(quarter * m for m in range(1, STAGES + 1)) if network.sparsify else ()
        """Numbers of the blocks, from 0, before which a predictor stands."""
        self.predictors = nn.ModuleList([Predictor(self.width) for _ in self.stages])
        self.action_head = nn.Linear(self.width, network.actions)
        pixels = 3 * self.tubelet[0] * self.tubelet[1] * self.tubelet[2]
        self.decoder = nn.Linear(self.width, pixels) if network.anonymize else None

    def forward(self, clip: Tensor, alpha: float | None = None, select: str | None = None) -> STPrivacyOutput:
        """In training `masked`, at random; else `pruned`."""
        return self.masked(clip) if self.training else self.pruned(clip, alpha, select)

    def masked(self, clip: Tensor, chosen: Sequence[Tensor] | None = None) -> STPrivacyOutput:
        """All tokens pass all blocks. `chosen` are three Î_(m), (B, L, N), used instead of drawing them at random."""
        x = self.embed(clip)
        segment = self._segments(torch.arange(self.count, device=x.device)).expand(len(x), -1)  # (B, M)
        decision: Tensor | None = None
        decisions: list[Tensor] = []
        scores = torch.zeros(len(x), self.count, device=x.device)
        for number, block in enumerate(self.blocks):
            if number in self.stages:
                stage = len(decisions)
                log_z = self.predictors[stage](x, segment, self.grid[0], decision)
                now = stage + log_z[..., 0].detach().exp()
                scores = now if decision is None else torch.where(decision > 0.5, now, scores)
                if chosen is not None:
                    decision = chosen[stage].flatten(1)
                else:
                    decision = sampled(log_z) if decision is None else decision * sampled(log_z)
                decisions.append(decision.view(len(x), self.grid[0], self.places))
            x = block(x, decision)
        action = self.action_head(self.norm(averages(x, None, 1, decision)[:, 0].to(x.dtype)))
        pixels = clip if self.decoder is None else self.as_video(self.drawn_from(x))
        return STPrivacyOutput(action, decisions, pixels, scores)

    def pruned(self, clip: Tensor, alpha: float | None = None, select: str | None = None) -> STPrivacyOutput:
        """Dropped tokens are taken out. Nothing is random."""
        x, live, kept, scores = self._run_blocks(clip, alpha, select)
        action = self.action_head(self.norm(x.mean(1)))
        pixels = clip
        if self.decoder is not None:
            drawn = self.drawn_from(x)  # (B, k, 3·t·p·p)
            full = drawn.new_zeros(len(drawn), self.count, drawn.shape[2])
            pixels = self.as_video(full.scatter(1, live.unsqueeze(2).expand_as(drawn), drawn))
        decisions = [mask.view(len(x), self.grid[0], self.places).float() for mask in kept]
        return STPrivacyOutput(action, decisions, pixels, scores)

    def _run_blocks(
        self, clip: Tensor, alpha: float | None, select: str | None, *, upto_mask: bool = False
    ) -> tuple[Tensor, Tensor, list[Tensor], Tensor]:
        """Tokens at the end (B, k, D), their tubelets (B, k), kept after each stage (B, M) bool, scores (B, M)."""
        alpha, select = self._knobs(alpha, select)
        groups = self.grid[0] if select == "segment" else 1
        x = self.embed(clip)
        live = torch.arange(self.count, device=x.device).expand(len(x), -1)  # (B, m), segment by segment
        scores = torch.zeros(len(x), self.count, device=x.device)
        kept: list[Tensor] = []
        for number, block in enumerate(self.blocks):
            if number in self.stages:
                log_z = self.predictors[len(kept)](x, self._segments(live), self.grid[0])  # (B, m, 2)
                scores = scores.scatter(1, live, len(kept) + log_z[..., 0].exp())
                odds = (log_z[..., 0] - log_z[..., 1]).view(len(x), groups, -1)  # the order of z, finer near 1
                best = odds.topk(stage_count(self.count // groups, alpha, len(kept) + 1), 2, sorted=False).indices
                first = torch.arange(groups, device=x.device).view(1, -1, 1) * odds.shape[2]
                best = (best + first).flatten(1)  # (B, k): positions in `live`
                x, live = x.gather(1, best.unsqueeze(2).expand(-1, -1, x.shape[2])), live.gather(1, best)
                kept.append(as_mask(live, self.count))
                if upto_mask and len(kept) == len(self.stages):
                    break
            x = block(x)
        return x, live, kept, scores

    def _knobs(self, alpha: float | None, select: str | None) -> tuple[float, str]:
        if not self.network.sparsify and (alpha is not None or select is not None):
            raise UsageError("this network drops no tubelets (sparsify: false): leave out keep")
        alpha = self.network.alpha if alpha is None else alpha
        select = self.network.select if select is None else select
        if not 0 < alpha <= 1 or select not in SELECTS:
            raise UsageError(f"keep is a share in (0, 1] and select is {' or '.join(SELECTS)}: {alpha:g}, {select!r}")
        return alpha, select

    def _segments(self, live: Tensor) -> Tensor:
        return live.div(self.places, rounding_mode="floor")

    def drawn_from(self, x: Tensor) -> Tensor:
        """Eq. 11: (B, k, D) → (B, k, 3·t·p·p) in [0, 1]."""
        assert self.decoder is not None
        pixels: Tensor = self.decoder(self.norm(x)).float().sigmoid()
        return pixels

    def as_video(self, pixels: Tensor) -> Tensor:
        """(B, M, 3·t·p·p) → (B, 3, T, H, W)."""
        cells = pixels.view(-1, *self.grid, 3, *self.tubelet)  # (B, L, h, w, 3, t, p, p)
        return cells.permute(0, 4, 1, 5, 2, 6, 3, 7).reshape(-1, 3, self.frames, self.size, self.size)

    def shown(self, output: STPrivacyOutput) -> Tensor:
        """(B, 3, T, H, W): what is kept, the rest black. Gradients reach the pixels and Î."""
        if output.decision is None:
            return output.pixels
        return output.pixels * over_pixels(output.decision.view(-1, *self.grid), self.tubelet).unsqueeze(1)

    # ---- called by an anonymizer

    @torch.inference_mode()
    def decide(self, clips: Tensor, keep: float | None = None, privacy_weight: float | None = None) -> Decision:
        """Which tubelets stay: (B, L, h, w). `keep` is α. The anonymization block changes nothing and is skipped."""
        refuse_privacy_weight(privacy_weight)
        _, _, kept, scores = self._run_blocks(clips, keep, None, upto_mask=True)
        last = kept[-1] if kept else torch.ones_like(scores, dtype=torch.bool)
        return Decision(last.view(-1, *self.grid), scores.view(-1, *self.grid))

    @torch.inference_mode()
    def draw(self, clips: Tensor, alpha: float | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """What is shown (B, 3, T, H, W), which tubelets stay (B, L, h, w) bool, and their scores (B, L, h, w)."""
        output = self.pruned(clips, alpha)
        kept = torch.ones_like(output.scores) if output.decision is None else output.decision
        return self.shown(output), kept.view(-1, *self.grid) > 0.5, output.scores.view(-1, *self.grid)

    def about(self) -> dict[str, Any]:
        return asdict(self.network)


def stage_count(count: int, alpha: float, stage: int) -> int:
    """floor(n · α^m), at least 1: of 49 at 0.7 there stay 34, 24, 16."""
    return max(1, math.floor(count * alpha**stage + 1e-9))


def refuse_privacy_weight(privacy_weight: float | None) -> None:
    if privacy_weight is not None:
        raise UsageError("stprivacy has no privacy attention to weigh: leave out privacy_weight")
