"""Attention among few tokens of few channels, of many clips: as fast as its arithmetic on a CPU.

    p = softmax_j(qᵢ · kⱼ / √d),   oᵢ = Σⱼ pᵢⱼ vⱼ

Kernels for long sequences spend most of their time on getting started where a clip has eight tokens of three channels.
Here clips lie along the last axis, so each step is a long row of numbers: d products for the scores, one for each token
for the sums. Nothing is learned through it: steps are done in place.
"""

import torch
from torch import Tensor


@torch.no_grad()
def attend_side_by_side(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(tokens, heads, d, B) each → (tokens, heads, d, B)."""
    scores = q[:, None, :, 0] * k[None, :, :, 0]  # (i, j, heads, B)
    for channel in range(1, q.shape[2]):
        scores.addcmul_(q[:, None, :, channel], k[None, :, :, channel])
    scores.mul_(q.shape[2] ** -0.5)
    scores.sub_(scores.amax(1, keepdim=True)).exp_()
    mixed = scores[:, 0, :, None] * v[None, 0]  # (i, heads, d, B)
    for token in range(1, len(v)):
        mixed.addcmul_(scores[:, token, :, None], v[None, token])
    return mixed.div_(scores.sum(1)[:, :, None])
