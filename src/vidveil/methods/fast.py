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
from torch import Tensor

from vidveil.methods.dual_cls import DualCLS
from vidveil.methods.masker import Decision

ALONE = 1e9  # a privacy weight beside which the action token no longer counts


def in_bfloat16(network: DualCLS) -> DualCLS:
    """A copy for inference whose weights and tokens are bfloat16. Pixels are standardized in float32 before."""
    fast = deepcopy(network).eval().to(torch.bfloat16)
    fast.standardize.float()
    fast.standardize.mean, fast.standardize.deviation = network.standardize.mean, network.standardize.deviation
    return fast


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
