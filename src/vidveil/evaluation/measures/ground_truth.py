"""What a mask hid of what is private, and kept of what the action needs, where ground truth is known.

    identity_hidden    share of the pixels that carry identity and no action which are hidden
    action_kept        share of the pixels that carry the action (and maybe identity, too) which are kept
    tubelets_kept      share of all tubelets that are kept; needs no truth, and is told of every mask
    score_auroc        does the score put private tubelets below those of the action?
    score_auroc_all    and below all others, background included?

A tubelet is private if more of its pixels carry identity alone than carry the action, and at least a tenth of it does.
Every number is taken in each test clip, then averaged: a score need not mean the same in two clips. Its floor is what a
mask by lot that keeps as much would have.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.progress import phase
from vidveil.data.clips import ClipSet
from vidveil.data.puppets import PuppetClips, masks
from vidveil.data.store.anonymized import KEPT, SCORES, Veiled
from vidveil.evaluation.measures.measure import Measure, Number
from vidveil.methods.masking.baselines import ACTION_ONLY, IDENTITY_ONLY, Grid, Kinds
from vidveil.statistics.floors import AUROC_FLOOR
from vidveil.statistics.metrics import auroc
from vidveil.statistics.tradeoff import Leak

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


class Truth:
    """Measures masks on the test clips of one set, as far as something is known of its pixels."""

    def __init__(self, data: ClipSet, measure: Measure) -> None:
        known = isinstance(data, PuppetClips) and data.world.view == "all"
        self.kinds = masks(data) if known else None  # (N, T, H, W)
        self.measure = measure

    @phase("comparing masks with the truth")
    def numbers(self, after: Sequence[ClipSet]) -> dict[str, Number]:
        """Of the sets that the judges of each seed saw; several, where the method was trained several times."""
        shown = list({id(one.videos): one.videos for one in after}.values())
        stores = [videos for videos in shown if isinstance(videos, Veiled) and videos.masked]
        if not stores:
            return {}
        each = [self._clips(store) for store in stores]
        found = {name: np.stack([one[name] for one in each]) for name in TRUTHS if name in each[0]}  # (S, N)
        lots = {HIDDEN: 1 - found[ALL_KEPT].mean(), ACTION_KEPT: found[ALL_KEPT].mean(), ALL_KEPT: UNDEFINED}
        return {name: self._number(name, values, float(lots.get(name, AUROC_FLOOR))) for name, values in found.items()}

    def _clips(self, videos: Veiled) -> dict[str, Floats]:
        """(N,) of each number, in the order of the test clips."""
        rows = []
        for row in self.measure.rows:
            found = {ALL_KEPT: videos.share_kept(row)}
            if self.kinds is not None and KEPT in videos.sides:
                grid = Grid(*videos.about["tubelet"])
                found |= of_mask(self.kinds[row], videos.side(KEPT, row).astype(np.bool_), grid)
                if SCORES in videos.sides:
                    found |= of_scores(self.kinds[row], videos.side(SCORES, row), grid)
            rows.append(found)
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _number(self, name: str, values: Floats, floor: float) -> Number:
        return Number(
            leak=Leak("share", self.measure.resamples.mean(values), floor),
            analytic=floor,
            floor_range=(floor, floor),
            measured_by="the mask" if name == ALL_KEPT else "ground truth",
            others={},
            kind="truth",
            per_clip=values,
        )


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
