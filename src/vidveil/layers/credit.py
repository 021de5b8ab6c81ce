"""Credit: what each tubelet adds to what a network can tell, in random company (amortised Shapley values).

    S                 a random set of tubelets; the others are black
    v(S)              log-probability of the right answer by a network that has learned to read such clips
    v(S) ≈ b + Σ_{i ∈ S} φ_i(clip)            least squares over clips and sets: φ_i is what tubelet i adds
    t_i = max(φ_i, 0) / Σ max(φ, 0)           where in the clip that is: the target of an attention map

A gradient through a mask says what a pixel would change now, given all others, and with a person half hidden that is
next to nothing. Credit is given over all companies: every tubelet that tells something has its share, however much
others tell. (FastSHAP, Jethani et al. 2022, trains an explainer of pictures this way.)
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Creditor(nn.Module):
    """(B, 3, T, H, W) → φ (B, M, K): K questions, the credit of each tubelet for each.

    `unseen` is v(∅) of each question, for a start: the log-probability of a guess.
    """

    def __init__(self, embed: nn.Module, width: int, grid: tuple[int, int, int], unseen: Sequence[float]) -> None:
        super().__init__()
        self.embed, self.grid = embed, grid
        self.around = nn.Sequential(
            nn.GroupNorm(1, width), nn.Conv3d(width, width, 3, padding=1), nn.GELU(),
            nn.GroupNorm(1, width), nn.Conv3d(width, width, 3, padding=1), nn.GELU(),
        )  # fmt: skip
        self.head = nn.Linear(width, len(unseen))
        self.empty = nn.Parameter(torch.tensor(list(unseen)))  # b
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, clip: Tensor) -> Tensor:
        x = self.embed(clip).unflatten(2, self.grid[1:]).permute(0, 4, 1, 2, 3)  # (B, D, L, h, w)
        credit: Tensor = self.head((x + self.around(x)).flatten(2).transpose(1, 2))
        return credit

    def miss(self, credit: Tensor, shown: Tensor, values: Tensor) -> Tensor:
        """How far the credits of what was shown (B, M) are from the values (B, K) that it had."""
        told = self.empty + (credit.float() * shown.unsqueeze(2)).sum(1) / shown.shape[1] * 20
        return F.smooth_l1_loss(told, values.detach().float())


def random_company(count: int, clips: int, low: float, high: float, device: torch.device) -> Tensor:
    """(B, M) of 0 and 1: of each clip a random share of the tubelets, between `low` and `high`."""
    share = low + (high - low) * torch.rand(clips, 1, device=device)
    order = torch.rand(clips, count, device=device).argsort(1).argsort(1)
    return (order < (share * count).ceil()).float()


def where(credit: Tensor) -> Tensor:
    """(B, M) → shares of the clip's positive credit, with the sum 1."""
    gained = credit.float().clamp(min=0)
    return gained / gained.sum(1, keepdim=True).clamp(min=1e-9)


def taught(attention: Tensor, target: Tensor, live: Tensor) -> Tensor:
    """Cross-entropy of an attention map (B, m) over live tubelets to the target (B, M) among them."""
    wanted = F.pad(target, (0, 1)).gather(1, live)  # one more: fuse tokens have no place
    wanted = wanted / wanted.sum(1, keepdim=True).clamp(min=1e-9)
    return -(wanted * attention.clamp(min=1e-9).log()).sum(1).mean()
