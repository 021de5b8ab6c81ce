"""Which tokens of a video are retained, and how many of a segment (Li et al., STPrivacy, ICCV 2023).

    eq. 1     x_local  = MLP(x)                                        (L, N, D/3) of L segments with N tokens each
    eq. 2     x_spatio = the mean of MLP(x) over the live tokens of the segment, for each of them
    eq. 3     x_spatem = the same over the clip
    eq. 4     x_spars  = [x_local, x_spatio, x_spatem]
    eq. 5     z = softmax(MLP(x_spars))                                (L, N, 2): retained, dropped
    eq. 6     I = Gumbel-softmax(z) of 0 and 1, and Î ← Î ⊙ I
    eq. 7     L_spars = 1/(M·L) Σ_m Σ_l (1/N Σ_n Î_(m)(l, n) − α^m)²

A token is live where Î is 1. The MLPs of eq. 1 to 3 are a linear layer and a GELU each, behind one norm. Where tokens
were taken out, m of L · N are given, with the number of each one's segment.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Predictor(nn.Module):
    """Which tokens a stage retains: eq. 1 to 5."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.mix = nn.Linear(width, width)  # the three MLPs of eq. 1 to 3 side by side
        self.mlp = nn.Sequential(
            nn.Linear(width, width // 2), nn.GELU(), nn.Linear(width // 2, width // 4), nn.GELU(),
            nn.Linear(width // 4, 2),
        )  # fmt: skip

    def forward(self, x: Tensor, segment: Tensor, segments: int, decision: Tensor | None = None) -> Tensor:
        """(B, m, D) tokens, their segments' numbers (B, m) of L, Î (B, m) → log z (B, m, 2): retained, dropped."""
        local, spatio, spatem = F.gelu(self.mix(self.norm(x))).chunk(3, -1)  # each (B, m, D/3)
        of_segment, of_clip = averages(spatio, segment, segments, decision), averages(spatem, None, 1, decision)
        evidence = torch.cat([local, of_segment.to(local.dtype), of_clip.to(local.dtype)], -1)  # (B, m, D)
        return F.log_softmax(self.mlp(evidence).float(), -1)


def averages(x: Tensor, segment: Tensor | None, segments: int, decision: Tensor | None) -> Tensor:
    """Expd(Avg(x, Î)): (B, m, D), numbers of segments (B, m) or None for one → each token's mean, (B, m, D).

    Of those that are live, with gradients to Î. Where nobody is, the mean is 0.
    """
    live = torch.ones(x.shape[:2], device=x.device) if decision is None else decision
    if segment is None:
        total = (x * live.unsqueeze(2)).sum(1, keepdim=True)  # (B, 1, D)
        return (total / live.sum(1).clamp(min=1)[:, None, None]).expand_as(x)
    member = (segment.unsqueeze(2) == torch.arange(segments, device=x.device)).to(live.dtype)  # (B, m, L)
    counted = member * live.unsqueeze(2)
    means = counted.transpose(1, 2) @ x.to(live.dtype) / counted.sum(1).clamp(min=1).unsqueeze(2)  # (B, L, D)
    return member @ means


def sampled(log_z: Tensor) -> Tensor:
    """Eq. 6, hard and τ = 1: (..., 2) → (...) of 0 and 1; on the way back the softmax."""
    gumbel = -torch.empty_like(log_z).exponential_().log()
    soft = (log_z + gumbel).softmax(-1)[..., 0]
    return (soft > 0.5).to(soft.dtype) + (soft - soft.detach())


def sparsity(decisions: Sequence[Tensor], alpha: float) -> Tensor:
    """Eq. 7, and the mean over clips: each (B, L, N) → a number."""
    misses = [(each.mean(2) - alpha**m).square().mean() for m, each in enumerate(decisions, 1)]
    return torch.stack(misses).mean()
