"""Which runs can be compared clip by clip: those that were tested on the same clips, of the same people, in one order.

Next to `results.json` an evaluation leaves `per_clip.safetensors`: what its numbers are the means of. Whatever shows
that two of these files are not about the same clips is a reason not to pair them, reported in one line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.recipe_keys import FREE
from vidveil.data.description import UTILITY_METRICS
from vidveil.evaluation.per_clip import PEOPLE, draws_of, read_per_clip
from vidveil.evaluation.results import Point, Results
from vidveil.methods.masking.ground_truth import ACTION_KEPT, AUROC, HIDDEN
from vidveil.report.tables import spoken, used

RANK1, MAP = "linkage_rank1", "linkage_map"
COMPARED = (*UTILITY_METRICS, RANK1, MAP, HIDDEN, ACTION_KEPT, AUROC)
NOT_COMPARED = frozenset(
    "name data method region keep privacy_weight fill raw controls control_epochs permutations resamples tidy "
    "f1_threshold".split()
) | set(FREE)
"""Fields of a recipe that may differ between two runs without making the evaluation of one of them easier."""
WHOLE_VIDEOS = ("detection", "anomaly")
"""Protocols whose numbers are of all videos together."""
AGREES = 1e-4  # results have six digits, clips are stored in single precision


@dataclass(frozen=True, eq=False)
class Run:
    """Results with what they are the means of."""

    results: Results
    clips: dict[str, NDArray[np.generic]]

    @property
    def name(self) -> str:
        return self.results.name

    @property
    def people(self) -> NDArray[np.generic]:
        """(N,) who is in each test clip."""
        return self.clips[PEOPLE]

    def values(self, point: Point, metric: str) -> NDArray[np.float64]:
        """(S, N), one row per seed."""
        return np.atleast_2d(self.clips[f"{tag_of(point)}/{metric}"].astype(np.float64))

    def chance(self, point: Point, metric: str) -> NDArray[np.float64] | None:
        """(N,) what the floor by formula is the mean of, where it depends on who is asked about."""
        found = self.clips.get(f"{tag_of(point)}/{metric}/chance")
        return None if found is None else found.astype(np.float64)

    def hits_by(self, point: Point, metric: str, who: str) -> NDArray[np.float64]:
        """As `values`, of one of those that tried."""
        found = self.clips.get(f"{tag_of(point)}/{metric}/by/{who}")
        if found is None:
            raise DataError(f"{self.name} keeps no hits of {who}: it was evaluated by an older vidveil")
        return np.atleast_2d(found.astype(np.float64))

    def attribute_draws(self, point: Point) -> NDArray[np.float64] | None:
        """(B,) excess over attributes in each draw of people, as many as the evaluation made."""
        found = self.clips.get(draws_of(tag_of(point)))
        return None if found is None else found.astype(np.float64)


def comparable(runs: Sequence[tuple[Path, Results]]) -> tuple[list[Run], list[str]]:
    """Those that can be set next to the first of them, and why others cannot. Raw video is no method, and left out."""
    opened: list[Run] = []
    reasons = []
    for path, results in runs:
        if not results.points:
            continue
        if results.recipe.get("protocol") in WHOLE_VIDEOS:
            reasons.append(f"{used(results.raw.metrics)} of whole videos is no mean over videos")
            continue
        try:
            run = open_run(path, results)
        except DataError as error:
            reasons.append(str(error))
            continue
        reason = why_not(opened[0], run) if opened else None
        if reason is None:
            opened.append(run)
        else:
            reasons.append(reason)
    return opened, list(dict.fromkeys(reasons))


def open_run(path: Path, results: Results) -> Run:
    """The results at `path` with the file next to them. DataError says why there is none that can be used."""
    file = path.with_name("per_clip.safetensors")
    try:
        run = Run(results, read_per_clip(file))
        _check(run, file.name)
    except DataError as error:
        raise DataError(f"{results.name}: {error}") from error
    return run


def why_not(first: Run, other: Run) -> str | None:
    """Why two runs cannot be compared clip by clip; None if they can."""
    ours, theirs = (run.results.data.get("fingerprint") for run in (first, other))
    both = f"{first.name} and {other.name}"
    if not ours or ours != theirs:
        return f"{both} are about different videos (data {str(ours)[:12]} and {str(theirs)[:12]})"
    if first.results.data.get("labels") != other.results.data.get("labels"):
        return f"{both} were tested on other clips of the same videos, or with other labels"
    if len(first.people) != len(other.people):
        return f"{both} were tested on different numbers of clips, {len(first.people)} and {len(other.people)}"
    if not np.array_equal(first.people, other.people):
        return f"{both} were tested on different people, or on the same ones in another order"
    for metric in (RANK1, MAP):
        one, two = (run.chance(run.results.raw, metric) for run in (first, other))
        if one is not None and two is not None and not np.array_equal(one, two, equal_nan=True):
            return f"{both} looked people up in different galleries"
    return None


def different_settings(first: Run, other: Run) -> list[str]:
    """Fields of the recipes that make the evaluations differ: networks, epochs, seeds."""
    ours, theirs = first.results.recipe, other.results.recipe
    return sorted(key for key in (ours.keys() | theirs.keys()) - NOT_COMPARED if ours.get(key) != theirs.get(key))


def _check(run: Run, file: str) -> None:
    """The file must be whole, and the one that the results were made from: a folder may hold another's."""
    if PEOPLE not in run.clips:
        raise DataError(f"{file} does not say who is in the clips")
    for point in (run.results.raw, *run.results.points):
        for metric in COMPARED:
            if metric not in point.metrics:
                continue
            key, reported = f"{tag_of(point)}/{metric}", point.metrics[metric].value
            if key not in run.clips:
                raise DataError(f"{file} is not of these results: it lacks {key}")
            values = run.values(point, metric)
            if values.shape[1:] != run.people.shape:
                raise DataError(f"{file} is damaged: {values.shape[1]} clips in {key}, {len(run.people)} in {PEOPLE}")
            counted = ~np.isnan(values)
            if reported is None or not counted.any(axis=1).all():
                continue  # not measured, for one seed at least
            mean = float((np.where(counted, values, 0).sum(axis=1) / counted.sum(axis=1)).mean())
            if abs(mean - reported) > AGREES:
                what = spoken(metric)
                raise DataError(f"{file} is not of these results: {what} is {mean:.3f} there and {reported:.3f} here")


def tag_of(point: Point) -> str:
    """As evaluations name a setting in the file."""
    return point.method if point.keep is None else f"{point.method}-{point.keep:g}"
