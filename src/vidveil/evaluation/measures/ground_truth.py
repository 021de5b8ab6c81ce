"""Masks on the test clips of a set compared with ground truth: the numbers of `masking.ground_truth` as results."""

from collections.abc import Sequence

import numpy as np

from vidveil.core.progress import phase
from vidveil.data.clips import ClipSet
from vidveil.data.puppets import PuppetClips, masks
from vidveil.data.store.anonymized import KEPT, SCORES, AnonymizedVideos
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.number import Number
from vidveil.methods.masking.baselines import Grid
from vidveil.methods.masking.ground_truth import (
    ACTION_KEPT,
    ALL_KEPT,
    HIDDEN,
    TRUTHS,
    UNDEFINED,
    Floats,
    of_mask,
    of_scores,
)
from vidveil.statistics.floors import AUROC_FLOOR
from vidveil.statistics.tradeoff import Measurement


class Truth:
    """Measures masks on the test clips of one set, as far as something is known of its pixels."""

    def __init__(self, data: ClipSet, measure: Measure) -> None:
        known = isinstance(data, PuppetClips) and data.world.view == "all"
        self.kinds = masks(data) if known else None  # (N, T, H, W)
        self.measure = measure

    @phase("comparing masks with the truth")
    def numbers(self, after: Sequence[ClipSet]) -> dict[str, Number]:
        """Of the sets that the evaluators of each seed saw; several, where the method was trained several times."""
        shown = list({id(one.videos): one.videos for one in after}.values())
        stores = [videos for videos in shown if isinstance(videos, AnonymizedVideos) and videos.masked]
        if not stores:
            return {}
        each = [self._clips(store) for store in stores]
        found = {name: np.stack([one[name] for one in each]) for name in TRUTHS if name in each[0]}  # (S, N)
        rng = {HIDDEN: 1 - found[ALL_KEPT].mean(), ACTION_KEPT: found[ALL_KEPT].mean(), ALL_KEPT: UNDEFINED}
        return {name: self._number(name, values, float(rng.get(name, AUROC_FLOOR))) for name, values in found.items()}

    def _clips(self, videos: AnonymizedVideos) -> dict[str, Floats]:
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
            measured=Measurement("share", self.measure.resamples.mean(values), floor),
            measured_by="the mask" if name == ALL_KEPT else "ground truth",
            others={},
            kind="truth",
            per_clip=values,
        )
