"""Erasing what moving clips share with still ones, and keeping what tells the task.

A static clip is a frame that stands still: its features y know who and what is seen, and nothing of what is done. In
whatever direction features x of moving clips go along with them, they tell what can be seen without any motion.

    x = Σ^(−½) (z − μ),  y likewise           whitened: all directions of the features count alike
    T                                         directions in which x differs from class to class of the task: kept
    (1 − T Tᵀ) E[x yᵀ] = U diag(ρ) Vᵀ         the others, by canonical correlation ρ with still clips of the same video
    ẑ = μ + Σ^½ (1 − U_k U_kᵀ) Σ^(−½) (z − μ)         the k largest are lost

It is a projection: what it takes away is nowhere in ẑ, and no attacker gets it back, whatever he knows. (An invertible
adapter takes nothing away from whoever learns to read it.) No label of anybody is needed. Of all linear maps that lose
these directions, this one moves whitened features least (compare LEACE, Belrose et al. 2023).
"""

import torch
from torch import Tensor

from vidveil.errors import DataError

FLOOR = 1e-6
"""Variances below this share of the mean one are noise of arithmetic."""


def erasing(clips: Tensor, static: Tensor, classes: Tensor | None, share: float) -> tuple[Tensor, Tensor]:
    """The mean (D,) and the map (D, D), for ẑ = μ + (z − μ) @ map.

    Args:
        clips: (n, D) of training videos.
        static: (n, D) of the same videos.
        classes: (n,) of the task, from 0 on, −1 where unknown; None: nothing is kept on purpose.
        share: of the directions that are not kept on purpose, how many are lost.
    """
    if len(clips) < 2 or clips.shape != static.shape:
        raise DataError(f"erasing needs as many static clips as clips: {tuple(static.shape)} and {tuple(clips.shape)}")
    z, y = clips.double(), static.double()
    mean = z.mean(0)
    whiten, colour = roots(covariance(z - mean))
    x = (z - mean) @ whiten
    other = (y - y.mean(0)) @ roots(covariance(y - y.mean(0)))[0]
    rest = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
    if classes is not None and (classes >= 0).any():
        kept = telling(x, classes)
        rest = rest - kept @ kept.T
    count = round(share * int(torch.linalg.matrix_rank(rest, tol=0.5)))
    lost = torch.linalg.svd(rest @ (x.T @ other) / len(x)).U[:, :count]  # (D, k)
    return mean.float(), (
        whiten @ (torch.eye(len(lost), dtype=z.dtype, device=z.device) - lost @ lost.T) @ colour
    ).float()


def telling(x: Tensor, classes: Tensor) -> Tensor:
    """(D, C − 1): orthonormal directions in which the means of classes lie apart."""
    found = torch.stack([x[classes == number].mean(0) for number in sorted(set(classes[classes >= 0].tolist()))])
    _, strengths, directions = torch.linalg.svd(found - found.mean(0), full_matrices=False)
    told: Tensor = directions[strengths > 1e-6 * strengths[0]].T
    return told


def covariance(centred: Tensor) -> Tensor:
    """Shrunk towards a ball by the share of Ledoit and Wolf: of fewer clips than channels it is known badly."""
    from vidveil.evaluation.projections import shrunk_covariance

    return torch.from_numpy(shrunk_covariance(centred.cpu().numpy())).to(centred.device)


def roots(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Σ^(−½) and Σ^½."""
    values, axes = torch.linalg.eigh(symmetric)
    values = values.clamp(min=float(values.mean()) * FLOOR)
    return (axes / values.sqrt()) @ axes.T, (axes * values.sqrt()) @ axes.T
