"""Attention among few tokens of few channels, of many clips.

    p = softmax_j(qᵢ · kⱼ / √d),   oᵢ = Σⱼ pᵢⱼ vⱼ

Kernels for long sequences spend most of their time on getting started where a clip has eight tokens of three channels.
Here clips lie along the last axis, so that each of five steps is one long row of numbers.
"""

from torch import Tensor


def attend_side_by_side(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(tokens, heads, d, B) each → (tokens, heads, d, B)."""
    scores = (q[:, None] * k[None]).sum(3) * q.shape[2] ** -0.5  # (i, j, heads, B)
    mixed: Tensor = (scores.softmax(1).unsqueeze(3) * v[None]).sum(1)
    return mixed
