"""Numbers of whole videos: how well events are found in them, with floors, and intervals over test videos.

    detection_map            mAP of actions with their seconds, mean over tIoU 0.3 … 0.7
    detection_map_50         the same at tIoU 0.5
    anomaly_frame_auc        P(an abnormal frame has a higher score than a normal one), over all frames of test videos
    anomaly_frame_auc_when   the same over frames of abnormal videos alone: whether it is known when, too
    anomaly_video_auc        the same over videos

None of these is a mean over videos, so each is computed anew in each draw of videos: a video that is drawn twice has
its events and its predictions twice. Videos of a person or a place are drawn together.

**Floor.** The predictions of a video are compared with the labels of another one, drawn at random, so many times: a
network that always predicts the same, or knows when things usually happen, gets that as well. Floor and range are of
the mean over seeds. Where frames are not labelled there is `anomaly_video_auc` alone.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from vidveil.core.progress import phase
from vidveil.evaluation.number import Number
from vidveil.statistics.floors import AUROC_FLOOR, floor_of
from vidveil.statistics.intervals import Resamples, Statistic
from vidveil.statistics.metrics import auroc
from vidveil.statistics.tradeoff import Measurement
from vidveil.tasks.anomaly import AnomalyScores, AnomalyVideos
from vidveil.tasks.anomaly.metric import logits
from vidveil.tasks.anomaly.segments import to_frames
from vidveil.tasks.detection import THRESHOLDS, Detections, DetectionVideos, Spans, detection_map
from vidveil.tasks.detection.metric import by_falling_score, correct_detections

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
HALF = THRESHOLDS.index(0.5)
AT_ONCE = 4_000_000
"""Numbers in memory at a time."""
SEED = (7, 0)
"""Of the permutations: a stream of random numbers of their own."""


@dataclass(frozen=True, eq=False)
class VideoResamples:
    """Test videos, drawn again and again; and permuted."""

    resamples: Resamples
    permutations: int

    def number(
        self,
        metric: str,
        each: Sequence[Statistic],
        permuted: Callable[[Whole], float],
        who: str,
        val: float,
        formula: float | None = None,
    ) -> Number:
        """Of the mean over seeds.

        Args:
            each: one per seed, of weights (b, V) of test videos.
            permuted: the mean over seeds where video i has the predictions of video `order[i]`.
        """
        value = self.resamples.statistic(each)
        rng, videos = np.random.default_rng(SEED), len(self.resamples.row)
        values = np.array([permuted(rng.permutation(videos)) for _ in range(self.permutations)])
        floor = floor_of(values, value.value)
        return Number(
            measured=Measurement(metric, value, floor.value),
            permuted=floor,
            formula=formula,
            measured_by=who,
            others={who: {"test": value.value, "val": val}},
            kind="utility",
        )


# ---- detection


@phase("detection: permutation tests and intervals")
def detection_numbers(
    data: DetectionVideos, rows: Whole, found: Sequence[Detections], val: float, drawn: VideoResamples
) -> dict[str, Number]:
    """Of what each seed's network found in the test videos `rows`."""
    truth, classes = data.truth(rows), len(data.classes)
    place = np.full(len(data), -1, np.int64)
    place[rows] = np.arange(len(rows))
    seeds = [WeightedMeanAP(truth, one, place) for one in found]
    memory: dict[bytes, Floats] = {}  # both numbers have the same permutations

    def permuted(order: Whole) -> Floats:
        """(thresholds,)"""
        key = order.tobytes()
        if key not in memory:
            moved = Spans(rows[np.argsort(order)][place[truth.video]], truth.span, truth.label)
            memory[key] = np.mean([detection_map(moved, one, classes).by_threshold for one in found], axis=0)
        return memory[key]

    def number(metric: str, of: Callable[[Floats], Floats]) -> Number:
        each = [_then(seed, of) for seed in seeds]
        return drawn.number(metric, each, lambda order: float(of(permuted(order)[None])[0]), "TriDet", val)

    return {
        "detection_map": number("mAP", lambda by_threshold: by_threshold.mean(axis=1)),
        "detection_map_50": number("mAP at 0.5", lambda by_threshold: by_threshold[:, HALF]),
    }


def _then(first: Callable[[Floats], Floats], second: Callable[[Floats], Floats]) -> Statistic:
    return lambda weights: second(first(weights))


class WeightedMeanAP:
    """mAP where videos weigh differently: whether a detection is right does not depend on other videos, its place in
    the list does."""

    def __init__(self, truth: Spans, found: Detections, place: Whole) -> None:
        found = by_falling_score(found)
        hits = correct_detections(truth, found, THRESHOLDS)  # (θ, n)
        self.known: dict[bytes, Floats] = {}  # two numbers are asked for of the same draws
        self.lists = []
        for label in np.unique(truth.label):
            own = found.label == label
            score = found.score[own]
            ends = np.append(score[1:] != score[:-1], True) if len(score) else np.zeros(0, bool)  # of ties
            happens = np.bincount(place[truth.video[truth.label == label]], minlength=int(place.max()) + 1)
            self.lists.append((place[found.video[own]], hits[:, own], ends, happens))

    def __call__(self, weights: Floats) -> Floats:
        """(b, V) → (b, θ); NaN where nothing happens in what was drawn."""
        key = hashlib.sha256(np.ascontiguousarray(weights).data).digest()
        if key not in self.known:
            most = max((len(video) for video, *_ in self.lists), default=1)
            step = max(1, AT_ONCE // (len(THRESHOLDS) * max(most, 1)))
            parts = [self._some(weights[start : start + step]) for start in range(0, len(weights), step)]
            self.known[key] = np.concatenate(parts)
        return self.known[key]

    def _some(self, weights: Floats) -> Floats:
        each = [self._of_class(weights, *one) for one in self.lists]
        there = ~np.isnan(each)  # (classes, b, θ)
        count = there.sum(axis=0)
        total = np.where(there, each, 0).sum(axis=0)
        mean: Floats = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
        return mean

    @staticmethod
    def _of_class(
        weights: Floats, video: Whole, hits: NDArray[np.bool_], ends: NDArray[np.bool_], happens: Whole
    ) -> Floats:
        """(b, θ)"""
        truths = weights @ happens  # (b,)
        own = weights[:, video]  # (b, n)
        right = (own[:, None] * hits).cumsum(axis=2)[:, :, ends]  # (b, θ, m)
        listed = own.cumsum(axis=1)[:, None, ends]
        precision = np.divide(right, listed, out=np.zeros_like(right), where=listed > 0)
        best = np.maximum.accumulate(precision[:, :, ::-1], axis=2)[:, :, ::-1]
        area = (np.diff(right, axis=2, prepend=0) * best).sum(axis=2)
        found: Floats = np.divide(area, truths[:, None], out=np.full(area.shape, np.nan), where=truths[:, None] > 0)
        return found


# ---- anomalies


@phase("anomalies: permutation tests and intervals")
def anomaly_numbers(
    data: AnomalyVideos, predictions: Sequence[AnomalyScores], val: float, drawn: VideoResamples
) -> dict[str, Number]:
    """Of the scores that each seed's network gave the test videos."""
    rows = data.indices("test")
    truth, frames = data.label[rows].astype(np.float64), data.frame_labels("test")
    scores = [logits(one.videos) for one in predictions]
    numbers = {}
    if frames is not None:
        clips = [len(data.features[row]) for row in rows]
        numbers["anomaly_frame_auc"] = _of_frames(predictions, clips, frames, np.ones(len(rows), bool), val, drawn)
        numbers["anomaly_frame_auc_when"] = _of_frames(predictions, clips, frames, truth > 0, val, drawn)
    numbers["anomaly_video_auc"] = drawn.number(
        "AUC of videos",
        [partial(auroc, truth, one) for one in scores],
        lambda order: float(np.mean([auroc(truth, one[order]) for one in scores])),
        "MGFN",
        val,
        AUROC_FLOOR,
    )
    return numbers


def _of_frames(
    predictions: Sequence[AnomalyScores],
    clips: Sequence[int],
    frames: Sequence[NDArray[np.uint8]],
    counted: NDArray[np.bool_],
    val: float,
    drawn: VideoResamples,
) -> Number:
    """AUC over all frames of the videos that count."""
    which = np.flatnonzero(counted)

    def lists(one: AnomalyScores, order: Whole) -> tuple[Whole, Floats, Floats, Floats]:
        """Each (R,): video, label, score, and how many of its frames have both."""
        parts = []
        for video in which.tolist():
            scores = logits(to_frames(one.segments[order[video]], clips[video], len(frames[video])))
            kinds, count = np.unique(np.stack([frames[video], scores]), axis=1, return_counts=True)
            parts.append(np.vstack([np.full(len(count), video), kinds, count]))
        whose, truth, scores, times = np.concatenate(parts, axis=1)
        return whose.astype(np.int64), truth, scores, times

    def statistic(one: AnomalyScores) -> Statistic:
        video, truth, scores, times = lists(one, np.arange(len(frames)))
        step = max(1, AT_ONCE // len(video))

        def of(weights: Floats) -> Floats:
            parts = [weights[start : start + step] for start in range(0, len(weights), step)]
            return np.concatenate([np.atleast_1d(auroc(truth, scores, part[:, video] * times)) for part in parts])

        return of

    def permuted(order: Whole) -> float:
        """Among the videos that count."""
        moved = np.arange(len(frames))
        moved[which] = which[np.argsort(order[which])]
        values = []
        for one in predictions:
            _, truth, scores, times = lists(one, moved)
            values.append(float(auroc(truth, scores, times)))
        return float(np.mean(values))

    name = "AUC of frames" if counted.all() else "AUC of frames of abnormal videos"
    return drawn.number(name, [statistic(one) for one in predictions], permuted, "MGFN", val, AUROC_FLOOR)
