"""How much of identity a mask hides, and how much of the action it keeps, where ground truth is known.

    identity_hidden    share of the pixels of identity alone that are hidden
    action_kept        share of the pixels of the action (and maybe identity, too) that are kept
    tubelets_kept      share of all tubelets that are kept; needs no ground truth, and is reported for every mask
    score_auroc        AUROC of a low score for private tubelets, compared with those of the action
    score_auroc_all    the same, compared with all others, background included

A tubelet is private if more of its pixels show identity alone than the action, and at least a tenth of them does.
Every number is computed for each test clip, then averaged: scores of two clips need not be comparable. Its chance level
is that of a random mask that keeps as much.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.methods.masking.baselines import ACTION_ONLY, IDENTITY_ONLY, Grid, Kinds
from vidveil.statistics.metrics import auroc

Floats = NDArray[np.float64]
PRIVATE_SHARE = 0.1
"""Least share of a tubelet that shows identity alone, for the tubelet to be private."""
HIDDEN, ACTION_KEPT, ALL_KEPT = "identity_hidden", "action_kept", "tubelets_kept"
AUROC, AUROC_ALL = "score_auroc", "score_auroc_all"
TRUTHS = (HIDDEN, ACTION_KEPT, ALL_KEPT, AUROC, AUROC_ALL)
UNDEFINED = float("nan")


def has_truth(spec: str) -> bool:
    """Whether the dataset of this name has ground truth for each pixel."""
    return spec.partition(":")[0] == "puppets" and "view=" not in spec


def of_clips(
    kinds: Sequence[Kinds], kept: NDArray[np.bool_], scores: NDArray[np.float32], grid: Grid
) -> dict[str, float]:
    """Means over clips of all numbers: kept and scores are (N, L, h, w)."""
    whole = zip(kinds, kept, scores, strict=True)
    each = [of_mask(kind, mask, grid) | of_scores(kind, score, grid) for kind, mask, score in whole]
    return {name: float(np.nanmean([one[name] for one in each])) for name in each[0]}


def of_mask(kinds: Kinds, kept: NDArray[np.bool_], grid: Grid) -> dict[str, float]:
    """Of one clip: kinds (T, H, W), kept (L, h, w). NaN where the clip has no such pixel."""
    shown = grid.pixels(kept, kinds.shape)
    identity, action = kinds == IDENTITY_ONLY, kinds >= ACTION_ONLY
    return {
        HIDDEN: float(1 - shown[identity].mean()) if identity.any() else UNDEFINED,
        ACTION_KEPT: float(shown[action].mean()) if action.any() else UNDEFINED,
    }


def of_scores(kinds: Kinds, scores: NDArray[np.float32], grid: Grid) -> dict[str, float]:
    """Of one clip: AUROC of a low score for private tubelets. ½ is chance, 1 perfect; NaN if there are none."""
    if np.isnan(scores).any():
        raise DataError("a score is not a number: the method is broken, or its checkpoint is")
    most = np.finfo(np.float32).max
    private_score = -np.clip(scores, -most, most).astype(np.float64).ravel()
    identity, action = (grid.sums(which).ravel() for which in (kinds == IDENTITY_ONLY, kinds >= ACTION_ONLY))
    pixels = grid.sums(np.ones(kinds.shape)).ravel()
    private = (identity > action) & (identity >= PRIVATE_SHARE * pixels)
    against_action = np.where(private | (action > 0), private, np.nan)  # NaN: left out
    return {
        AUROC: float(auroc(against_action, private_score)),
        AUROC_ALL: float(auroc(private.astype(np.float64), private_score)),
    }
