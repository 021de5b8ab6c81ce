"""Spaces in which an attacker compares embeddings: as they are, whitened, or by what separates training people.

Cosine in a network's own space is dominated by whatever varies most, often the action. An attacker who has training
clips does better, and needs no test label for it:

    whitening     z = (x − μ) V Λ^(−½)        Σ = V Λ Vᵀ is the covariance of training clips: all directions count alike
    LDA           z = (x − μ) Σ_w^(−½) U      Σ_w is the covariance within people, U the directions in which their means
                                              then lie farthest apart

Both are fitted on training embeddings only; anything learned from test clips would be a peek. With more dimensions than
clips covariances are singular, so both first keep the directions in which training clips vary at all, and shrink Σ_w
towards a ball by the share of Ledoit and Wolf (2004), which is the best guess in mean square and needs no tuning.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import UsageError

Floats = NDArray[np.float64]
NEGLIGIBLE = 1e-5
"""Directions whose spread is below this share of the embeddings' own size are noise of arithmetic, and are dropped."""


@dataclass(frozen=True, eq=False)
class Projection:
    """z = (x − mean) matrix. (N, D) -> (N, K); K is 0 if training embeddings were all the same."""

    mean: Floats
    """(D,)"""
    matrix: Floats
    """(D, K)"""

    def __call__(self, embeddings: ArrayLike) -> Floats:
        vectors = np.asarray(embeddings, dtype=np.float64)
        if vectors.ndim != 2 or vectors.shape[1] != len(self.mean):
            raise UsageError(f"this projection takes embeddings (clips, {len(self.mean)}), got {vectors.shape}")
        result: Floats = (vectors - self.mean) @ self.matrix
        return result


def whitening(train: ArrayLike) -> Projection:
    """The largest principal components of training embeddings (N, D), each with variance 1.

    As many as are known with some certainty: half the number of training clips, at most. The smallest variances of a
    small sample are far too small, and dividing by them blows up noise.
    """
    vectors = _training(train)
    mean, axes, variances = _spread(vectors)
    keep = min(len(variances), max(1, len(vectors) // 2))
    return Projection(mean, axes[:, :keep] / np.sqrt(variances[:keep]))


def lda(train: ArrayLike, person: ArrayLike) -> Projection:
    """Linear discriminants of training people: embeddings (N, D), person (N,); people who are seen once help little,
    but do no harm. At most P − 1 directions for P people. Clips with person −1 are left out."""
    vectors, names = _training(train), np.asarray(person)
    if names.shape != (len(vectors),):
        raise UsageError(f"{len(vectors)} training embeddings, but people are {names.shape}")
    known = names != -1 if names.dtype.kind in "iu" else np.ones(len(names), dtype=np.bool_)
    people, row = np.unique(names[known], return_inverse=True)
    if len(people) < 2:
        raise UsageError("discriminants need training clips of at least two people")
    mean, axes, variances = _spread(vectors[known])
    if not len(variances):
        return Projection(mean, axes)
    reduced = (vectors[known] - mean) @ axes  # (N, K)
    sizes = np.bincount(row).astype(np.float64)  # (P,)
    centres = np.zeros((len(people), reduced.shape[1]))
    np.add.at(centres, row, reduced)
    centres /= sizes[:, None]
    inner = np.linalg.eigh(shrunk_covariance(reduced - centres[row]))
    level = max(float(inner.eigenvalues[-1]), float(variances[0]) * NEGLIGIBLE**2)
    sphere = inner.eigenvectors / np.sqrt(np.maximum(inner.eigenvalues, level * 1e-9))  # Σ_w becomes 1
    spread = (centres @ sphere) * np.sqrt(sizes / sizes.sum())[:, None]  # (P, K)
    _, strengths, directions = np.linalg.svd(spread, full_matrices=False)
    keep = min(len(people) - 1, int((strengths > strengths[0] * 1e-9).sum()))
    return Projection(mean, axes @ sphere @ directions[:keep].T)


def shrunk_covariance(centred: Floats) -> Floats:
    """(1 − δ) S + δ tr(S)/K · 1 with Ledoit and Wolf's δ. Rows of `centred` (N, K) have mean 0."""
    count, width = centred.shape
    sample = centred.T @ centred / count
    level = np.trace(sample) / width
    distance = (sample**2).sum() - width * level**2  # ‖S − level · 1‖²
    squares = (centred**2).sum(axis=1)
    noise = ((squares**2).mean() - (sample**2).sum()) / count  # mean ‖x xᵀ − S‖² / N
    share = min(1.0, max(0.0, noise / distance)) if distance > 0 else 1.0
    shrunk: Floats = (1 - share) * sample + share * level * np.eye(width)
    return shrunk


def _spread(vectors: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean (D,), axes (D, K) along which clips vary, and the variances (K,), largest first."""
    mean = vectors.mean(axis=0)
    centred = vectors - mean
    wide = centred.shape[1] > len(centred)  # then the products of clips are the smaller matrix, with the same variances
    variances, axes = np.linalg.eigh((centred @ centred.T if wide else centred.T @ centred) / len(centred))
    size = float((vectors**2).sum(axis=1).mean())
    keep = np.flatnonzero(variances > max(size * NEGLIGIBLE**2, float(variances[-1]) * 1e-12))[::-1]
    variances, axes = variances[keep], axes[:, keep]
    if wide:
        axes = centred.T @ (axes / np.sqrt(len(centred) * variances))
    return mean, axes, variances


def _training(train: ArrayLike) -> Floats:
    vectors = np.asarray(train, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) < 2:
        raise UsageError(f"at least two training embeddings (clips, width) are needed, got {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise UsageError("some training embeddings are not finite; did training diverge?")
    return vectors
