"""Erasing what moving clips share with still ones, and keeping what separates the classes of the task.

A static clip is a frame that stands still: its features y depend on who and what is seen, and not on what is done. In
directions in which features x of moving clips correlate with them, they encode what can be seen without any motion.

    x = Σ^(−½) (z − μ),  y likewise           nearly whitened: Σ = covariance + D/n · mean variance · 1
    T                                         directions in which x differs from class to class of the task: kept
    (1 − T Tᵀ) E[x yᵀ] = U diag(ρ) Vᵀ         the others, by canonical correlation ρ with still clips of the same video
    ẑ = μ + Σ^½ (1 − U_k U_kᵀ) Σ^(−½) (z − μ)         the k largest are lost

It is a projection: with ẑ, the map and any number of pairs, no more of the lost directions can be predicted than the
others correlate with them. (An invertible adapter takes nothing away from an attacker who learns to read it.) No labels
of people are needed. What separates the classes of the task is kept, also where it identifies people; with several
tasks T spans what separates the classes of any of them. The idea of erasing by a projection of whitened features is
LEACE's (Belrose et al. 2023), which erases a label; here it is what stands still.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from vidveil.core.errors import DataError

FLOOR = 1e-6
"""Variances below this share of the mean one are noise of arithmetic."""


def erasing(
    clips: Tensor,
    static: Tensor,
    classes: Tensor | None,
    share: float,
    *,
    ridge: float = 0.0,
    also: Sequence[Tensor] = (),
) -> tuple[Tensor, Tensor]:
    """The mean (D,) and the map (D, D), for ẑ = μ + (z − μ) @ map.

    Both in 64 bits, and to be used in as many: rounded to 32, the map lets through a ten-millionth of what it is to
    lose, in directions in which nothing else is left. Only the rounding of ẑ would hide that, and not always all of it.

    Args:
        clips: (n, D) of training videos.
        static: (n, D) of the same videos.
        classes: (n,) of the task, from 0 on, −1 where unknown; None: nothing is kept on purpose.
        share: of the directions that are not kept on purpose, how many are lost.
        ridge: mean variances that are added to each. D/n for n videos is as much as so few of them leave unknown; with
            0, what is left is not correlated at all with what is lost, on these clips.
        also: (C, D) each, means of the classes of further tasks, of whatever clips: what separates them is kept, too.
    """
    if len(clips) < 2 or clips.shape != static.shape:
        raise DataError(f"erasing needs as many static clips as clips: {tuple(static.shape)} and {tuple(clips.shape)}")
    z, y = clips.double(), static.double()
    mean = z.mean(0)
    z, y = z - mean, y - y.mean(0)
    # From here on everything is (D, D): accelerators are slow at taking such matrices apart.
    whiten, colour = roots(covariance(z, ridge).cpu())
    together = whiten @ (z.T @ y / len(z)).cpu() @ roots(covariance(y, ridge).cpu())[0]  # E[x yᵀ]
    one = rest = torch.eye(len(whiten), dtype=whiten.dtype)
    means = [means_of(z, classes)] if classes is not None and (classes >= 0).any() else []
    means += [own.to(mean) - mean for own in also]
    if means:
        kept = class_directions(*(own.cpu() @ whiten for own in means))
        # an orthonormal basis of the others: what is lost is among these, also where few static clips order them
        rest = torch.linalg.svd(kept).U[:, kept.shape[1] :]  # (D, R)
    lost = rest @ torch.linalg.svd(rest.T @ together).U[:, : round(share * rest.shape[1])]  # (D, k)
    return mean, (whiten @ (one - lost @ lost.T) @ colour).to(mean.device)


def means_of(x: Tensor, classes: Tensor) -> Tensor:
    """(C, D), of each class that is known."""
    return torch.stack([x[classes == number].mean(0) for number in sorted(set(classes[classes >= 0].tolist()))])


def class_directions(*means: Tensor) -> Tensor:
    """(C, D) → (D, C − 1): orthonormal directions in which the means of classes differ, of all tasks together."""
    apart = torch.cat([own - own.mean(0) for own in means])
    _, strengths, directions = torch.linalg.svd(apart, full_matrices=False)
    kept: Tensor = directions[strengths > 1e-6 * strengths[0]].T
    return kept


def covariance(centred: Tensor, ridge: float = 0.0) -> Tensor:
    """With a share of the mean variance added along all axes.

    Small variances of few videos are estimated badly, and whitening enlarges them: without this, the directions of
    classes are wrong. With much of it, what is left correlates with what is lost, and predicts it.
    """
    found = centred.T @ centred / len(centred)
    return found + ridge * found.diagonal().mean() * torch.eye(len(found), dtype=found.dtype, device=found.device)


def roots(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Σ^(−½) and Σ^½."""
    values, axes = torch.linalg.eigh(symmetric)
    values = values.clamp(min=max(float(values.mean()) * FLOOR, torch.finfo(values.dtype).tiny))  # all may be alike
    return (axes / values.sqrt()) @ axes.T, (axes * values.sqrt()) @ axes.T
