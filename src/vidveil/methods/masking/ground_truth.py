"""What a mask hides of what is private, and keeps of what the action needs, where ground truth is known.

    identity_hidden    share of the pixels that carry identity and no action which are hidden
    action_kept        share of the pixels that carry the action (and maybe identity, too) which are kept
    tubelets_kept      share of all tubelets that are kept; needs no truth, and is reported of every mask
    score_auroc        does the score put private tubelets below those of the action?
    score_auroc_all    and below all others, background included?

A tubelet is private if more of its pixels carry identity alone than carry the action, and at least a tenth of it does.
Every number is taken in each test clip, then averaged: a score need not mean the same in two clips. Its floor is what a
random mask that keeps as much would have.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.methods.masking.baselines import ACTION_ONLY, IDENTITY_ONLY, Grid, Kinds
from vidveil.statistics.metrics import auroc

Floats = NDArray[np.float64]
PRIVATE_SHARE = 0.1
"""Of a tubelet that must carry identity alone, at least, for the tubelet to be private."""
HIDDEN, ACTION_KEPT, ALL_KEPT = "identity_hidden", "action_kept", "tubelets_kept"
AUROC, AUROC_ALL = "score_auroc", "score_auroc_all"
TRUTHS = (HIDDEN, ACTION_KEPT, ALL_KEPT, AUROC, AUROC_ALL)
UNDEFINED = float("nan")


def has_truth(spec: str) -> bool:
    """Whether the data of this name know what each pixel carries."""
    return spec.startswith("puppets") and "view=" not in spec


def of_clips(
    kinds: Sequence[Kinds], kept: NDArray[np.bool_], scores: NDArray[np.float32], grid: Grid
) -> dict[str, float]:
    """Means over clips of all that is known of each: kept and scores are (N, L, h, w)."""
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
    """Of one clip: how well a low score tells private tubelets. ½ is by lot, 1 always right; NaN without any."""
    if np.isnan(scores).any():
        raise DataError("a score is not a number: the method is broken, or its checkpoint is")
    most = np.finfo(np.float32).max
    private_score = -np.clip(scores, -most, most).astype(np.float64).ravel()
    identity, action = (grid.sums(which).ravel() for which in (kinds == IDENTITY_ONLY, kinds >= ACTION_ONLY))
    pixels = grid.sums(np.ones(kinds.shape)).ravel()
    private = (identity > action) & (identity >= PRIVATE_SHARE * pixels)
    against_action = np.where(private | (action > 0), private, np.nan)  # NaN: not asked about
    return {
        AUROC: float(auroc(against_action, private_score)),
        AUROC_ALL: float(auroc(private.astype(np.float64), private_score)),
    }
