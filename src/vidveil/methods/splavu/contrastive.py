"""NT-Xent: which of 2B vectors belongs to which (Chen et al. 2020, "A Simple Framework for Contrastive Learning").

    ℓ(i, j) = − log exp(sim(z_i, z_j)/τ) / Σ_{k ≠ i} exp(sim(z_i, z_k)/τ)        sim: cosine; mean over all 2B vectors

Who minimizes it makes two views of the same thing alike. A method that hides maximizes it, up to what knowing nothing
gives, log(2B − 1): beyond that, two views of the same thing are made opposites, and opposites can be found as easily.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def nt_xent(first: Tensor, second: Tensor, temperature: float = 0.1) -> Tensor:
    """(B, D), (B, D): the i-th of both belong together. → a scalar."""
    vectors = F.normalize(torch.cat([first, second]).float(), dim=1)  # (2B, D)
    similar = vectors @ vectors.T / temperature  # (2B, 2B)
    itself = torch.eye(len(similar), dtype=torch.bool, device=similar.device)
    similar = similar.masked_fill(itself, float("-inf"))
    partner = torch.arange(len(similar), device=similar.device).roll(len(first))
    return F.cross_entropy(similar, partner)


def chance(batch: int) -> float:
    """What NT-Xent is where every other vector is as near as the partner."""
    return math.log(2 * batch - 1)
