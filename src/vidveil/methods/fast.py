"""A trained dual-CLS network made fast on an accelerator: weights in bfloat16, one compiled graph.

    scorer = CompiledScorer(network)           decides as the network does, several times as fast
    TubeletMasker("ward", scorer, ...)

The first clips wait for the compiler, about half a minute; so does each new share `keep`. The privacy weight may change
with every call. How fast, and how much bfloat16 changes: benchmarks/anonymizer_speed.py.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.methods.dual_cls import Block, DualCLS
from vidveil.methods.masker import Decision
from vidveil.recognizers.vit import MLP

ALONE = 1e9  # a privacy weight beside which the action token no longer counts


def in_bfloat16(network: DualCLS) -> DualCLS:
    """A copy for inference whose weights and tokens are bfloat16. Pixels are standardized in float32 before."""
    fast = deepcopy(network).eval().to(torch.bfloat16)
    for block in fast.blocks:
        assert isinstance(block, Block)
        block.mlp = OneKernelMLP(block.mlp)
    fast.standardize.float()
    fast.standardize.mean, fast.standardize.deviation = network.standardize.mean, network.standardize.deviation
    return fast


class OneKernelMLP(MLP):
    """An MLP whose GELU is computed by the matrix product before it, in bfloat16 on GPUs and without gradients.

    A kernel of its own reads and writes the widest tensor of a block. The product's GELU is the one by tanh, at most
    0.0005 from the exact one, where bfloat16 rounds a 1 to 0.004.
    """

    def __init__(self, mlp: MLP) -> None:
        nn.Module.__init__(self)
        self.fc1, self.fc2 = mlp.fc1, mlp.fc2

    def forward(self, x: Tensor) -> Tensor:
        if x.is_cuda and x.dtype == torch.bfloat16 and not torch.is_grad_enabled():
            inner = product_with_gelu(x, self.fc1.weight, self.fc1.bias)
        else:
            inner = F.gelu(self.fc1(x))
        out: Tensor = self.fc2(inner)
        return out


def product_with_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """gelu(x Wᵀ + b): (B, N, D) → (B, N, E)."""
    rows = torch.ops.aten._addmm_activation(bias, x.flatten(0, 1), weight.t(), use_gelu=True)
    out: Tensor = rows.view(*x.shape[:2], -1)
    return out


class CompiledScorer:
    """Decides for clips in batches of one fixed size, since each size costs a compilation."""

    def __init__(self, network: DualCLS, *, batch: int = 16, **options: Any) -> None:
        """`options` are those of torch.compile."""
        self.network = in_bfloat16(network)
        self.frames, self.size, self.tubelet = network.frames, network.size, network.tubelet
        self.batch = batch
        self._mask: Callable[..., tuple[Tensor, Tensor]] = torch.compile(
            self.network.mask, fullgraph=True, dynamic=False, **options
        )

    def decide(self, clips: Tensor, keep: float | None = None, privacy_weight: float | None = None) -> Decision:
        """Which tubelets stay: (B, L, h, w)."""
        settings = self.network.network
        keep = settings.keep if keep is None else keep
        weight = settings.privacy_weight if privacy_weight is None else privacy_weight
        as_tensor = torch.tensor(min(weight, ALONE), device=clips.device)
        kept, scores = [], []
        with torch.no_grad():
            for start in range(0, len(clips), self.batch):
                part = clips[start : start + self.batch]
                missing = self.batch - len(part)
                filled = torch.cat([part, part[-1:].expand(missing, -1, -1, -1, -1)]) if missing else part
                now_kept, now_scores = self._mask(filled, keep, as_tensor)
                kept.append(now_kept[: len(part)].clone())  # the compiler may use its memory again
                scores.append(now_scores[: len(part)].clone())
        grid = self.network.grid
        return Decision(torch.cat(kept).view(-1, *grid), torch.cat(scores).view(-1, *grid))
